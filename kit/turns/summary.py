"""One row per session type, trigger and clock: what the gaps are, and which curve describes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kit.turns.families import compare
from kit.turns.gaps import TRIGGERS, Batch, Gaps, batches, read_gaps
from kit.turns.goodness import incidence_of, ks_open, p_values
from kit.turns.lognormal import Fit, plain, within
from kit.turns.redraw import block_sums, fit_redrawn, span

WITHIN_SECONDS = (300.0, 1800.0, 3600.0, 43200.0)
UNFITTED = (
    *("mu", "sigma", "continues", "fitted_median_seconds", "mu_observed", "sigma_observed", "interval"),
    *("ks", "ks_p", "ad", "ad_p", "best", "p_within_fitted"),
)


class Fits:
    """The open-turn fits of a batch with their redraws: all kinds as one, and the kinds side by side."""

    def __init__(self, batch: Batch, replicates: int, seed: int) -> None:
        sums = block_sums(batch)
        self._merged = fit_redrawn(sums, True, replicates, seed)
        self._by_kind = fit_redrawn(sums, False, replicates, seed)

    def of(self, trigger: str) -> tuple[Fit, Fit]:
        """(the log's fit, the redrawn fits) of one trigger, each array one value per data set."""
        pair, kind = (self._merged, 0) if trigger == "all" else (self._by_kind, TRIGGERS.index(trigger))
        one, many = (Fit(*(part[:, kind] for part in (fit.mu, fit.sigma, fit.continues))) for fit in pair)
        return one, many


def _intervals(many: Fit) -> dict[str, Any]:
    chance = {f"{t:g}": span(within(t, many.mu, many.sigma)) for t in WITHIN_SECONDS}
    spans = {"mu": span(many.mu), "sigma": span(many.sigma), "continues": span(many.continues)}
    return {**spans, "fitted_median_seconds": span(np.exp(many.mu)), "p_within_fitted": chance}


def _fitted(batch: Batch, trigger: str, fits: Fits) -> dict[str, Any]:
    """mu, sigma and continues with open turns, what they follow from, and how well they fit."""
    mine = batch.of_kind(trigger)
    seconds = batch.seconds[mine]
    alone = plain(seconds)
    if alone is None:
        return {**dict.fromkeys(UNFITTED), "aic": {}, "aic_weights": {}}
    one, many = fits.of(trigger)
    mu, sigma, continues = float(one.mu[0]), float(one.sigma[0]), float(one.continues[0])
    told = len(batch.open_seconds) > 0
    times, come = incidence_of(batch, trigger)
    return {
        "mu": mu,
        "sigma": sigma,
        "continues": continues if told else None,
        "fitted_median_seconds": float(np.exp(mu)),
        "mu_observed": alone[0],
        "sigma_observed": alone[1],
        "interval": _intervals(many) if told else {**_intervals(many), "continues": None},
        "p_within_fitted": {f"{t:g}": float(within(t, mu, sigma)) for t in WITHIN_SECONDS},
        **p_values(seconds),
        "ks": ks_open(times, come, continues, mu, sigma),
        **compare(seconds, batch.open_seconds),
    }


def row(batch: Batch, trigger: str, fits: Fits) -> dict[str, Any]:
    """The figures of one trigger in a batch; see `inter_turn`."""
    mine = batch.of_kind(trigger)
    seconds = batch.seconds[mine]
    kinds = slice(None) if trigger == "all" else TRIGGERS.index(trigger)
    return {
        "session_type": batch.session_type,
        "trigger": trigger,
        "clock": batch.clock,
        "n": len(seconds),
        "censored": len(batch.open_seconds),
        "zeros": batch.zeros(trigger),
        "negative": int(batch.negative[kinds].sum()),
        "median_seconds": float(np.median(seconds)),
        "p_within": {f"{t:g}": float((seconds <= t).mean()) for t in WITHIN_SECONDS},
        **_fitted(batch, trigger, fits),
    }


def _rows(gaps: Gaps, replicates: int, seed: int) -> Iterator[dict[str, Any]]:
    for batch, names in batches(gaps):
        fits = Fits(batch, replicates, seed)
        told = [row(batch, trigger, fits) for trigger in ("all", *TRIGGERS) if batch.of_kind(trigger).any()]
        yield from ({**found, "session_type": name} for name in names for found in told)


def inter_turn(log: Any, replicates: int = 200, seed: int = 1) -> list[dict[str, Any]]:
    """Gaps per session type, trigger (of the request that ends the gap) and clock, with the log-normal of each.

    ``n`` positive gaps (``zeros`` and ``negative`` ones are counted apart), ``censored`` last turns still open when the
    log ends (at risk of every trigger). ``median_seconds`` and ``p_within`` (share of gaps of at most so many seconds)
    are of the gaps seen. ``mu`` and ``sigma`` of ln seconds and ``continues``, the probability that such a turn comes
    at all, are maximum likelihood with the open turns, which may also never be followed, and with zeros as gaps too
    short for the clock; ``mu_observed`` and
    ``sigma_observed`` leave the open turns out (mean and population standard deviation). ``interval``: 95 %, sessions
    redrawn. ``ks``: distance of the fit from what was seen. ``ks_p``, ``ad_p``: parametric bootstrap. No fit (None)
    below 8 gaps; no ``continues`` without open turns.
    """
    return list(_rows(read_gaps(log), replicates, seed))
