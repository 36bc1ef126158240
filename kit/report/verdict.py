"""Page one: the decision as one sentence, one number with its interval, the money, the rule, and when to turn back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kit import numbers
from kit.charts import pick
from kit.report.engine import sample_label
from kit.report.money_reported import beside_the_bill, lifetime_words, read_share
from kit.report.retention import best_against_bill, mixed
from kit.report.table import plain, units

Row = dict[str, Any]


@dataclass(frozen=True)
class Key:
    """A key figure of page one: the figure, what it measures, and its interval or why there is none."""

    figure: str
    what: str
    interval: str


@dataclass(frozen=True)
class Verdict:
    """What page one says: `sentence` verbatim from the decision, the budget where it is assumed, what it means, what
    the provider reported beside that, its key figures, finished sentences."""

    scope: str
    sentence: str
    budget: str
    meaning: str
    beside: tuple[str, ...]
    keys: tuple[Key, ...]
    lines: tuple[str, ...]


def verdict(results: Row) -> Verdict:
    """Page one of these results; what is unknown is said, never left out."""
    keys = tuple(key for key in (_change(results), _saving(results), _retention(results)) if key)
    lines = [*(plain(line, longest=400) for line in pick.get(results, "warnings", []))]
    lines += [_rule(results), _provisional(results), _ttl(results), _revert(results)]
    sentence = pick.get(results, "decision.sentence", "No decision was reached.")
    return Verdict(
        scope(results),
        str(sentence),
        _assumed_budget(results),
        meaning(results),
        tuple(beside_the_bill(results)),
        keys,
        tuple(line for line in lines if line),
    )


def at_budget(results: Row) -> str:
    """``at an assumed budget of 119,988 tokens`` where nobody gave the budget, else empty."""
    assumed = str(pick.get(results, "settings.capacity_origin") or "").startswith("assumed")
    budget = pick.actual_capacity(results)
    return f"at an assumed budget of {numbers.count(budget)} tokens" if assumed and budget is not None else ""


def meaning(results: Row) -> str:
    """The verdict for a reader who knows none of its words: what is kept, what it costs, what another policy costs."""
    lru, other = pick.at_actual(results, "lru"), pick.other_policy(results)
    if lru is None:
        return ""
    budget = numbers.count(pick.actual_capacity(results))
    cheap = "billed at the lower price of a read" if has_money(results) else "not computed again"
    said = [
        f"Requests repeat the beginnings of earlier ones. A cache holds {budget} tokens of them, so that what it still "
        f"holds is {cheap}; when it is full, an eviction policy says what to drop. LRU drops what was unused longest."
    ]
    return " ".join([*said, *_meaning_of_money(results, lru, pick.at_actual(results, other) if other else None)])


def _meaning_of_money(results: Row, lru: Row, row: Row | None) -> list[str]:
    currency, cost = pick.get(results, "money.currency", "USD"), lru.get("cost")
    if cost is None:
        return [f"With LRU {numbers.percent(lru.get('hit_token_ratio'))} of the input is found there."]
    none = pick.get(results, "ttl_verdict.costs.none")
    bare = f", without any cache {numbers.money(none, currency)}" if none is not None and none > cost else ""
    model = "" if read_share(results) is None else "by the model "
    said = [f"Over this log the input {model}costs {numbers.money(cost, currency)} with LRU{bare}."]
    if row is None or row.get("cost") is None:
        return said
    lead = "With" if is_switch(results) else "The best other policy tried,"
    title = pick.title_of(results, row["policy"])
    end = "it costs" if is_switch(results) else "costs"
    return [
        *said,
        f"{lead} {title}{',' if not is_switch(results) else ''} {end} {numbers.money(row['cost'], currency)}.",
    ]


def scope(results: Row) -> str:
    """Whose traffic, from when to when, how many requests and sessions."""
    log = pick.get(results, "log", {})
    files = log.get("files") or []
    name = plain(files[0]) if len(files) == 1 else f"{len(files)} files" if files else "one log"
    start, end = str(log.get("start") or "")[:10], str(log.get("end") or "")[:10]
    dates = f"{start} to {end} UTC" if start else "no dates in the log"
    if start.startswith("1970-01-01"):
        dates = "times counted from the start of the log"
    sessions = f"{numbers.count(log['sessions'])} sessions" if log.get("sessions") else "sessions not told apart"
    kept = numbers.count(log.get("requests", log.get("kept")))
    return f"{name.rsplit('/', 1)[-1]} · {dates} · {kept} requests · {sessions}{sample_label(results)}"


def is_switch(results: Row) -> bool:
    """True where the decision asks to leave LRU."""
    return pick.proposed_policy(results) != "lru"


def has_money(results: Row) -> bool:
    """True where LRU at the budget under study has a bill."""
    return (pick.at_actual(results, "lru") or {}).get("cost_per_request") is not None


def percent_change(amount: float | None) -> str:
    """A relative change as a signed percentage."""
    return numbers.relative(amount)


def _change(results: Row) -> Key | None:
    """The one number: what a switch changes, or where LRU stays, what it finds and what the best other policy would."""
    other, lru = pick.other_policy(results), pick.at_actual(results, "lru")
    row = pick.at_actual(results, other) if other else None
    if not row or not lru:
        return None
    title, (change, what, band) = pick.title_of(results, row["policy"]), _difference(results, lru, row)
    if is_switch(results):
        return Key(change, f"{what}, with {title} in place of LRU{_here(results)}", band)
    return Key(
        numbers.percent(lru.get("hit_token_ratio")),
        f"of input tokens found cached with LRU{_here(results)}{_limit(results)}",
        f"best other policy, {title}: {what} {change} ({band})"
        if (row["hit_tokens"], row.get("cost")) != (lru["hit_tokens"], lru.get("cost"))
        else f"{title} finds exactly what LRU finds",
    )


def _here(results: Row) -> str:
    found = at_budget(results)
    return f" {found}" if found else ""


def _limit(results: Row) -> str:
    """The most the model can find, with the lifetime it is counted with."""
    ceiling = pick.get(results, "bounds.ceiling.hit_token_ratio")
    if ceiling is None:
        return ""
    life = lifetime_words(pick.get(results, "settings.ttl_seconds"))
    whose = "" if read_share(results) is None else "in the model "
    return f"; {whose}at most {numbers.percent(ceiling)} with an unlimited cache and {life}"


def _difference(results: Row, lru: Row, row: Row) -> tuple[str, str, str]:
    """Change against LRU, what it is of, and its interval: cost per request, or without prices tokens found."""
    what, measure, scale = "input tokens found cached", "hit_token_ratio", 1.0
    write: Callable[[float], str] = numbers.points
    if has_money(results) and row.get("cost_per_request") is not None:
        what, measure, scale = "cost per request", "cost_per_request", lru["cost_per_request"] or 1.0
        write = percent_change
    found = pick.interval(row, measure)
    low, high = (write(found[end] / scale) if found else numbers.NOT_FOUND for end in ("low", "high"))
    band = numbers.with_level(low, high, units(found))
    return write((row[measure] - lru[measure]) / scale), what, band


def _saving(results: Row) -> Key:
    """Money per month with its interval, or why there is none."""
    saving = pick.get(results, "decision.saving_per_month")
    if saving and numbers.is_known(saving.get("value")):
        return _month(saving, units({"units": pick.get(results, "settings.bootstrap_blocks"), **saving}))
    if pick.at_actual(results, "lru") is None:
        return Key(numbers.NOT_FOUND, "money per month", "nothing could be replayed")
    if pick.get(results, "decision.rule") == 0:
        return Key("Cannot tell yet", "what another policy would save", "the log is not enough to decide on")
    if not is_switch(results) and not _no_bill(results):
        return Key("Nothing", "to save by changing the policy now", "LRU stays")
    return Key(
        numbers.NOT_FOUND, "money per month", _no_bill(results) or "less than a day of log cannot be scaled to a month"
    )


def _month(saving: Row, rests_on: int | None) -> Key:
    currency = saving.get("currency")

    def write(amount: float | None) -> str:
        return (
            numbers.money(amount, currency)
            if currency
            else f"{numbers.short(amount)} {plain(saving.get('unit') or 'tokens')}"
        )

    word = "saved a month against LRU" if saving["value"] >= 0 else "more a month than LRU"
    how = f", {plain(saving['assumption'])} assumption" if saving.get("assumption") else ""
    band = numbers.with_level(write(saving.get("low")), write(saving.get("high")), rests_on)
    return Key(write(abs(saving["value"])), f"{word}, estimated{how}", band)


def _retention(results: Row) -> Key | None:
    """What the best choice of retention saves over this log against the class the bill is priced with, where told."""
    found = best_against_bill(results)
    return Key(found.figure, found.what, found.small) if found else None


def _no_bill(results: Row) -> str:
    if has_money(results):
        return ""
    engine = pick.get(results, "settings.tier_mode") == "engine"
    return "there is no bill: you run the engine" if engine else "no price was found"


def _rule(results: Row) -> str:
    trail, rule = pick.get(results, "decision.trail", []), pick.get(results, "decision.rule")
    if rule is None:
        return ""
    questions = {row.get("rule"): row.get("question") for row in trail}
    question = plain(questions.get(rule) or "")
    later = sum(line.get("outcome") == "not consulted" for line in trail)
    rest = f" The {later} rules after it were not consulted." if later else ""
    return f"Rule {rule} fired{': ' + question if question else '.'}{rest}"


def _assumed_budget(results: Row) -> str:
    """A budget nobody gave is said right under the sentence, with how it was chosen and how to give it."""
    lead, origin = at_budget(results), str(pick.get(results, "settings.capacity_origin") or "")
    if not lead:
        return ""
    why = plain(origin.removeprefix("assumed: "), longest=400)
    why = why.removesuffix(f" ({numbers.count(pick.actual_capacity(results))} tokens)")
    return f"{lead[:1].upper()}{lead[1:]}: {why}. Give your own with --set capacity_tokens=N."


def _provisional(results: Row) -> str:
    found = pick.get(results, "decision.provisional")
    if not found:
        return ""
    policy = pick.title_of(results, str(found.get("policy")))
    said = plain(found.get("sentence") or f"rule {found.get('rule')}, {policy}.", longest=2000)
    return f"Provisional, were this log enough to decide on: {said}"


def _ttl(results: Row) -> str:
    sentence = pick.get(results, "ttl_verdict.sentence")
    return " ".join(filter(None, (plain(sentence), mixed(results)))) if sentence else ""


def _revert(results: Row) -> str:
    measure = "cost per request" if has_money(results) else "missed tokens per request"
    if told := pick.get(results, "decision.watch.sentence"):
        return plain(told, longest=2000)
    if is_switch(results):
        return f"Revert if {measure} rises, or the share of tokens found cached falls, two weeks running."
    return "Nothing to revert; decide again when traffic, prices or the budget change."
