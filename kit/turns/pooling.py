"""Every session its own log-normal, pulled toward its type as far as its few gaps demand (empirical Bayes)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import digamma, ndtri, polygamma

from kit.turns.gaps import Batch, Gaps, batch, read_gaps
from kit.turns.lognormal import LEAST_GAPS, SMALLEST_SIGMA

Floats = NDArray[np.float64]

LEAST_POOLED = 5
LEAST_SESSIONS = 3


@dataclass(frozen=True)
class Pooled:
    """Sessions after pooling: ``mu`` with its standard deviation ``mu_error``, ``sigma``, and how far each was pulled.

    ``type_mu``, ``between`` (standard deviation of true session means) and ``type_sigma`` describe the type.
    """

    mu: Floats
    mu_error: Floats
    sigma: Floats
    mu_shrinkage: Floats
    sigma_shrinkage: Floats
    type_mu: float
    between: float
    type_sigma: float


def _inverse_trigamma(value: float) -> float:
    """x with trigamma(x) = value, by Newton steps on 1 / trigamma, which is nearly straight."""
    x = 0.5 + 1 / value
    for _ in range(20):
        trigamma = float(polygamma(1, x))
        x += trigamma * (1 - trigamma / value) / float(polygamma(2, x))
    return x


def _prior_of_variances(variance: Floats, freedom: Floats) -> tuple[float, float]:
    """(degrees of freedom, variance) of the scaled inverse chi-square that session variances come from.

    Moments of ln s squared: its mean and spread over sessions against what chance alone gives. Where sessions spread
    no more than chance, the degrees of freedom are infinite: one variance for all.
    """
    scores = np.log(variance) - digamma(freedom / 2) + np.log(freedom / 2)
    spread = float(scores.var(ddof=1) - polygamma(1, freedom / 2).mean())
    if spread <= 0:
        return np.inf, float(np.exp(scores.mean()))
    prior = 2 * _inverse_trigamma(spread)
    return prior, float(np.exp(scores.mean() + digamma(prior / 2) - np.log(prior / 2)))


def _between(mean: Floats, error: Floats, rounds: int = 100) -> tuple[float, float]:
    """(common mean, variance between true means) such that the weighted squares add up to k - 1 (Paule and Mandel)."""
    variance = 0.0
    for _ in range(rounds):
        weight = 1 / (error + variance)
        centre = float(weight @ mean / weight.sum())
        excess = float(weight @ (mean - centre) ** 2) - (len(mean) - 1)
        step = excess / float(weight**2 @ (mean - centre) ** 2 + 1e-300)
        variance = max(0.0, variance + step)
        if abs(step) < 1e-10 or (variance == 0 and excess < 0):
            break
    weight = 1 / (error + variance)
    return float(weight @ mean / weight.sum()), variance


def pool(count: Floats, mean: Floats, variance: Floats) -> Pooled:
    """Sessions of one type: number of gaps, mean and (n - 1) variance of ln seconds in, pooled estimates out."""
    freedom = count - 1
    variance = np.maximum(variance, SMALLEST_SIGMA**2)
    prior, common = _prior_of_variances(variance, freedom)
    pull = 1.0 if np.isinf(prior) else prior / (prior + freedom)
    pooled = pull * common + (1 - pull) * variance
    error = pooled / count
    centre, between = _between(mean, error)
    shrink = error / (error + between)
    return Pooled(
        mu=shrink * centre + (1 - shrink) * mean,
        mu_error=np.sqrt(error * (1 - shrink) + shrink**2 / (1 / (error + between)).sum()),
        sigma=np.sqrt(pooled),
        mu_shrinkage=shrink,
        sigma_shrinkage=np.broadcast_to(pull, count.shape).astype(np.float64),
        type_mu=centre,
        between=float(np.sqrt(between)),
        type_sigma=float(np.sqrt(common)),
    )


def _session_sums(found: Batch, sessions: int) -> tuple[Floats, Floats, Floats]:
    """Gaps, mean and (n - 1) variance of ln seconds of every session of the log (NaN where it has too few)."""
    logs = np.log(found.seconds)
    count = np.bincount(found.session, minlength=sessions).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(found.session, weights=logs, minlength=sessions) / count
        apart = (logs - mean[found.session]) ** 2
        return count, mean, np.bincount(found.session, weights=apart, minlength=sessions) / (count - 1)


def _frame(gaps: Gaps, kind: str, chosen: NDArray[np.int64], sums: tuple[Floats, ...], level: float) -> pl.DataFrame:
    count, mean, variance = (part[chosen] for part in sums)
    found = pool(count, mean, variance)
    alone = count >= LEAST_GAPS
    reach = float(ndtri((1 + level) / 2)) * found.mu_error
    return pl.DataFrame(
        {
            "session_id": [gaps.session_names[code] for code in chosen],
            "session_type": pl.Series([kind] * len(chosen), dtype=pl.String),
            "gaps": count.astype(np.int64),
            "mu_alone": np.where(alone, mean, np.nan),
            "sigma_alone": np.where(alone, np.sqrt(variance * (count - 1) / count), np.nan),
            "mu": found.mu,
            "mu_low": found.mu - reach,
            "mu_high": found.mu + reach,
            "sigma": found.sigma,
            "median_seconds": np.exp(found.mu),
            "mu_shrinkage": found.mu_shrinkage,
            "sigma_shrinkage": found.sigma_shrinkage,
            "type_mu": found.type_mu,
            "type_between": found.between,
            "type_sigma": found.type_sigma,
        }
    ).with_columns(pl.col("mu_alone", "sigma_alone").fill_nan(None))


def per_session(log: Any, trigger: str = "all", clock: str = "start_to_start", level: float = 0.95) -> pl.DataFrame:
    """One row per session with at least 5 positive gaps: its log-normal alone and pooled toward its type.

    ``mu_alone`` and ``sigma_alone`` (maximum likelihood) from 8 gaps on, else null. ``mu`` (with an interval),
    ``sigma`` and ``median_seconds`` are pooled: a shrinkage of 1 means the type's value, 0 the session's own. A
    type with fewer than 3 such sessions is left out: there is nothing to pool toward. Sorted by type and session.
    """
    gaps = read_gaps(log)
    frames = []
    for kind in gaps.type_names:
        found = batch(gaps, kind, clock).only(trigger)
        sums = _session_sums(found, len(gaps.session_names))
        chosen = np.flatnonzero(sums[0] >= LEAST_POOLED)
        if len(chosen) >= LEAST_SESSIONS:
            frames.append(_frame(gaps, kind, chosen, sums, level))
    return pl.concat(frames) if frames else pl.DataFrame(schema=EMPTY)


SHOWN = (
    *("session_type", "rank", "gaps", "mu_alone", "mu", "mu_low", "mu_high", "sigma_alone", "sigma"),
    *("mu_shrinkage", "sigma_shrinkage"),
)
EMPTY = {
    **{"session_id": pl.String, "session_type": pl.String, "gaps": pl.Int64},
    **dict.fromkeys(("mu_alone", "sigma_alone", "mu", "mu_low", "mu_high", "sigma", "median_seconds"), pl.Float64),
    **dict.fromkeys(("mu_shrinkage", "sigma_shrinkage", "type_mu", "type_between", "type_sigma"), pl.Float64),
}


def session_summary(frame: pl.DataFrame, shown: int = 60) -> dict[str, list[dict[str, Any]]]:
    """``types``: per session type the sessions fitted, its mu, sigma and spread between sessions, and mean shrinkage.

    ``sessions``: of each type at most ``shown`` sessions evenly spread over the sorted pooled mu, named by their
    ``rank`` in it (the log's own session names are not printed).
    """
    types: list[dict[str, Any]] = []
    sessions: list[dict[str, Any]] = []
    for (kind,), part in frame.group_by(["session_type"], maintain_order=True):
        part = part.sort("mu", "session_id").with_row_index("rank", offset=1)
        picked = np.unique(np.linspace(0, part.height - 1, min(shown, part.height)).round().astype(np.int64))
        sessions += part[picked].select(SHOWN).to_dicts()
        types.append(
            {
                "session_type": kind,
                "fitted_sessions": part.height,
                "stand_alone_sessions": part.height - part["mu_alone"].null_count(),
                **{name: part[name][0] for name in ("type_mu", "type_between", "type_sigma")},
                "mean_mu_shrinkage": float(part["mu_shrinkage"].to_numpy().mean()),
                "mean_sigma_shrinkage": float(part["sigma_shrinkage"].to_numpy().mean()),
            }
        )
    return {"types": types, "sessions": sessions}
