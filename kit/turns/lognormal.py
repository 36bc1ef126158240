"""Log-normal gaps by maximum likelihood: plain, with open last turns, and with turns that simply never come.

The whole model fits many data sets at once: every array has the data sets along its first axis, so bootstrap
replicates, sessions and days are one call. The location is fixed at 0 (a free one is meaningless: the smallest gap).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

Floats = NDArray[np.float64]

LEAST_GAPS = 8
HALF_LOG_TAU = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True)
class Fit:
    """mu and sigma of ln seconds, and ``continues``, the probability that a turn is followed by another.

    Arrays [data sets, kinds of next turn]; with open turns ``continues`` sums to at most 1 over the kinds.
    """

    mu: Floats
    sigma: Floats
    continues: Floats


def plain(seconds: Floats) -> tuple[float, float] | None:
    """(mean, population standard deviation) of ln seconds; None below 8 gaps or where all gaps are equal."""
    if len(seconds) < LEAST_GAPS:
        return None
    logs = np.log(seconds)
    sigma = float(logs.std())
    return (float(logs.mean()), sigma) if sigma > 1e-9 else None


def hazard(z: Floats) -> Floats:
    """Standard normal density over survival, stable far out in the tail."""
    return np.exp(-0.5 * z * z - HALF_LOG_TAU - log_ndtr(-z))


def _expect(fit: Fit, log_open: Floats, cured: bool) -> tuple[Floats, Floats, Floats]:
    """For open turns [sets, turns, kinds]: chance that this kind is still to come, mean of ln x and of its square."""
    mu, sigma, continues = (part[:, None, :] for part in (fit.mu, fit.sigma, fit.continues))
    z = (log_open[..., None] - mu) / sigma
    waiting = continues * ndtr(-z)
    never = 1 - continues.sum(axis=-1, keepdims=True) if cured else 0.0
    weight = waiting / np.maximum(never + waiting.sum(axis=-1, keepdims=True), 1e-300)
    rate = hazard(z)
    mean = mu + sigma * rate
    return weight, mean, mu * mu + 2 * mu * sigma * rate + sigma * sigma * (1 + z * rate)


def fit_open(
    count: Floats,
    log_sum: Floats,
    square_sum: Floats,
    log_open: Floats,
    open_weight: Floats,
    cured: bool = True,
    rounds: int = 1000,
    tolerance: float = 1e-7,
) -> Fit:
    """Log-normals of observed gaps and open turns together, by expectation maximisation.

    ``count``, ``log_sum``, ``square_sum`` [sets, kinds]: number of observed gaps of each kind, sum of ln x and of its
    square. ``log_open``, ``open_weight`` [sets, turns]: ln of the seconds an open turn was watched, how often it
    counts.
    ``cured``: an open turn may also never be followed (contributes ln(1 - p + p S)); without it every one must (ln S).
    An open turn may end in any of the kinds, so they are fitted together.
    """
    least = np.maximum(count, 1e-12)
    mu = log_sum / least
    sigma = np.sqrt(np.maximum(square_sum / least - mu * mu, 1e-12))
    total = count.sum(axis=-1, keepdims=True) + open_weight.sum(axis=-1)[:, None]
    fit = Fit(mu, sigma, count / np.maximum(total if cured else count.sum(axis=-1, keepdims=True), 1e-12))
    if not open_weight.any():
        return fit
    for _ in range(rounds):
        weight, mean, square = _expect(fit, log_open, cured)
        weight = weight * open_weight[..., None]
        n = np.maximum(count + weight.sum(axis=1), 1e-12)
        mu = (log_sum + (weight * mean).sum(axis=1)) / n
        sigma = np.sqrt(np.maximum((square_sum + (weight * square).sum(axis=1)) / n - mu * mu, 1e-12))
        new = Fit(mu, sigma, n / np.maximum(total, 1e-12))
        moved = max(np.abs(new.mu - fit.mu).max(), np.abs(new.sigma - fit.sigma).max())
        fit = new
        if moved < tolerance:
            break
    return fit


def within(seconds: float, mu: Floats, sigma: Floats) -> Floats:
    """Probability of a gap of at most ``seconds``."""
    return ndtr((np.log(seconds) - mu) / sigma)
