"""What each retention would cost, which mix of them costs less still, and under which conditions that is a saving."""

from __future__ import annotations

from typing import Any

from kit import numbers
from kit.charts import pick
from kit.report.table import Table, plain

Row = dict[str, Any]
RETENTIONS = {
    "short": "the short retention",
    "long": "the long retention",
    "keep_alive": "keep-alive calls",
    "none": "no caching",
}
TOO_CLOSE = "too close to call"
MIXABLE = ("segment", "session_type", "model", "owner")  # known when a prefix is written; who comes back is not
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
    note += (
        " So these costs are below the bill of a limited budget."
        if pick.get(results, "settings.capacity_tokens")
        else ""
    )
    text = frozenset({0, len(choices) + 1})
    return Table("retention", "What each retention would cost over this log", head, lines, note, text, narrow="scroll")


def _group_name(group: Row) -> str:
    dimension, name = str(group.get("dimension") or ""), plain(group.get("group") or "")
    if dimension == "segment" and name in SEGMENTS:
        return SEGMENTS[name]
    return "all" if dimension == "all" else f"{plain(dimension).replace('_', ' ')}: {name}"


def _choice_cost(group: Row, name: str, currency: str) -> str:
    costs = group.get("costs") or {}
    return numbers.money(costs[name], currency, True) if name in costs else numbers.ABSENT


def _band(saving: Row, currency: str) -> str:
    value, low, high = (numbers.money(saving.get(end), currency, True) for end in ("value", "low", "high"))
    return numbers.ABSENT if value == numbers.NOT_FOUND else f"{value} ({numbers.span(low, high)})"


def conditions(results: Row) -> str:
    """When the retention's saving is one: where it is not set already, and where there is room."""
    choice, used = pick.get(results, "ttl_verdict.choice"), pick.get(results, "ttl_verdict.long_share_of_writes")
    if choice in (None, TOO_CLOSE):
        return ""
    share = {"short": None if used is None else 1 - used, "long": used}.get(str(choice))
    known = f" ({numbers.percent(share, 0)} of the written tokens have it)" if share is not None else ""
    return f"a saving only where it is not set already{known}, counted with room for every prefix"


def mixed(results: Row) -> str:
    """The mix of retentions that costs least, by what is known when a prefix is written; empty where none costs less.

    A group is told apart only where its own choice is clear; its interval is given where it alone differs.
    """
    overall, currency = pick.get(results, "ttl_verdict.choice"), pick.get(results, "ttl_verdict.currency")
    groups = pick.get(results, "ttl_verdict.groups", [])
    if not currency or overall in (None, TOO_CLOSE):
        return ""
    by_dimension = {name: [row for row in groups if row.get("dimension") == name] for name in MIXABLE}
    found = [(_differing(rows, str(overall)), rows) for rows in by_dimension.values()]
    best, rows = max(found, key=lambda pair: sum(saved for _, saved in pair[0]), default=([], []))
    saved = sum(saved for _, saved in best)
    if saved <= 0:
        return ""
    parts = ", ".join(f"{RETENTIONS[str(row['choice'])]} for {_group_name(row)}" for row, _ in best)
    rest = "" if len(best) == len(rows) else f" and {RETENTIONS.get(str(overall), plain(overall))} for the rest"
    band = ""
    if len(best) == 1 and best[0][0].get("next_best") == overall:
        saving = best[0][0].get("saving") or {}
        ends = (numbers.money(saving.get(end), currency, True) for end in ("low", "high"))
        band = f" (95% interval {numbers.span(*ends)})"
    return f"A mix costs {numbers.money(saved, currency, True)} less again{band}: {parts}{rest}."


def _differing(rows: list[Row], overall: str) -> list[tuple[Row, float]]:
    """Groups whose own clear choice is another than the overall one, and what it saves there."""
    found = []
    for row in rows:
        costs, own = row.get("costs") or {}, str(row.get("choice"))
        here, there = costs.get(own), costs.get(overall)
        if own in RETENTIONS and own not in (overall, "keep_alive") and here is not None and there is not None:
            found.append((row, there - here))
    return found
