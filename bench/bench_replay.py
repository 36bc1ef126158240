"""The replay loop against libCacheSim, in turn in one process: flat keys, and the chained blocks of a public trace.

    python bench/bench_replay.py [--requests N] [--keys N] [--repeat N] [--trace mooncake_conversation.jsonl]

Flat: Zipf 0.9 over the keys, sizes log-normal (median 4,000 tokens, sigma 1.2), budgets of 2, 10 and 40 % of all sizes
together. Blocks: the kit replays paths through a tree; the peer has no tree and sees the same blocks one by one, so its
time per touch compares and its hits do not. Printed is the CPU time of the thread in ns per touched entry, the median
of the repeats. The peer's time includes reading its trace, the kit's does not include numbering the keys; the kit also
keeps tallies per bootstrap block, per hour and per miss cause.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from kit import log, prefix
from kit.replay import replay

PROJECT = Path(__file__).resolve().parent.parent
TRACE = PROJECT.parent / "shared" / "data" / "mooncake_conversation.jsonl"
PEERS = {"lru": "LRU", "lfu": "LFU", "fifo": "FIFO", "gdsf": "GDSF"}
HEAD = f"{'policy':<8}{'budget':>14}{'kit ns':>9}{'peer ns':>9}{'peer / kit':>12}   same hits"
RECORD = np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])  # libCacheSim's oracleGeneral


def flat_trace(requests: int, keys: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Key of every request, size of every key."""
    rng = np.random.default_rng(seed)
    weight = np.cumsum(np.arange(1, keys + 1) ** -0.9)
    drawn = np.searchsorted(weight[:-1], rng.random(requests) * weight[-1])
    sizes = np.clip(np.rint(4_000 * np.exp(1.2 * rng.standard_normal(keys))), 200, 100_000).astype(np.int64)
    return rng.permutation(keys)[drawn], sizes


def flat_paths(keys: np.ndarray, sizes: np.ndarray) -> prefix.Paths:
    """The trace as paths of one node each, one request per second."""
    offsets = np.arange(len(keys) + 1)
    leaf, parent, tokens, _, _ = prefix.build_forest(offsets, keys.astype(np.uint64), sizes[keys])
    return prefix.make_paths(parent, tokens, leaf, np.arange(len(keys)) * 1_000_000)


def cpu_ns(run: Callable[[], object], touches: int) -> float:
    """Thread CPU time of one run, in ns per touch."""
    started = time.thread_time()
    run()
    return (time.thread_time() - started) / touches * 1e9


def peer_run(peer: object, name: str, file: str, budget: int) -> tuple[float, float]:
    """libCacheSim over the trace file: miss ratio of requests and of bytes (here tokens)."""
    cache = getattr(peer, name)(budget, hashpower=20)
    return cache.process_trace(peer.TraceReader(file, peer.TraceType.ORACLE_GENERAL_TRACE))  # type: ignore[attr-defined]


def peer_file(folder: str, keys: np.ndarray, sizes: np.ndarray) -> str:
    """The trace as libCacheSim reads it; returns the file's path."""
    records = np.zeros(len(keys), RECORD)
    records["time"], records["id"], records["size"], records["next"] = np.arange(len(keys)), keys, sizes, -1
    file = str(Path(folder) / "trace.oracleGeneral")
    records.tofile(file)
    return file


def compare(paths: prefix.Paths, touches: int, policy: str, budget: int, repeat: int, peer: object, file: str) -> None:
    """One line: the kit and the peer in turn, then whether their hits agree."""
    tally = replay(paths, policy, capacity_tokens=budget)  # compiles where it is the first
    kit, other = [], []
    for _ in range(repeat):
        kit.append(cpu_ns(lambda: replay(paths, policy, capacity_tokens=budget), touches))
        if peer:
            other.append(cpu_ns(lambda: peer_run(peer, PEERS[policy], file, budget), touches))
    line = f"{policy:<8}{budget:>14,}{median(kit):>9.0f}"
    if peer:
        hits = round((1 - peer_run(peer, PEERS[policy], file, budget)[0]) * touches)
        same = "-" if touches != len(paths.leaf) else "yes" if hits == tally.total("cold")["hits"] else "no"
        line += f"{median(other):>9.0f}{median(other) / median(kit):>12.2f}   {same}"
    print(line, flush=True)


def flat(requests: int, keys: int, repeat: int, peer: object) -> None:
    """Flat keys: the very same work on both sides."""
    drawn, sizes = flat_trace(requests, keys)
    paths, whole = flat_paths(drawn, sizes), int(sizes[np.unique(drawn)].sum())
    print(f"flat: {requests:,} requests, {len(np.unique(drawn)):,} keys, {whole:,} tokens in all\n{HEAD}")
    with tempfile.TemporaryDirectory() as folder:
        file = peer_file(folder, drawn, sizes[drawn])
        for policy in PEERS:
            for share in (0.02, 0.10, 0.40):
                compare(paths, requests, policy, int(whole * share), repeat, peer, file)


def blocks(trace: Path, repeat: int, peer: object) -> None:
    """Chained blocks of a public trace: ns per touched block."""
    if not trace.exists():
        print(f"\nblocks: {trace.name} is not beside the project, left out")
        return
    paths = prefix.load_paths(log.load([trace]))
    touched = []
    for leaf in paths.leaf[paths.leaf >= 0].tolist():
        path = []
        while leaf >= 0:
            path.append(leaf)
            leaf = paths.parent[leaf]
        touched += reversed(path)
    keys = np.array(touched)
    print(f"\nblocks: {trace.name}, {len(paths.leaf):,} requests, {len(keys):,} touches\n{HEAD}")
    with tempfile.TemporaryDirectory() as folder:
        file = peer_file(folder, keys, paths.room_tokens[keys])
        for policy in PEERS:
            for budget in (1_000 * 512, 10_000 * 512):
                compare(paths, len(keys), policy, budget, repeat, peer, file)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--trace", type=Path, default=TRACE, help="a Mooncake trace")
    chosen = parser.parse_args()
    try:
        import libcachesim as peer
    except ImportError:
        peer = None
        print("libCacheSim is not installed here: the kit alone\n")
    flat(chosen.requests, chosen.keys, chosen.repeat, peer)
    blocks(chosen.trace, chosen.repeat, peer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
