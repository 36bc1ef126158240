"""Page one: the decision as one sentence, one number with its interval, the money, the rule, and when to turn back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kit import numbers
from kit.charts import pick
from kit.report.table import Table, plain

Row = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """What page one says: `sentence` verbatim from the decision, then lines, each a finished sentence."""

    scope: str
    sentence: str
    lines: tuple[str, ...]


def verdict(results: Row) -> Verdict:
    """Page one of these results; what is unknown is said, never left out."""
    lines = [_number(results), _saving(results), _rule(results), _provisional(results), _ttl(results), _revert(results)]
    sentence = pick.get(results, "decision.sentence", "No decision was reached.")
    return Verdict(scope(results), str(sentence), tuple(line for line in lines if line))


def scope(results: Row) -> str:
    """Whose traffic, from when to when, how many requests and sessions."""
    log = pick.get(results, "log", {})
    files = log.get("files") or []
    name = plain(files[0]) if len(files) == 1 else f"{len(files)} files" if files else "one log"
    start, end = str(log.get("start") or "")[:10], str(log.get("end") or "")[:10]
    dates = f"{start} to {end} UTC" if start else "no dates in the log"
    sessions = f"{numbers.count(log['sessions'])} sessions" if log.get("sessions") else "sessions not told apart"
    kept = numbers.count(log.get("requests", log.get("kept")))
    return f"{name.rsplit('/', 1)[-1]} · {dates} · {kept} requests · {sessions}"


def is_switch(results: Row) -> bool:
    """True where the decision asks to leave LRU."""
    return pick.proposed_policy(results) != "lru"


def has_money(results: Row) -> bool:
    """True where LRU at the budget under study has a bill."""
    return (pick.at_actual(results, "lru") or {}).get("cost_per_request") is not None


def percent_change(amount: float | None) -> str:
    """A relative change as a signed percentage."""
    return numbers.NOT_FOUND if amount is None else f"{numbers.signed(amount * 100, 1)}%"


def _number(results: Row) -> str:
    other, lru = pick.other_policy(results), pick.at_actual(results, "lru")
    row = pick.at_actual(results, other) if other else None
    if not row or not lru:
        return "No replay of another policy stands beside LRU."
    title = pick.title_of(results, row["policy"])
    lead = f"With {title}" if is_switch(results) else f"Even with {title}, the best other policy,"
    if has_money(results) and row.get("cost_per_request") is not None:
        base = lru["cost_per_request"]
        what, measure, scale, write = "cost per request", "cost_per_request", base or 1.0, percent_change
    else:
        what, measure, scale, write = "the share of input tokens found cached", "hit_token_ratio", 1.0, numbers.points
    change, found = (row[measure] - lru[measure]) / scale, pick.interval(row, measure)
    band = f" (95% interval {numbers.span(write(found['low'] / scale), write(found['high'] / scale))})" if found else " (interval not found)"
    return f"{lead} {what} changes by {write(change)}{band}."


def _saving(results: Row) -> str:
    saving = pick.get(results, "decision.saving_per_month")
    if not has_money(results):
        why = "you run the engine, there is no bill" if pick.get(results, "settings.tier_mode") == "engine" else "no price was found"
        return f"Money per month: not found ({why})."
    if not saving or saving.get("value") is None:
        return "Money per month: nothing is saved by changing the policy." if not is_switch(results) else "Money per month: not found."
    money = [numbers.money(saving.get(key), saving.get("currency") or "USD") for key in ("value", "low", "high")]
    band = f" (95% interval {numbers.span(money[1], money[2])})" if numbers.NOT_FOUND not in money else ""
    word = "costs more" if saving["value"] < 0 else "saves"
    if word == "costs more":
        return f"A month of this traffic changes by {money[0]} against LRU{band}, estimated."
    return f"A month of this traffic saves {money[0]}{band}, estimated."


def _rule(results: Row) -> str:
    trail, rule = pick.get(results, "decision.trail", []), pick.get(results, "decision.rule")
    if rule is None:
        return ""
    row = next((row for row in trail if row.get("rule") == rule), {})
    question = plain(row.get("question") or "").rstrip("?. ")
    last = max((line.get("rule", 0) for line in trail), default=rule)
    return f"Rule {rule} of 0 to {last} fired{': ' + question if question else ''}."


def _provisional(results: Row) -> str:
    found = pick.get(results, "decision.provisional")
    if not found:
        return ""
    policy = pick.title_of(results, str(found.get("policy")))
    sentence = plain(found.get("sentence") or "")
    return f"Provisional, were this log enough to decide on: rule {found.get('rule')}, {policy}." + (f" {sentence}" if sentence else "")


def _ttl(results: Row) -> str:
    sentence = pick.get(results, "ttl_verdict.sentence")
    return f"Time to live: {plain(sentence)}" if sentence else ""


def _revert(results: Row) -> str:
    measure = "cost per request" if has_money(results) else "missed tokens per request"
    if is_switch(results):
        return f"Revert if {measure} rises, or the share of tokens found cached falls, two weeks running."
    return "Nothing to revert; decide again when traffic, prices or the budget change."


def before_after(results: Row) -> Table | None:
    """LRU beside the proposed (or best other) policy at the budget under study; None without a second policy."""
    other, lru = pick.other_policy(results), pick.at_actual(results, "lru")
    row = pick.at_actual(results, other) if other else None
    if not row or not lru:
        return None
    title = pick.title_of(results, row["policy"])
    head = ("Measure", "LRU", title if is_switch(results) else f"{title} (not recommended)", "Change", "95% interval")
    lines = [line for line in (*_money_lines(results, lru, row), *_token_lines(lru, row)) if line]
    capacity = numbers.count(pick.actual_capacity(results))
    note = f"Budget {capacity} tokens, {pick.main_assumption(results)} assumption, {window_words(results)}. " + (
        "Intervals: paired bootstrap over "
        f"{numbers.count(pick.get(results, 'settings.bootstrap_blocks'))} blocks of {pick.get(results, 'settings.block_basis', 'requests')}; "
        "they cover chance in this traffic, not new prices or growth.")  # fmt: skip
    return Table("before_after", f"Before and after, {span_words(results)}", head, tuple(lines), note)


def window_words(results: Row) -> str:
    """The window in words."""
    if pick.main_window(results) == "warm":
        return str(pick.get(results, "settings.warm_basis", "after warm-up"))
    return "all requests, from an empty cache"


def span_words(results: Row) -> str:
    """How much time the figures cover."""
    days = pick.get(results, "log.days")
    return f"over {numbers.count(days)} calendar {'day' if days == 1 else 'days'}" if days else "over the whole log"


def _band(row: Row, measure: str, write: Any, scale: float = 1.0) -> str:
    found = pick.interval(row, measure)
    return numbers.span(write(found["low"] * scale), write(found["high"] * scale)) if found else numbers.ABSENT


def _money_lines(results: Row, lru: Row, row: Row) -> list[tuple[str, ...]]:
    if not has_money(results) or row.get("cost_per_request") is None:
        return [("Input bill", numbers.NOT_FOUND, numbers.NOT_FOUND, numbers.ABSENT, numbers.ABSENT)]
    currency = pick.get(results, "money.currency", "USD")

    def unit(amount: float | None) -> str:
        return numbers.unit_price(amount, currency)

    def change(amount: float) -> str:
        return numbers.money_change(amount, currency)

    def unit_change(amount: float) -> str:
        return ("+" if amount > 0 else "") + unit(amount)

    each, total = lru["cost_per_request"], lru["cost"]
    eq = [line.get("m_eq") for line in (lru, row)]
    eq_change = percent_change((eq[1] - eq[0]) / eq[0]) if None not in eq and eq[0] else numbers.ABSENT
    return [
        (f"Cost per request, input side ({currency}, estimated)", unit(each), unit(row["cost_per_request"]),
         unit_change(row["cost_per_request"] - each), _band(row, "cost_per_request", unit_change)),
        (f"Input bill ({currency}, estimated)", numbers.money(total, currency), numbers.money(row["cost"], currency),
         change(row["cost"] - total), _band(row, "cost_per_request", change, lru["requests"])),
        ("Billed tokens per locally hit request, price-weighted", numbers.count(eq[0]), numbers.count(eq[1]), eq_change,
         _relative_band(row, eq[0])),
    ]  # fmt: skip


def _relative_band(row: Row, base: float | None) -> str:
    return _band(row, "m_eq", percent_change, 1 / base) if base else numbers.ABSENT


def _token_lines(lru: Row, row: Row) -> list[tuple[str, ...]]:
    ratio = [line.get("hit_token_ratio") for line in (lru, row)]
    hits = [line["hits"] / line["requests"] if line.get("requests") else None for line in (lru, row)]
    lines = []
    for name, (before, after), measure in (
        ("Input tokens found cached", ratio, "hit_token_ratio"), ("Requests that found their prefix", hits, "request_hit_rate"),
    ):  # fmt: skip
        difference = numbers.points(after - before) if before is not None and after is not None else numbers.NOT_FOUND
        lines.append((name, numbers.percent(before), numbers.percent(after), difference, _band(row, measure, numbers.points)))
    return lines
