"""For those who run the cache: what to set where, how firm the verdict is, what the provider really did."""

from __future__ import annotations

from typing import Any

from kit import numbers
from kit.charts import pick
from kit.report.retention import retention
from kit.report.table import Section, Table, plain

Row = dict[str, Any]
MOST_ROWS = 30
MOST_KINDS = 3  # of changes, named in a sentence
ACTIONS = {1: ", fix the prompt layout", 2: ", change the retention", 4: ", buy capacity"}  # rules that keep LRU


def settings(results: Row, with_retention: bool) -> Section:
    """What to set in which system, the verdict under single changes, retention as observed, reuse by token type.

    `with_retention` adds what each retention costs, for a reading without the section on money.
    """
    costs = retention(results) if with_retention else None
    tables = (what_to_set(results), sensitivity(results), costs, observed_retention(results), token_types(results))
    parts = tuple(table for table in tables if table)
    return Section("settings", "Settings and how firm the verdict is", parts, frozenset({"infra"}))


def what_to_set(results: Row) -> Table | None:
    """The setting that gives the recommended policy, system by system."""
    rows = pick.get(results, "decision.what_to_set", [])
    if not rows:
        return None
    lines = tuple(
        (
            plain(row.get("system")),
            plain(row.get("version") or ""),
            plain(row.get("tier") or ""),
            plain(row.get("setting") or ""),
        )
        for row in rows[:MOST_ROWS]
    )
    title = pick.title_of(results, pick.proposed_policy(results))
    absent = frozenset(place for place, row in enumerate(rows[:MOST_ROWS]) if row.get("available") is False)
    head = ("System", "Version", "Tier", "Setting")
    return Table("what_to_set", f"What to set for {title}", head, lines, text_columns=frozenset(range(4)), muted=absent)


def sensitivity(results: Row) -> Table | None:
    """The verdict taken again where one thing is different."""
    rows = _varied(results)
    if not rows:
        return None
    lines = tuple(
        (
            plain(row.get("words") or row.get("dimension")),
            numbers.ABSENT if row.get("rule") is None else str(row["rule"]),
            pick.title_of(results, str(row.get("policy"))) + ACTIONS.get(row.get("rule") or 0, ""),
            "yes" if row.get("flips") else "no",
        )
        for row in rows[:MOST_ROWS]
    )
    flips = frozenset(place for place, row in enumerate(rows[:MOST_ROWS]) if row.get("flips"))
    head = ("One thing different", "Rule", "Advice", "Changes it")
    return Table(
        "sensitivity",
        "The verdict, were one thing different",
        head,
        lines,
        text_columns=frozenset({0, 2, 3}),
        marked=flips,
        narrow="scroll",
    )


def _varied(results: Row) -> list[Row]:
    """The single changes that were tried; none where nothing was replayed, so that nothing could differ."""
    found: list[Row] = pick.get(results, "decision.sensitivity.map", [])
    return [] if pick.get(results, "decision.sensitivity.note") and pick.at_actual(results, "lru") is None else found


def flips_sentence(results: Row) -> str:
    """How many single changes would change the answer, the nearest of them, and what could not be tried."""
    rows, note = _varied(results), pick.get(results, "decision.sensitivity.note")
    told = [f"{note[0].upper()}{note[1:]}."] if note else []
    if not rows:
        return "Nothing could be replayed, so nothing was varied." if told else ""
    flips = sum(bool(row.get("flips")) for row in rows)
    tried = numbers.count(len(rows))
    if not flips and len(rows) == 1:
        return " ".join(map(plain, [f"The answer is the same {rows[0].get('words')}.", *told]))
    if not flips:
        kinds = list(dict.fromkeys(str(row["dimension"]) for row in rows if row.get("dimension")))
        named = ", ".join(kinds[:MOST_KINDS]) + " and others" * (len(kinds) > MOST_KINDS)
        of_them = f" ({named})" if named else ""
        said = f"None of {tried} single changes tried{of_them} changes the answer."
        return " ".join(map(plain, [said, *told]))
    nearest = pick.get(results, "decision.sensitivity.nearest", "")
    said = f"{numbers.count(flips)} of {tried} single changes tried {'changes' if flips == 1 else 'change'} the answer."
    return " ".join(plain(line, longest=400) for line in [said, nearest, *told])


def observed_retention(results: Row) -> Table | None:
    """How long the provider really kept what was written, where the log shows it."""
    rows = pick.get(results, "provider.ttl_observed", [])
    if not rows:
        return None
    lines = tuple(
        (
            plain(row.get("write_class")),
            numbers.seconds(row.get("published_seconds")),
            numbers.seconds(row.get("ttl_seconds")),
            numbers.span(numbers.seconds(row.get("low")), numbers.seconds(row.get("high"))),
            numbers.percent(row.get("held_inside")),
            numbers.count(row.get("n")),
        )
        for row in rows
    )
    head = ("Written as", "Published", "Observed", "Between", "Held inside it", "Gaps seen")
    return Table("observed_retention", "How long the provider kept what was written", head, lines, narrow="scroll")


def token_types(results: Row) -> Table | None:
    """Reuse by what the tokens are, most tokens first; None where the log does not tell types."""
    rows = pick.get(results, "token_types.types", [])
    if not rows:
        return None
    rows = sorted(rows, key=lambda row: (-(row.get("tokens") or 0), str(row.get("token_type"))))[:MOST_ROWS]
    lines = tuple(
        (
            plain(row.get("token_type")),
            numbers.short(row.get("tokens")),
            numbers.percent(row.get("reuse_rate")),
            _band(row.get("interval") or {}),
            numbers.percent(row.get("one_shot_token_share")),
        )
        for row in rows
    )
    head = ("Token type", "Tokens", "Reused", "95% interval", "Used only once")
    return Table("token_types", "Reuse by token type", head, lines, narrow="scroll")


def _band(interval: Row) -> str:
    return numbers.span(numbers.percent(interval.get("low")), numbers.percent(interval.get("high")))
