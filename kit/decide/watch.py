"""After a change: the number to watch, what it is now, what is expected of it, and when to turn back.

The test is the kit's own acceptance test: cost per request falls and no fewer tokens are found cached; on an engine of
one's own, where there is no bill, the share of tokens found cached alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kit import numbers
from kit.decide.evidence import COST, Contrast, Evidence
from kit.decide.read import cost_changes

WEEKS = 2


@dataclass(frozen=True)
class Watch:
    """`change` is what is being watched against LRU at the budget; `now` and `found_now` are LRU's own figures: the
    measure (cost per request, or the share of tokens found cached) and that share."""

    change: Contrast
    now: float
    found_now: float

    @property
    def found_expected(self) -> float:
        """The share of tokens found cached that the replay gives."""
        return self.found_now + (self.change.hit_ratio_change or 0.0)

    @property
    def expected(self) -> float | None:
        """The measure the replay gives after the change; None where the difference has no interval."""
        return None if self.change.interval is None else self.now + self.change.interval.value

    def as_dict(self) -> dict[str, Any]:
        """Plain values for results.json; `change` is expected minus now."""
        return {
            "measure": self.change.measure,
            "currency": self.change.currency,
            "now": self.now,
            "expected": self.expected,
            "change": None if self.change.interval is None else self.change.interval.as_dict(),
            "hit_token_ratio_now": self.found_now,
            "hit_token_ratio_expected": self.found_expected,
            "sentence": self.text(),
        }

    def text(self) -> str:
        """What to watch and when to turn back, in two sentences."""
        money, currency = self.change.measure == COST, self.change.currency or "USD"
        what = "cost per 1,000 requests" if money else "the share of input tokens found cached"
        now, expected = (_thousand(one, currency) if money else numbers.percent(one)
                         for one in (self.now, self.expected))  # fmt: skip
        floor = f"under {numbers.percent(self.found_now)} of input tokens are found cached"
        turn = f"it is above {now}, or {floor}," if money else f"{floor},"
        return (
            f"Watch {what}: {now} with LRU, {expected} expected{self._band()}. Turn back if {turn} in the {WEEKS} "
            "weeks after the change, at the same mix of session types (python -m kit compare BEFORE AFTER says so)."
        )

    def _band(self) -> str:
        """The expected change with its interval, in brackets."""
        found = self.change.interval
        if found is None:
            return ""
        ends = (found.value, found.low, found.high)
        money = self.change.measure == COST
        value, low, high = cost_changes(ends, self.change.currency) if money else map(numbers.points, ends)
        return f" ({value}, {found.level:.0%} interval {numbers.span(low, high)})"


def _thousand(cost: float | None, currency: str) -> str:
    return numbers.unit_price(None if cost is None else cost * 1000, currency)


def watch(evidence: Evidence, policy: str, room: bool) -> Watch | None:
    """What to watch after leaving LRU for a policy, or after doubling its budget (`room`); None where nothing changes
    or the change was not measured."""
    change = evidence.doubling if room else evidence.against_lru(policy)
    if change is None or change.base_value is None or change.base_hit_ratio is None:
        return None
    return Watch(change, change.base_value, change.base_hit_ratio)
