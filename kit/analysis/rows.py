"""Rows of `replay[]`: counts of one replay, its bill, and its difference against LRU with an interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kit import billing, intervals
from kit.prices import Rates
from kit.replay import Tally

if TYPE_CHECKING:
    from kit.analysis.replayed import Replayed
    from kit.analysis.scene import Scene

WINDOWS = ("cold", "warm")
CAUSES = ("cold", "evicted", "expired", "lost", "below_minimum", "in_flight", "oversize")
BASE_POLICY = "lru"


@dataclass(frozen=True)
class Billing:
    """How a replay is billed: rates (None: no money), tier mode, write class, bootstrap replicates and seed.

    `first_hour` is the hour of the first request since 1970 (UTC): it tells which hours make a day.
    """

    rates: Rates | None
    tier_mode: str
    write_class: str
    replicates: int
    seed: int
    first_hour: int = 0

    def bill(self, tally: Tally, window: str) -> billing.Bill:
        """The bill of one replay in one window."""
        return billing.bill(tally, self.rates, self.tier_mode, self.write_class, window)


@dataclass(frozen=True)
class Beside:
    """What stands beside the rows of a replay: lowest and highest hit-token ratio over seeds by policy (`spreads`, at
    `actual` tokens under the neutral setting), the share of the log that was replayed, its error on LRU by budget."""

    spreads: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    actual: int | None = None
    sample_rate: float | None = None
    errors: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, scene: Scene, replayed: Replayed) -> Beside:
        """What stands beside the rows of these replays."""
        return cls(replayed.spreads, scene.actual, scene.sample.rate if scene.sample else None, replayed.errors)

    def columns(self, tally: Tally, window: str) -> dict[str, Any]:
        """`seed_spread`, `sample_rate` (none: of the whole log, as LRU always is) and `sample_lru_error` of one row."""
        own = (tally.capacity_tokens, tally.setting.name, window) == (self.actual, "neutral", "cold")
        spread = self.spreads.get(tally.policy) if own else None
        return {
            "seed_spread": {"low": spread[0], "high": spread[1]} if spread else None,
            "sample_rate": None if tally.policy == BASE_POLICY else self.sample_rate,
            "sample_lru_error": self.errors.get(tally.capacity_tokens),
        }


def replay_rows(
    tallies: Sequence[Tally], labels: dict[int, str], bills: Billing, beside: Beside | None = None
) -> list[dict[str, Any]]:
    """One row per replay and window, in the order of the tallies; intervals are against LRU of the same cell."""
    rows: list[dict[str, Any]] = []
    beside = beside or Beside()
    for window in WINDOWS:
        for cell in _cells(tallies):
            priced = [(tally, bills.bill(tally, window)) for tally in cell]
            differences = differences_from(priced, bills, window)
            rows += [
                _row(tally, bill, window, labels[tally.capacity_tokens])
                | {"interval": difference, **beside.columns(tally, window)}
                for (tally, bill), difference in zip(priced, differences, strict=True)
            ]
    return rows


def _cells(tallies: Iterable[Tally]) -> list[list[Tally]]:
    """Tallies of one setting and capacity together: what a paired comparison may compare."""
    cells: dict[tuple[str, int], list[Tally]] = {}
    for tally in tallies:
        cells.setdefault((tally.setting.name, tally.capacity_tokens), []).append(tally)
    return list(cells.values())


def _row(tally: Tally, bill: billing.Bill, window: str, label: str) -> dict[str, Any]:
    total = tally.total(window)
    return {
        "policy": tally.policy,
        "capacity_tokens": tally.capacity_tokens,
        "capacity_label": label,
        "assumption": tally.setting.name,
        "window": window,
        "ttl_seconds": tally.setting.ttl_seconds,
        "requests": total["requests"],
        "hits": total["hits"],
        "input_tokens": total["input_tokens"],
        "hit_tokens": total["hit_tokens"],
        "hit_token_ratio": total["hit_tokens"] / total["input_tokens"] if total["input_tokens"] else None,
        "missed": {cause: total[f"missed_{cause}"] for cause in CAUSES},
        "read_tokens": bill.read_tokens,
        "write_tokens": bill.write_tokens,
        "write_long_tokens": bill.write_long_tokens,
        "uncached_tokens": bill.uncached_tokens,
        "evictions": total["evictions"],
        "evicted_unused_tokens": total["evicted_unused_tokens"],
        "most_held_tokens": tally.most_held_tokens if tally.setting.hold_until_end else None,
        "crowded_requests": tally.crowded_requests if tally.setting.hold_until_end else None,
        "cost": bill.cost,
        "cost_per_request": bill.cost_per_request,
        "m_raw": bill.m_raw,
        "m_eq": bill.m_eq,
    }


def differences_from(
    priced: Sequence[tuple[Tally, billing.Bill]], bills: Billing, window: str, base_policy: str = BASE_POLICY
) -> list[dict[str, Any] | None]:
    """Per replay of one cell: intervals of its hit-token ratio, cost per request and M_eq minus the base policy's.

    A measure that cannot be told is None; the whole is None where the base policy was not replayed. Over all requests
    the wider of session blocks and days is given, with the difference on the first five and the last two days of seven.
    """
    base = next((i for i, (tally, _) in enumerate(priced) if tally.policy == base_policy), None)
    if base is None:
        return [None] * len(priced)
    blocks = _columns(priced, bills, window)
    days = _columns(_by_day(priced, bills), bills, window) if window == "cold" else None
    told = {name: _told(*pair, base, bills, None if days is None else days[name]) for name, pair in blocks.items()}
    return [{name: one[row] for name, one in told.items()} for row in range(len(priced))]


def standings_of(cell: Sequence[Tally], bills: Billing, window: str) -> tuple[intervals.Standing, ...]:
    """How likely each policy of one cell is best, and its regret: by cost per request, in engine mode by hit tokens."""
    columns = _columns([(tally, bills.bill(tally, window)) for tally in cell], bills, window)
    cheap = columns["cost_per_request"][0] is not None
    num, den = columns["cost_per_request" if cheap else "hit_token_ratio"]
    names = [tally.policy for tally in cell]
    return tuple(intervals.standings(names, num, den, cheap, bills.replicates, bills.seed))


def _by_day(priced: Sequence[tuple[Tally, billing.Bill]], bills: Billing) -> list[tuple[Tally, billing.Bill]]:
    """The same replays with UTC days in the place of bootstrap blocks, billed by day."""
    found = []
    for tally, _ in priced:
        days = intervals.by_day(tally.by_hour, bills.first_hour).swapaxes(0, 1)
        daily = replace(tally, by_block=np.stack([np.zeros_like(days), days]))
        found.append((daily, bills.bill(daily, "cold")))
    return found


def _columns(priced: Sequence[tuple[Tally, billing.Bill]], bills: Billing, window: str) -> dict[str, tuple[Any, Any]]:
    """Per measure: numerator and denominator, [policies, units]; a numerator that cannot be told is None."""
    counts = {name: np.stack([t.blocks(name, window).sum(axis=0) for t, _ in priced])
              for name in ("hits", "hit_tokens", "input_tokens")}  # fmt: skip
    requests = np.stack([bill.requests_by_block for _, bill in priced])
    money = _stacked([bill.cost_by_block for _, bill in priced])
    equal = _stacked([bill.equivalents_by_block for _, bill in priced])
    columns = {
        "hit_token_ratio": (counts["hit_tokens"], counts["input_tokens"]),
        "cost_per_request": (money if money is not None else equal, requests),
        "m_eq": (equal, counts["hits"]),
    }
    if bills.tier_mode == "engine":
        columns["cost_per_request"] = (None, requests)
    return columns


def _told(num: Any, den: Any, base: int, bills: Billing, daily: tuple[Any, Any] | None) -> list[dict[str, Any] | None]:
    """The headline interval per policy as plain values, with the parts of the week where there are days."""
    if num is None:
        return [None] * len(den)
    found = intervals.paired_ratios(num, den, base, bills.replicates, bills.seed)
    if daily is None:
        return [interval.as_dict() if interval else None for interval in found]
    over_days = intervals.paired_ratios(*daily, base, bills.replicates, bills.seed, basis=intervals.DAYS)
    rows: list[dict[str, Any] | None] = []
    for row, (blocks, days) in enumerate(zip(found, over_days, strict=True)):
        widest = intervals.wider(blocks, intervals.over_days(days))
        held = intervals.held_out(daily[0][row], daily[1][row], daily[0][base], daily[1][base])
        parts = {"chosen_on": held.chosen_on, "checked_on": held.checked_on}
        rows.append(widest.as_dict() | parts if widest else None)
    return rows


def _stacked(columns: list[Any]) -> Any:
    return None if any(column is None for column in columns) else np.stack(columns)
