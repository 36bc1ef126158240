"""After a change: did cost per request and billed tokens per hit request fall, at the same mix of session types?

Two logs are two samples, so each is redrawn on its own by session blocks. The mix is held fixed: every session type
counts with its share of the requests of both logs together, so a week with more short chats is not taken for a saving.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit import numbers
from kit.intervals import LEVEL, REPLICATES, Interval, block_weights, interval_of

COLUMNS = ("requests", "hits", "hit_tokens", "input_tokens", "cost", "equivalents")
FEWEST_REQUESTS = 30
FEWEST_BLOCKS = 5
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Side:
    """One log: per session type float64[blocks, COLUMNS]. Without a price cost holds prefill tokens, currency None."""

    types: Mapping[str, Floats]
    currency: str | None


@dataclass(frozen=True)
class Figure:
    """One measure before and after at the fixed mix, and the interval of after minus before (None: too few blocks)."""

    before: float
    after: float
    interval: Interval | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        told = None if self.interval is None else self.interval.as_dict()
        return {"before": self.before, "after": self.after, "difference": told}


@dataclass(frozen=True)
class Judgement:
    """`verdict` is accept, revert or inconclusive; `sentence` says why; `figures` and `mix` are what it rests on."""

    verdict: str
    sentence: str
    figures: Mapping[str, Figure]
    mix: Sequence[Mapping[str, Any]]
    left_out_share: float
    currency: str | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "figures": {name: figure.as_dict() for name, figure in self.figures.items()},
            "mix": [dict(row) for row in self.mix],
            "left_out_share": self.left_out_share,
            "currency": self.currency,
        }


def judge(before: Side, after: Side, replicates: int = REPLICATES, seed: int = 1) -> Judgement:
    """Accept, revert or inconclusive for a change between two logs.

    Accept when cost per request falls (interval), billed equivalents per hit request fall and the hit-token ratio does
    not; revert when cost per request clearly rises or the hit-token ratio clearly falls; else inconclusive. Session
    types with under 30 requests or 5 blocks in either log are left out of the comparison, and their share is said.
    """
    names = [name for name in sorted(before.types) if _enough(before, name) and _enough(after, name)]
    mix, left_out = _mix(before, after, names)
    if not names:
        reason = "Inconclusive: the two logs share no session type with enough requests to compare."
        return Judgement("inconclusive", reason, {}, mix, left_out, before.currency)
    weights = np.array([row["weight"] for row in mix if row["session_type"] in names])
    figures = _figures(before, after, names, weights, replicates, seed)
    verdict, why = _verdict(figures)
    sentence = _sentence(verdict, why, figures, left_out)
    return Judgement(verdict, sentence, figures, mix, left_out, before.currency)


def _enough(side: Side, name: str) -> bool:
    table = side.types.get(name)
    if table is None:
        return False
    requests = table[:, 0]
    return bool(requests.sum() >= FEWEST_REQUESTS and np.count_nonzero(requests) >= FEWEST_BLOCKS)


def _mix(before: Side, after: Side, names: Sequence[str]) -> tuple[list[dict[str, Any]], float]:
    """Requests per session type in both logs, the weight each gets, and the share of requests left out."""
    rows: list[dict[str, Any]] = []
    for name in sorted({*before.types, *after.types}):
        counts = [float(side.types[name][:, 0].sum()) if name in side.types else 0.0 for side in (before, after)]
        rows.append({"session_type": name, "requests_before": counts[0], "requests_after": counts[1]})
    total = sum(row["requests_before"] + row["requests_after"] for row in rows)
    kept = sum(row["requests_before"] + row["requests_after"] for row in rows if row["session_type"] in names)
    for row in rows:
        mine = row["requests_before"] + row["requests_after"]
        row["weight"] = mine / kept if kept and row["session_type"] in names else 0.0
    return rows, 1 - kept / total if total else 0.0


def _figures(
    before: Side, after: Side, names: Sequence[str], weights: Floats, replicates: int, seed: int
) -> dict[str, Figure]:
    sides = [np.stack([side.types[name] for name in names]) for side in (before, after)]
    values = [_measures(table.sum(axis=1), weights) for table in sides]
    draws = [_measures(_redrawn(table, replicates, seed + place), weights) for place, table in enumerate(sides)]
    units = min(int(np.count_nonzero(table[..., 0].any(axis=0))) for table in sides)
    return {
        name: Figure(
            float(values[0][name]),
            float(values[1][name]),
            interval_of(float(values[1][name] - values[0][name]), draws[1][name] - draws[0][name], units),
        )
        for name in values[0]
    }


def _redrawn(table: Floats, replicates: int, seed: int) -> Floats:
    """Sums per replicate and session type from redrawn blocks: [replicates, types, COLUMNS]."""
    used = table[..., 0].any(axis=0)
    weights = block_weights(int(used.sum()), replicates, seed)
    return np.einsum("rb,tbc->rtc", weights, table[:, used])


def _measures(sums: Floats, weights: Floats) -> dict[str, Any]:
    """Measures at the fixed mix from sums [..., types, COLUMNS]: means per request by type, weighted, then divided."""
    with np.errstate(divide="ignore", invalid="ignore"):
        per_request = sums / sums[..., :1]
        mean = dict(zip(COLUMNS, np.moveaxis(np.einsum("...tc,t->...c", per_request, weights), -1, 0), strict=True))
        return {
            "cost_per_request": mean["cost"],
            "m_eq": np.where(mean["hits"] > 0, mean["equivalents"] / mean["hits"], np.nan),
            "hit_token_ratio": mean["hit_tokens"] / mean["input_tokens"],
        }


def _verdict(figures: Mapping[str, Figure]) -> tuple[str, str]:
    cost, per_hit, ratio = (figures[name] for name in ("cost_per_request", "m_eq", "hit_token_ratio"))
    if cost.interval is None or ratio.interval is None:
        return "inconclusive", "too few sessions to give an interval"
    if cost.interval.low > 0:
        return "revert", "cost per request rises"
    if ratio.interval.high < 0:
        return "revert", "fewer tokens are found cached"
    if cost.interval.high >= 0:
        return "inconclusive", "the interval of the change in cost per request includes zero"
    if not per_hit.after < per_hit.before:
        return "inconclusive", "billed tokens per hit request do not fall"
    if ratio.after < ratio.before:
        return "inconclusive", "the share of tokens found cached falls, though not clearly"
    return "accept", "cost per request and billed tokens per hit request fall, and no fewer tokens are found cached"


def _sentence(verdict: str, why: str, figures: Mapping[str, Figure], left_out: float) -> str:
    lead = {"accept": "Accept the change", "revert": "Revert the change", "inconclusive": "Inconclusive, keep watching"}
    told = [
        _relative("cost per request", figures["cost_per_request"]),
        _relative("billed tokens per hit request", figures["m_eq"]),
        _points(figures["hit_token_ratio"]),
    ]
    rest = f"; {numbers.percent(left_out)} of requests are of session types too rare to compare" if left_out else ""
    return f"{lead[verdict]}: {why}. At the same mix of session types {', '.join(told)}{rest}."


def _relative(what: str, figure: Figure) -> str:
    if figure.interval is None or not figure.before or not np.isfinite(figure.before + figure.after):
        return f"{what} {numbers.NOT_FOUND}"
    change, low, high = (
        f"{numbers.signed(100 * part / figure.before, 1)}%"
        for part in (figure.interval.value, figure.interval.low, figure.interval.high)
    )
    return f"{what} {change} ({LEVEL:.0%} interval {low} to {high})"


def _points(figure: Figure) -> str:
    if figure.interval is None:
        return f"tokens found cached {numbers.NOT_FOUND}"
    ends = numbers.span(numbers.points(figure.interval.low), numbers.points(figure.interval.high))
    return f"tokens found cached {numbers.points(figure.interval.value)} ({LEVEL:.0%} interval {ends})"
