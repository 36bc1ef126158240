"""For those who write prompts or run the cache: where consecutive requests diverge, what it loses, what to do."""

from __future__ import annotations

from typing import Any

from kit import numbers
from kit.charts import pick
from kit.report.table import Part, Section, Table, Text, plain

Row = dict[str, Any]
CONTENT = {
    "new": ("new content", "fix the prompt: move what changes (a clock, an id, an edit) behind what stays"),
    "removed": (
        "something was taken out",
        "nothing in the prompt's layout: a tool output was cleared or the history summed up. Clear seldom and much at "
        "once, since everything behind the first thing taken out is written again",
    ),
    "again": ("same content missed again", "buy capacity or a longer retention: what stood here had been sent before"),
    "cut": ("nothing: the prompt ends", "nothing, where a conversation was cut short or compacted on purpose"),
}
LEAST_SHARE = 0.001
UNTOLD = (
    "This log cannot tell: it has no sessions or chains, so requests that follow each other under one shared beginning "
    "are different users, and that they differ says nothing about the prompts."
)


def breaks(results: Row) -> Section | None:
    """The breaks of a log with prefix identity; without chains that they cannot be told; None without pairs."""
    found = pick.get(results, "prefix_breaks")
    if found and found.get("basis") is None:
        return Section("breaks", "What breaks a prefix", (Text(UNTOLD),), frozenset({"infra"}))
    if not found or not found.get("pairs"):
        return None
    parts: list[Part] = [Text(said(found)), by_type(found)] if found["broken"] else [Text(said(found))]
    if found["broken"]:
        parts.append(worst(found) if found["worst"] else Text("No place breaks twice: each of these stands alone."))
    return Section("breaks", "What breaks a prefix", tuple(parts), frozenset({"infra"}))


def said(found: Row) -> str:
    """How many requests extend the one before them, and what the others leave behind."""
    pairs, broken = found["pairs"], found["broken"]
    if not broken:
        return f"All {numbers.count(pairs)} requests extend the one before them in their chain: nothing breaks."
    lost = numbers.count(found["lost_tokens"])
    return (
        f"{numbers.count(broken)} of {numbers.count(pairs)} requests ({numbers.percent(broken / pairs)}) do not extend "
        f"the one before them in their chain; {lost} tokens of the earlier prompts stood behind the breaks and could "
        "not be found again by those requests."
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
    note = (
        "Taken out: what stood there never comes again, and less than half as much stands there now, or a piece of "
        "another type; the type is then that of what was taken out."
        if any(row["content"] == "removed" for row in rows)
        else ""
    )
    words = frozenset({0, 1, 6})
    return Table("breaks", "Where consecutive requests diverge", head, lines, note, words, narrow="scroll")


def worst(found: Row) -> Table:
    """The places with two breaks or more that lose most: a common beginning and how many different things followed."""
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
    return Table(
        "worst_breaks",
        "The places that lose most, of those with two breaks or more",
        head,
        lines,
        note,
        frozenset({1, 2}),
        narrow="scroll",
    )
