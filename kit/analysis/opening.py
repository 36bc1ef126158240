"""What a notebook calls: the finished analysis of a log with these parameters, run first where there is none yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kit.analysis.folders import log_name, whole_or_nothing
from kit.analysis.parameters import from_values
from kit.analysis.store import Analysis, analysis_key, in_progress, opened, stored


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


def _run_into(folder: Path, sources: list[str], parameters: Any) -> None:
    from kit.analysis.run import analyse

    with whole_or_nothing(folder) as work:
        analyse(sources, parameters, work).con.close()
