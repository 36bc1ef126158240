"""What a change is worth a month: the difference per request times the month's requests, scaled from the observed span.

The interval is the paired one of the comparison. Quoted is the smaller of the neutral and the pessimistic assumption;
nothing is quoted from under a day of log, where a month would be a guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kit import numbers
from kit.decide.evidence import COST, Contrast, Evidence

MONTH_SECONDS = 365 / 12 * 86_400
DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Saving:
    """A saving per month: `value`, `low`, `high` in `unit` (a currency, input-token equivalents, or prefill tokens)."""

    value: float
    low: float
    high: float
    currency: str | None
    unit: str
    assumption: str
    observed_seconds: float
    level: float
    basis: str

    def as_dict(self) -> dict[str, Any]:
        """Plain values for results.json, with how the month was scaled; twelve significant digits."""
        ends = {name: float(f"{getattr(self, name):.12g}") for name in ("value", "low", "high")}
        scaling = f"observed span of {numbers.seconds(self.observed_seconds)} scaled to 365/12 days"
        return {
            **ends, "currency": self.currency, "unit": self.unit, "assumption": self.assumption,
            "level": self.level, "basis": self.basis, "scaling": scaling,
        }  # fmt: skip

    def text(self) -> str:
        """The saving as a clause: ``$4,300 a month (95% interval $3,700 to $4,900)``."""
        ends = numbers.span(self.written(self.low), self.written(self.high))
        unit = "" if self.currency else f" {self.unit}"
        return f"{self.written(self.value)}{unit} a month ({self.level:.0%} interval {ends})"

    def written(self, amount: float) -> str:
        """An amount in the unit of the saving, as money or as a short count of tokens."""
        return numbers.money(amount, self.currency) if self.currency else numbers.short(amount)


def saving(evidence: Evidence, policy: str) -> Saving | None:
    """What leaving LRU for the policy saves a month; None where it was not compared, or under a day was seen."""
    return None if policy == "lru" else saving_of(evidence.against_lru(policy), evidence)


def saving_of(contrast: Contrast | None, evidence: Evidence) -> Saving | None:
    """The saving a comparison stands for, scaled to a month of the same traffic; None where it cannot be told."""
    span = evidence.observed_seconds
    if contrast is None or contrast.interval is None or span is None or span < DAY_SECONDS:
        return None
    cost = contrast.measure == COST
    amount = contrast.requests if cost else contrast.input_tokens
    if not amount:
        return None
    month = contrast.interval.scaled((-1 if cost else 1) * amount * MONTH_SECONDS / span)
    unit = (contrast.currency or "input-token equivalents") if cost else "prefill tokens"
    return Saving(
        month.value, month.low, month.high, contrast.currency if cost else None, unit,
        evidence.assumption, span, month.level, month.basis,
    )  # fmt: skip


@dataclass(frozen=True)
class Room:
    """What a larger budget is worth: `saving` a month for `added_tokens` more; the same per million tokens and GiB."""

    saving: Saving
    added_tokens: int
    kv_bytes_per_token: float | None = None

    @property
    def per_million_tokens(self) -> float:
        """Saving a month per million tokens of budget, in the unit of the saving."""
        return self.saving.value / self.added_tokens * 1e6

    @property
    def per_gib(self) -> float | None:
        """Saving a month per GiB of key-value memory; None where bytes per token are not known."""
        if not self.kv_bytes_per_token:
            return None
        return self.saving.value / (self.added_tokens * self.kv_bytes_per_token) * 2**30

    def as_dict(self) -> dict[str, Any]:
        """Plain values for results.json."""
        return {
            "saving_per_month": self.saving.as_dict(),
            "added_tokens": self.added_tokens,
            "per_million_tokens": self.per_million_tokens,
            "per_gib": self.per_gib,
            "sentence": self.text(),
        }

    def text(self) -> str:
        """What more room under LRU is worth, with its price per million tokens and per GiB, as a sentence."""
        lead = f"Doubling the budget under LRU ({numbers.short(self.added_tokens)} tokens more)"
        if (self.saving.value, self.saving.low, self.saving.high) == (0, 0, 0):
            return f"{lead} saves nothing: LRU finds the same."
        each = f"{self.saving.written(self.per_million_tokens)} a month per million tokens of budget"
        if self.per_gib is not None:
            each += f", {self.saving.written(self.per_gib)} per GiB"
        return (
            f"{lead} saves {self.saving.text()}, which is {each}, before what the room costs."
        )


def room(evidence: Evidence) -> Room | None:
    """What doubling LRU's budget saves a month; None where it was not replayed or under a day was seen."""
    worth = saving_of(evidence.doubling, evidence)
    if worth is None or evidence.doubling is None or not evidence.capacity_tokens:
        return None
    added = (evidence.doubling.capacity_tokens or 2 * evidence.capacity_tokens) - evidence.capacity_tokens
    return Room(worth, added, evidence.kv_bytes_per_token) if added > 0 else None


def smaller(*savings: Saving | None) -> Saving | None:
    """The smallest of the savings; None unless every assumption has one."""
    known = [one for one in savings if one is not None]
    return min(known, key=lambda one: one.value) if known and len(known) == len(savings) else None
