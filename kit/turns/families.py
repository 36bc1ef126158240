"""Other curves for the same gaps under the same likelihood, compared by AIC.

The likelihood of every family: gaps seen to end by density, open last turns by ln(1 - p + p S(watched)), where p is the
probability that a turn is followed at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import gammaincc, gammaln, ndtr

from kit.turns.goodness import rising
from kit.turns.lognormal import HALF_LOG_TAU, LEAST_GAPS, SMALLEST_SIGMA, bins

Floats = NDArray[np.float64]
EXACT_ENDS = 400
MIDDLE_POINTS = 1_600


@dataclass(frozen=True)
class Sample:
    """Gaps as weighted points (mean seconds, mean ln seconds, number of gaps) and open turns the same way."""

    seconds: Floats
    logs: Floats
    number: Floats
    open_seconds: Floats
    open_number: Floats

    @property
    def gaps(self) -> float:
        """Gaps in all points together."""
        return float(self.number.sum())

    def mean(self, values: Floats) -> float:
        """Mean over all gaps of a value per point."""
        return float(self.number @ values / self.gaps)


@dataclass(frozen=True)
class Family:
    """A distribution of positive gaps with all parameters on a free (logarithmic or logit) scale."""

    name: str
    start: Callable[[Sample], list[float]]
    log_density: Callable[[Floats, Floats, Floats], Floats]
    survival: Callable[[Floats, Floats], Floats]

    def loss(self, free: Floats, sample: Sample) -> float:
        """Mean negative log likelihood per gap; the last parameter is the logit of p where there are open turns."""
        total = sample.number @ self.log_density(free, sample.seconds, sample.logs)
        if len(sample.open_seconds):
            p = 1 / (1 + np.exp(-free[-1]))
            still_open = 1 - p + p * self.survival(free, sample.open_seconds)
            total += sample.gaps * np.log(p + 1e-300) + sample.open_number @ np.log(still_open + 1e-300)
        return float(-total / sample.gaps) if np.isfinite(total) else 1e9


def _exponential(free: Floats, x: Floats, logs: Floats) -> Floats:
    return -free[0] - x / np.exp(free[0])


def _weibull(free: Floats, x: Floats, logs: Floats) -> Floats:
    shape, scaled = np.exp(free[1]), logs - free[0]
    return free[1] - free[0] + (shape - 1) * scaled - np.exp(np.minimum(shape * scaled, 700))


def _gamma(free: Floats, x: Floats, logs: Floats) -> Floats:
    shape = np.exp(free[1])
    return (shape - 1) * logs - x / np.exp(free[0]) - shape * free[0] - gammaln(shape)


def _lomax(free: Floats, x: Floats, logs: Floats) -> Floats:
    return free[1] - free[0] - (np.exp(free[1]) + 1) * np.log1p(x / np.exp(free[0]))


def _lognormal(free: Floats, x: Floats, logs: Floats) -> Floats:
    z = (logs - free[0]) / np.exp(free[1])
    return -0.5 * z * z - free[1] - logs - HALF_LOG_TAU


def _mixture_parts(free: Floats, logs: Floats) -> tuple[float, Floats, Floats]:
    share = float(1 / (1 + np.exp(-free[4])))
    return share, (logs - free[0]) / np.exp(free[1]), (logs - free[2]) / np.exp(free[3])


def _mixture(free: Floats, x: Floats, logs: Floats) -> Floats:
    share, first, second = _mixture_parts(free, logs)
    one = np.log(share + 1e-300) - 0.5 * first * first - free[1]
    two = np.log(1 - share + 1e-300) - 0.5 * second * second - free[3]
    return np.logaddexp(one, two) - logs - HALF_LOG_TAU


def _mixture_survival(free: Floats, t: Floats) -> Floats:
    share, first, second = _mixture_parts(free, np.log(t))
    return share * ndtr(-first) + (1 - share) * ndtr(-second)


def _spread(sample: Sample) -> tuple[float, float]:
    mu = sample.mean(sample.logs)
    return mu, float(np.sqrt(sample.mean((sample.logs - mu) ** 2)))


def _mixture_start(sample: Sample) -> list[float]:
    """Expectation maximisation from one deviation below and above the mean."""
    logs, number = sample.logs[:, None], sample.number[:, None]
    middle, wide = _spread(sample)
    mu, sigma, share = np.array([middle - wide, middle + wide]), np.array([wide, wide]), np.array([0.5, 0.5])
    for _ in range(60):
        z = (logs - mu) / sigma
        weight = share / sigma * np.exp(-0.5 * z * z) + 1e-300
        weight *= number / weight.sum(axis=1, keepdims=True)
        n = weight.sum(axis=0) + 1e-9
        mu = (weight * logs).sum(axis=0) / n
        sigma = np.sqrt((weight * (logs - mu) ** 2).sum(axis=0) / n) + 1e-3
        share = n / n.sum()
    return [mu[0], np.log(sigma[0]), mu[1], np.log(sigma[1]), np.log(share[0] / share[1])]


def _lognormal_start(sample: Sample) -> list[float]:
    mu, sigma = _spread(sample)
    return [mu, np.log(sigma)]


def _weibull_start(sample: Sample) -> list[float]:
    """Moments of ln x: its deviation is 1.28 / shape, its mean 0.58 / shape below ln scale."""
    mu, sigma = _spread(sample)
    return [mu + 0.45 * sigma, np.log(1.28 / sigma)]


FAMILIES = (
    Family(
        "lognormal",
        _lognormal_start,
        _lognormal,
        lambda free, t: ndtr(-(np.log(t) - free[0]) / np.exp(free[1])),
    ),
    Family(
        "exponential",
        lambda sample: [np.log(sample.mean(sample.seconds))],
        _exponential,
        lambda free, t: np.exp(-t / np.exp(free[0])),
    ),
    Family(
        "weibull",
        _weibull_start,
        _weibull,
        lambda free, t: np.exp(-np.exp(np.minimum(np.exp(free[1]) * (np.log(t) - free[0]), 700))),
    ),
    Family(
        "gamma",
        lambda sample: [np.log(sample.mean(sample.seconds)), 0.0],
        _gamma,
        lambda free, t: gammaincc(np.exp(free[1]), t / np.exp(free[0])),
    ),
    Family(
        "lomax",
        lambda sample: [sample.mean(sample.logs), 0.0],
        _lomax,
        lambda free, t: np.exp(-np.exp(free[1]) * np.log1p(t / np.exp(free[0]))),
    ),
    Family("lognormal_mixture", _mixture_start, _mixture, _mixture_survival),
)


def compress(seconds: Floats, open_seconds: Floats) -> Sample:
    """Gaps as at most 2,400 weighted points: 400 exact ones at each end, neighbours of equal number in between.
    Open turns in 100 groups of equal number.

    The likelihood of 20,000 gaps moves by far less than one unit of AIC, and costs a tenth.
    """
    seconds = rising(seconds)
    n = len(seconds)
    group = np.arange(n)
    if n > 2 * EXACT_ENDS + MIDDLE_POINTS:
        inner = group[EXACT_ENDS : n - EXACT_ENDS] - EXACT_ENDS
        group[EXACT_ENDS : n - EXACT_ENDS] = EXACT_ENDS + inner * MIDDLE_POINTS // len(inner)
        group[n - EXACT_ENDS :] = EXACT_ENDS + MIDDLE_POINTS + np.arange(EXACT_ENDS)
    number = np.bincount(group).astype(np.float64)
    means, log_means = (np.bincount(group, weights=values) / number for values in (seconds, np.log(seconds)))
    watched, bin_of = bins(np.log(open_seconds))
    left = np.bincount(bin_of).astype(np.float64)
    return Sample(means, log_means, number, np.exp(watched[: len(left)]), left)


def aic(family: Family, sample: Sample) -> float:
    """2 k - 2 ln L at the maximum; smaller is better."""
    start = family.start(sample)
    if len(sample.open_seconds):
        start = [*start, np.log(sample.gaps / sample.open_number.sum())]
    found = minimize(family.loss, np.array(start), args=(sample,), method="BFGS")
    return float(2 * len(start) + 2 * sample.gaps * found.fun)


def compare(seconds: Floats, open_seconds: Floats) -> dict[str, Any]:
    """``aic`` per family, Akaike ``aic_weights`` (they sum to 1) and the ``best`` family's name."""
    if len(seconds) < LEAST_GAPS or np.log(seconds).std() <= SMALLEST_SIGMA:
        return {"aic": {}, "aic_weights": {}, "best": None}
    sample = compress(seconds, open_seconds)
    found = {family.name: aic(family, sample) for family in FAMILIES}
    least = min(found.values())
    likely = {name: float(np.exp(-(value - least) / 2)) for name, value in found.items()}
    total = sum(likely.values())
    return {
        "aic": found,
        "aic_weights": {name: value / total for name, value in likely.items()},
        "best": min(found, key=lambda name: found[name]),
    }
