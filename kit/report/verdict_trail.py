"""The rule that fired in three lines, for a reader of the money: what was asked, what was seen, and what follows."""

from __future__ import annotations

from typing import Any

from kit import numbers
from kit.charts import pick
from kit.report.table import Part, Section, Text, Words, plain

Row = dict[str, Any]
FULL = "Every rule with its threshold is in the full reading: the same command without --for finance."


def short_trail(results: Row) -> Section:
    """Asked, seen, so what for the rule that fired, and where the other rules are; empty where no rule fired."""
    said = in_three_lines(results, "")
    if said is None:
        return Section("trail", "Why", ())
    rule = pick.get(results, "decision.rule")
    return Section("trail", f"Why: rule {rule}", (said, Text(FULL, "note")), frozenset({"finance"}))


def in_short(results: Row, reading: str) -> tuple[Part, ...]:
    """The three lines above the whole trail, where one file is for both readers."""
    said = in_three_lines(results, f"Rule {pick.get(results, 'decision.rule')}: ") if reading == "both" else None
    return (said,) if said else ()


def in_three_lines(results: Row, lead: str) -> Words | None:
    """What the rule that fired asks (after `lead`), what was seen, and what follows; None where no rule fired."""
    rule = pick.get(results, "decision.rule")
    fired = next((line for line in pick.get(results, "decision.trail", []) if line.get("rule") == rule), None)
    if fired is None:
        return None
    asked = f"{lead}{plain(fired.get('question') or '')}"
    return Words((("Asked", asked), ("Seen", _seen(fired)), ("So", _so(results, fired))))


def _seen(fired: Row) -> str:
    """The conditions that hold, each with what it asks; without conditions what was measured."""
    held = [one for one in fired.get("conditions") or [] if one.get("holds")]
    if not held:
        return plain(fired.get("measured") or numbers.NOT_FOUND, longest=2000)
    said = "; ".join(_condition(one) for one in held)
    return f"{said[:1].upper()}{said[1:]}."


def _condition(one: Row) -> str:
    words, asked = (plain(one.get(key) or "", longest=2000) for key in ("words", "asked"))
    if asked in ("", "yes", "over 0"):
        return words
    return f"{words} (threshold: {'clearly better' if 'interval' in asked else asked})"


def _so(results: Row, fired: Row) -> str:
    """What the rule advises at the budget under study; the verdict's sentence where a part of it is not known here."""
    budget = pick.actual_capacity(results)
    advice = plain(fired.get("advice") or "", longest=2000)
    for joint in (" at {budget}", " beyond {budget}") if budget is None else ():
        advice = advice.replace(joint, "")
    advice = advice.replace("{budget}", f"{numbers.count(budget)} tokens")
    if not advice or "{" in advice:
        return plain(pick.get(results, "decision.sentence") or "", longest=2000)
    return f"{advice}."
