"""Intervals of gap figures from redrawn sessions: sums per block of sessions, then one weighted fit for all redraws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kit.reuse.resample import LEAST_BLOCKS, deal, interval, redraws
from kit.turns.gaps import TRIGGERS, Batch
from kit.turns.lognormal import Fit, Sums, bins, fit_open

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Blocks:
    """Sums per block of sessions: [blocks, kinds] and, for open turns, [blocks, bins of how long they were watched]."""

    count: Floats
    log_sum: Floats
    square_sum: Floats
    log_open: Floats
    open_count: Floats

    def weighted(self, weights: Floats, merged: bool = False) -> Sums:
        """Sums of redrawn logs: ``weights`` [redraws, blocks]; ``merged`` takes all kinds as one."""
        count, log_sum, square_sum = (
            weights @ (part.sum(axis=1, keepdims=True) if merged else part)
            for part in (self.count, self.log_sum, self.square_sum)
        )
        return Sums(count, log_sum, square_sum, self.log_open, weights @ self.open_count)


def block_sums(batch: Batch) -> Blocks:
    """The sums of a batch, its sessions dealt into at most 200 blocks."""
    block, blocks = deal(np.concatenate([batch.session, batch.open_session]))
    block, open_block = np.split(block, [len(batch.session)])
    logs = np.log(batch.seconds)
    cell = block * len(TRIGGERS) + batch.kind
    size = blocks * len(TRIGGERS)
    count, log_sum, square_sum = (
        np.bincount(cell, weights=weight, minlength=size).reshape(blocks, len(TRIGGERS)).astype(np.float64)
        for weight in (np.ones_like(logs), logs, logs * logs)
    )
    middles, bin_of = bins(np.log(batch.open_seconds))
    open_cell = np.bincount(open_block * len(middles) + bin_of, minlength=blocks * len(middles))
    return Blocks(count, log_sum, square_sum, middles, open_cell.reshape(blocks, -1).astype(np.float64))


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
