"""Who carries the traffic: how concentrated reuse is, and whether the long prefixes are the valuable ones."""

from __future__ import annotations

from typing import Any

import altair as alt

from kit import numbers
from kit.charts import pick
from kit.charts.figure import Figure
from kit.charts.labels import spread, thin
from kit.charts.theme import BLUE, GREY, MUTED, look_of

Row = dict[str, Any]
LINES = (("request_share", "requests", "lru"), ("token_share", "reusable tokens", "lfu"))


def concentration(results: Row, width: int = 640) -> Figure | None:
    """Cumulative share of requests and of marginal reusable tokens on the most used keys; None where the log has no keys."""
    curve = [point for point in pick.get(results, "concentration.curve", []) if point.get("key_share") is not None]
    if not curve or pick.get(results, "concentration.request_share") is None:
        return None
    plot, height = width - 60 - 110, 260
    known = [line for line in LINES if any(point.get(line[0]) is not None for point in curve)]
    x = alt.X("key_share:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title="Prefix keys, most used first", format="~%", tickCount=5))
    y = alt.Y("share:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title="Share carried", format="~%", tickCount=5))
    top = pick.get(results, "concentration.top_fraction", 0.05)
    layers = [_mark(top, height), *[_line(curve, field, policy, x, y) for field, _, policy in known]]
    layers += _ends(known, x, y, height)
    chart = alt.layer(*layers).properties(width=plot, height=height)
    rows = [{"key_share": p.get("key_share"), **{field: p.get(field) for field, _, _ in LINES}} for p in thin(curve, 200)]
    return Figure("concentration", _finding(results), _alt(results), _caption(results), chart, rows)


def _mark(top: float, height: int) -> alt.LayerChart:
    base = alt.Chart(alt.Data(values=[{"key_share": top, "label": f"top {numbers.percent(top, 0)}"}]))
    return base.mark_rule(color=GREY, strokeDash=[2, 2]).encode(x="key_share:Q") + base.mark_text(
        align="left", dx=5, color=MUTED, fontSize=11).encode(x="key_share:Q", y=alt.value(height - 10), text="label:N")  # fmt: skip


def _line(curve: list[Row], field: str, policy: str, x: alt.X, y: alt.Y) -> alt.Chart:
    values = [{"key_share": 0.0, "share": 0.0}] + [
        {"key_share": point["key_share"], "share": point[field]} for point in thin(curve, 120) if point.get(field) is not None
    ]
    look = look_of(policy)
    dash = [1, 0] if field == "request_share" else [7, 3]
    return alt.Chart(alt.Data(values=values)).mark_line(color=look.colour, strokeDash=dash).encode(x=x, y=y)


def _ends(known: list[tuple[str, str, str]], x: alt.X, y: alt.Y, height: int) -> list[alt.Chart]:
    places = spread([1.0 - 0.001 * index for index in range(len(known))], 15 / height, 0.0, 1.0)
    return [
        alt.Chart(alt.Data(values=[{"key_share": 1.0, "share": place, "label": label}]))
        .mark_text(align="left", dx=8, color=look_of(policy).label_colour)
        .encode(x=x, y=y, text="label:N")
        for (_, label, policy), place in zip(known, places, strict=True)
    ]


def _finding(results: Row) -> str:
    share, top = pick.get(results, "concentration.request_share"), pick.get(results, "concentration.top_fraction", 0.05)
    overlap = pick.get(results, "rotation.median")
    moves = f"; from day to day {numbers.percent(overlap, 0)} of them stay the same" if overlap is not None else ""
    return f"The top {numbers.percent(top, 0)} of keys carry {numbers.percent(share, 0)} of requests{moves}"


def _alt(results: Row) -> str:
    tokens = pick.get(results, "concentration.token_share")
    more = f" and {numbers.percent(tokens)} of reusable tokens" if tokens is not None else ""
    top = numbers.percent(pick.get(results, "concentration.top_fraction", 0.05), 0)
    share = numbers.percent(pick.get(results, "concentration.request_share"))
    return f"Line chart. Keys sorted from most to least used; the first {top} of keys carry {share} of requests{more}."


def _caption(results: Row) -> str:
    cut = pick.get(results, "concentration.cut") or pick.get(results, "settings.key_cut")
    return f"Keys are cut at: {cut}." if cut else "One key per distinct prefix."


def value_rank(results: Row, width: int = 640) -> Figure | None:
    """What the longest tenth of keys is: its share of requests, of value (length x count), and how much is used once only."""
    tenth = pick.get(results, "value_rank.longest_tenth", {})
    measures = [("value_share", "of value (length x count)"), ("request_share", "of requests"), ("one_shot_share", "used only once")]
    rows = [{"measure": label, "share": tenth[field]} for field, label in measures if numbers.is_known(tenth.get(field))]
    if not rows:
        return None
    for row in rows:
        row["text"] = numbers.percent(row["share"])
    order = [row["measure"] for row in rows]
    y = alt.Y("measure:N", sort=order, axis=alt.Axis(title=None, labelLimit=180, ticks=False, domain=False))
    x = alt.X("share:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title="Longest tenth of keys", format="~%", tickCount=5))
    base = alt.Chart(alt.Data(values=rows))
    bars = base.mark_bar(color=BLUE, height=16).encode(x=x, y=y)
    text = base.mark_text(align="left", dx=5).encode(x=x, y=y, text="text:N")
    chart = (bars + text).properties(width=width - 170 - 50, height=38 * len(rows))
    return Figure("value_rank", _rank_finding(results), _rank_alt(results, rows), _rank_caption(results), chart, [
        {"measure": row["measure"], "share": row["share"]} for row in rows])  # fmt: skip


def _rank_finding(results: Row) -> str:
    rank = pick.get(results, "value_rank.spearman_length_count")
    if rank is None:
        return "What the longest keys are worth"
    if rank <= -0.3:
        return f"The longest keys are the least reused (rank correlation {numbers.signed(rank, 2)})"
    if rank >= 0.3:
        return f"The longest keys are the most reused (rank correlation {numbers.signed(rank, 2)})"
    return f"Length says little about reuse (rank correlation {numbers.signed(rank, 2)})"


def _rank_alt(results: Row, rows: list[Row]) -> str:
    said = ", ".join(f"{row['text']} {row['measure']}" for row in rows)
    value = pick.get(results, "value_rank.spearman_length_value")
    rank = f" Rank correlation of length with length x count: {numbers.signed(value, 2)}." if value is not None else ""
    return f"Bar chart. The longest tenth of keys: {said}.{rank}"


def _rank_caption(results: Row) -> str:
    value = pick.get(results, "value_rank.spearman_length_value")
    rank = f"Rank correlation of length with value {numbers.signed(value, 2)}, " if value is not None else ""
    return f"{rank}with count {numbers.signed(pick.get(results, 'value_rank.spearman_length_count'), 2)} (Spearman, over keys)."


