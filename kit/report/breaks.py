"""For those who write prompts or run the cache: where consecutive requests diverge, what it loses, what to do."""

from __future__ import annotations

from typing import Any

from kit import numbers
from kit.charts import pick
from kit.report.table import Section, Table, Text, plain

Row = dict[str, Any]
CONTENT = {
    "new": ("new content", "fix the prompt: move what changes (a clock, an id, an edit) behind what stays"),
    "again": ("same content missed again", "buy capacity or a longer retention: what stood here had been sent before"),
    "cut": ("nothing: the prompt ends", "nothing, where a conversation was cut short or compacted on purpose"),
}
LEAST_SHARE = 0.001


def breaks(results: Row) -> Section | None:
    """The breaks of a log with prefix identity; None without consecutive prompts."""
    found = pick.get(results, "prefix_breaks")
    if not found or not found.get("pairs"):
        return None
    tables = [table for table in (by_type(found), worst(found)) if table.rows]
    return Section("breaks", "What breaks a prefix", (Text(said(found)), *tables), frozenset({"infra"}))


def said(found: Row) -> str:
    """How many requests extend the one before them, and what the others leave behind."""
    pairs, broken = found["pairs"], found["broken"]
    within = "chain of requests" if found.get("basis") == "chain" else "root"
    if not broken:
        return f"All {numbers.count(pairs)} requests extend the one before them in their {within}: nothing breaks."
    lost = numbers.count(found["lost_tokens"])
    return (
        f"{numbers.count(broken)} of {numbers.count(pairs)} requests ({numbers.percent(broken / pairs)}) do not extend "
        f"the one before them in their {within}; {lost} tokens of the earlier prompts stood "
        "behind the breaks and could not be found again by those requests."
    )


def by_type(found: Row) -> Table:
    """Breaks by what stands behind them, with what to do; parts of under 0.1% of the lost tokens are left out."""
    total = found["lost_tokens"]
    rows = [row for row in found["by_type"] if row["lost_tokens"] >= LEAST_SHARE * total]
    lines = tuple(
        (
            plain(row["token_type"] or "not told apart"),
            CONTENT[row["content"]][0],
            numbers.count(row["breaks"]),
            numbers.count(row["lost_tokens"]),
            numbers.percent(row["lost_tokens"] / total) if total else numbers.ABSENT,
            numbers.count(row["median_position_tokens"]),
            CONTENT[row["content"]][1],
        )
        for row in rows
    )
    head = ("Type of token there", "What stands there", "Breaks", "Tokens lost behind", "Share of them",
            "Median position (tokens)", "What to do")  # fmt: skip
    return Table("breaks", "Where consecutive requests diverge", head, lines, "", frozenset({0, 1, 6}), narrow="scroll")


def worst(found: Row) -> Table:
    """The places that lose most: one common beginning each, with how many different continuations followed it."""
    lines = tuple(
        (
            numbers.count(row["position_tokens"]),
            plain(row["token_type"] or "not told apart"),
            CONTENT[row["content"]][0],
            numbers.count(row["breaks"]),
            numbers.count(row["different"]),
            numbers.count(row["lost_tokens"]),
        )
        for row in found["worst"]
    )
    head = ("Position (tokens)", "Type of token there", "Mostly", "Breaks", "Different continuations",
            "Tokens lost behind")  # fmt: skip
    note = "Many breaks with as many different continuations: something in the prompt changes with every request."
    return Table("worst_breaks", "The places that lose most", head, lines, note, frozenset({1, 2}), narrow="scroll")
