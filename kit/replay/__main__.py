"""`python -m kit.replay [policy ...]`: compile the loops once per policy into the disk cache, in two processes.

A report compiles what it needs by itself; doing it at installation takes the wait out of the first report.
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np

from kit.prefix import make_paths
from kit.replay import lru_curve, optimal, replay

EVERY_REPORT = ("lru", "lfu", "lfu_perfect", "lfu_decay", "length", "fifo", "fifo_flat", "gdsf")


def compile_one(name: str) -> tuple[str, float]:
    """(policy, seconds): replay two requests for segments and two for flat keys, which compiles both loops or loads
    them from the cache."""
    segments = make_paths(np.array([-1, 0]), np.array([4, 4]), np.array([1, 1]), np.array([0, 1]), block_tokens=2,
                          unit_tokens=2)  # fmt: skip
    keys = make_paths(np.array([-1, -1]), np.array([4, 4]), np.array([0, 1]), np.array([0, 1]))
    start = time.perf_counter()
    for paths in (segments, keys):
        replay(paths, name, capacity_tokens=8)
        optimal(paths, 8)
        lru_curve(paths)
    return name, time.perf_counter() - start


def main(names: list[str]) -> int:
    """Compile the named policies here and print the seconds each took; without names, those of every report in two
    processes. Comes back as an exit code."""
    if names:
        for name, seconds in map(compile_one, names):
            print(f"{name:12s} {seconds:5.1f} s", file=sys.stderr)
        return 0
    halves = EVERY_REPORT[::2], EVERY_REPORT[1::2]
    running = [subprocess.Popen([sys.executable, "-m", "kit.replay", *half]) for half in halves]
    return max(process.wait() for process in running)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
