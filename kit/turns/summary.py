"""One row per session type, trigger and clock: what the gaps are, and which curve describes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from kit.turns.families import compare
from kit.turns.gaps import Group, groups, read_gaps
from kit.turns.goodness import ks_distance
from kit.turns.lognormal import plain, within

WITHIN_SECONDS = (300.0, 1800.0, 3600.0, 43200.0)


def _fitted(group: Group) -> dict[str, Any]:
    fit = plain(group.seconds)
    if fit is None:
        nothing = dict.fromkeys(("mu", "sigma", "fitted_median_seconds", "ks", "p_within_fitted"))
        return {**nothing, "aic": {}, "aic_weights": {}, "best": None}
    mu, sigma = fit
    return {
        "mu": mu,
        "sigma": sigma,
        "fitted_median_seconds": float(np.exp(mu)),
        "ks": ks_distance(group.seconds, mu, sigma),
        "p_within_fitted": {f"{t:g}": float(within(t, np.array(mu), np.array(sigma))) for t in WITHIN_SECONDS},
        **compare(group.seconds, group.tails),
    }


def row(group: Group) -> dict[str, Any]:
    """The figures of one group. Gaps in seconds; ``p_within`` is the share of the gaps that were seen to end."""
    return {
        "session_type": group.session_type,
        "trigger": group.trigger,
        "clock": group.clock,
        "n": len(group.seconds),
        "censored": len(group.tails),
        "zeros": group.zeros,
        "negative": group.negative,
        "median_seconds": float(np.median(group.seconds)),
        "p_within": {f"{t:g}": float((group.seconds <= t).mean()) for t in WITHIN_SECONDS},
        **_fitted(group),
    }


def inter_turn(log: Any) -> list[dict[str, Any]]:
    """Gaps per session type, trigger and clock, with the log-normal of each; see ``row`` for the columns.

    ``mu`` and ``sigma`` are mean and population standard deviation of ln seconds (maximum likelihood, location 0),
    None below 8 gaps. ``median_seconds`` is empirical, ``fitted_median_seconds`` is exp(mu).
    """
    gaps = read_gaps(log)
    rows = [row(group) for group in groups(gaps)]
    return rows
