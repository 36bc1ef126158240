"""Seconds and peak memory of `python -m kit report` for each log, start to finish, with every process it starts.

Memory is the sum of the resident sizes of the process and its children, looked at 20 times a second. Pages that they
share are counted once per process, so the figure is an upper bound.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

PROJECT = Path(__file__).resolve().parent.parent
BESIDE = PROJECT.parent / "shared" / "data"
LOGS = [
    PROJECT / "data" / "sample_week.parquet",
    BESIDE / "claude_agents_week.csv",
    BESIDE / "mooncake_conversation.jsonl",
]


def _resident_bytes(process: psutil.Process) -> int:
    total = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            total += one.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


def measure(log: Path, arguments: list[str]) -> tuple[float, float, int]:
    """Seconds, peak MiB and exit code of one report in a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as out, tempfile.TemporaryFile() as said:
        started = time.perf_counter()
        run = subprocess.Popen(
            [sys.executable, "-m", "kit", "report", str(log), "--out", out, *arguments],
            cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=said,
        )  # fmt: skip
        peak, process = 0, psutil.Process(run.pid)
        while run.poll() is None:
            peak = max(peak, _resident_bytes(process))
            time.sleep(0.05)
        seconds = time.perf_counter() - started
        if run.returncode:
            said.seek(0)
            sys.stderr.buffer.write(said.read())
        return seconds, peak / 2**20, run.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "logs", nargs="*", type=Path, help="logs to report on (default: the sample and two public traces)"
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the report")
    chosen = parser.parse_args()
    failed = 0
    print(f"{'log':<32}{'seconds':>10}{'peak MiB':>10}")
    for log in chosen.logs or [log for log in LOGS if log.exists()]:
        seconds, peak, code = measure(log, [part for one in chosen.set for part in ("--set", one)])
        print(f"{log.name:<32}{seconds:>10.1f}{peak:>10,.0f}{'' if code == 0 else '   failed'}", flush=True)
        failed |= code
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
