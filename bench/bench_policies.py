"""The other policies against libCacheSim on flat keys, in turn in one process, and what a first use costs to compile.

    python bench/bench_policies.py [--requests N] [--keys N] [--repeat N] [--policies A,B] [--no-compile]

Trace and budgets are those of bench_replay.py (2, 10 and 40 % of all sizes together). Printed is the CPU time of the
thread in ns per request, the median of the repeats, then whether both miss the same number of requests; "close" where
the rules differ (see the docstrings of tests/test_policies_peers.py). Compile seconds are CPU time with an empty cache.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from statistics import median

import numpy as np
from bench_replay import cpu_ns, flat_paths, flat_trace, peer_file

from kit.policies import REGISTRY
from kit.prefix import Paths
from kit.replay import replay

PEERS = {
    "sieve": "Sieve", "s3fifo": "S3FIFO", "arc": "ARC", "twoq": "TwoQ", "lruk": "LRUK", "w_tinylfu": "WTinyLFU",
    "hyperbolic": "Hyperbolic", "lhd": "LHD", "lecar": "LeCaR",
}  # fmt: skip
MEMORY_HUNGRY = {"w_tinylfu": 40_000_000}  # the peer's sketch takes 58 bytes per token of the budget: none above this
COMPILE = """
import sys, time
import numpy as np
from dataclasses import replace
from kit.policies import REGISTRY
from kit.prefix import make_paths
from kit.replay import replay
def paths(parent, leaf):
    tags = {"priority": np.full(len(leaf), 35), "retention_seconds": np.full(len(leaf), -1.0)}
    return replace(make_paths(np.array(parent), np.ones(len(parent), np.int64), np.array(leaf), np.arange(len(leaf))),
                   tags=tags)
blocks, keys = paths([-1, 0, 1, 0], [2, 1, 2, 3, 2, 3]), paths([-1, -1, -1, -1], [0, 1, 2, 0, 3, 1])
replay(blocks, "fifo", capacity_tokens=3)
for name in sys.argv[1].split(","):
    seconds = []
    for log in (blocks, keys):
        started = time.process_time()
        replay(log, name, capacity_tokens=3)
        seconds.append(time.process_time() - started)
    print(f"{name:<22}{seconds[0]:>8.1f}{seconds[1]:>8.1f}", flush=True)
"""


def compile_times(policies: list[str]) -> None:
    """CPU seconds of each policy's first use on blocks and on flat keys, in a fresh process with an empty cache (`fifo`
    runs on blocks before the clock)."""
    print(f"\n{'first use of':<22}{'blocks':>8}{'flat':>8}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        subprocess.run([sys.executable, "-c", COMPILE, ",".join(policies)], env=environment, check=True)


def peer_misses(peer: object, policy: str, file: str, budget: int, requests: int) -> int:
    """Requests that miss in libCacheSim."""
    cache = getattr(peer, PEERS[policy])(budget, hashpower=20)
    reader = peer.TraceReader(file, peer.TraceType.ORACLE_GENERAL_TRACE)  # type: ignore[attr-defined]
    return round(cache.process_trace(reader)[0] * requests)


def compare(paths: Paths, policy: str, budget: int, repeat: int, peer: object, file: str) -> None:
    """One line: the kit and the peer in turn."""
    total = replay(paths, policy, capacity_tokens=budget).total()
    missed = total["requests"] - total["hits"]
    kit, other, theirs = [], [], -1
    for _ in range(repeat):
        kit.append(cpu_ns(lambda: replay(paths, policy, capacity_tokens=budget), paths.requests))
        if peer and budget <= MEMORY_HUNGRY.get(policy, budget):
            started = time.thread_time()
            theirs = peer_misses(peer, policy, file, budget, paths.requests)
            other.append((time.thread_time() - started) / paths.requests * 1e9)
    line = f"{policy:<12}{budget:>14,}{median(kit):>9.0f}"
    if other:
        same = "yes" if missed == theirs else f"close: {missed:,} misses against {theirs:,}"
        line += f"{median(other):>9.0f}{median(other) / median(kit):>12.2f}   {same}"
    print(line, flush=True)


def peer_module() -> object:
    """libCacheSim, or None where it is not installed."""
    try:
        import libcachesim
    except ImportError:
        print("libCacheSim is not installed (bench/requirements.lock): the kit's own figures only")
        return None
    return libcachesim


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000_000, help="requests of the flat trace")
    parser.add_argument("--keys", type=int, default=1_000_000, help="keys of the flat trace")
    parser.add_argument("--repeat", type=int, default=3, help="runs of which the median is printed")
    parser.add_argument("--policies", default=",".join(PEERS), help="policies to time, separated by commas")
    parser.add_argument("--no-compile", action="store_true", help="leave out the compile times")
    args, _ = parser.parse_known_args()
    peer = peer_module()
    keys, sizes = flat_trace(args.requests, args.keys)
    paths = flat_paths(keys, sizes)
    held = int(sizes[np.unique(keys)].sum())
    print(f"{args.requests:,} requests, {args.keys:,} keys, {held:,} tokens of distinct keys")
    print(f"{'policy':<12}{'budget':>14}{'kit ns':>9}{'peer ns':>9}{'peer / kit':>12}   same misses", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        file = peer_file(folder, keys, sizes[keys]) if peer else ""
        for policy in args.policies.split(","):
            for share in (0.02, 0.10, 0.40):
                compare(paths, policy, int(held * share), args.repeat, peer, file)
    if not args.no_compile:
        compile_times(sorted(set(REGISTRY) - {"fifo"}))


if __name__ == "__main__":
    main()
