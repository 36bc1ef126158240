"""Page one: the decision as one sentence, one number with its interval, the money, the rule, and when to turn back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kit import numbers
from kit.charts import pick
from kit.charts.labels import listed
from kit.report.engine import sample_label, sample_warning
from kit.report.money_reported import beside_the_bill, lifetime_words, read_share
from kit.report.retention import best_against_bill, mixed
from kit.report.table import plain, units

Row = dict[str, Any]
LAST_RULE = 11
SAME = {"0.0%": "the same to 0.1%", "0.0 pt": "the same to 0.1 pt"}


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
        (*beside_the_bill(results), *filter(None, [sample_warning(results)])),
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
        return _unreplayed(results)
    budget = numbers.count(pick.actual_capacity(results))
    cheap = "billed at the lower price of a read" if has_money(results) else "not computed again"
    said = [
        f"Requests repeat the beginnings of earlier ones. A cache holds {budget} tokens of them, so that what it still "
        f"holds is {cheap}; when it is full, an eviction policy says what to drop. LRU drops what was unused longest."
    ]
    return " ".join([*said, *_meaning_of_money(results, lru, pick.at_actual(results, other) if other else None)])


def _unreplayed(results: Row) -> str:
    """What a log without prefix identity leaves open and what would close it; empty where something else is amiss."""
    if pick.get(results, "log.identity") is not None or not pick.get(results, "log.requests"):
        return ""
    return (
        "Requests repeat the beginnings of earlier ones, and a cache holds some of them. This log does not say which "
        "requests begin alike, so no policy could be tried on it. It needs one of prefix_key with prefix_tokens, "
        "path_keys with path_tokens, or parent_request_id; python -m kit hash makes the first from recorded prompts."
    )


def _meaning_of_money(results: Row, lru: Row, row: Row | None) -> list[str]:
    currency, cost = pick.get(results, "money.currency", "USD"), lru.get("cost")
    if cost is None:
        found = f"With LRU {numbers.percent(lru.get('hit_token_ratio'))} of the input is found there."
        return [found, _all_tie(results, "find")] if pick.all_alike(results) else [found]
    none = pick.get(results, "ttl_verdict.costs.none")
    bare = f", without any cache {numbers.money(none, currency)}" if none is not None and none > cost else ""
    lead = "Over this log the input costs" if read_share(results) is None else "By the model the input costs"
    said = [f"{lead} {numbers.money(cost, currency)} with LRU{bare}."]
    if is_switch(results):
        title = "" if row is None else pick.title_of(results, row["policy"])
        told = "" if row is None or row.get("cost") is None else f"With {title} it costs {_bill(results, row, lru)}."
    else:
        told = _others(results, lru, row)
    return [*said, told] if told else said


def _others(results: Row, lru: Row, row: Row | None) -> str:
    """What the other policies cost where LRU stays: that they tie, which tie, or the best of them."""
    if pick.all_alike(results):
        return _all_tie(results, "cost")
    same, rest = pick.alike(results), [one for one in pick.policies_at_actual(results) if one["policy"] != "lru"]
    rest = [one for one in rest if one not in same and one.get("cost") is not None]
    if row is None or row in same:
        row = min(rest, key=lambda one: (one["cost"], one["policy"]), default=None)
    if row is None or row.get("cost") is None:
        return ""
    best = f"{pick.title_of(results, row['policy'])}, costs {_bill(results, row, lru)}."
    if not same:
        return f"The best other policy tried, {best}"
    names = listed([pick.title_of(results, one["policy"]) for one in same])
    return f"{names} {'costs' if len(same) == 1 else 'cost'} the same; the best of the others, {best}"


def _all_tie(results: Row, verb: str) -> str:
    """``All 7 other policies tried cost the same.``"""
    count = len(pick.alike(results))
    if count == 1:
        return f"The one other policy tried {verb}s the same."
    return f"All {numbers.count(count)} other policies tried {verb} the same."


def _bill(results: Row, row: Row, lru: Row) -> str:
    """A policy's bill; in cents and beside LRU's where whole units would not tell the two apart."""
    currency = pick.get(results, "money.currency", "USD")
    mine, other = (numbers.money(one["cost"], currency) for one in (row, lru))
    if mine != other or row["cost"] == lru["cost"]:
        return mine
    mine, other = (numbers.money(one["cost"], currency, True) for one in (row, lru))
    return f"{mine} against {other}"


def scope(results: Row) -> str:
    """Whose traffic, from when to when, how many requests and sessions."""
    log = pick.get(results, "log", {})
    files = log.get("files") or []
    name = plain(files[0]) if len(files) == 1 else f"{len(files)} files" if files else "one log"
    start, end = str(log.get("start") or "")[:10], str(log.get("end") or "")[:10]
    dates = f"{start} to {end} UTC" if start != end else f"{start} UTC"
    dates = dates if start else "no dates in the log"
    if start.startswith("1970-01-01"):
        dates = "times counted from the start of the log"
    if log.get("has_clock") is False:
        dates = "no common clock: times made up where the log has none"
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
        _beside_lru(results, title, f"{what} {change} ({band})" if change not in SAME else f"{what} {SAME[change]}")
        if row not in pick.alike(results)
        else f"{'every other policy tried' if pick.all_alike(results) else title} finds exactly what LRU finds",
    )


def _beside_lru(results: Row, title: str, said: str) -> str:
    """The best other policy against LRU; the best of the others, where some find exactly what LRU finds."""
    return f"{'best other policy' if not pick.alike(results) else 'best policy that differs'}, {title}: {said}"


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
        return Key("Cannot tell", "what another policy would save", "nothing could be replayed")
    if pick.get(results, "decision.rule") == 0:
        return Key("Cannot tell yet", "what another policy would save", "the log is not enough to decide on")
    if not is_switch(results) and not no_bill(results):
        return Key("Nothing", "to save by changing the policy now", "LRU stays")
    return Key(
        numbers.NOT_FOUND, "money per month", no_bill(results) or "less than a day of log cannot be scaled to a month"
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


def no_bill(results: Row) -> str:
    """Why there is no bill; empty where there is one."""
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
    after = f"The {later} rules after it were" if later > 1 else "The rule after it was"
    rest = f" {after} not consulted." if later else ""
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
    told = [row for row in pick.get(results, "decision.trail", []) if 0 < (row.get("rule") or 0) < LAST_RULE]
    if not found or (told and all(str(row.get("would_say") or "").startswith("cannot tell") for row in told)):
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
