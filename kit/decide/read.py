"""Reading one rule against the evidence: each condition's value, threshold, margin and clause; whether it holds.

A margin is how far a value lies on the firing side of its threshold, relative to the threshold (an interval: in
half-widths beyond zero). Negative means short of firing. What cannot be measured has no margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kit import numbers
from kit.decide.evidence import HITS, Contrast, Evidence, all_of, any_of, plain
from kit.decide.rule import BEST_ONLINE, Condition, Rule
from kit.policies import REGISTRY

WORDS = {">=": "at least", "<=": "at most", "<": "under", ">": "over"}
CLEARLY = "whole interval on the better side, fewer billed tokens per hit request, no fewer hit tokens"
TITLES = {"saecache": "SAECache-style"}


@dataclass(frozen=True)
class Reading:
    """One condition read: `holds` is None when it cannot be measured; `value` and `threshold` are plain, for JSON."""

    measure: str
    value: Any
    threshold: float | None
    holds: bool | None
    margin: float | None
    text: str
    threshold_text: str


@dataclass(frozen=True)
class RuleReading:
    """A rule read: whether it holds, its margin and limiting condition, its readings, the policy it recommends."""

    rule: Rule
    holds: bool | None
    margin: float | None
    limiting: Reading | None
    readings: tuple[Reading, ...]
    policy: str
    title: str


def policy_title(name: str) -> str:
    """What a reader calls a policy: its registered title, else its name."""
    known = REGISTRY.get(name)
    return known.title if known else TITLES.get(name, name)


def read_rule(rule: Rule, evidence: Evidence, thresholds: Mapping[str, float]) -> RuleReading:
    """The rule against the evidence. Unknown conditions leave it unknown unless a known one already settles it."""
    readings = tuple(_read(condition, evidence, thresholds) for condition in rule.conditions)
    held = tuple(reading.holds for reading in readings)
    holds = True if not readings else (any_of(held) if rule.any_of else all_of(held))
    limiting = _limiting(rule, readings)
    policy, title = _recommended(rule, evidence, thresholds)
    if policy is None:
        holds, policy = (None if holds else holds), "lru"
    margin = None if limiting is None else limiting.margin
    return RuleReading(rule, holds, margin, limiting, readings, policy, title)


def _limiting(rule: Rule, readings: tuple[Reading, ...]) -> Reading | None:
    """The condition that decides how near the rule is to firing; None where a plain no or an unknown makes it moot."""
    if not rule.any_of and any(r.margin is None and not r.holds for r in readings):
        return None
    measured = [reading for reading in readings if reading.margin is not None]
    choose = max if rule.any_of else min
    return choose(measured, key=lambda reading: reading.margin or 0.0, default=None)


def _recommended(rule: Rule, evidence: Evidence, thresholds: Mapping[str, float]) -> tuple[str | None, str]:
    if rule.policy != BEST_ONLINE:
        return rule.policy, policy_title(rule.policy)
    best = evidence.challenger(thresholds["gain_points"])
    return (None, "no candidate") if best is None else (best.policy, best.title or policy_title(best.policy))


def _read(condition: Condition, evidence: Evidence, thresholds: Mapping[str, float]) -> Reading:
    value = _value(condition.measure, evidence, thresholds)
    limit = 0.0 if condition.threshold is None else thresholds[condition.threshold]
    if condition.kind == "better":
        return _read_contrast(condition, value)
    if condition.kind == "is":
        text = condition.words if value else (condition.otherwise or condition.words)
        text = _not_found(condition) if value is None else text
        return Reading(condition.measure, value, None, value, None, text, "yes")
    holds = None if value is None else _compare(value, condition.compare, limit)
    text = condition.otherwise if condition.otherwise and not holds else condition.words
    fields = _fields(evidence, value, condition.kind)
    written = _not_found(condition) if value is None else text.format_map(fields)
    bound = f"{WORDS[condition.compare]} {_written(limit, condition.kind).replace('.0%', '%')}"
    margin = None if condition.threshold is None else _margin(value, condition.compare, limit)
    return Reading(condition.measure, plain(value), limit, holds, margin, written, bound)


def _value(measure: str, evidence: Evidence, thresholds: Mapping[str, float]) -> Any:
    """The measured value; the two measures of row 9 depend on a threshold, all others are the evidence's own."""
    if measure == "challenger":
        return evidence.challenger(thresholds["gain_points"])
    if measure == "challenger_gain":
        best = evidence.challenger(thresholds["gain_points"])
        return None if best is None else best.hit_ratio_change
    return getattr(evidence, measure)


def _compare(value: float, compare: str, limit: float) -> bool:
    return {">=": value >= limit, "<=": value <= limit, "<": value < limit, ">": value > limit}[compare]


def _margin(value: float | None, compare: str, limit: float) -> float | None:
    """Signed distance to the threshold over the threshold (over 1 where it is 0), capped at 10 to stay finite."""
    if value is None:
        return None
    ahead = (value - limit) if compare in (">=", ">") else (limit - value)
    return max(-10.0, min(10.0, ahead / (abs(limit) or 1.0)))


def _read_contrast(condition: Condition, contrast: Contrast | None) -> Reading:
    """A "better" condition: its clause gives the interval and, where it fails otherwise, what stands against it."""
    bound = CLEARLY
    if contrast is None:
        return Reading(condition.measure, None, 0.0, None, None, _not_found(condition), bound)
    margin = contrast.lead
    if margin is not None and contrast.better is False:
        margin = min(margin, -_shortfall(contrast)) if margin > 0 else margin
    return Reading(condition.measure, plain(contrast), 0.0, contrast.better, margin, contrast_text(contrast), bound)


def _shortfall(contrast: Contrast) -> float:
    """How far the side conditions fail, relative: the rise of M_eq or the fall of the hit-token ratio; 1 on days."""
    rise = 0.0
    if contrast.m_eq_now and contrast.m_eq_proposed is not None:
        rise = max(0.0, contrast.m_eq_proposed / contrast.m_eq_now - 1)
    return max(rise, -(contrast.hit_ratio_change or 0.0), 0.0 if all(contrast.wins_on) else 1.0)


def contrast_text(contrast: Contrast) -> str:
    """A comparison in words: ``LFU changes hit tokens by +3.3 pt against LRU (95% interval +2.1 pt to +4.5 pt)``."""
    name, other = contrast.title or policy_title(contrast.policy), policy_title(contrast.baseline)
    found = contrast.interval
    if contrast.same:
        return f"{name} finds exactly what {other} finds"
    if found is None:
        return f"no interval can be given for {name} against {other}"
    if contrast.measure == HITS:
        what, parts = "hit tokens", [str(numbers.points(end)) for end in (found.value, found.low, found.high)]
    else:
        what = "cost per 1,000 requests"
        parts = cost_changes((found.value, found.low, found.high), contrast.currency)
    told = f"{name} changes {what} by {parts[0]} against {other}"
    return f"{told} ({found.level:.0%} interval {parts[1]} to {parts[2]}){_against(contrast)}"


def _against(contrast: Contrast) -> str:
    """What else stands against a policy whose interval clears zero."""
    notes = obstacles(contrast) if contrast.lead is not None and contrast.lead > 0 else []
    return f", but {' and '.join(notes)}" if notes else ""


def obstacles(contrast: Contrast) -> list[str]:
    """Each test of "better" that a policy fails or that cannot be made, in words."""
    notes = []
    if contrast.lead is None:
        notes.append("no interval can be given")
    elif contrast.lead <= 0:
        notes.append(f"its interval against {policy_title(contrast.baseline)} includes zero")
    if contrast.m_eq_falls is False:
        notes.append("billed tokens per hit request do not fall")
    if contrast.m_eq_falls is None:
        notes.append("billed tokens per hit request are not found")
    if contrast.hit_ratio_change is not None and contrast.hit_ratio_change < 0:
        notes.append("hit tokens fall")
    parts = ("the first five days", "the last two days")
    return notes + [f"it does not win on {part}" for part, won in zip(parts, contrast.wins_on, strict=True) if not won]


def cost_changes(amounts: Sequence[float], currency: str | None) -> list[str]:
    """Differences in cost per request as signed ones per 1,000 requests: money, in cents where one of them reaches
    $0.10, or input-token equivalents where there is no price."""
    each = [amount * 1000 for amount in amounts]
    if currency is None:
        return [f"{numbers.signed(amount)} token equivalents" for amount in each]
    if max(map(abs, each)) >= 0.1:
        return [numbers.money_change(amount, currency, True) for amount in each]
    return [numbers.unit_price_change(amount, currency) for amount in each]


def _not_found(condition: Condition) -> str:
    return f"{condition.noun}: {numbers.NOT_FOUND}"


def _written(value: Any, kind: str) -> str:
    if isinstance(value, float) and math.isinf(value):
        return "without limit"
    writers: dict[str, Callable[[Any], str]] = {
        "share": numbers.percent,
        "count": numbers.count,
        "factor": numbers.decimal,
        "correlation": lambda number: numbers.signed(number, 2),
        "points": numbers.points,
        "distance": lambda number: numbers.decimal(number, 3),
    }
    return writers[kind](value)


def _gaining(evidence: Evidence, gain: str) -> str:
    """What the best online policy gains of what doubling gains; that none of those tried gains where it is LRU."""
    if evidence.best_online == "lru":
        return f"none of the {len(evidence.online)} policies to choose from finds more than LRU"
    best = policy_title(evidence.best_online) if evidence.best_online else numbers.NOT_FOUND
    return f"the best online policy ({best}) gains {gain} of what doubling gains"


def _fields(evidence: Evidence, value: Any, kind: str) -> dict[str, str]:
    """What a condition's clause may name."""
    ttl = evidence.ttl_seconds
    return {
        "value": _written(value, kind),
        "s": "" if value == 1 else "s",
        "expiring": "no lifetime is set, so nothing expires"
        if ttl is None
        else f"{_written(value, kind)} of reused tokens come back after the TTL ({numbers.seconds(ttl)})",
        "gaining": _gaining(evidence, _written(value, kind)),
        "top": numbers.percent(evidence.top_fraction, 0),
        "absent": ", ".join(evidence.absent_fields),
    }
