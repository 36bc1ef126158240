"""How sure a difference is: paired bootstrap over blocks of sessions (or over days) for ratios of sums.

Requests of one session share their prefix, so a request is not the unit that repeats: whole blocks of sessions are.
Each replicate draws blocks with replacement; the same draw serves every policy, so what they have in common cancels.
A ratio is always a ratio of sums, never a mean of ratios. Few units make a percentile interval too narrow; the expanded
percentile of Hesterberg ("What Teachers Should Know About the Bootstrap", 2015, section 4.1) widens it by Student's t.

Sessions of a day may be alike (they share prompts that are in fashion), so days are redrawn too and the wider interval
is the headline. Measured on 400 simulated weeks (bench/bench_coverage.py): a nominal 95 % interval holds the truth in
74 % of logs over session blocks, 94.5 % over days, 94.8 % as headlined; without the widening days hold it in 89 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

LEVEL = 0.95
REPLICATES = 2000
BLOCKS = "session blocks"
DAYS = "days"
WEEK_DAYS, CHOSEN_DAYS = 7, 5
FEWEST_DAYS = 5
Floats = NDArray[np.float64]


class IntervalError(ValueError):
    """Columns that cannot be compared: one line with their shapes and what is accepted."""


@dataclass(frozen=True)
class Interval:
    """An estimate (`value`, on the log as it is) with its two-sided interval at `level`, over `units` of `basis`."""

    value: float
    low: float
    high: float
    level: float = LEVEL
    basis: str = BLOCKS
    units: int = 0

    @property
    def excludes_zero(self) -> bool:
        """True when the whole interval lies on one side of zero."""
        return self.low > 0 or self.high < 0

    @property
    def width(self) -> float:
        """high - low, in the unit of the value."""
        return self.high - self.low

    def scaled(self, factor: float) -> Interval:
        """The interval of `factor` times the quantity; a negative factor swaps the ends."""
        ends = sorted((self.low * factor + 0.0, self.high * factor + 0.0))  # + 0.0: never a minus zero
        return Interval(self.value * factor + 0.0, ends[0], ends[1], self.level, self.basis, self.units)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers for results.json: value, low, high, level, basis, units; twelve significant digits."""
        ends = {name: float(f"{getattr(self, name):.12g}") for name in ("value", "low", "high")}
        return {**ends, "level": self.level, "basis": self.basis, "units": self.units}


def from_dict(stored: Mapping[str, Any] | None) -> Interval | None:
    """The interval a results.json row holds, or None where there is none."""
    if not stored or any(stored.get(name) is None for name in ("value", "low", "high")):
        return None
    known = {name: stored[name] for name in ("level", "basis", "units") if stored.get(name) is not None}
    return Interval(float(stored["value"]), float(stored["low"]), float(stored["high"]), **known)


@lru_cache(maxsize=16)
def block_weights(units: int, replicates: int = REPLICATES, seed: int = 1) -> Floats:
    """How often each unit is drawn: float64[replicates, units], every row sums to `units`. Same seed, same draws."""
    drawn = np.random.default_rng(seed).integers(0, units, size=(replicates, units))
    places = drawn + units * np.arange(replicates)[:, None]
    weights = np.bincount(places.ravel(), minlength=units * replicates).reshape(replicates, units).astype(np.float64)
    weights.flags.writeable = False
    return weights


def quantiles(units: int, level: float = LEVEL) -> tuple[float, float]:
    """The two quantiles of the replicates that span `level`, widened for few units (expanded percentile)."""
    wide = np.sqrt(units / (units - 1)) * special.stdtrit(units - 1, (1 - level) / 2)
    tail = float(special.ndtr(wide))
    return tail, 1 - tail


def _columns(*columns: ArrayLike) -> Floats:
    """Columns over units as float64[..., units], without the units where every column is zero."""
    arrays = [np.asarray(column, dtype=np.float64) for column in columns]
    shapes = {array.shape for array in arrays}
    if len(shapes) != 1 or arrays[0].ndim not in (1, 2):
        found = ", ".join(str(array.shape) for array in arrays)
        raise IntervalError(f"columns of one shape [units] or [policies, units] expected, found {found}")
    stacked = np.stack(arrays)
    used = stacked.reshape(-1, stacked.shape[-1]).any(axis=0)
    return stacked[..., used]


def _ratio(num: Floats, den: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(den != 0, num / den, np.nan)


def ratio_replicates(num: ArrayLike, den: ArrayLike, replicates: int = REPLICATES, seed: int = 1) -> Floats:
    """Ratio of sums in every replicate: float64[replicates] or [policies, replicates]; NaN without a denominator."""
    columns = _columns(num, den)
    sums = columns @ block_weights(columns.shape[-1], replicates, seed).T
    return _ratio(sums[0], sums[1])


def interval_of(
    value: float,
    draws: Floats,
    units: int,
    level: float = LEVEL,
    basis: str = BLOCKS,
) -> Interval | None:
    """The interval that replicates of an estimate give; None under two units or with a tenth of draws unknown."""
    known = draws[np.isfinite(draws)]
    if units < 2 or not np.isfinite(value) or known.size < 0.9 * draws.size:
        return None
    low, high = np.quantile(known, quantiles(units, level))
    return Interval(float(value), float(low), float(high), level, basis, units)


def paired_ratio(
    num_a: ArrayLike,
    den_a: ArrayLike,
    num_b: ArrayLike,
    den_b: ArrayLike,
    replicates: int = REPLICATES,
    seed: int = 1,
    level: float = LEVEL,
    basis: str = BLOCKS,
) -> Interval | None:
    """Interval of ratio A minus ratio B (ratios of sums over units), both from the same draws.

    Columns are [units]: one figure per bootstrap block or per day. None where it cannot be told: under two units with
    anything in them, a ratio without a denominator, or over a tenth of the replicates without one.
    """
    columns = _columns(num_a, den_a, num_b, den_b)
    if columns.shape[-1] < 2:
        return None
    weights = block_weights(columns.shape[-1], replicates, seed)
    sums = columns @ weights.T
    totals = columns.sum(axis=-1)
    draws = _ratio(sums[0], sums[1]) - _ratio(sums[2], sums[3])
    value = float(_ratio(totals[0], totals[1]) - _ratio(totals[2], totals[3]))
    return interval_of(value, draws, columns.shape[-1], level, basis)


def ratio(
    num: ArrayLike,
    den: ArrayLike,
    replicates: int = REPLICATES,
    seed: int = 1,
    level: float = LEVEL,
    basis: str = BLOCKS,
) -> Interval | None:
    """Interval of one ratio of sums over units; None as in `paired_ratio`."""
    columns = _columns(num, den)
    if columns.shape[-1] < 2:
        return None
    value = float(_ratio(columns[0].sum(), columns[1].sum()))
    return interval_of(
        value, ratio_replicates(columns[0], columns[1], replicates, seed), columns.shape[-1], level, basis
    )


def paired_ratios(
    num: ArrayLike,
    den: ArrayLike,
    base: int = 0,
    replicates: int = REPLICATES,
    seed: int = 1,
    level: float = LEVEL,
    basis: str = BLOCKS,
) -> list[Interval | None]:
    """Interval of every row's ratio minus the row `base`'s, all from the same draws; columns are [policies, units]."""
    columns = _columns(num, den)
    policies, units = columns.shape[1:]
    if units < 2:
        return [None] * policies
    draws = ratio_replicates(columns[0], columns[1], replicates, seed)
    totals = columns.sum(axis=-1)
    values = _ratio(totals[0], totals[1])
    return [interval_of(values[p] - values[base], draws[p] - draws[base], units, level, basis) for p in range(policies)]


def over_days(interval: Interval | None) -> Interval | None:
    """An interval over days, or None where fewer than five days leave it without a meaning."""
    return interval if interval is not None and interval.units >= FEWEST_DAYS else None


def wider(*intervals: Interval | None) -> Interval | None:
    """The widest of the known intervals: the honest headline where blocks and days disagree. None if none is known."""
    known = [interval for interval in intervals if interval is not None]
    return max(known, key=lambda interval: interval.width) if known else None


def by_day(by_hour: NDArray[np.int64], first_hour: int) -> NDArray[np.int64]:
    """Counts per UTC day from counts per hour: [hours, ...] in, [days, ...] out; `first_hour` in hours since 1970."""
    day = (first_hour + np.arange(len(by_hour))) // 24
    if day.size == 0:
        return by_hour
    return np.add.reduceat(by_hour, np.flatnonzero(np.diff(day, prepend=day[0] - 1)), axis=0)


@dataclass(frozen=True)
class Held:
    """Ratio A minus ratio B on the days a choice is made from and on those it is checked on; None: too few days."""

    chosen_on: float | None
    checked_on: float | None


def held_out(num_a: ArrayLike, den_a: ArrayLike, num_b: ArrayLike, den_b: ArrayLike) -> Held:
    """The difference on the first five sevenths of the days and on the rest; columns are [days], seven or more."""
    columns = np.stack([np.asarray(column, dtype=np.float64) for column in (num_a, den_a, num_b, den_b)])
    days = columns.shape[-1]
    if days < WEEK_DAYS:
        return Held(None, None)
    cut = round(days * CHOSEN_DAYS / WEEK_DAYS)
    parts = [columns[:, :cut].sum(axis=1), columns[:, cut:].sum(axis=1)]
    found = [float(_ratio(part[0], part[1]) - _ratio(part[2], part[3])) for part in parts]
    return Held(*(value if np.isfinite(value) else None for value in found))


@dataclass(frozen=True)
class Standing:
    """How a policy stands among those compared: P(it is the best) and the regret of choosing it (mean shortfall).

    `identical` names the others with the same outcome in every unit: they are one policy here and have one chance.
    """

    policy: str
    probability_best: float
    regret: float
    identical: tuple[str, ...] = ()


def standings(
    policies: Sequence[str],
    num: ArrayLike,
    den: ArrayLike,
    lower_is_better: bool,
    replicates: int = REPLICATES,
    seed: int = 1,
) -> list[Standing]:
    """P(best) and regret of every policy over the same draws. Columns: [policies, units].

    Policies that are the same in every unit count as one, and each has its whole chance; other ties share a draw.
    Regret is the mean over replicates of how far the policy is behind the best one of that replicate, in the unit of
    the ratio (0 = never behind).
    """
    draws = ratio_replicates(num, den, replicates, seed) * (1.0 if lower_is_better else -1.0)
    draws = draws[:, np.isfinite(draws).all(axis=0)]
    if draws.shape[-1] == 0:
        return []
    best = draws.min(axis=0)
    twins = _twins(num, den)
    first = np.array([group[0] for group in twins])
    wins = (draws == best) & (first == np.arange(len(first)))[:, None]
    share = (wins / wins.sum(axis=0)).mean(axis=1)[first]
    return [
        Standing(name, float(share[p]), float((draws[p] - best).mean()), tuple(policies[q] for q in twins[p] if q != p))
        for p, name in enumerate(policies)
    ]


def _twins(num: ArrayLike, den: ArrayLike) -> list[list[int]]:
    """Per policy: the policies with the same numbers in every unit, itself included, in order."""
    columns = np.concatenate([np.asarray(num), np.asarray(den)], axis=-1)
    return [[q for q, other in enumerate(columns) if np.array_equal(row, other)] for row in columns]
