"""Seconds to draw and read 1,000 bootstrap replicates over 12 policies x 3 budgets, every interval included.

    python bench/bench_bootstrap.py [--replicates N] [--policies N] [--budgets N] [--blocks N]

Target here: under 2 seconds. The columns are what a replay leaves behind (counts per session block), so nothing is
replayed. Per budget: intervals of hit-token ratio, cost per request and M_eq against LRU, P(best) and regret.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from kit import intervals


def columns(rng: np.random.Generator, policies: int, blocks: int) -> dict[str, np.ndarray]:
    """Counts per policy and block with heavy-tailed blocks: requests, hits, hit tokens, input tokens and cost."""
    requests = np.ceil(rng.lognormal(4.0, 1.0, blocks))
    tokens = requests * 8_000
    ratio = np.clip(rng.normal(0.5, 0.05, (policies, blocks)), 0, 1)
    return {
        "requests": np.broadcast_to(requests, (policies, blocks)),
        "hits": np.floor(requests * ratio),
        "hit_tokens": np.floor(tokens * ratio),
        "input_tokens": np.broadcast_to(tokens, (policies, blocks)),
        "cost": tokens * (3.75 - 3.45 * ratio) / 1e6,
    }


def read_budget(found: dict[str, np.ndarray], replicates: int, seed: int) -> None:
    """Every interval and standing of one budget."""
    for num, den in (("hit_tokens", "input_tokens"), ("cost", "requests"), ("cost", "hits")):
        intervals.paired_ratios(found[num], found[den], 0, replicates, seed)
    names = [str(policy) for policy in range(len(found["cost"]))]
    intervals.standings(names, found["cost"], found["requests"], True, replicates, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, default in (("replicates", 1000), ("policies", 12), ("budgets", 3), ("blocks", 200)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    budgets = [columns(rng, args.policies, args.blocks) for _ in range(args.budgets)]
    intervals.block_weights.cache_clear()
    start = time.perf_counter()
    for found in budgets:
        read_budget(found, args.replicates, seed=1)
    seconds = time.perf_counter() - start
    print(
        f"{args.replicates:,} replicates, {args.policies} policies x {args.budgets} budgets, {args.blocks} blocks: "
        f"{seconds:.2f} s (target 2 s)"
    )


if __name__ == "__main__":
    main()
