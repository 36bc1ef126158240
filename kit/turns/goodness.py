"""How well a log-normal describes gaps: distances, p-values that know the parameters were fitted, and the curves."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

from kit.turns.gaps import Batch

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SIMULATIONS = 999
LARGEST_SIMULATION = 400
MOST_SQUARED = 50_000


def incidence(
    seconds: Floats, mine: NDArray[np.bool_], open_seconds: Floats, zeros: int = 0, my_zeros: int = 0
) -> tuple[Floats, Floats]:
    """(times, probability that a next turn of my kind has come by then), open turns taken out when last seen.

    Aalen-Johansen: turns of other kinds end the waiting too. With one kind it is 1 - Kaplan-Meier. ``seconds`` of all
    kinds must rise; times are the distinct ones. ``zeros`` gaps of 0 (``my_zeros`` of my kind) came before all of them.
    """
    new = np.concatenate([[True], np.diff(seconds) > 0])
    times, at = seconds[new], np.cumsum(new) - 1
    ended = np.bincount(at, minlength=len(times))
    wanted = np.bincount(at[mine], minlength=len(times))
    left = np.searchsorted(times, open_seconds, side="right")
    gone_open = np.cumsum(np.bincount(left, minlength=len(times) + 1))[:-1]
    at_risk = len(seconds) + len(open_seconds) - gone_open - (np.cumsum(ended) - ended)
    turns = len(seconds) + len(open_seconds) + zeros
    waiting = (1 - zeros / turns) * np.cumprod(1 - ended / at_risk)
    before = np.concatenate([[1 - zeros / turns], waiting[:-1]])
    return times, my_zeros / turns + np.cumsum(before * wanted / at_risk)


def rising(values: Floats) -> Floats:
    """The values sorted; those of a batch already are, and are not sorted again."""
    return values if (values[1:] >= values[:-1]).all() else np.sort(values)


def ks_distance(seconds: Floats, mu: float, sigma: float) -> float:
    """Largest distance between the empirical distribution of gaps and the log-normal (Kolmogorov-Smirnov D)."""
    model = ndtr((np.log(rising(seconds)) - mu) / sigma)
    steps = np.arange(len(model) + 1) / len(model)
    return float(max((steps[1:] - model).max(), (model - steps[:-1]).max()))


def incidence_of(batch: Batch, trigger: str) -> tuple[Floats, Floats]:
    """The incidence of one trigger's turns (``all``: of any) in a batch."""
    zeros, mine = batch.zeros("all"), batch.zeros(trigger)
    return incidence(batch.seconds, batch.of_kind(trigger), batch.open_seconds, zeros, mine)


def ks_open(times: Floats, come: Floats, continues: float, mu: float, sigma: float) -> float:
    """The same distance with open turns: incidence over the probability that a next turn comes, against the fit.

    Equal to `ks_distance` where every open turn was watched for longer than the longest gap.
    """
    model = ndtr((np.log(times) - mu) / sigma)
    steps = np.concatenate([[0.0], come]) / continues
    return float(max((steps[1:] - model).max(), (model - steps[:-1]).max()))


def anderson_darling(z: Floats) -> Floats:
    """A squared of standardised values, one set per row, for a normal with mean and deviation fitted from the set."""
    n = z.shape[-1]
    z = np.sort(z, axis=-1)
    odd = 2 * np.arange(1, n + 1) - 1
    return -n - (odd * (log_ndtr(z) + log_ndtr(-z[..., ::-1]))).sum(axis=-1) / n


def _standard(values: Floats) -> Floats:
    return (values - values.mean(axis=-1, keepdims=True)) / values.std(axis=-1, keepdims=True)


@lru_cache(maxsize=64)
def _null(n: int, seed: int) -> tuple[Floats, Floats]:
    """D x sqrt(n) and A squared of samples that are log-normal, with parameters fitted to each: sorted."""
    z = np.sort(_standard(np.random.default_rng(seed).normal(size=(SIMULATIONS, n))), axis=-1)
    steps = np.arange(n + 1) / n
    model = ndtr(z)
    distance = np.maximum((steps[1:] - model).max(axis=-1), (model - steps[:-1]).max(axis=-1))
    return np.sort(distance * np.sqrt(n)), np.sort(anderson_darling(z))


def p_values(seconds: Floats, seed: int = 1) -> dict[str, float]:
    """KS distance and Anderson-Darling of ln x with parametric-bootstrap p-values: ks, ks_p, ad, ad_p.

    The distribution under a true log-normal depends on n alone (location and scale cancel), so one simulation serves
    all: 999 samples of min(n, 400) gaps, compared on D x sqrt(n). A squared of over 50,000 gaps is taken from 50,000
    evenly spread ones and scaled. The usual KS table would hardly ever reject, because
    the parameters were fitted to the same gaps.
    """
    z = _standard(np.log(rising(seconds)))
    n = len(z)
    few = z[np.linspace(0, n - 1, min(n, MOST_SQUARED)).round().astype(np.int64)]
    distances, squares = _null(min(n, LARGEST_SIMULATION), seed)
    ks, ad = ks_distance(np.exp(z), 0.0, 1.0), float(anderson_darling(few)) * n / len(few)
    beyond = [
        SIMULATIONS - np.searchsorted(null, value) for null, value in ((distances, ks * np.sqrt(n)), (squares, ad))
    ]
    ks_p, ad_p = ((1 + int(number)) / (1 + SIMULATIONS) for number in beyond)
    return {"ks": ks, "ks_p": ks_p, "ad": ad, "ad_p": ad_p}


def qq(seconds: Floats, mu: float, sigma: float, points: int = 41) -> list[dict[str, float]]:
    """Quantiles of the gaps beside those of the fit, in seconds, from 0.5 to 99.5 %."""
    levels = np.linspace(0.005, 0.995, points)
    observed, fitted = np.quantile(seconds, levels), np.exp(mu + sigma * ndtri(levels))
    rows = zip(levels, observed, fitted, strict=True)
    return [{"level": float(a), "observed_seconds": float(b), "fitted_seconds": float(c)} for a, b, c in rows]


def survival(
    times: Floats, come: Floats, continues: float, mu: float, sigma: float, points: int = 60
) -> list[dict[str, float]]:
    """Probability that no next turn of this kind has come yet: as seen (Kaplan-Meier) and as fitted, on a log grid."""
    grid = np.geomspace(times[0], times[-1], points) if len(times) > 1 else times
    seen = 1 - np.concatenate([[0.0], come])[np.searchsorted(times, grid, side="right")]
    fitted = 1 - continues * ndtr((np.log(grid) - mu) / sigma)
    rows: Any = zip(grid, seen, fitted, strict=True)
    return [{"seconds": float(a), "seen": float(b), "fitted": float(c)} for a, b, c in rows]
