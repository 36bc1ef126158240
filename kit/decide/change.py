"""After a change: did cost per request and billed tokens per hit request fall, at the same mix of session types?

Two logs are two samples, so each is redrawn on its own, by session blocks and, where both touch five days, by days; the
wider interval counts. The mix is held fixed: every session type counts with its share of the requests of both logs
together, so a week with more short chats is not taken for a saving.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit import numbers
from kit.intervals import BLOCKS, DAYS, LEVEL, REPLICATES, Interval, block_weights, interval_of, over_days, wider

COLUMNS = ("requests", "hits", "hit_tokens", "input_tokens", "cost", "equivalents", "priced", "priced_hits")
PRICED = COLUMNS.index("priced")
FEWEST_REQUESTS = 30
FEWEST_BLOCKS = 5
MOST_LEFT_OUT = 0.5
MOST_UNREPORTED = 0.05
UNREPORTED_APART = 0.01
PRICED_APART = 0.05
ONE_TYPE = "all"
LISTED = 4
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Side:
    """One log: per session type float64[blocks, COLUMNS], and the same by UTC day where there is a clock.

    Without a price `currency` is None and cost holds the tokens that were not read from the cache. `types` holds every
    request with reported token classes; cost and equivalents are those of the priced ones, 0 for the others.
    `unreported` requests have no reported token classes; `unpriced_token_share` is of the input tokens in `types`.
    """

    types: Mapping[str, Floats]
    currency: str | None
    days: Mapping[str, Floats] = field(default_factory=dict)
    unreported: int = 0
    unpriced_token_share: float = 0.0

    def requests(self, name: str) -> float:
        """Requests of a session type with reported token classes, 0 where there are none."""
        return float(self.types[name][:, 0].sum()) if name in self.types else 0.0

    def priced(self, name: str) -> float:
        """Those of them with a price (all where none is asked)."""
        return float(self.types[name][:, PRICED].sum()) if name in self.types else 0.0

    @property
    def every(self) -> float:
        """Requests of the log, with and without reported token classes."""
        return self.unreported + sum(self.requests(name) for name in self.types)

    @property
    def unreported_share(self) -> float:
        """Share of the log's requests without reported token classes."""
        return self.unreported / self.every if self.every else 0.0

    def enough(self, name: str) -> bool:
        """Whether a session type has the 30 priced requests in 5 blocks of sessions that an interval needs."""
        return self.priced(name) >= FEWEST_REQUESTS and self.blocks(name) >= FEWEST_BLOCKS

    def blocks(self, name: str) -> int:
        """Blocks of sessions a session type has priced requests in (below 200: nearly its sessions)."""
        return int(np.count_nonzero(self.types[name][:, PRICED])) if name in self.types else 0

    def told(self, name: str) -> str:
        """The priced requests of a session type, and how few sessions they are of where those are too few."""
        few = self.priced(name) >= FEWEST_REQUESTS and self.blocks(name) < FEWEST_BLOCKS
        return numbers.count(self.priced(name)) + (f" of {self.blocks(name)} sessions only" if few else "")


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
    """`verdict` is accept, revert or inconclusive; `sentence` says why; `figures` and `mix` are what it rests on;
    `notes` are what a reader should know of the two logs."""

    verdict: str
    sentence: str
    figures: Mapping[str, Figure]
    mix: Sequence[Mapping[str, Any]]
    left_out_share: float
    currency: str | None
    notes: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "figures": {name: figure.as_dict() for name, figure in self.figures.items()},
            "mix": [dict(row) for row in self.mix],
            "left_out_share": self.left_out_share,
            "currency": self.currency,
            "notes": list(self.notes),
        }


def judge(
    before: Side, after: Side, replicates: int = REPLICATES, seed: int = 1, notes: Sequence[str] = ()
) -> Judgement:
    """Accept, revert or inconclusive for a change between two logs.

    Accept when cost per request falls (interval), billed equivalents per hit request fall and the hit-token ratio does
    not; revert when cost per request clearly rises or the hit-token ratio clearly falls; else inconclusive. Session
    types with under 30 requests or 5 blocks in either log are left out of the comparison and named; where they are more
    than half of the requests nothing is accepted or reverted. Requests without a price are left out of the cost, those
    without reported token classes of everything; where either differs too much between the logs the cost is not judged.
    """
    every = sorted({*before.types, *after.types})
    names = [name for name in every if before.enough(name) and after.enough(name)]
    mix, left_out = _mix(before, after, names)
    absent = _left_out(before, after, [name for name in every if name not in names])
    notes = [*notes, *_untold(before, after)]
    if not names:
        reason = f"Inconclusive: no session type can be compared, each needs {FEWEST_REQUESTS} requests from "
        reason += f"{FEWEST_BLOCKS} sessions on both sides; found {absent or 'no requests'}."
        return Judgement("inconclusive", reason, {}, mix, left_out, before.currency, notes)
    weights = np.array([row["weight"] for row in mix if row["session_type"] in names])
    figures = _figures(before, after, names, weights, replicates, seed)
    verdict, why = _doubt(before, after, figures) or _verdict(
        figures, left_out, "cost" if before.currency else "tokens not read from the cache"
    )
    sentence = _sentence(verdict, why, figures, names, before.currency)
    sentence += f"; {numbers.percent(left_out)} of requests are left out: {absent}." if absent else "."
    return Judgement(verdict, sentence, figures, mix, left_out, before.currency, notes)


def _left_out(before: Side, after: Side, names: Sequence[str]) -> str:
    """The session types that cannot be compared, with their requests on both sides; empty where there are none."""
    most = sorted(names, key=lambda name: (-before.requests(name) - after.requests(name), name))
    told = [f"{name} ({before.told(name)} before, {after.told(name)} after)" for name in most[:LISTED]]
    types = ", ".join(told) + (f" and {len(most) - LISTED} more" if len(most) > LISTED else "")
    sides = (before, after)
    unpriced = [sum(side.requests(name) - side.priced(name) for name in side.types) for side in sides]
    kinds = (("without a price", unpriced), ("without reported token classes", [side.unreported for side in sides]))
    others = [
        f"{numbers.count(counts[0])} before and {numbers.count(counts[1])} after {what}"
        for what, counts in kinds
        if sum(counts)
    ]
    return "; ".join([*([types] if types else []), *others])


def _untold(before: Side, after: Side) -> list[str]:
    """Notes on the shares that were left out: requests without reported token classes, tokens without a price."""
    notes = []
    if before.unreported or after.unreported:
        first, second = (numbers.percent(side.unreported_share) for side in (before, after))
        notes.append(
            f"{first} of requests before and {second} after report no token classes (how many tokens were read from "
            "the cache and how many were not); they are left out, for nobody knows what they cost"
        )
    if before.unpriced_token_share or after.unpriced_token_share:
        first, second = (numbers.percent(side.unpriced_token_share) for side in (before, after))
        notes.append(
            f"{first} of input tokens before and {second} after have no price; they are left out of cost and of billed "
            "tokens per hit request, not of the share of tokens found cached"
        )
    return notes


def _doubt(before: Side, after: Side, figures: Mapping[str, Figure]) -> tuple[str, str] | None:
    """The verdict where too much is unreported, or priced too differently, to judge the cost; None where it is not."""
    shares = [side.unreported_share for side in (before, after)]
    if max(shares) > MOST_UNREPORTED:
        return "inconclusive", f"more than {MOST_UNREPORTED:.0%} of the requests of a log report no token classes"
    if abs(shares[0] - shares[1]) > UNREPORTED_APART:
        return "inconclusive", "the share of requests that report no token classes differs between the logs"
    if abs(before.unpriced_token_share - after.unpriced_token_share) <= PRICED_APART:
        return None
    found = figures["hit_token_ratio"].interval
    if found is not None and found.high < 0:
        return "revert", "fewer tokens are found cached"
    return "inconclusive", "the share of tokens that have a price differs too much between the logs to compare cost"


def _mix(before: Side, after: Side, names: Sequence[str]) -> tuple[list[dict[str, Any]], float]:
    """Requests per session type in both logs, the weight each gets, and the share of requests left out."""
    rows: list[dict[str, Any]] = [
        {"session_type": name, "requests_before": before.requests(name), "requests_after": after.requests(name)}
        for name in sorted({*before.types, *after.types})
    ]
    both = {row["session_type"]: row["requests_before"] + row["requests_after"] for row in rows}
    kept = sum(both[name] for name in names)
    total, used = before.every + after.every, sum(before.priced(name) + after.priced(name) for name in names)
    for row in rows:
        name = row["session_type"]
        row["weight"] = both[name] / kept if kept and name in names else 0.0
    return rows, 1 - used / total if total else 0.0


def _figures(
    before: Side, after: Side, names: Sequence[str], weights: Floats, replicates: int, seed: int
) -> dict[str, Figure]:
    """Every measure before and after with the wider of its intervals over session blocks and over days."""
    blocks = [np.stack([side.types[name] for name in names]) for side in (before, after)]
    values = [_measures(table.sum(axis=1), weights) for table in blocks]
    told = [_intervals(blocks, values, weights, replicates, seed, BLOCKS)]
    if all(name in side.days for side in (before, after) for name in names):
        days = [np.stack([side.days[name] for name in names]) for side in (before, after)]
        found = _intervals(days, values, weights, replicates, seed, DAYS)
        told.append({name: over_days(interval) for name, interval in found.items()})
    return {
        name: Figure(float(values[0][name]), float(values[1][name]), wider(*(found[name] for found in told)))
        for name in values[0]
    }


def _intervals(
    tables: Sequence[Floats],
    values: Sequence[Mapping[str, Any]],
    weights: Floats,
    replicates: int,
    seed: int,
    basis: str,
) -> dict[str, Interval | None]:
    """Intervals of after minus before, each side redrawn on its own by its units."""
    draws = [_measures(_redrawn(table, replicates, seed + place), weights) for place, table in enumerate(tables)]
    units = min(int(np.count_nonzero(table[..., 0].any(axis=0))) for table in tables)
    return {
        name: interval_of(float(values[1][name] - values[0][name]), draws[1][name] - draws[0][name], units, basis=basis)
        for name in values[0]
    }


def _redrawn(table: Floats, replicates: int, seed: int) -> Floats:
    """Sums per replicate and session type from redrawn blocks: [replicates, types, COLUMNS]."""
    used = table[..., 0].any(axis=0)
    weights = block_weights(int(used.sum()), replicates, seed)
    return np.einsum("rb,tbc->rtc", weights, table[:, used])


def _measures(sums: Floats, weights: Floats) -> dict[str, Any]:
    """Measures at the fixed mix from sums [..., types, COLUMNS]: means per request by type, weighted, then divided.

    Money is per priced request, the hit-token ratio over all.
    """
    over = [PRICED if name in ("cost", "equivalents", "priced", "priced_hits") else 0 for name in COLUMNS]
    with np.errstate(divide="ignore", invalid="ignore"):
        per_request = sums / sums[..., over]
        mean = dict(zip(COLUMNS, np.moveaxis(np.einsum("...tc,t->...c", per_request, weights), -1, 0), strict=True))
        return {
            "cost_per_request": mean["cost"],
            "m_eq": np.where(mean["priced_hits"] > 0, mean["equivalents"] / mean["priced_hits"], np.nan),
            "hit_token_ratio": mean["hit_tokens"] / mean["input_tokens"],
        }


def _verdict(figures: Mapping[str, Figure], left_out: float, what: str) -> tuple[str, str]:
    cost, per_hit, ratio = (figures[name] for name in ("cost_per_request", "m_eq", "hit_token_ratio"))
    if cost.interval is None or ratio.interval is None:
        return "inconclusive", "too few sessions to give an interval"
    if left_out > MOST_LEFT_OUT:
        return "inconclusive", "more than half of the requests are of session types that cannot be compared"
    if cost.interval.low > 0:
        return "revert", f"{what} per request rises" if what == "cost" else f"{what} rise"
    if ratio.interval.high < 0:
        return "revert", "fewer tokens are found cached"
    if cost.interval.high >= 0:
        return "inconclusive", f"the interval of the change in {what} per request includes zero"
    if not _falls(per_hit):
        return "inconclusive", "billed tokens per hit request do not fall"
    if ratio.after < ratio.before:
        return "inconclusive", "the share of tokens found cached falls, though not clearly"
    return "accept", f"{what} per request and billed tokens per hit request fall, and no fewer tokens are found cached"


def _falls(per_hit: Figure) -> bool:
    """Whether billed equivalents per hit request fall; where nobody hit before, any hit is a fall."""
    return per_hit.after < per_hit.before or (not np.isfinite(per_hit.before) and np.isfinite(per_hit.after))


def _sentence(verdict: str, why: str, figures: Mapping[str, Figure], names: Sequence[str], currency: str | None) -> str:
    lead = {"accept": "Accept the change", "revert": "Revert the change", "inconclusive": "Inconclusive, keep watching"}
    many = len(names) > 1
    basis = "At the same mix of session types" if many else f"Within session type {names[0]}"
    basis = "Over all requests" if names == [ONE_TYPE] else basis
    what = "cost per 1,000 requests" if currency else "tokens not read from the cache per request"
    told = [
        _relative(what, figures["cost_per_request"], currency),
        _relative("billed tokens per hit request", figures["m_eq"], None),
        _points(figures["hit_token_ratio"]),
    ]
    return f"{lead[verdict]}: {why}. {basis} {', '.join(told)}"


def _relative(what: str, figure: Figure, currency: str | None) -> str:
    if not np.isfinite(figure.before):
        return f"{what} {numbers.count(figure.after)} after and none before, when nothing was found cached"
    if figure.interval is None or not figure.before or not np.isfinite(figure.after):
        return f"{what} {numbers.NOT_FOUND}"
    change, low, high = (
        f"{numbers.signed(100 * part / figure.before, 1)}%"
        for part in (figure.interval.value, figure.interval.low, figure.interval.high)
    )
    ends = [
        numbers.unit_price(1000 * end, currency) if currency else numbers.count(end)
        for end in (figure.before, figure.after)
    ]
    return f"{what} {ends[0]} to {ends[1]}, {change} ({LEVEL:.0%} interval {low} to {high})"


def _points(figure: Figure) -> str:
    told = f"tokens found cached {numbers.percent(figure.before)} to {numbers.percent(figure.after)}"
    if figure.interval is None:
        return told
    ends = numbers.span(numbers.points(figure.interval.low), numbers.points(figure.interval.high))
    return f"{told}, {numbers.points(figure.interval.value)} ({LEVEL:.0%} interval {ends})"
