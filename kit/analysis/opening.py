"""What a notebook calls: the finished analysis of a log with these parameters, run first where there is none yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kit.analysis.folders import log_name, whole_or_nothing
from kit.analysis.parameters import ParameterError, from_values
from kit.analysis.store import Analysis, analysis_key, in_progress, opened, stored


def open_analysis(
    log_path: str | Sequence[str],
    out_dir: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    reading: str = "both",
    **parameters: Any,
) -> Analysis:
    """The analysis of a log with these parameters, read from disk where it is finished, else run and kept.

    Looked for in the running report's folder, then in `out_dir`/<log name>/, then in a folder of its own beside it. A
    report is never overwritten by a notebook that was run with other parameters. ParameterError names a wrong value,
    before any work; `reading` is checked with the others for the notebook that writes the report at its end.
    """
    _check(log_path, out_dir, settings, reading)
    chosen = from_values({**parameters, **(settings or {})})
    running = in_progress(chosen)
    if running is not None:
        return running
    from kit.log.sources import resolve

    sources = [log_path] if isinstance(log_path, str) else list(log_path)
    key = analysis_key(resolve(sources), chosen)
    report = Path(out_dir) / log_name(sources)
    own = report.with_name(f"{report.name}-{key.files[:4]}{key.parameters[:4]}")
    found = stored(report, key) or stored(own, key)
    if found is not None:
        return found
    _run_into(own, sources, chosen)
    return opened(own)


def _check(log_path: Any, out_dir: Any, settings: Any, reading: Any) -> None:
    """What a notebook's cell may hold in the places that are no parameters of the analysis itself."""
    paths = list(log_path) if isinstance(log_path, list | tuple) else [log_path]
    if not paths or not all(isinstance(path, str) and path for path in paths):
        raise ParameterError(f"log_path must be a path or a list of paths, got {log_path!r}")
    if not isinstance(out_dir, str | Path):
        raise ParameterError(f"out_dir must be a folder's path, got {out_dir!r}")
    if settings is not None and not isinstance(settings, Mapping):
        raise ParameterError(f"settings must be a table of names and values such as {{'seed': 2}}, got {settings!r}")
    from kit.report import READINGS

    if reading not in READINGS:
        raise ParameterError(f"reading must be one of {', '.join(READINGS)}, got {reading!r}")


def _run_into(folder: Path, sources: list[str], parameters: Any) -> None:
    from kit.analysis.run import analyse

    with whole_or_nothing(folder) as work:
        analyse(sources, parameters, work).con.close()
