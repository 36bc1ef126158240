"""Intervals from whole sessions: a bootstrap that redraws sessions keeps what belongs together together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kit.reuse.trace import Codes, Ints, Trace

Floats = NDArray[np.float64]
MOST_BLOCKS = 200
LEAST_BLOCKS = 5
TIME_STRETCHES = 50


def redraws(blocks: int, replicates: int, seed: int) -> Floats:
    """How often each block is drawn in each replicate: [replicates, blocks], every row sums to ``blocks``."""
    draws = np.random.default_rng(seed).multinomial(blocks, np.full(blocks, 1 / blocks), size=replicates)
    return draws.astype(np.float64)


def request_blocks(trace: Trace) -> tuple[Ints, str]:
    """Bootstrap block per request (sessions dealt to 200 blocks at most; else 50 stretches of time), and its basis."""
    if trace.has_sessions and (trace.session >= 0).any():
        return deal(trace.session + 1)[0], "sessions"
    return np.arange(trace.requests) * TIME_STRETCHES // max(trace.requests, 1), "stretches of time"


def deal(session: Codes) -> tuple[Ints, int]:
    """Sessions (codes from 0) dealt into at most 200 blocks: each one's block, and the number of blocks in use."""
    block = session.astype(np.int64) % MOST_BLOCKS
    place = np.cumsum(np.bincount(block, minlength=MOST_BLOCKS) > 0) - 1
    return place[block], int(place[-1]) + 1


def interval(low: float, high: float) -> dict[str, float] | None:
    """Both edges as a plain dict; None where they are not known."""
    return {"low": float(low), "high": float(high)} if np.isfinite(low) and np.isfinite(high) else None


def ratio_interval(
    part: Floats, whole: Floats, replicates: int = 1000, seed: int = 1, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Low and high of sum(part) / sum(whole) per column, blocks down the rows; NaN where there is no whole.

    Ratio of sums over redrawn blocks; the same draws for every column, so columns may be compared.
    NaN everywhere below 5 blocks: so few cannot speak for others.
    """
    if len(part) < LEAST_BLOCKS:
        return np.full(part.shape[1], np.nan), np.full(part.shape[1], np.nan)
    weights = redraws(len(part), replicates, seed)
    whole_sum = weights @ whole
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.where(whole_sum > 0, (weights @ part) / whole_sum, np.nan)
    edges = ((1 - level) / 2, (1 + level) / 2)
    empty = np.isnan(ratios).all(axis=0)
    ratios[:, empty] = 0.0
    low, high = np.nanquantile(ratios, edges, axis=0)
    low[empty] = high[empty] = np.nan
    return low, high
