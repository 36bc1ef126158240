"""Seconds and peak memory of a batch: eight logs, one of them broken and one empty, on two workers; then resumed.

    python bench/bench_batch.py [--jobs N] [--requests N]

Six sample weeks of different seeds stand for six logs. Memory is the sum over the command and everything below it,
sampled while it runs, so it is that of two reports with their kernels at the same time. Fails where the batch does not
end as it must: six reports, two reasons, and a second run that makes nothing again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_report import MIB, PROJECT, peak_memory

WEEKS = 6


def logs(folder: Path, requests: int) -> None:
    """Six sample weeks, a file that is no log, and an empty one."""
    for seed in range(1, WEEKS + 1):
        path = folder / f"week_2026-09-{seed:02}.parquet"
        command = [sys.executable, "-m", "kit", "sample", str(path), "--seed", str(seed), "--requests", str(requests)]
        subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.DEVNULL)
    (folder / "broken.jsonl").write_text('{"colour": "red"\n{"colour": \n')
    (folder / "empty.csv").write_text("")


def run(folder: Path, jobs: int) -> tuple[float, float, dict[str, str]]:
    """(seconds, peak MiB, status of each log) of one batch over the folder."""
    command = [sys.executable, "-m", "kit", "batch", str(folder / "logs"), "--out", str(folder / "out")]
    began = time.perf_counter()
    with subprocess.Popen([*command, "--jobs", str(jobs), "--json"], cwd=PROJECT, stdout=subprocess.PIPE) as process:
        peak = peak_memory(process)
        output, _ = process.communicate()
    rows = {row["name"]: row["status"] for row in json.loads(output)}
    return time.perf_counter() - began, peak / MIB, rows


def expect(rows: dict[str, str], status: str) -> None:
    """SystemExit unless the six weeks have the status and the other two failed."""
    wrong = {
        name: found
        for name, found in rows.items()
        if found != ("failed" if name in ("broken", "empty") else status)
    }  # fmt: skip
    if wrong or len(rows) != WEEKS + 2:
        raise SystemExit(f"the batch ended otherwise than it must: {wrong or rows}")


def main() -> None:
    """Print one line per run: made, then resumed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--requests", type=int, default=24_000)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "logs").mkdir()
        logs(folder / "logs", chosen.requests)
        for words, status in (("made", "made"), ("resumed", "kept")):
            seconds, peak, rows = run(folder, chosen.jobs)
            expect(rows, status)
            print(f"{len(rows)} logs on {chosen.jobs} workers, {words:8} {seconds:8.1f} s {peak:8,.0f} MiB at once")


if __name__ == "__main__":
    main()
