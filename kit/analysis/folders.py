"""Folders that appear whole or not at all: work happens beside the target, and one rename publishes it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

MADE_BY_THE_KIT = ("results.json", "log.duckdb", "run.json")
ENDINGS = (".gz", ".zst", ".parquet", ".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".txt", ".log")


def log_name(sources: Sequence[str]) -> str:
    """The folder name of a log: its file's stem (or its folder's name), safe in a path; several files add "+N"."""
    first = Path(sources[0])
    name = first.resolve().name if first.name in ("", ".", "..") else first.name
    while name.lower().endswith(ENDINGS):
        name = name[: name.rindex(".")]
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._") or "log"
    others = len({Path(source).resolve() for source in sources}) - 1
    return f"{name}+{others}" if others else name


def refuse_to_replace(target: Path, sources: Sequence[str] = ()) -> None:
    """ValueError where writing `target` would destroy something the kit did not make: a log it reads, a file, or a
    folder without a report of the kit in it."""
    advice = "choose another --out or --name"
    here = target.resolve()
    inside = [one for one in sources if here in (Path(one).resolve(), *Path(one).resolve().parents)]
    if inside:
        raise ValueError(f"{target} holds the log {inside[0]} itself and would be replaced by its report; {advice}")
    if target.exists() and not target.is_dir():
        raise ValueError(f"{target} is a file where the report's folder would stand; {advice}")
    if target.is_dir() and any(target.iterdir()) and not any((target / name).exists() for name in MADE_BY_THE_KIT):
        raise ValueError(f"{target} exists and holds no report of the kit, so it is not replaced; {advice}")
    blocked = next((one for one in target.parents if one.exists() and not one.is_dir()), None)
    if blocked is not None:
        raise ValueError(f"--out {target.parent}: {blocked} is a file, not a folder; {advice}")


@contextmanager
def whole_or_nothing(target: Path, sources: Sequence[str] = ()) -> Iterator[Path]:
    """A working folder beside `target` that replaces it when the block ends well, and is removed when it does not.

    Two runs that write the same folder do not mix: each works in a folder of its own and the last rename wins. Only a
    folder that holds an earlier report is replaced, never one of the `sources` (ValueError).
    """
    refuse_to_replace(target, sources)
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    try:
        yield work
        work.chmod(0o755)
        _publish(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _publish(work: Path, target: Path) -> None:
    for _ in range(20):
        old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
        try:
            if target.exists():
                os.replace(target, old / "previous")
            os.rename(work, target)
            return
        except OSError:
            if not work.exists():
                raise
        finally:
            if (old / "previous").exists() and not target.exists():
                os.rename(old / "previous", target)
            shutil.rmtree(old, ignore_errors=True)
    raise OSError(f"cannot write {target}: another run keeps writing it; give this one its own --out folder")
