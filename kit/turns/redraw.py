"""Intervals of gap figures from redrawn sessions: sums per block of sessions, then one weighted fit for all redraws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kit.reuse.resample import LEAST_BLOCKS, deal, interval, redraws
from kit.turns.gaps import TRIGGERS, Batch
from kit.turns.lognormal import Fit, Sums, bins, fit_open

Floats = NDArray[np.float64]

FINEST_TICK = 0.001


@dataclass(frozen=True)
class Blocks:
    """Sums per block of sessions: [blocks, kinds] and, for open turns, [blocks, bins of how long they were watched]."""

    count: Floats
    log_sum: Floats
    square_sum: Floats
    log_open: Floats
    open_count: Floats
    below: Floats
    log_floor: float

    def weighted(self, weights: Floats, merged: bool = False) -> Sums:
        """Sums of redrawn logs: ``weights`` [redraws, blocks]; ``merged`` takes all kinds as one."""
        count, log_sum, square_sum, below = (
            weights @ (part.sum(axis=1, keepdims=True) if merged else part)
            for part in (self.count, self.log_sum, self.square_sum, self.below)
        )
        return Sums(count, log_sum, square_sum, self.log_open, weights @ self.open_count, below, self.log_floor)


def block_sums(batch: Batch) -> Blocks:
    """The sums of a batch, its sessions dealt into at most 200 blocks.

    A gap of 0 is taken as shorter than half a step of the clock (the step, or 1 ms where it is finer): two stamps fall
    into one step with a chance that shrinks with the gap, which amounts to half a step.
    """
    block, blocks = deal(np.concatenate([batch.session, batch.open_session, batch.zero_session]))
    ends = np.cumsum([len(batch.session), len(batch.open_session)])
    block, open_block, zero_block = np.split(block, ends)
    logs = np.log(batch.seconds)
    cell = block * len(TRIGGERS) + batch.kind
    size = blocks * len(TRIGGERS)
    count, log_sum, square_sum = (
        np.bincount(cell, weights=weight, minlength=size).reshape(blocks, len(TRIGGERS)).astype(np.float64)
        for weight in (np.ones_like(logs), logs, logs * logs)
    )
    middles, bin_of = bins(np.log(batch.open_seconds))
    open_cell = np.bincount(open_block * len(middles) + bin_of, minlength=blocks * len(middles))
    below = np.bincount(zero_block * len(TRIGGERS) + batch.zero_kind, minlength=size).reshape(blocks, -1)
    return Blocks(
        count,
        log_sum,
        square_sum,
        middles,
        open_cell.reshape(blocks, -1).astype(np.float64),
        below.astype(np.float64),
        float(np.log(max(batch.tick_seconds, FINEST_TICK) / 2)),
    )


def fit_redrawn(
    sums: Blocks, merged: bool, replicates: int = 200, seed: int = 1, cured: bool = True
) -> tuple[Fit, Fit]:
    """The fit of the log itself and the fits of ``replicates`` redrawn logs (sessions with replacement).

    One redraw of NaN below 5 blocks of sessions: so few cannot speak for others.
    """
    blocks = len(sums.count)
    whole = fit_open(sums.weighted(np.ones((1, blocks)), merged), cured)
    if blocks < LEAST_BLOCKS:
        unknown = np.full((1, whole.mu.shape[1]), np.nan)
        return whole, Fit(unknown, unknown, unknown)
    drawn = sums.weighted(redraws(blocks, replicates, seed), merged)
    many = fit_open(drawn, cured, tolerance=1e-4, start=whole)
    for part in (many.mu, many.sigma, many.continues):
        part[drawn.count < 2] = np.nan
    return whole, many


def span(values: Floats, level: float = 0.95) -> dict[str, float] | None:
    """Central interval of redrawn values; None where more than half of them are not known."""
    if np.isnan(values).mean() > 0.5:
        return None
    low, high = np.nanquantile(values, [(1 - level) / 2, (1 + level) / 2])
    return interval(low, high)
