"""What each retention would cost, which mix of them costs less still, and what the best of them takes off the bill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kit import numbers
from kit.charts import pick
from kit.report.money_reported import class_words
from kit.report.table import Table, plain, units

Row = dict[str, Any]
RETENTIONS = {
    "short": "the short retention",
    "long": "the long retention",
    "keep_alive": "keep-alive calls",
    "none": "no caching",
}
TOO_CLOSE = "too close to call"
MIXABLE = ("segment", "session_type", "model", "owner")  # known when a prefix is written; who comes back is not
EXPLAINS = "explains the gaps, cannot be set"
SEGMENTS = {"shared": "prefixes that several sessions share", "own": "prefixes of one session alone"}


def retention(results: Row) -> Table | None:
    """What each choice of retention would cost, for all requests and by group, with the choice; None without prices."""
    groups, currency = pick.get(results, "ttl_verdict.groups", []), pick.get(results, "ttl_verdict.currency")
    if not groups or not currency:
        return None
    choices = [name for name in RETENTIONS if any(name in (group.get("costs") or {}) for group in groups)]
    lines = tuple(
        (
            _group_name(group),
            *(_choice_cost(group, name, currency) for name in choices),
            plain(group.get("choice") or numbers.NOT_FOUND).replace("_", "-"),
            _band(group.get("saving") or {}, currency),
        )
        for group in groups[:20]
    )
    heads = (f"{RETENTIONS[name].removeprefix('the ').capitalize()} ({currency})" for name in choices)
    head = ("Requests", *heads, "Choice", "Saving over the next best, keep-alive aside (95% interval)")
    said = [plain(line) for line in pick.get(results, "ttl_verdict.assumptions", [])]
    note = " ".join(f"{line[:1].upper()}{line[1:]}." for line in said)
    text = frozenset({0, len(choices) + 1})
    return Table("retention", "What each retention would cost over this log", head, lines, note, text, narrow="scroll")


def _group_name(group: Row) -> str:
    dimension, name = str(group.get("dimension") or ""), plain(group.get("group") or "not named in the log")
    if dimension == "segment" and name in SEGMENTS:
        return SEGMENTS[name]
    if dimension == "all":
        return "all"
    label = f"{plain(dimension).replace('_', ' ')}: {name}"
    return label if dimension in MIXABLE else f"{label} ({EXPLAINS})"


def _choice_cost(group: Row, name: str, currency: str) -> str:
    costs = group.get("costs") or {}
    return numbers.money(costs[name], currency, True) if name in costs else numbers.ABSENT


def _band(saving: Row, currency: str) -> str:
    value, low, high = (numbers.money(saving.get(end), currency, True) for end in ("value", "low", "high"))
    if value == numbers.NOT_FOUND:
        return numbers.ABSENT
    return f"{value} ({numbers.between(low, high, units(saving))})"


@dataclass(frozen=True)
class Against:
    """The best choice of retention against the bill shown: the figure, what it is, and small print."""

    figure: str
    what: str
    small: str


@dataclass(frozen=True)
class Mix:
    """A mix of retentions: what it saves over the best single one, its interval where it has one, who gets which."""

    saved: float
    saving: Row | None
    parts: str


def best_against_bill(results: Row) -> Against | None:
    """What the best choice (a mix, where that saves more) costs less than the class of writes the bill is priced with.

    All costs count room for every prefix. None without prices and where the single choices are too close to call.
    """
    choice, currency = str(pick.get(results, "ttl_verdict.choice", "")), pick.get(results, "ttl_verdict.currency")
    costs, used = pick.get(results, "ttl_verdict.costs", {}), str(pick.get(results, "settings.write_class") or "short")
    here, there = costs.get(used), costs.get(choice)
    if not currency or choice not in RETENTIONS or here is None or there is None:
        return None
    mix, priced = best_mix(results), f"{RETENTIONS[used]} ({class_words(results, used)}) of the bill above"
    saved = here - there + (mix.saved if mix else 0.0)
    if saved < 0.005:
        return Against(
            "Nothing", f"to save by another retention: {priced} is already as cheap as it gets", _margin(results)
        )
    best = "a mix of retentions" if mix else RETENTIONS[choice]
    small = f"{_saving_band(results, mix, choice == used, currency)}; {room_words(results, choice, mix is not None)}"
    more = f". {_margin(results)}" if choice == used else ""
    return Against(
        numbers.money(saved, currency, True),
        f"less over this log with {best} than with {priced}",
        f"{small}{more}",
    )


def _saving_band(results: Row, mix: Mix | None, stays: bool, currency: str) -> str:
    """The interval of the saving where one was computed for just that difference, else that there is none."""
    overall = pick.get(results, "ttl_verdict.saving", {}) if _is_next_best(results) else None
    saving = (mix.saving if stays else None) if mix else overall
    if not saving:
        return "no interval for this sum"
    return _interval(saving, currency)


def _interval(saving: Row, currency: str) -> str:
    low, high = (numbers.money(saving.get(end), currency, True) for end in ("low", "high"))
    return numbers.with_level(low, high, units(saving))


def _is_next_best(results: Row) -> bool:
    """Whether the overall saving is counted against the class the bill is priced with."""
    return _second(results) == str(pick.get(results, "settings.write_class") or "short")


def _second(results: Row) -> str | None:
    groups = pick.get(results, "ttl_verdict.groups", [])
    found = next((row.get("next_best") for row in groups if row.get("dimension") == "all"), None)
    return str(found) if found else None


def _margin(results: Row) -> str:
    """What the next best single choice would cost more than the best one, with its interval."""
    saving, second = pick.get(results, "ttl_verdict.saving", {}), _second(results)
    currency = str(pick.get(results, "ttl_verdict.currency"))
    if second is None or second not in RETENTIONS or not numbers.is_known(saving.get("value")):
        return ""
    value, name = numbers.money(saving["value"], currency, True), RETENTIONS[second]
    return f"{name[:1].upper()}{name[1:]} for all costs {value} more ({_interval(saving, currency)})"


def room_words(results: Row, choice: str, is_mix: bool) -> str:
    """When the retention's saving is one: where it is not set already, and where there is room."""
    used = pick.get(results, "ttl_verdict.long_share_of_writes")
    share = {"short": None if used is None else 1 - used, "long": used}.get(choice)
    it = f"the {choice} one" if is_mix else "it"
    known = f" ({numbers.percent(share, 0)} of the written tokens have {it})" if share is not None else ""
    return f"a saving only where it is not set already{known}, counted as if every prefix had room"


def best_mix(results: Row) -> Mix | None:
    """The mix of retentions that costs least, by what is known when a prefix is written; None where none costs less.

    A group is told apart only where its own choice is clear; its interval is given where it alone differs.
    """
    overall, groups = pick.get(results, "ttl_verdict.choice"), pick.get(results, "ttl_verdict.groups", [])
    if not pick.get(results, "ttl_verdict.currency") or overall in (None, TOO_CLOSE):
        return None
    by_dimension = {name: [row for row in groups if row.get("dimension") == name] for name in MIXABLE}
    found = [(_differing(rows, str(overall)), rows) for rows in by_dimension.values()]
    best, rows = max(found, key=lambda pair: sum(saved for _, saved in pair[0]), default=([], []))
    saved = sum(saved for _, saved in best)
    if saved <= 0:
        return None
    named = [(RETENTIONS[str(row["choice"])], _group_name(row).replace(": ", " ", 1)) for row, _ in best]
    parts = ", ".join(f"{retention} for {group}" for retention, group in named)
    rest = "" if len(best) == len(rows) else f" and {RETENTIONS.get(str(overall), plain(overall))} for the rest"
    alone = len(best) == 1 and best[0][0].get("next_best") == overall
    return Mix(saved, (best[0][0].get("saving") or None) if alone else None, f"{parts}{rest}")


def mixed(results: Row) -> str:
    """The mix of retentions that costs least as a sentence; empty where none costs less than one for all."""
    mix, currency = best_mix(results), pick.get(results, "ttl_verdict.currency")
    if mix is None:
        return ""
    band = f" ({_interval(mix.saving, currency)})" if mix.saving else ""
    return f"A mix costs {numbers.money(mix.saved, currency, True)} less again{band}: {mix.parts}."


def _differing(rows: list[Row], overall: str) -> list[tuple[Row, float]]:
    """Groups whose own clear choice is another than the overall one, and what it saves there."""
    found = []
    for row in rows:
        costs, own = row.get("costs") or {}, str(row.get("choice"))
        here, there = costs.get(own), costs.get(overall)
        if own in RETENTIONS and own not in (overall, "keep_alive") and here is not None and there is not None:
            found.append((row, there - here))
    return found
