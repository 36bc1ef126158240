"""After a change: the number to watch, what it is now, what is expected of it, and when to turn back.

The test is the kit's own acceptance test: cost per request falls and no fewer tokens are found cached; on an engine of
one's own, where there is no bill, the share of tokens found cached alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kit import numbers
from kit.decide.evidence import COST, Contrast, Evidence

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

    def as_dict(self) -> dict[str, Any]:
        """Plain values for results.json."""
        ends = [None if end is None else float(f"{end:.12g}") for end in self._expected()]
        return {
            "measure": self.change.measure,
            "currency": self.change.currency,
            "now": self.now,
            "expected": dict(zip(("value", "low", "high"), ends, strict=True)),
            "hit_token_ratio_now": self.found_now,
            "hit_token_ratio_expected": self.found_expected,
            "sentence": self.text(),
        }

    def _expected(self) -> tuple[float | None, float | None, float | None]:
        found = self.change.interval
        return (None,) * 3 if found is None else (self.now + found.value, self.now + found.low, self.now + found.high)

    def text(self) -> str:
        """What to watch and when to turn back, in two sentences."""
        money = self.change.measure == COST
        what = "cost per request" if money else "the share of input tokens found cached"
        write = self._writer()
        value, low, high = (write(end) for end in self._expected())
        expected = f"{value} expected (95% interval {numbers.span(low, high)})"
        floor = f"under {numbers.percent(self.found_now)} of input tokens are found cached"
        turn = f"it is above {write(self.now)}, or {floor}," if money else f"{floor},"
        return (
            f"Watch {what}: {write(self.now)} with LRU, {expected}. Turn back if {turn} in the {WEEKS} weeks after the "
            "change, at the same mix of session types (python -m kit compare BEFORE AFTER says so)."
        )

    def _writer(self) -> Callable[[float | None], str]:
        if self.change.measure != COST:
            return numbers.percent
        currency = self.change.currency
        return (lambda amount: numbers.unit_price(amount, currency)) if currency else _equivalents


def _equivalents(amount: float | None) -> str:
    return f"{numbers.count(amount)} token equivalents"


def watch(evidence: Evidence, policy: str, room: bool) -> Watch | None:
    """What to watch after leaving LRU for a policy, or after doubling its budget (`room`); None where nothing changes
    or the change was not measured."""
    change = evidence.doubling if room else evidence.against_lru(policy)
    if change is None or change.base_value is None or change.base_hit_ratio is None:
        return None
    return Watch(change, change.base_value, change.base_hit_ratio)
