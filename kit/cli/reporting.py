"""`python -m kit report`: analyse once, let the notebooks read the finished analysis, publish the folder whole.

DIR/<log name>/ holds report.html, results.json, run.json (times, never in results.json), log.duckdb, one CSV per table
and the executed notebooks.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import kit
from kit import numbers
from kit.analysis.folders import log_name, whole_or_nothing
from kit.analysis.parameters import Parameters, from_settings
from kit.analysis.store import REPORT_HTML
from kit.cli import notebooks
from kit.cli.arguments import UsageError, chosen_settings, pairs
from kit.cli.output import check_folder
from kit.cli.progress import Progress

RUN_JSON = "run.json"


@dataclass(frozen=True)
class Made:
    """A published report: its folder and its results."""

    folder: Path
    results: dict[str, Any]

    @property
    def html(self) -> Path:
        """The file to share."""
        return self.folder / REPORT_HTML


def command(chosen: argparse.Namespace) -> int:
    """Make one report and print what was read, what was decided and where the file is."""
    parameters = from_settings(chosen_settings(chosen), pairs(chosen.map, "--map"), chosen.format)
    if chosen.name is not None and not (chosen.name and Path(chosen.name).name == chosen.name):
        raise UsageError(f"--name takes the name of one folder, got {chosen.name!r}; --out says where it stands")
    out = check_folder(chosen.out, "--out")
    made = make(chosen.log, out, parameters, chosen.reading, chosen.name, quiet=chosen.json)
    print(json.dumps(summary(made), ensure_ascii=False) if chosen.json else "\n".join(lines(made)))
    return 0


def make(
    sources: Sequence[str],
    out: Path,
    parameters: Parameters,
    reading: str = "both",
    name: str | None = None,
    quiet: bool = False,
) -> Made:
    """Analyse the sources into `out`/<log name>/ and return the report; on any failure the folder is left as it was."""
    from kit.analysis import analyse

    started = datetime.now(UTC)
    target = out / (log_name([name]) if name else log_name(sources))
    book_parameters = _notebook_parameters(sources, out, target, parameters, reading)
    notebooks.check(notebooks.source_folder(), book_parameters)
    progress = Progress(total=9 + len(notebooks.NAMES), quiet=quiet)
    try:
        with whole_or_nothing(target, sources) as work:
            done = analyse(sources, parameters, work, command=_command(sources, parameters), progress=progress)
            done.con.close()
            progress("notebooks")
            took = notebooks.run(work / "notebooks", work, book_parameters, progress=progress)
            if not (work / REPORT_HTML).exists():
                raise notebooks.NotebookError(f"report.ipynb ended without writing {REPORT_HTML}")
            progress.close()
            _write_run(work, started, progress.seconds | took)
    finally:
        progress.close()
    return Made(target, done.results)


def _notebook_parameters(
    sources: Sequence[str], out: Path, target: Path, parameters: Parameters, reading: str
) -> dict[str, Any]:
    """Literals for the tagged cell; paths relative to the executed notebooks, so that they run again from there."""
    books = target / "notebooks"
    relative = [os.path.relpath(Path(source).resolve(), books.resolve()) for source in sources]
    named = ("capacity_tokens", "block_tokens", "ttl_seconds", "policies", "seed")
    values = parameters.as_dict()
    changed = {name: value for name, value in parameters.changed().items() if name not in named}
    return {
        "log_path": relative[0] if len(relative) == 1 else relative,
        "out_dir": os.path.relpath(out.resolve(), books.resolve()),
        **{name: values[name] for name in named},
        "settings": changed,
        "reading": reading,
    }


def _command(sources: Sequence[str], parameters: Parameters) -> str:
    """The command that makes this report again: relative paths as typed, of absolute ones the file name only."""
    changed = parameters.changed()
    parts = ["python", "-m", "kit", "report", *(Path(s).name if Path(s).is_absolute() else s for s in sources)]
    for name, value in changed.items():
        if name == "column_map":
            parts += [text for column, source in value.items() for text in ("--map", f"{column}={source}")]
        elif name == "thresholds":
            parts += [text for threshold, limit in value.items() for text in ("--set", f"{threshold}={limit}")]
        else:
            parts += ["--set", f"{name}={'none' if value is None else value}"]
    return shlex.join(parts)


def _write_run(folder: Path, started: datetime, seconds: dict[str, float]) -> None:
    """run.json: what changes from run to run, kept out of results.json."""
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run = {
        "kit_version": kit.__version__,
        "python": platform.python_version(),
        "started": started.isoformat(timespec="seconds"),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round((datetime.now(UTC) - started).total_seconds(), 3),
        "seconds_by_step": seconds,
        "analysis_peak_mib": round(peak_kib / (1024 * 1024 if sys.platform == "darwin" else 1024), 1),
    }
    (folder / RUN_JSON).write_text(json.dumps(run, indent=2) + "\n")


def summary(made: Made) -> dict[str, Any]:
    """What the command tells, as one plain table."""
    log, decision = made.results["log"], made.results["decision"]
    return {
        "rows": log["rows"],
        "kept": log["kept"],
        "rejected": log["rejected"],
        "rule": decision["rule"],
        "policy": decision["policy"],
        "provisional": decision["provisional"],
        "sentence": decision["sentence"],
        "report": str(made.html),
        "results": str(made.folder / "results.json"),
    }


def lines(made: Made) -> list[str]:
    """What the command prints for a person."""
    facts = summary(made)
    fired = next((row for row in made.results["decision"]["trail"] if row["rule"] == facts["rule"]), None)
    reasons = [f"  {numbers.count(n)} {reason}" for reason, n in facts["rejected"].items()]
    return [
        f"rows read      {numbers.count(facts['rows'])}",
        f"rows rejected  {numbers.count(sum(facts['rejected'].values()))}",
        *reasons,
        f"rule fired     {facts['rule']}: {fired['question']}" if fired else f"rule fired     {facts['rule']}",
        f"verdict        {facts['sentence']}",
        *([f"budget         {origin}"] if (origin := made.results["settings"]["capacity_origin"]) else []),
        f"report         {facts['report']}",
    ]
