"""`python -m kit batch`: one report per log, N at a time, an index of all, and nothing lost when one log fails.

Every report is made by a process of its own, so a log that exhausts memory or crashes stops only itself. A log whose
report is finished and still current (same files, parameters and kit) is not made again.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kit import numbers
from kit.analysis.folders import ENDINGS, log_name
from kit.analysis.parameters import Parameters, from_settings
from kit.analysis.store import REPORT_HTML, RESULTS_JSON, analysis_key, stored
from kit.cli import history
from kit.cli.arguments import UsageError, chosen_settings, pairs
from kit.cli.output import check_folder

GIB_PER_REPORT = 1.5
MOST_TOLD = 10


@dataclass(frozen=True)
class Outcome:
    """How one log ended: status made | kept | failed, its report (relative to the index) or the reason it has none."""

    name: str
    log: str
    status: str
    seconds: float | None = None
    report: str | None = None
    reason: str | None = None
    rule: int | None = None
    policy: str | None = None
    sentence: str | None = None
    saving_per_month: dict[str, Any] | None = None
    retention: dict[str, Any] | None = None
    facts: dict[str, Any] | None = None
    chargeback: dict[str, Any] | None = None


def command(chosen: argparse.Namespace) -> int:
    """Make every report, write index.html and batch.json; exit code 1 if any log failed.

    An interrupt still writes both for the logs that ended before it.
    """
    parameters = from_settings(chosen_settings(chosen), pairs(chosen.map, "--map"), chosen.format)
    logs = named_logs(chosen.log)
    for line in left_out(chosen.log):
        print(f"kit: {line}; name it itself if it is a log", file=sys.stderr)
    out = check_folder(chosen.out, "--out")
    out.mkdir(parents=True, exist_ok=True)
    jobs = chosen.jobs or default_jobs()
    ended: dict[str, Outcome] = {}
    try:
        _all(logs, out, chosen, parameters, jobs, ended)
    finally:
        outcomes = [ended[name] for name in logs if name in ended]
        if outcomes:
            _write(out, outcomes)
    failed = sum(outcome.status == "failed" for outcome in outcomes)
    if chosen.json:
        print(json.dumps([asdict(outcome) for outcome in outcomes], ensure_ascii=False))
    else:
        print("\n".join(_lines(outcomes)))
        print(f"index          {out / 'index.html'}")
    return 1 if failed else 0


def default_jobs() -> int:
    """Reports at the same time: one per core, as many as memory holds."""
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return max(1, min(os.cpu_count() or 1, int(gib / GIB_PER_REPORT)))


def named_logs(arguments: Sequence[str]) -> dict[str, str]:
    """Report name -> log file: files as given, globs, folders and manifests (@FILE, a log a line) spelt out.

    Equal names are told apart by a number. UsageError where nothing is named.
    """
    files: list[str] = []
    for argument in _with_manifests(arguments):
        if not argument.strip():
            raise UsageError("a log was named by an empty text; give files, folders or globs")
        path = Path(argument)
        if path.is_dir():
            files += sorted(str(inside) for inside in path.iterdir() if _is_log(inside))
        elif path.exists() or not glob.has_magic(argument):
            files.append(argument)
        else:
            files += sorted(glob.glob(argument, recursive=True))
    if not files:
        raise UsageError(f"no log files in {' '.join(arguments)}; give files, folders or globs of {', '.join(ENDINGS)}")
    names: dict[str, str] = {}
    once = {Path(file).resolve(): file for file in reversed(files)}
    for file in (file for file in dict.fromkeys(files) if once[Path(file).resolve()] == file):
        name, number = log_name([file]), 2
        while name in names:
            name, number = f"{log_name([file])}-{number}", number + 1
        names[name] = file
    return names


def _is_log(path: Path) -> bool:
    return path.is_file() and path.name.lower().endswith(ENDINGS) and not path.name.startswith(".")


def left_out(arguments: Sequence[str]) -> list[str]:
    """What the named folders hold beside logs, a line each: a batch makes no report of it."""
    inside = [path for one in _with_manifests(arguments) if Path(one).is_dir() for path in sorted(Path(one).iterdir())]
    others = [path for path in inside if not _is_log(path) and not path.name.startswith(".")]
    told = [f"left out {path} ({'a folder' if path.is_dir() else 'no log by its ending'})" for path in others]
    return told if len(told) <= MOST_TOLD else [*told[:MOST_TOLD], f"left out {len(told) - MOST_TOLD} more"]


def _with_manifests(arguments: Sequence[str]) -> Iterator[str]:
    """The arguments, each manifest replaced by its lines (relative to the manifest; blank and # lines left out)."""
    for argument in arguments:
        if not argument.startswith("@"):
            yield argument
            continue
        manifest = Path(argument[1:])
        if not manifest.is_file():
            raise UsageError(f"manifest {manifest} not found; give @FILE, a text file with one log a line")
        lines = (line.strip() for line in manifest.read_text(encoding="utf-8-sig").splitlines())
        yield from (str(manifest.parent / line) for line in lines if line and not line.startswith("#"))


def _all(
    logs: dict[str, str],
    out: Path,
    chosen: argparse.Namespace,
    parameters: Parameters,
    jobs: int,
    outcomes: dict[str, Outcome],
) -> None:
    """Make the reports, `jobs` at a time, and put how each ended into `outcomes` as it ends."""
    from tqdm import tqdm

    began = time.perf_counter()
    running: list[subprocess.Popen[str]] = []
    bar = tqdm(total=len(logs), unit="log", file=sys.stderr, disable=chosen.json or not sys.stderr.isatty())
    pool = ThreadPoolExecutor(jobs)
    try:
        tasks = [pool.submit(_one, name, log, out, chosen, parameters, running) for name, log in logs.items()]
        for task in as_completed(tasks):
            outcome = task.result()
            outcomes[outcome.name] = outcome
            bar.update(1)
            if bar.disable and not chosen.json:
                left = _time_left(time.perf_counter() - began, len(outcomes), len(logs))
                print(f"{outcome.status:7} {outcome.name} ({left})", file=sys.stderr, flush=True)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in running:
            if process.poll() is None:
                process.terminate()
        pool.shutdown(wait=True)
        bar.close()


def _time_left(seconds: float, done: int, total: int) -> str:
    """How many logs are done, and the time the others take at this pace."""
    text, left = f"{done} of {total}", seconds / done * (total - done)
    return text if left < 1 else f"{text}, about {numbers.seconds(left)} left"


def _one(
    name: str,
    log: str,
    out: Path,
    chosen: argparse.Namespace,
    parameters: Parameters,
    running: list[subprocess.Popen[str]],
) -> Outcome:
    began = time.perf_counter()
    if not chosen.redo and is_current(out / name, log, parameters):
        return _finished(name, log, out, "kept", None)
    process = subprocess.Popen(
        _report_command(name, log, out, chosen), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    running.append(process)
    _, errors = process.communicate()
    seconds = round(time.perf_counter() - began, 1)
    if process.returncode:
        reason = (errors.strip().splitlines() or [f"the report ended with code {process.returncode}"])[-1]
        return Outcome(name, log, "failed", seconds, reason=reason.removeprefix("kit: "))
    return _finished(name, log, out, "made", seconds)


def _report_command(name: str, log: str, out: Path, chosen: argparse.Namespace) -> list[str]:
    options = [text for value in chosen_settings(chosen) for text in ("--set", value)]
    options += [text for value in chosen.map for text in ("--map", value)]
    options += ["--format", chosen.format] if chosen.format else []
    return [
        *(sys.executable, "-m", "kit", "report", log, "--out", str(out), "--name", name),
        *("--for", chosen.reading, "--json", *options),
    ]


def is_current(folder: Path, log: str, parameters: Parameters) -> bool:
    """True when the folder holds a finished report of this log file as it is now, these parameters and this kit."""
    if not (folder / REPORT_HTML).exists() or not Path(log).is_file():
        return False
    found = stored(folder, analysis_key([Path(log)], parameters))
    if found is None:
        return False
    found.con.close()
    return True


def _finished(name: str, log: str, out: Path, status: str, seconds: float | None) -> Outcome:
    results = json.loads((out / name / RESULTS_JSON).read_text())
    decision = results["decision"]
    return Outcome(
        name,
        log,
        status,
        seconds,
        report=f"{name}/{REPORT_HTML}",
        rule=decision["rule"],
        policy=decision["policy"],
        sentence=decision["sentence"],
        saving_per_month=decision["saving_per_month"],
        retention={key: (results.get("ttl_verdict") or {}).get(key) for key in ("choice", "saving", "currency")},
        facts=history.facts(results),
        chargeback=results["chargeback"],
    )


def _write(out: Path, outcomes: list[Outcome]) -> None:
    """index.html and batch.json, each replaced whole; reports of earlier and of other runs stay in them."""
    from kit import report

    with history.alone(out):
        mine = [asdict(one) | {"log": Path(one.log).name} for one in outcomes]
        rows = history.joined(out, mine, history.earlier_rows(out))
        report.replace_file(out / history.BATCH_JSON, json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
        report.replace_file(out / "index.html", report.render_index(rows))


def _lines(outcomes: list[Outcome]) -> list[str]:
    width = max(len(outcome.name) for outcome in outcomes)
    return [
        f"{outcome.status:7} {outcome.name:{width}}  {outcome.reason or outcome.sentence or ''}" for outcome in outcomes
    ]
