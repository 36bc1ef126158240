"""What a notebook calls: the finished analysis of a log with these parameters, run first where there is none yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kit.analysis.folders import log_name, whole_or_nothing
from kit.analysis.parameters import from_values
from kit.analysis.store import Analysis, analysis_key, store_in_progress, stored
from kit.log.sources import resolve


def open_analysis(
    log_path: str | Sequence[str],
    out_dir: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    **parameters: Any,
) -> Analysis:
    """The analysis of a log with these parameters, read from disk where it is finished, else run and kept.

    Looked for in the running report's folder, then in `out_dir`/<log name>/, then in a folder of its own beside it. A
    report is never overwritten by a notebook that was run with other parameters. ParameterError names a wrong value.
    """
    chosen = from_values({**parameters, **(settings or {})})
    sources = [log_path] if isinstance(log_path, str) else list(log_path)
    key = analysis_key(resolve(sources), chosen)
    report = Path(out_dir) / log_name(sources)
    own = report.with_name(f"{report.name}-{key[:8]}")
    running = store_in_progress()
    if running is not None and (found := stored(running, key, any_code=True)):
        return found
    for folder in (report, own):
        if found := stored(folder, key):
            return found
    _run_into(own, sources, chosen)
    found = stored(own, key)
    if found is None:
        raise OSError(f"{own}: the analysis could not be stored there; choose another out_dir")
    return found


def _run_into(folder: Path, sources: list[str], parameters: Any) -> None:
    from kit.analysis.run import analyse

    with whole_or_nothing(folder) as work:
        analyse(sources, parameters, work).con.close()
