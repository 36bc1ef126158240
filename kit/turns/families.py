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
from scipy.special import gammaincc, gammaln, log_ndtr, ndtr

from kit.turns.lognormal import HALF_LOG_TAU, LEAST_GAPS

Floats = NDArray[np.float64]
MOST_GAPS = 20_000


@dataclass(frozen=True)
class Family:
    """A distribution of positive gaps with all parameters on a free (logarithmic or logit) scale."""

    name: str
    start: Callable[[Floats], list[float]]
    log_density: Callable[[Floats, Floats, Floats], Floats]
    survival: Callable[[Floats, Floats], Floats]

    def loss(self, free: Floats, seconds: Floats, logs: Floats, tails: Floats) -> float:
        """Mean negative log likelihood per gap; the last parameter is the logit of p where there are open turns."""
        density = self.log_density(free, seconds, logs).sum()
        if len(tails):
            p = 1 / (1 + np.exp(-free[-1]))
            density += len(seconds) * np.log(p + 1e-300) + np.log(1 - p + p * self.survival(free, tails) + 1e-300).sum()
        return float(-density / len(seconds)) if np.isfinite(density) else 1e9


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


def _mixture_start(x: Floats) -> list[float]:
    """A few rounds of expectation maximisation from the halves below and above the median."""
    logs = np.sort(np.log(x))
    middle = len(logs) // 2
    mu = np.array([logs[:middle].mean(), logs[middle:].mean()])
    sigma = np.array([logs[:middle].std(), logs[middle:].std()]) + 0.05
    share = np.array([0.5, 0.5])
    for _ in range(60):
        z = (logs[:, None] - mu) / sigma
        weight = share / sigma * np.exp(-0.5 * z * z) + 1e-300
        weight /= weight.sum(axis=1, keepdims=True)
        n = weight.sum(axis=0) + 1e-9
        mu = (weight * logs[:, None]).sum(axis=0) / n
        sigma = np.sqrt((weight * (logs[:, None] - mu) ** 2).sum(axis=0) / n) + 1e-3
        share = n / n.sum()
    return [mu[0], np.log(sigma[0]), mu[1], np.log(sigma[1]), np.log(share[0] / share[1])]


FAMILIES = (
    Family(
        "lognormal",
        lambda x: [np.log(x).mean(), np.log(np.log(x).std())],
        _lognormal,
        lambda free, t: np.exp(log_ndtr(-(np.log(t) - free[0]) / np.exp(free[1]))),
    ),
    Family("exponential", lambda x: [np.log(x.mean())], _exponential, lambda free, t: np.exp(-t / np.exp(free[0]))),
    Family(
        "weibull",
        lambda x: [np.log(x).mean() + 0.6, np.log(1.28 / np.log(x).std())],
        _weibull,
        lambda free, t: np.exp(-np.exp(np.minimum(np.exp(free[1]) * (np.log(t) - free[0]), 700))),
    ),
    Family(
        "gamma",
        lambda x: [np.log(x.mean()), 0.0],
        _gamma,
        lambda free, t: gammaincc(np.exp(free[1]), t / np.exp(free[0])),
    ),
    Family(
        "lomax",
        lambda x: [np.log(np.median(x)), 0.0],
        _lomax,
        lambda free, t: np.exp(-np.exp(free[1]) * np.log1p(t / np.exp(free[0]))),
    ),
    Family("lognormal_mixture", _mixture_start, _mixture, _mixture_survival),
)


def thin(seconds: Floats, most: int = MOST_GAPS) -> Floats:
    """At most ``most`` gaps, evenly spread over the sorted ones."""
    if len(seconds) <= most:
        return seconds
    return np.sort(seconds)[np.linspace(0, len(seconds) - 1, most).astype(np.int64)]


def aic(family: Family, seconds: Floats, tails: Floats) -> float:
    """2 k - 2 ln L at the maximum; smaller is better."""
    logs = np.log(seconds)
    start = family.start(seconds) + ([np.log(len(seconds) / len(tails))] if len(tails) else [])
    found = minimize(family.loss, np.array(start), args=(seconds, logs, tails), method="L-BFGS-B")
    return float(2 * len(start) + 2 * len(seconds) * found.fun)


def compare(seconds: Floats, tails: Floats) -> dict[str, Any]:
    """``aic`` per family, Akaike ``aic_weights`` (they sum to 1) and the ``best`` family's name.

    Above 20,000 gaps the comparison uses 20,000 of them, evenly spread over the sorted gaps (``aic_gaps``).
    """
    used = thin(seconds)
    if len(seconds) < LEAST_GAPS or np.log(used).std() <= 1e-9:
        return {"aic": {}, "aic_weights": {}, "best": None, "aic_gaps": 0}
    found = {family.name: aic(family, used, tails) for family in FAMILIES}
    least = min(found.values())
    likely = {name: float(np.exp(-(value - least) / 2)) for name, value in found.items()}
    total = sum(likely.values())
    return {
        "aic": found,
        "aic_weights": {name: value / total for name, value in likely.items()},
        "best": min(found, key=lambda name: found[name]),
        "aic_gaps": len(used),
    }
