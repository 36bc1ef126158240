"""Log-normal gaps by maximum likelihood: plain, with open last turns, and with turns that simply never come.

The whole model fits many data sets at once: every array has the data sets along its first axis, so bootstrap
replicates, sessions and seeds are one call. The location is fixed at 0 (a free one is meaningless: the smallest gap).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

Floats = NDArray[np.float64]

LEAST_GAPS = 8
SMALLEST_SIGMA = 1e-6
OPEN_BINS = 100
HALF_LOG_TAU = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True)
class Fit:
    """mu and sigma of ln seconds, and ``continues``, the probability that a turn is followed by one of this kind.

    Arrays [data sets, kinds of next turn]; ``continues`` sums to at most 1 over the kinds.
    """

    mu: Floats
    sigma: Floats
    continues: Floats


@dataclass(frozen=True)
class Sums:
    """All that the fit needs to know: per data set and kind the number of gaps, sum of ln x and of its square.

    ``below`` gaps of each kind were shorter than the clock could tell: e to the ``log_floor`` seconds. ``log_open``
    [open turns] is ln of the seconds an open turn was watched, ``open_weight`` [data sets, open turns] how often it
    counts in each data set.
    """

    count: Floats
    log_sum: Floats
    square_sum: Floats
    log_open: Floats
    open_weight: Floats
    below: Floats
    log_floor: float


def plain(seconds: Floats) -> tuple[float, float] | None:
    """(mean, population standard deviation) of ln seconds; None below 8 gaps or where all gaps are equal."""
    if len(seconds) < LEAST_GAPS:
        return None
    logs = np.log(seconds)
    sigma = float(logs.std())
    return (float(logs.mean()), sigma) if sigma > SMALLEST_SIGMA else None


def bins(values: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """At most 100 bins, equal values together, else of about equal number: their mean and each value's bin."""
    distinct, place = np.unique(values, return_inverse=True)
    if len(distinct) > OPEN_BINS:
        rank = np.cumsum(np.bincount(place))[place] - 1
        _, place = np.unique(rank * OPEN_BINS // len(values), return_inverse=True)
    if not len(distinct):
        return np.zeros(1), place
    return np.bincount(place, weights=values) / np.bincount(place), place


def hazard(z: Floats) -> Floats:
    """Standard normal density over survival, stable far out in the tail."""
    return np.exp(-0.5 * z * z - HALF_LOG_TAU - log_ndtr(-z))


def _spread(count: Floats, log_sum: Floats, square_sum: Floats) -> tuple[Floats, Floats]:
    least = np.maximum(count, 1e-12)
    mu = log_sum / least
    return mu, np.sqrt(np.maximum(square_sum / least - mu * mu, SMALLEST_SIGMA**2))


def _still_to_come(fit: Fit, log_open: Floats, cured: bool) -> tuple[Floats, Floats, Floats]:
    """For open turns [sets, turns, kinds]: chance that this kind is still to come, mean of ln x and of its square."""
    mu, sigma, continues = (part[:, None, :] for part in (fit.mu, fit.sigma, fit.continues))
    z = (log_open[None, :, None] - mu) / sigma
    waiting = continues * ndtr(-z)
    never = 1 - continues.sum(axis=-1, keepdims=True) if cured else 0.0
    rate = hazard(z)
    mean = mu + sigma * rate
    square = mu * mu + 2 * mu * sigma * rate + sigma * sigma * (1 + z * rate)
    return waiting / np.maximum(never + waiting.sum(axis=-1, keepdims=True), 1e-300), mean, square


def _too_short(fit: Fit, log_floor: float) -> tuple[Floats, Floats]:
    """For gaps below the clock's step [sets, kinds]: mean of ln x and of its square."""
    z = (log_floor - fit.mu) / fit.sigma
    rate = hazard(-z)
    mean = fit.mu - fit.sigma * rate
    return mean, fit.mu**2 - 2 * fit.mu * fit.sigma * rate + fit.sigma**2 * (1 - z * rate)


def fit_open(
    sums: Sums, cured: bool = True, rounds: int = 2000, tolerance: float = 1e-6, start: Fit | None = None
) -> Fit:
    """Log-normals of observed gaps and open turns together, by expectation maximisation.

    ``cured``: an open turn may also never be followed (it contributes ln(1 - p + p S)); without it every open turn is
    followed some day (ln S). An open turn may end in any of the kinds, so the kinds are fitted together. ``start``: a
    fit of the same kinds to begin from.
    """
    seen = sums.count + sums.below
    observed = seen.sum(axis=-1, keepdims=True)
    turns = np.maximum(observed + sums.open_weight.sum(axis=-1, keepdims=True), 1e-12)
    mu, sigma = _spread(sums.count, sums.log_sum, sums.square_sum)
    fit = Fit(mu, sigma, seen / (turns if cured else np.maximum(observed, 1e-12)))
    if start is not None and (sums.open_weight.any() or sums.below.any()):
        fit = Fit(*(np.broadcast_to(part, mu.shape) for part in (start.mu, start.sigma, start.continues)))
    for _ in range(rounds if sums.open_weight.any() or sums.below.any() else 0):
        chance, mean, square = _still_to_come(fit, sums.log_open, cured)
        chance = chance * sums.open_weight[..., None]
        short, short_square = _too_short(fit, sums.log_floor)
        count = seen + chance.sum(axis=1)
        mu, sigma = _spread(
            count,
            sums.log_sum + sums.below * short + (chance * mean).sum(axis=1),
            sums.square_sum + sums.below * short_square + (chance * square).sum(axis=1),
        )
        moved = max(np.abs(mu - fit.mu).max(), np.abs(sigma - fit.sigma).max())
        fit = Fit(mu, sigma, count / turns)
        if moved < tolerance:
            break
    return fit


def within(seconds: float, mu: Floats | float, sigma: Floats | float) -> Floats:
    """Probability of a gap of at most ``seconds``."""
    return ndtr((np.log(seconds) - mu) / sigma)
