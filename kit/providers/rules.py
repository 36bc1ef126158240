"""The published caching rules, one row per provider and family of models, and how a model finds its row.

Source of every row: `kit/provider_rules.json`, which names page and date. What a provider does not publish is None.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any


class RuleError(ValueError):
    """A rule name or a rule file that cannot be used: one line that says what to change."""


@dataclass(frozen=True)
class TtlChoice:
    """One retention a provider sells: `seconds` None = not published; `write_multiplier` is of the input price."""

    name: str
    seconds: int | None
    refresh_on_read: bool | None
    write_multiplier: float | None
    basis: str = ""


@dataclass(frozen=True)
class Rule:
    """The caching rule of one provider and model. `id` None means nobody published one: every field is then None.

    Tokens are counted as the provider counts them; `ttl` is ordered from the shortest; `usage_convention` is
    "exclusive" (input excludes cached tokens), "inclusive" (cached tokens are part of input) or None.
    """

    id: str | None = None
    minimum_tokens: int | None = None
    block_tokens: int | None = None
    ttl: tuple[TtlChoice, ...] = ()
    clock: str | None = None
    usage_convention: str | None = None
    breakpoints: int | None = None
    lookback: str | None = None
    visible_after: str | None = None
    granularity: str | None = None
    isolation: str | None = None
    guarantee: str | None = None
    storage: Any = None
    note: str = ""
    as_of: str | None = None
    sources: tuple[dict[str, str], ...] = ()

    def choice(self, write_class: str = "short") -> TtlChoice | None:
        """The retention behind a write class: "short" is the first, "long" the second; None where it is not sold."""
        position = {"short": 0, "long": 1}[write_class]
        return self.ttl[position] if position < len(self.ttl) else None

    def storage_per_mtok_hour(self, model: str | None, day: date | None = None) -> float | None:
        """USD per million tokens and hour of storage for a model on a day; 0.0 = free, None = not published."""
        listed = _by_model(self.storage, model)
        if not isinstance(listed, list):
            return None if listed is None else float(listed)
        started = [price for start, price in listed if start is None or (day and day.isoformat() >= start)]
        return float(started[-1]) if started else None


@cache
def _document() -> dict[str, Any]:
    return dict(json.loads(files("kit").joinpath("provider_rules.json").read_text(encoding="utf-8")))


def rule_names() -> list[str]:
    """The ids of every published rule, in file order (accepted by `rule_named` and the parameter provider_rule)."""
    return [row["id"] for row in _document()["rows"]]


def has_rule(provider: str) -> bool:
    """Whether any published rule is of a provider by this name."""
    return any(_matches(provider, row["providers"]) for row in _document()["rows"])


def _plain(text: str | None) -> str:
    return (text or "").lower().replace(".", "-").replace("_", "-")


def _matches(text: str | None, patterns: list[str]) -> bool:
    return any(fnmatchcase(_plain(text), _plain(pattern)) for pattern in patterns)


def _by_model(value: Any, model: str | None) -> Any:
    """A plain value, or the value of the first pattern that names the model."""
    if not isinstance(value, dict):
        return value
    return next((found for pattern, found in value.items() if _matches(model, [pattern])), None)


def _rule(row: dict[str, Any], model: str | None) -> Rule:
    return Rule(
        id=row["id"],
        minimum_tokens=_by_model(row["minimum_tokens"], model),
        block_tokens=_by_model(row["block_tokens"], model),
        ttl=tuple(TtlChoice(**choice) for choice in row["ttl"]),
        clock=row["clock"],
        usage_convention=row["usage"],
        breakpoints=row["breakpoints"],
        lookback=row["lookback"],
        visible_after=row["visible_after"],
        granularity=row["granularity"],
        isolation=row["isolation"],
        guarantee=row["guarantee"],
        storage=row["storage_per_mtok_hour"],
        note=row["note"],
        as_of=_document()["as_of"],
        sources=tuple(row["sources"]),
    )


def rule_for(provider: str | None, model: str | None) -> Rule:
    """The published rule of a provider and model; `Rule()` with every field None where there is none.

    Without a provider the model's own name decides, so that a log of "claude-..." alone finds Anthropic's rule.
    """
    if not provider and not model:
        return Rule()
    for row in _document()["rows"]:
        named = _matches(provider, row["providers"]) if provider else row["models"] != ["*"]
        if named and _matches(model, row["models"]):
            return _rule(row, model)
    return Rule()


def rule_named(rule_id: str, model: str | None = None) -> Rule:
    """A rule by its id, for what no model name can tell (an explicit cache). Raises RuleError with the accepted ids."""
    for row in _document()["rows"]:
        if row["id"] == rule_id:
            return _rule(row, model)
    raise RuleError(f"provider rule {rule_id!r} is not known; accepted: {', '.join(rule_names())}")
