"""How often a 95 % interval holds the truth: simulated logs whose true difference is known, replayed and redrawn.

    python bench/bench_coverage.py [--logs N] [--sessions N] [--replicates N]

Each log is a week of sessions that grow their own prefix on one of 40 shared system prompts; which prompts are in
fashion changes from day to day, so sessions of a day are alike (that is why days are tried as blocks too). LRU and LFU
with decay are replayed at one budget. The truth is the ratio of sums over all logs together. Printed: the share of logs
whose interval holds it, by what is redrawn, for the difference in hit-token ratio. Nominal is 95 %.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from kit import intervals
from kit.prefix import HOUR_US, Paths, build_forest, make_paths
from kit.replay import Tally, replay

DAYS, PROMPTS, HOT_TOKENS, BUDGET = 7, 40, 8_000, 400_000
DAY_SECONDS = 86_400


def simulated_week(seed: int, sessions: int) -> Paths:
    """A week of sessions as paths: shared prompt, then one node per turn; heavy-tailed numbers of turns."""
    rng = np.random.default_rng(seed)
    fashion = rng.dirichlet(np.full(PROMPTS, 0.5), DAYS)
    day = rng.integers(0, DAYS, sessions)
    prompt = np.array([rng.choice(PROMPTS, p=fashion[d]) for d in day])
    turns = np.minimum(1 + np.floor(rng.lognormal(0.8, 1.0, sessions)), 60).astype(int)
    owner = np.repeat(np.arange(sessions), turns)
    turn = np.arange(turns.sum()) - np.repeat(np.cumsum(turns) - turns, turns)
    gaps = np.where(turn == 0, 0.0, rng.lognormal(4.0, 1.2, turn.size))
    within = np.cumsum(gaps) - np.repeat(np.cumsum(gaps)[np.cumsum(turns) - turns], turns)
    start = day * DAY_SECONDS + rng.uniform(0, DAY_SECONDS * 0.9, sessions)
    when = start[owner] + within
    order = np.argsort(when, kind="stable")
    added = np.floor(rng.lognormal(7.0, 0.8, turn.size)).astype(np.int64)
    return _paths(owner[order], turn[order], prompt, np.cumsum(turns) - turns, added, when[order])


def _paths(
    owner: np.ndarray, turn: np.ndarray, prompt: np.ndarray, first: np.ndarray, added: np.ndarray, when: np.ndarray
) -> Paths:
    keys, tokens, offsets = [], [], [0]
    for session, last in zip(owner.tolist(), turn.tolist(), strict=True):
        calls = np.arange(first[session], first[session] + last + 1)
        keys += [int(prompt[session]), *(PROMPTS + calls).tolist()]
        tokens += [HOT_TOKENS, *added[calls].tolist()]
        offsets.append(len(keys))
    leaf, parent, node_tokens, _, _ = build_forest(np.array(offsets), np.array(keys, np.uint64), np.array(tokens))
    return make_paths(parent, node_tokens, leaf, (when * 1e6).astype(np.int64), sessions=owner)


def units(tally: Tally, basis: str, first_hour: int) -> tuple[np.ndarray, np.ndarray]:
    """Hit and input tokens per session block or per day."""
    if basis == intervals.DAYS:
        days = intervals.by_day(tally.by_hour, first_hour).sum(axis=1)
        names = ("hit_tokens", "input_tokens")
        from kit.replay import FIELDS

        return tuple(days[:, FIELDS.index(name)] for name in names)  # type: ignore[return-value]
    return tally.blocks("hit_tokens").sum(axis=0), tally.blocks("input_tokens").sum(axis=0)


def plain_percentile(a: tuple, b: tuple, replicates: int) -> intervals.Interval:
    """The interval without the widening for few units, to show what the widening is worth."""
    draws = intervals.ratio_replicates(*a, replicates) - intervals.ratio_replicates(*b, replicates)
    low, high = np.quantile(draws, (0.025, 0.975))
    return intervals.Interval(float(a[0].sum() / a[1].sum() - b[0].sum() / b[1].sum()), float(low), float(high))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, default in (("logs", 120), ("sessions", 700), ("replicates", 1000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    start = time.perf_counter()
    found: dict[str, list[intervals.Interval]] = {}
    sums = np.zeros((2, 2))
    for seed in range(args.logs):
        paths = simulated_week(seed, args.sessions)
        hour = int(paths.ts_us[0]) // HOUR_US
        pair = [replay(paths, policy, capacity_tokens=BUDGET) for policy in ("lfu_decay", "lru")]
        blocks = [units(tally, intervals.BLOCKS, hour) for tally in pair]
        days = [units(tally, intervals.DAYS, hour) for tally in pair]
        sums += np.array([[column.sum() for column in side] for side in blocks])
        told = {
            "session blocks, plain percentile": plain_percentile(blocks[0], blocks[1], args.replicates),
            "session blocks": intervals.paired_ratio(*blocks[0], *blocks[1], args.replicates),
            "days, plain percentile": plain_percentile(days[0], days[1], args.replicates),
            "days": intervals.paired_ratio(*days[0], *days[1], args.replicates, basis=intervals.DAYS),
        }
        told["the wider of both (the headline)"] = intervals.wider(told["session blocks"], told["days"])
        for name, interval in told.items():
            if interval is not None:
                found.setdefault(name, []).append(interval)
    truth = sums[0, 0] / sums[0, 1] - sums[1, 0] / sums[1, 1]
    print(f"{args.logs} logs of {args.sessions} sessions, true difference {100 * truth:+.2f} points, nominal 95 %")
    for name, told_all in found.items():
        held = np.mean([one.low <= truth <= one.high for one in told_all])
        width = np.mean([one.width for one in told_all])
        print(f"  {name:<36} holds it {held:6.1%}   mean width {100 * width:.2f} points")
    print(f"  {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
