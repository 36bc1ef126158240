"""Seconds and peak memory of whole reports, from the log to the HTML file, notebooks included.

    python bench/bench_report.py [LOG...] [--repeat N]

Each report runs in a process of its own; its memory is the sum over that process and every kernel it starts, sampled
while it runs. Without arguments: the bundled sample week, and the two public traces where they lie beside the project.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

PROJECT = Path(__file__).resolve().parent.parent
SHARED = PROJECT.parent / "shared" / "data"
LOGS = (
    PROJECT / "data" / "sample_week.parquet",
    SHARED / "claude_agents_week.csv",
    SHARED / "mooncake_conversation.jsonl",
)
MIB = 1024 * 1024
TARGET_SECONDS, TARGET_MIB = 60, 1536


def memory(process: psutil.Process) -> int:
    """Resident bytes of a process and everything below it; what ends meanwhile counts nothing."""
    total = 0
    for one in (process, *process.children(recursive=True)):
        try:
            total += one.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


def peak_memory(running: subprocess.Popen[Any]) -> int:
    """Most bytes a process and its children held together, watched until it ends."""
    peak = 0
    watched = psutil.Process(running.pid)
    while running.poll() is None:
        try:
            peak = max(peak, memory(watched))
        except psutil.NoSuchProcess:
            break
        time.sleep(0.05)
    return peak


def measure(log: Path) -> tuple[float, float, dict[str, float]]:
    """(seconds, peak MiB, seconds by step) of one report into a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "kit", "report", str(log), "--out", folder, "--json"]
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
        peak = peak_memory(process)
        output, _ = process.communicate()
        seconds = time.perf_counter() - began
        if process.returncode:
            raise SystemExit(f"{log.name}: the report failed with code {process.returncode}")
        made = Path(json.loads(output)["report"]).parent
        steps: dict[str, float] = json.loads((made / "run.json").read_text())["seconds_by_step"]
    return seconds, peak / MIB, steps


def main() -> None:
    """Print one line per log and run."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("logs", nargs="*", type=Path)
    options.add_argument("--repeat", type=int, default=1)
    chosen = options.parse_args()
    print(f"{'log':28} {'seconds':>8} {'peak MiB':>9}  (target {TARGET_SECONDS} s, {TARGET_MIB:,} MiB) parts")
    for log in chosen.logs or LOGS:
        if not log.exists():
            print(f"{log.name:28} not present beside the project")
            continue
        for _ in range(chosen.repeat):
            seconds, peak, steps = measure(log)
            books = sum(value for name, value in steps.items() if name.startswith("notebook"))
            rest = sum(steps.values()) - books
            print(f"{log.name:28} {seconds:8.1f} {peak:9,.0f}  {rest:.1f} + {books:.1f} s")


if __name__ == "__main__":
    main()
