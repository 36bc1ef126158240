"""The Mooncake trace end to end at 13 capacities: against kvcache-simulator's C++ path, then with every quick policy.

    python bench/bench_mooncake.py [--repeat N] [--trace mooncake_conversation.jsonl] [--compare | --every]

End to end is a process of its own: start, load, replay, print. Three columns, as the peer has them (its FIFO is
`fifo_flat`: a root may go before its children), a partial block at the end of a prompt counted as a block, hits over
the second half of the requests; both programs' hit tokens are compared. LRU's column is read off its exact curve, which
is one pass for all capacities. Printed is wall time and CPU time of the whole process, in turn, the median of the
repeats; the first run of each, in which the peer compiles, is not counted. Both find their Python files compiled, as
any second run does. Then
every policy but those that look at many entries for each eviction, at all capacities in one process, with its peak
memory; compiled loops come from the disk cache of a run before.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
TRACE = PROJECT.parent / "shared" / "data" / "mooncake_conversation.jsonl"
BLOCK_TOKENS = 512
BLOCKS = (512, 1_000, 2_048, 3_000, 5_000, 8_192, 10_000, 14_000, 20_000, 32_768, 50_000, 65_536, 100_000)
COLUMNS = {"fifo_flat": "fifo", "lru": "lru", "optimal": "optimal"}
MODEL, BLOCKS_PER_GIB = "llama-3.1-8b", 16  # 131,072 bytes a token: 64 MiB a block of 512
SLOW = ("marconi", "lhd", "redis_lru", "redis_lfu", "hyperbolic")
USUAL_PRIORITY = 35


def load(trace: str, partial_tail: str) -> Any:
    """The trace as paths."""
    from kit import log, prefix

    return prefix.load_paths(log.load([trace]), partial_tail=partial_tail)


def three_columns(trace: str) -> dict[str, dict[int, int]]:
    """Hit tokens of the second half by column and capacity in blocks, as the peer counts them."""
    import numpy as np

    from kit.replay import bounds, replay_grid

    paths = load(trace, "keep")
    capacities = [blocks * BLOCK_TOKENS for blocks in BLOCKS]
    sizes, hits = bounds.lru_curve(paths, window="warm")
    places = np.searchsorted(sizes, capacities, side="right") - 1
    tallies = replay_grid(paths, ["fifo_flat"], capacities)
    return {
        "fifo_flat": dict(zip(BLOCKS, (tally.total("warm")["hit_tokens"] for tally in tallies), strict=True)),
        "lru": dict(zip(BLOCKS, hits[places].tolist(), strict=True)),
        "optimal": dict(zip(BLOCKS, (best.warm_hit_tokens for best in bounds.optima(paths, capacities)), strict=True)),
    }


def every_quick_policy(trace: str) -> dict[str, Any]:
    """Policies, replays, and seconds of loading and of replaying."""
    from dataclasses import replace

    import numpy as np

    from kit.policies import REGISTRY
    from kit.replay import replay_grid

    started = time.perf_counter()
    paths = load(trace, "drop")
    paths = replace(paths, tags={**paths.tags, "priority": np.full(paths.requests, USUAL_PRIORITY)})
    loaded = time.perf_counter()
    names = [name for name in REGISTRY if name not in SLOW]
    tallies = replay_grid(paths, names, [blocks * BLOCK_TOKENS for blocks in BLOCKS])
    return {
        "policies": len(names), "replays": len(tallies), "load": loaded - started,
        "replay": time.perf_counter() - loaded,
    }  # fmt: skip


def child(arguments: list[str], compiled: str) -> tuple[str, float, float]:
    """(what a process printed, its wall seconds, its CPU seconds); RuntimeError with its last words where it failed.

    `compiled` is the folder where it keeps compiled Python files, whatever the environment says of them. Memory comes
    from two heaps (glibc opens one for every thread and keeps what was freed in each).
    """
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    own |= {"PYTHONPYCACHEPREFIX": compiled, "MALLOC_ARENA_MAX": "2"}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ended = subprocess.run(arguments, capture_output=True, text=True, cwd=PROJECT, env=own)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode:
        raise RuntimeError(f"{arguments[0]} ended with {ended.returncode}: {ended.stderr.strip()[-300:]}")
    return ended.stdout, wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def peer_command(trace: str) -> list[str] | None:
    """The peer's command, None where it is not installed beside this Python (or on the path)."""
    beside = Path(sys.executable).parent / "kvcache-simulator"
    program = str(beside) if beside.exists() else shutil.which("kvcache-simulator")
    if program is None:
        return None
    budgets = ",".join(f"{blocks / BLOCKS_PER_GIB:g}" for blocks in BLOCKS)
    return [
        *(program, "run", "--trace", trace, "--model", MODEL, "--block-size", str(BLOCK_TOKENS)),
        *("--budgets-gib", budgets, "--policies", "fifo,lru,optimal", "--backend", "cpp", "--no-progress"),
        *("--format", "json"),
    ]


def peer_columns(text: str) -> dict[str, dict[int, int]]:
    """The peer's hit tokens in the shape of `three_columns`."""
    points = json.loads(text)["points"]
    return {name: {point["cacheBlocks"]: point["results"][theirs]["hitTokens"] for point in points}
            for name, theirs in COLUMNS.items()}  # fmt: skip


def compare(trace: str, repeat: int) -> None:
    """Both programs in turn, then whether their hits agree."""
    ours = [sys.executable, __file__, "--trace", trace, "--columns"]
    theirs = peer_command(trace)
    runs: dict[str, list[tuple[float, float]]] = {"kit": [], "kvcache-simulator": []}
    found, other = "", ""
    with TemporaryDirectory() as compiled:
        for turn in range(repeat + 1):
            found, *spent = child(ours, compiled)
            runs["kit"] += [(spent[0], spent[1])] if turn else []
            if theirs:
                other, *spent = child(theirs, compiled)
                runs["kvcache-simulator"] += [(spent[0], spent[1])] if turn else []
    absent = "" if theirs else " (kvcache-simulator is not installed here)"
    print(f"{len(BLOCKS)} capacities x {len(COLUMNS)} columns, end to end{absent}")
    for name, spent in runs.items():
        if spent:
            wall, cpu = median(one[0] for one in spent), median(one[1] for one in spent)
            print(f"{name:<20}{wall:>8.2f} s wall{cpu:>8.2f} s CPU")
    if theirs:
        told = {name: {int(size): hits for size, hits in column.items()} for name, column in json.loads(found).items()}
        alike = {name: told[name] == column for name, column in peer_columns(other).items()}
        words = ", ".join(f"{name} {'yes' if same else 'NO'}" for name, same in alike.items())
        print(f"same hit tokens at every capacity: {words}")


def every(trace: str) -> None:
    """All quick policies in one process, its time and memory; a process before it fills the cache of compiled loops."""
    with TemporaryDirectory() as compiled:
        for _ in range(2):
            text, wall, cpu = child([sys.executable, __file__, "--trace", trace, "--quick"], compiled)
    told = json.loads(text)
    print(
        f"{told['policies']} policies x {len(BLOCKS)} capacities: {wall:.2f} s wall, {cpu:.2f} s CPU in all "
        f"({told['load']:.2f} s loading, {told['replay']:.2f} s replaying), peak {told['peak_mib']:.0f} MiB"
    )


def main() -> int:
    """Both parts, or the one asked for; comes back as an exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--trace", default=str(TRACE))
    for name in ("--compare", "--every", "--columns", "--quick"):
        parser.add_argument(name, action="store_true")
    chosen = parser.parse_args()
    if not Path(chosen.trace).exists():
        print(f"trace {Path(chosen.trace).name} is not beside the project; give --trace")
        return 0
    if chosen.columns:
        gc.disable()  # a process of one second has no garbage worth looking for
        print(json.dumps(three_columns(chosen.trace)))
    elif chosen.quick:
        told = every_quick_policy(chosen.trace)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
        print(json.dumps({**told, "peak_mib": peak}))
    else:
        if not chosen.every:
            compare(chosen.trace, chosen.repeat)
        if not chosen.compare:
            every(chosen.trace)
    gc.freeze()  # nor has its end: looking through what numba leaves takes 0.2 s
    return 0


if __name__ == "__main__":
    sys.exit(main())
