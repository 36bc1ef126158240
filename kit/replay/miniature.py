"""Miniature simulation: a seeded share of the log against the same share of the budget, for logs too large to replay.

Source: Waldspurger et al., Cache Modeling and Optimization using Miniature Simulations (ATC 2017). Whole sessions (or,
without sessions, whole roots) are kept, never single blocks, so that paths stay whole. LRU's exact curve over the full
log is cheap, so the error of the sample is measured on LRU and printed beside every estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kit.policies import Policy
from kit.prefix import Paths, first_seen_rank, root_of
from kit.replay import Setting, lru_curve, replay
from kit.replay.fleet import select

LEAST_UNITS = 1000


@dataclass(frozen=True)
class Estimate:
    """A policy's hit-token ratio from a sample; `lru_error` is the sample's own error on LRU at the same budget."""

    policy: str
    capacity_tokens: int
    rate: float
    requests: int
    hit_token_ratio: float
    lru_error: float


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


def estimate(paths: Paths, policy: str | Policy, capacity_tokens: int, rate: float, setting: Setting | None = None,
             seed: int = 1) -> Estimate:  # fmt: skip
    """Replay a sample at the same share of the budget. ValueError where the sample's budget is under 1,000 blocks."""
    setting = setting or Setting()
    small, _ = sample_paths(paths, rate, seed)
    budget = int(capacity_tokens * rate)
    if budget < LEAST_UNITS * paths.block_tokens:
        raise ValueError(f"a sample of {rate:g} leaves {budget:,} tokens of budget, under {LEAST_UNITS:,} blocks of "
                         f"{paths.block_tokens}; raise the rate")  # fmt: skip
    tally = replay(small, policy, capacity_tokens=budget, setting=setting)
    lru = replay(small, "lru", capacity_tokens=budget, setting=setting).hit_token_ratio() or 0.0
    capacity, hits = lru_curve(paths, setting.ttl_seconds, setting.minimum_tokens)
    exact = float(hits[np.searchsorted(capacity, capacity_tokens, side="right") - 1]) / float(paths.input_tokens.sum())
    return Estimate(tally.policy, capacity_tokens, rate, small.requests, tally.hit_token_ratio() or 0.0, lru - exact)
