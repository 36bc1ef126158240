"""Miniature simulation: a seeded share of the log against the same share of the budget, for logs too large to replay.

Source: Waldspurger et al., Cache Modeling and Optimization using Miniature Simulations (ATC 2017). Whole sessions (or,
without sessions, whole roots) are kept, never single blocks, so that paths stay whole. Counts are scaled up by input
tokens. Prefixes that all sessions share do not shrink with the sample, so its levels are off; LRU over the whole log is
cheap, so the error is measured on LRU, printed beside every estimate, and taken off it (`anchored`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from kit.policies import REGISTRY, Policy, named
from kit.prefix import Ints, Paths, first_seen_rank, path_sums, root_of
from kit.replay import AT, CAUSES, Setting, Tally, ceiling, replay, replay_grid
from kit.replay.bounds import Bound, optimal
from kit.replay.fleet import select

LEAST_ENTRIES = 1000
MOST_TOUCHES = 10_000_000
AGAIN_TOUCHES = 2_000_000  # of one replay where a reader waits for some hundred of them
CLASSES = tuple(AT[name] for name in ("hit_tokens", "write_tokens", "uncached_tokens"))
MISSES = tuple(AT[name] for name in ("hit_tokens", *(f"missed_{cause}" for cause in CAUSES)))


def sample_paths(paths: Paths, rate: float, seed: int = 1) -> tuple[Paths, str]:
    """(the kept requests, what was sampled): whole sessions where the log has them, else whole roots.

    `rate` is the share kept, above 0 and at most 1; the draw depends on the order of appearance, not on labels.
    """
    if not 0 < rate <= 1:
        raise ValueError(f"rate is the share of the log to keep, above 0 and at most 1, got {rate}")
    if "session" in paths.tags:
        codes, what = np.asarray(paths.tags["session"], np.int64), "sessions"
    else:
        roots = root_of(paths.parent)[np.maximum(paths.leaf, 0)] if paths.parent.size else paths.leaf
        codes, what = np.where(paths.leaf >= 0, roots, -1).astype(np.int64), "roots"
    rank = first_seen_rank(codes)
    kept = np.random.default_rng(seed).random(int(rank.max()) + 1 if rank.size else 0) < rate
    return select(paths, kept[rank]), what


def touches(paths: Paths, policies: Iterable[str] = (), capacity_tokens: int = 0) -> int:
    """Blocks (or whole entries) that all requests pass through together: what a replay costs.

    With `policies` what the costliest of them visits at that budget: a run of blocks is one touch where they all take
    it whole.
    """
    used = paths.leaf[paths.leaf >= 0]
    if not used.size:
        return 0
    names, fits = list(policies), paths.longest_prefix_tokens <= capacity_tokens
    whole = names and all(named(one).segments == "always" or (named(one).segments and fits) for one in names)
    visits = np.ones(paths.parent.size, np.int64) if whole else -(-paths.room_tokens // paths.unit_tokens)
    return int(path_sums(paths.parent, visits)[used].sum())


def least_rate(paths: Paths, capacity_tokens: int) -> float:
    """The smallest share at which a budget still holds 1,000 entries and the longest prefix; may be above 1."""
    entry = float(paths.unit_tokens.mean()) if paths.unit_tokens.size else 1.0
    return max(LEAST_ENTRIES * entry, paths.longest_prefix_tokens) / max(capacity_tokens, 1)


def auto_rate(paths: Paths, capacity_tokens: int) -> tuple[float, str]:
    """(share to keep, why): as much as 10 million block touches, but never so little that `capacity_tokens` (the
    smallest budget to be replayed) holds under 1,000 entries or cannot hold the longest prefix."""
    work, least = touches(paths), least_rate(paths, capacity_tokens)
    if work <= MOST_TOUCHES:
        return 1.0, f"the whole log: its {work:,} block touches are within {MOST_TOUCHES:,}"
    rate = math.ceil(max(MOST_TOUCHES / work, least) * 100) / 100
    if rate >= 1:
        return 1.0, f"the whole log: less leaves under {LEAST_ENTRIES:,} entries, or no room for the longest prefix"
    return rate, f"{work:,} block touches, of which about {MOST_TOUCHES:,} are replayed"


@dataclass(frozen=True)
class Sample:
    """A drawn sample: the share asked for, whole `sessions` or `roots`, why that share, its paths, and by how much its
    counts are scaled up (input tokens of the whole log over those of the sample)."""

    rate: float
    what: str
    reason: str
    paths: Paths
    factor: float

    def budget(self, capacity_tokens: int) -> int:
        """The sample's share of a budget, at least one block."""
        return max(round(capacity_tokens * self.rate), self.paths.block_tokens)


def draw(paths: Paths, rate: float, seed: int = 1, reason: str = "given by the user") -> Sample:
    """A sample of a log. ValueError where the share is so small that nothing was drawn."""
    small, what = sample_paths(paths, rate, seed)
    kept = int(small.input_tokens.sum())
    if not kept:
        raise ValueError(f"a sample of {rate:g} holds no input tokens of this log; raise the share")
    return Sample(rate, what, reason, small, int(paths.input_tokens.sum()) / kept)


def scaled_counts(counts: Ints, factor: float) -> Ints:
    """Counts [..., FIELDS] times a factor, in whole numbers that still add up (classes and causes to input tokens)."""
    scaled = np.rint(counts * factor).astype(np.int64)
    for group in (CLASSES, MISSES):
        ends = np.rint(np.cumsum(counts[..., group], axis=-1) * factor).astype(np.int64)
        scaled[..., group] = np.diff(ends, axis=-1, prepend=0)
    scaled[..., AT["input_tokens"]] = scaled[..., CLASSES].sum(axis=-1)
    return scaled


def scaled(tally: Tally, capacity_tokens: int, factor: float) -> Tally:
    """A sample's tally as an estimate for the whole log at the whole budget."""
    return replace(
        tally, capacity_tokens=capacity_tokens, by_block=scaled_counts(tally.by_block, factor),
        by_hour=scaled_counts(tally.by_hour, factor), resident_token_seconds=tally.resident_token_seconds * factor,
        eviction_age_tokens=np.rint(tally.eviction_age_tokens * factor).astype(np.int64),
        reuse_span_tokens=np.rint(tally.reuse_span_tokens * factor).astype(np.int64),
        hit_depth_requests=np.rint(tally.hit_depth_requests * factor).astype(np.int64),
        most_held_tokens=min(round(tally.most_held_tokens * factor), capacity_tokens),
        crowded_requests=round(tally.crowded_requests * factor),
    )  # fmt: skip


def sampled_grid(
    sample: Sample, policies: Iterable[str | Policy], capacities: Iterable[int], settings: Iterable[Setting],
    progress: Callable[[int, int], None] | None = None,
) -> list[Tally]:  # fmt: skip
    """`kit.replay.replay_grid` by miniature: estimates for the whole log at the whole budgets, in the same order."""
    policies, whole = list(policies), list(capacities)
    small = [sample.budget(capacity) for capacity in whole]
    tallies = replay_grid(sample.paths, policies, small, settings, progress)
    every = [capacity for capacity in whole for _ in policies]
    return [scaled(tally, every[at % len(every)], sample.factor) for at, tally in enumerate(tallies)]


def sampled_ceiling(sample: Sample, setting: Setting) -> Tally:
    """`kit.replay.ceiling` estimated from a sample."""
    tally = ceiling(sample.paths, setting)
    return scaled(tally, tally.capacity_tokens, sample.factor)


def sampled_optimal(sample: Sample, capacity_tokens: int, ttl_seconds: float | None, minimum_tokens: int) -> Bound:
    """`kit.replay.bounds.optimal` estimated from a sample."""
    bound = optimal(sample.paths, sample.budget(capacity_tokens), ttl_seconds, minimum_tokens)
    return replace(bound, capacity_tokens=capacity_tokens, hit_tokens=round(bound.hit_tokens * sample.factor),
                   warm_hit_tokens=round(bound.warm_hit_tokens * sample.factor))  # fmt: skip


def fitted(counts: Ints) -> Ints:
    """Counts [cells, rates, ..., FIELDS] with nothing below zero that add up to their input tokens, cell by cell; hits,
    hit and uncached tokens of each rate keep their sum: what a cell cannot have, the others take in proportion."""
    fit = np.maximum(counts, 0)
    total = fit[..., AT["input_tokens"]]
    for name, most in (("uncached_tokens", total), ("hit_tokens", total), ("hits", fit[..., AT["requests"]])):
        limit = most - fit[..., AT["uncached_tokens"]] if name == "hit_tokens" else most
        for rate in range(counts.shape[1]):
            fit[:, rate, ..., AT[name]] = _within(counts[:, rate, ..., AT[name]], limit[:, rate])
    missed = total - fit[..., AT["hit_tokens"]]
    fit[..., AT["write_tokens"]] = missed - fit[..., AT["uncached_tokens"]]
    causes = fit[..., MISSES[1:]].astype(np.float64)
    causes[..., 0] += causes.sum(axis=-1) == 0  # all that is missed was never seen where no cause is known
    ends = np.cumsum(causes, axis=-1) / causes.sum(axis=-1, keepdims=True)
    fit[..., MISSES[1:]] = np.diff(np.rint(ends * missed[..., None]).astype(np.int64), axis=-1, prepend=0)
    return fit


def _within(counts: Ints, limit: Ints) -> Ints:
    """Whole numbers from 0 to `limit` near the counts, with the same sum (or the nearest one that can be had)."""
    wanted = min(max(int(counts.sum()), 0), int(limit.sum()))
    near = np.clip(counts, 0, limit).astype(np.float64)
    over, room = near.sum() - wanted, limit - near
    if over > 0:
        near *= wanted / near.sum()
    elif room.sum() > 0:
        near += room * (-over / room.sum())
    whole = np.floor(near).astype(np.int64)
    open_cells = np.flatnonzero((whole < limit).ravel())
    rest = (near - whole).ravel()[open_cells]
    more = open_cells[np.argsort(-rest, kind="stable")[: wanted - int(whole.sum())]]
    whole.ravel()[more] += 1
    return whole


def _sized(counts: Ints, exact: Ints, policy: str) -> Ints:
    """Counts with what did not fit the budget as LRU has it on the whole log; the rest of it had been pushed out. (An
    engine that computes tokens again has uncached ones of its own.)"""
    module = REGISTRY[policy].module if policy in REGISTRY else None
    sized = counts.copy()
    sized[..., AT["missed_evicted"]] += counts[..., AT["missed_oversize"]] - exact[..., AT["missed_oversize"]]
    sized[..., AT["missed_oversize"]] = exact[..., AT["missed_oversize"]]
    if not hasattr(module, "readable"):
        sized[..., AT["uncached_tokens"]] = exact[..., AT["uncached_tokens"]]
    return sized


def anchored(estimate: Tally, sampled_lru: Tally, exact_lru: Tally) -> Tally:
    """An estimate set right by LRU, whose counts are known: LRU on the whole log plus what the sample shows as the
    difference to LRU. The levels of a sample are off alike for all policies, its differences hardly. What is too large
    for the budget is known from the whole log: the sample's own budget is smaller, and too small for more of them. So
    is what running requests hold: paths are kept or crowded out by their lengths and times alone, whatever the policy.
    """
    blocks = _sized(exact_lru.by_block + estimate.by_block - sampled_lru.by_block, exact_lru.by_block, estimate.policy)
    hours = _sized(exact_lru.by_hour + estimate.by_hour - sampled_lru.by_hour, exact_lru.by_hour, estimate.policy)
    held = exact_lru.resident_token_seconds + estimate.resident_token_seconds - sampled_lru.resident_token_seconds
    return replace(
        estimate, by_block=fitted(blocks), by_hour=fitted(hours), resident_token_seconds=max(held, 0.0),
        most_held_tokens=exact_lru.most_held_tokens, crowded_requests=exact_lru.crowded_requests,
    )  # fmt: skip


def lru_error(paths: Paths, sample: Sample, capacity_tokens: int, setting: Setting) -> float:
    """The sample's hit-token ratio under LRU minus that of the whole log: the error of the sample at a budget."""
    exact = replay(paths, "lru", capacity_tokens=capacity_tokens, setting=setting).hit_token_ratio() or 0.0
    small = replay(sample.paths, "lru", capacity_tokens=sample.budget(capacity_tokens), setting=setting)
    return (small.hit_token_ratio() or 0.0) - exact
