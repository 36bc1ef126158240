"""Walking the table: the first rule that fires decides, every row leaves a trail, the sentence is read off it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kit import numbers
from kit.decide.evidence import Evidence
from kit.decide.firmness import firmness
from kit.decide.money import Room, Saving, room, saving, smaller
from kit.decide.read import CLEARLY, Reading, RuleReading, policy_title, read_rule
from kit.decide.rule import BEST_ONLINE, RANGES, THRESHOLDS
from kit.decide.systems import settings_for
from kit.decide.table import RULES
from kit.decide.watch import Watch, watch
from kit.intervals import Standing

FIRES = "fires"
SILENT = "does not fire"
UNKNOWN = "cannot tell"
SKIPPED = "skipped (flag)"
NOT_CONSULTED = "not consulted"
FAR = 1.0  # as far from its threshold as the threshold from nothing: no near miss
BLIND = "no other rule can be told on this log"
LAST = RULES[-1].number
SHORT_OF_ROOM = 4
ACTIONS = {1: "layout", 2: "ttl", SHORT_OF_ROOM: "room"}


class ThresholdError(ValueError):
    """A threshold that does not exist or is out of its range: one line with its name and what is accepted."""


@dataclass(frozen=True)
class Decision:
    """The verdict: the rule that fired, the policy it recommends, the sentence, and the trail of every row.

    `accepted` is True when a change of policy passed the acceptance test (rules that recommend one ask for "better").
    `provisional` is {rule, policy, sentence, saving_per_month} with row 0 waived, when row 0 fired; else None.
    `too_close_to_call` holds the two verdicts that differ between neutral and pessimistic assumption; else None.
    """

    rule: int
    policy: str
    sentence: str
    accepted: bool
    provisional: Mapping[str, Any] | None
    trail: tuple[Mapping[str, Any], ...]
    near_misses: tuple[Mapping[str, Any], ...]
    saving_per_month: Saving | None
    too_close_to_call: Mapping[str, Any] | None
    room: Room | None = None
    standings: tuple[Standing, ...] = ()
    watch: Watch | None = None
    firmness: str | None = None

    @property
    def regret(self) -> float | None:
        """Mean shortfall of the recommended policy behind the best of each redraw, in the unit of the measure."""
        return next((row.regret for row in self.standings if row.policy == self.policy), None)

    def as_dict(self) -> dict[str, Any]:
        """The `decision` object of results.json."""
        return {
            "rule": self.rule,
            "policy": self.policy,
            "sentence": self.sentence,
            "accepted": self.accepted,
            "provisional": None if self.provisional is None else dict(self.provisional),
            "trail": [dict(row) for row in self.trail],
            "near_misses": [dict(row) for row in self.near_misses],
            "saving_per_month": None if self.saving_per_month is None else self.saving_per_month.as_dict(),
            "too_close_to_call": None if self.too_close_to_call is None else dict(self.too_close_to_call),
            "room": None if self.room is None else self.room.as_dict(),
            "watch": None if self.watch is None else self.watch.as_dict(),
            "standings": [asdict(row) for row in self.standings],
            "regret": self.regret,
            "firmness": self.firmness,
            "what_to_set": settings_for(self.policy),
        }


@dataclass(frozen=True)
class _Walk:
    """The table read once: every reading, the rule that fires (row 0 waived or not), and the flags."""

    readings: tuple[RuleReading, ...]
    fired: int
    skipped: frozenset[int]

    @property
    def verdict(self) -> RuleReading:
        return self.readings[self.fired]


def decide(
    evidence: Evidence,
    thresholds: Mapping[str, float] | None = None,
    waive_row_0: bool = False,
    counters_trustworthy: bool = True,
    pessimistic: Evidence | None = None,
) -> Decision:
    """Decide from measured evidence. `thresholds` changes the defaults by name; ThresholdError for a wrong one.

    With `pessimistic` (the same log replayed under the pessimistic assumption) a verdict that holds in only one of the
    two is too close to call, and row 11 keeps LRU. The saving quoted is the smaller of the two.
    """
    limits = _limits(thresholds)
    walk = _walk(evidence, limits, waive_row_0, counters_trustworthy)
    conflict = _conflict(evidence, pessimistic, limits, counters_trustworthy)
    return _decision(walk, evidence, pessimistic, conflict)


def _limits(thresholds: Mapping[str, float] | None) -> dict[str, float]:
    check_thresholds(thresholds or {})
    return {**THRESHOLDS, **(thresholds or {})}


def check_thresholds(thresholds: Mapping[str, float]) -> None:
    """Refuse an unknown threshold and a value outside what its kind accepts: ThresholdError says what is accepted."""
    kinds = {one.threshold: one.kind for rule in RULES for one in rule.conditions if one.threshold}
    for name, value in thresholds.items():
        if name not in THRESHOLDS:
            raise ThresholdError(f"unknown threshold {name!r}; known: {', '.join(THRESHOLDS)}")
        low, high, accepted = RANGES[kinds[name]]
        if isinstance(value, str) or not low <= value <= high:
            raise ThresholdError(f"{name} must be {accepted}, got {value!r}")


def _walk(evidence: Evidence, limits: Mapping[str, float], waive_row_0: bool, counters_trustworthy: bool) -> _Walk:
    readings = tuple(read_rule(rule, evidence, limits) for rule in RULES)
    skipped = {rule.number for rule in RULES if rule.counts and not counters_trustworthy}
    if waive_row_0:
        skipped.add(0)
    return _Walk(readings, _first(readings, skipped), frozenset(skipped))


def _conflict(
    evidence: Evidence, pessimistic: Evidence | None, limits: Mapping[str, float], counters_trustworthy: bool
) -> dict[str, Any] | None:
    """The two verdicts (row 0 waived) where the assumptions recommend different policies, else None."""
    if pessimistic is None:
        return None
    both = [_walk(one, limits, True, counters_trustworthy).verdict for one in (evidence, pessimistic)]
    if both[0].policy == both[1].policy or _holds_too(both[0], both[1], pessimistic, limits):
        return None
    names = (evidence.assumption, pessimistic.assumption)
    return {
        name: {"rule": row.rule.number, "policy": row.policy, "title": row.title}
        for name, row in zip(names, both, strict=True)
    }


def _holds_too(neutral: RuleReading, harsh: RuleReading, pessimistic: Evidence, limits: Mapping[str, float]) -> bool:
    """Both stop at the row of replay evidence and the neutral choice passes it under the pessimistic assumption too."""
    if neutral.rule.policy != BEST_ONLINE or harsh.rule.policy != BEST_ONLINE:
        return False
    same = pessimistic.against_lru(neutral.policy)
    return same is not None and bool(same.better) and (same.hit_ratio_change or 0.0) >= limits["gain_points"]


def _decision(
    walk: _Walk, evidence: Evidence, pessimistic: Evidence | None, conflict: Mapping[str, Any] | None
) -> Decision:
    thin = walk.fired == 0
    skipped = walk.skipped | {0} if thin else walk.skipped
    waived = _Walk(walk.readings, _first(walk.readings, skipped), skipped)
    decided = waived if conflict is None else _Walk(walk.readings, LAST, skipped)
    final = walk if thin else decided
    sides = (evidence,) if pessimistic is None else (evidence, pessimistic)
    worth = None if thin else smaller(*(saving(side, final.verdict.policy) for side in sides))
    bought = _room(sides)
    trail = _trail(final, waived.fired, evidence, conflict)
    provisional = _provisional(decided, waived.fired, evidence, conflict, sides) if thin else None
    return Decision(
        rule=final.fired,
        policy=final.verdict.policy,
        sentence=sentence(trail, evidence.capacity_tokens, worth, provisional, bought),
        accepted=final.verdict.policy != "lru",
        provisional=provisional,
        trail=trail,
        near_misses=_near_misses(decided if thin else final),
        saving_per_month=worth,
        too_close_to_call=conflict,
        room=bought,
        standings=evidence.standings,
        firmness=firmness(evidence, final.verdict.policy, decided.fired, _gain_asked(decided), conflict),
        watch=watch(evidence, final.verdict.policy, final.fired == SHORT_OF_ROOM),
    )


def _gain_asked(walk: _Walk) -> float:
    """The rise of the hit-token ratio that row 9 asks for."""
    return next(one.threshold or 0.0 for one in walk.readings[9].readings if one.measure == "challenger_gain")


def _room(sides: tuple[Evidence, ...]) -> Room | None:
    """What doubling the budget is worth, the smaller of the assumptions."""
    known = [one for one in (room(side) for side in sides) if one is not None]
    return min(known, key=lambda one: one.saving.value) if len(known) == len(sides) else None


def _first(readings: Sequence[RuleReading], skipped: frozenset[int] | set[int]) -> int:
    return next(row.rule.number for row in readings if row.holds and row.rule.number not in skipped)


def _provisional(
    decided: _Walk,
    neutral: int,
    evidence: Evidence,
    conflict: Mapping[str, Any] | None,
    sides: tuple[Evidence, ...],
) -> dict[str, Any]:
    """What the table says with row 0 waived: {rule, policy, sentence, saving_per_month}."""
    trail = _trail(decided, neutral, evidence, conflict)
    worth = smaller(*(saving(side, decided.verdict.policy) for side in sides))
    return {
        "rule": decided.fired,
        "policy": decided.verdict.policy,
        "sentence": sentence(trail, evidence.capacity_tokens, worth, None, _room(sides)),
        "saving_per_month": None if worth is None else worth.as_dict(),
    }


def _trail(
    walk: _Walk, neutral: int, evidence: Evidence, conflict: Mapping[str, Any] | None
) -> tuple[Mapping[str, Any], ...]:
    """One plain dict per row. `neutral` is the rule the neutral assumption alone would stop at."""
    stop = neutral if conflict is not None and walk.fired == LAST else walk.fired
    return tuple(_row(reading, walk, stop, evidence, conflict) for reading in walk.readings)


def _row(
    reading: RuleReading, walk: _Walk, stop: int, evidence: Evidence, conflict: Mapping[str, Any] | None
) -> dict[str, Any]:
    rule, number = reading.rule, reading.rule.number
    outcome = _outcome(reading, walk, stop)
    fires = outcome == FIRES
    told = conflict if walk.fired == LAST and number in (stop, LAST) else None
    return {
        "rule": number,
        "question": rule.question,
        "measured": _measured(reading, walk, told),
        "threshold": _threshold(reading),
        "margin": None if reading.margin is None else round(reading.margin, 6),
        "outcome": outcome,
        "would_say": None if fires else _would_say(reading, evidence.capacity_tokens),
        "policy": reading.policy,
        "policy_title": reading.title,
        "advice": rule.advice,
        "because": _because(reading, walk, conflict) if fires else None,
        "conditions": [_condition(one) for one in reading.readings],
        "values": {one.measure: one.value for one in reading.readings},
        "limits": {one.measure: one.threshold for one in reading.readings},
        "origin": {"source": rule.source, "judgement": rule.judgement},
        "figure": rule.figure,
    }


def _condition(reading: Reading) -> dict[str, Any]:
    """One condition in words: what was measured, what is asked, whether it holds, and its margin."""
    margin = None if reading.margin is None else round(reading.margin, 6)
    asked = {"words": reading.text, "asked": reading.threshold_text, "holds": reading.holds, "margin": margin}
    return {"measure": reading.measure, **asked}


def _outcome(reading: RuleReading, walk: _Walk, stop: int) -> str:
    number = reading.rule.number
    if number == walk.fired:
        return FIRES
    if number > stop:
        return NOT_CONSULTED
    if number in walk.skipped:
        return SKIPPED
    return UNKNOWN if reading.holds is None else SILENT


def _measured(reading: RuleReading, walk: _Walk, conflict: Mapping[str, Any] | None) -> str:
    if reading.rule.number == LAST:
        return _last_words(walk, conflict)
    text = "; ".join(one.text for one in reading.readings)
    if reading.rule.number == 0:
        text += _unmeasured(walk)
    return text if conflict is None else f"{text}; {_conflict_words(conflict)}"


def _unmeasured(walk: _Walk) -> str:
    """What later rows could not measure, so that row 0 names everything the log lacks."""
    lacking = [str(row.rule.number) for row in walk.readings[1:] if row.holds is None]
    return f"; rules that cannot be told on this log: {', '.join(lacking)}" if lacking else ""


def _conflict_words(conflict: Mapping[str, Any]) -> str:
    sides = [f"{row['title']} by rule {row['rule']} under the {name} assumption" for name, row in conflict.items()]
    return f"too close to call, {' but '.join(sides)}"


def _last_words(walk: _Walk, conflict: Mapping[str, Any] | None) -> str:
    if walk.fired != LAST:
        return "the default where no other rule fires"
    if conflict is not None:
        return _conflict_words(conflict)
    passed = [row for row in walk.readings if row.rule.counts and row.rule.number in walk.skipped and row.holds]
    if passed:
        return f"frequency counters are not trusted, which skips rule {passed[0].rule.number} ({passed[0].title})"
    rival = next((one.text for one in walk.readings[9].readings if one.measure == "challenger" and one.value), None)
    nearest = f"; the nearest rival does not pass: {rival}" if rival else ""
    unknown = [str(row.rule.number) for row in walk.readings[1:LAST] if row.holds is None]
    if len(unknown) == LAST - 1:
        return BLIND
    lacking = f" (of those that can be told: not {', '.join(unknown)})" if unknown else ""
    return f"no other rule fires{lacking}{nearest}"


def _threshold(reading: RuleReading) -> str:
    joint = " or " if reading.rule.any_of else "; "
    return joint.join(one.threshold_text for one in reading.readings) or numbers.ABSENT


def _would_say(reading: RuleReading, capacity_tokens: int | None) -> str:
    if reading.holds is None:
        missing = [one.text for one in reading.readings if one.holds is None]
        return f"cannot tell: {missing[0] if missing else 'no candidate was replayed'}"
    if not reading.holds:
        return "would not fire"
    budget = None if capacity_tokens is None else "this budget"
    return f"would fire: {_advised(reading.rule.advice, reading.title, budget)}"


def _advised(advice: str, title: str, budget: str | None) -> str:
    """The imperative of a rule; where no budget is known it names none."""
    if budget is None:
        advice = advice.replace(" at {budget}", "").replace(" beyond {budget}", "")
    return advice.format(budget=budget, title=title)


def _because(reading: RuleReading, walk: _Walk, conflict: Mapping[str, Any] | None) -> str:
    """The clause the sentence gives as its reason: the quoted measures that hold."""
    if reading.rule.number == LAST:
        return _last_words(walk, conflict)
    quoted = [one for one in reading.readings if one.measure in reading.rule.because and one.holds]
    if reading.rule.number == 0:
        return ", and ".join(
            one.text if one.measure == "absent_count" else f"{one.text}, {one.threshold_text}" for one in quoted
        )
    return " and ".join(one.text for one in quoted)


def sentence(
    trail: Sequence[Mapping[str, Any]],
    capacity_tokens: int | None,
    worth: Saving | None = None,
    provisional: Mapping[str, Any] | None = None,
    bought: Room | None = None,
) -> str:
    """The verdict in one imperative sentence, read off the row that fires: advice, reason, rule, money."""
    row = next(row for row in trail if row["outcome"] == FIRES)
    budget = None if capacity_tokens is None else f"{numbers.count(capacity_tokens)} tokens"
    text = f"{_advised(row['advice'], row['policy_title'], budget)}: {row['because']} (rule {row['rule']})"
    if worth is not None:
        text += f"; this saves {worth.text()}"
    if bought is not None and row["rule"] == SHORT_OF_ROOM:
        text += f"; doubling saves {bought.saving.text()}"
    if provisional is not None:
        title = policy_title(provisional["policy"])
        blind = all(str(line["would_say"]).startswith(UNKNOWN) for line in trail if 0 < line["rule"] < LAST)
        text += f"; {BLIND}" if blind else f"; with rule 0 waived, rule {provisional['rule']} would say {title}"
    return f"{text}."


def _near_misses(walk: _Walk) -> tuple[Mapping[str, Any], ...]:
    """The two rows nearest to another verdict: later rows that would fire, then silent rows by their distance.

    A later row that would only repeat the verdict is no miss.
    """
    verdict = walk.verdict
    found = []
    for row in walk.readings[1:LAST]:
        number = row.rule.number
        same = (row.policy, ACTIONS.get(number)) == (verdict.policy, ACTIONS.get(walk.fired))
        if number == walk.fired or row.holds is None or (same and (row.holds or row.policy != "lru")):
            continue
        if row.holds:
            found.append((0.0, number, row))
        elif row.margin is not None and abs(row.margin) < FAR:
            found.append((abs(row.margin), number, row))
    return tuple(_near_miss(row, walk) for _, _, row in sorted(found, key=lambda one: one[:2])[:2])


def _near_miss(row: RuleReading, walk: _Walk) -> dict[str, Any]:
    number, limiting = row.rule.number, row.limiting
    advice = _advised(row.rule.advice, row.title, None).split(",")[0]
    lead = f"Rule {number} ({advice[0].lower()}{advice[1:]})"
    if row.holds:
        reason = "is skipped by flag" if number in walk.skipped else f"comes after rule {walk.fired}"
        text = f"{lead} would fire but {reason}"
    else:
        assert isinstance(limiting, Reading)
        asked = "a clearly better one" if limiting.threshold_text == CLEARLY else limiting.threshold_text
        text = f"{lead} does not fire: {limiting.text}; it asks for {asked}"
    margin = None if row.margin is None else round(row.margin, 6)
    return {"rule": number, "policy": row.policy, "margin": margin, "text": text}
