"""Folders that appear whole or not at all: work happens beside the target, and one rename publishes it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ENDINGS = (".gz", ".zst", ".parquet", ".csv", ".jsonl", ".ndjson", ".json", ".txt", ".log")


def log_name(sources: Sequence[str]) -> str:
    """The folder name of a log: its file's stem (or its folder's name), safe in a path; several files add "+N"."""
    first = Path(sources[0])
    name = first.resolve().name if first.name in ("", ".", "..") else first.name
    for _ in range(2):
        for ending in ENDINGS:
            name = name.removesuffix(ending)
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._") or "log"
    return f"{name}+{len(sources) - 1}" if len(sources) > 1 else name


@contextmanager
def whole_or_nothing(target: Path) -> Iterator[Path]:
    """A working folder beside `target` that replaces it when the block ends well, and is removed when it does not.

    Two runs that write the same folder do not mix: each works in a folder of its own and the last rename wins.
    """
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
            shutil.rmtree(old, ignore_errors=True)
    raise OSError(f"cannot write {target}: another run keeps writing it; give this one its own --out folder")
