"""Who carries the traffic: how concentrated reuse is, and whether the long prefixes are the valuable ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt

from kit import numbers
from kit.charts import pick
from kit.charts.figure import Figure
from kit.charts.labels import spread, thin
from kit.charts.theme import BLUE, DASHES, GREY, MUTED, TEXT_ON_WHITE, TURQUOISE

Row = dict[str, Any]
Line = tuple[str, str, str, tuple[int, ...]]  # field, label, colour, dash
LINES: tuple[Line, ...] = (
    ("request_share", "requests", BLUE, DASHES[0]),
    ("token_share", "reusable tokens", TURQUOISE, DASHES[1]),
)
DECILE_LINES: tuple[Line, ...] = (
    ("one_shot_share", "used only once", TURQUOISE, DASHES[1]),
    ("request_share", "their requests", BLUE, DASHES[0]),
)


def _lines(
    points: list[Row], lines: tuple[Line, ...], x: alt.X, y: alt.Y, height: int, place: Callable[[Row], str]
) -> list[alt.Chart]:
    """One line per field over the same points, each with its name at its right end; `place` says where a point is."""
    known = [line for line in lines if any(point.get(line[0]) is not None for point in points)]
    field = x.shorthand.split(":")[0]
    layers, ends = [], []
    for name, label, colour, dash in known:
        shares = [(point, point[name]) for point in points if point.get(name) is not None]
        values = [
            {field: point[field], "share": share, "words": f"{place(point)}: {numbers.percent(share)} {label}"}
            for point, share in shares
        ]
        base = alt.Chart(alt.Data(values=values))
        layers.append(base.mark_line(color=colour, strokeDash=list(dash)).encode(x=x, y=y))
        layers.append(base.mark_point(opacity=0, size=80, aria=True).encode(x=x, y=y, description="words:N"))
        ends.append(values[-1])
    places = spread([end["share"] for end in ends], 15 / height, 0.0, 1.0)
    for (_, label, colour, _), end, level in zip(known, ends, places, strict=True):
        text = alt.Chart(alt.Data(values=[{field: end[field], "share": level, "label": label}]))
        layers.append(
            text.mark_text(align="left", dx=8, color=TEXT_ON_WHITE.get(colour, colour)).encode(x=x, y=y, text="label:N")
        )
    return layers


def _share_axis(title: str) -> alt.Y:
    return alt.Y("share:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title=title, format="~%", tickCount=5))


def concentration(results: Row, width: int = 640) -> Figure | None:
    """Cumulative share of requests and of marginal reusable tokens on the most used keys; None without keys."""
    curve = [point for point in pick.get(results, "concentration.curve", []) if point.get("key_share")]
    if not curve or pick.get(results, "concentration.request_share") is None:
        return None
    plot, height = width - 60 - 115, 260
    smallest = min(curve[0]["key_share"], 0.01)
    ticks = [tick for tick in (0.0001, 0.001, 0.01, 0.05, 0.2, 1.0) if tick >= smallest]
    axis = alt.Axis(title="Prefix keys, most used first", format="~%", values=ticks)
    x = alt.X("key_share:Q", scale=alt.Scale(type="log", domain=[smallest, 1.0], nice=False), axis=axis)
    top = pick.get(results, "concentration.top_fraction", 0.05)
    layers: list[Any] = [
        _mark(top, x, height),
        *_lines(thin(curve, 60), LINES, x, _share_axis("Share carried"), height, _top),
    ]
    chart = alt.layer(*layers).properties(width=plot, height=height)
    rows = [{"key_share": p["key_share"], **{line[0]: p.get(line[0]) for line in LINES}} for p in thin(curve, 200)]
    return Figure("concentration", _finding(results), _alt(results), _caption(results), chart, rows)


def _top(point: Row) -> str:
    return f"top {numbers.percent(point['key_share'], 2)} of keys"


def _mark(top: float, x: alt.X, height: int) -> alt.LayerChart:
    base = alt.Chart(alt.Data(values=[{"key_share": top, "label": f"top {numbers.percent(top, 0)}"}]))
    words = base.mark_text(align="left", dx=5, color=MUTED, fontSize=11)
    rule = base.mark_rule(color=GREY, strokeDash=[2, 2]).encode(x=x)
    return rule + words.encode(x=x, y=alt.value(height - 10), text="label:N")


def _finding(results: Row) -> str:
    share, top = pick.get(results, "concentration.request_share"), pick.get(results, "concentration.top_fraction", 0.05)
    overlap = pick.get(results, "rotation.median")
    moves = (
        f"; from one day to the next {numbers.percent(overlap, 0)} of a day's top keys stay"
        if overlap is not None
        else ""
    )
    return f"The top {numbers.percent(top, 0)} of keys carry {numbers.percent(share, 0)} of requests{moves}"


def _alt(results: Row) -> str:
    tokens = pick.get(results, "concentration.token_share")
    more = f" and {numbers.percent(tokens)} of reusable tokens" if tokens is not None else ""
    top = numbers.percent(pick.get(results, "concentration.top_fraction", 0.05), 0)
    share = numbers.percent(pick.get(results, "concentration.request_share"))
    return f"Line chart. Keys sorted from most to least used; the first {top} of keys carry {share} of requests{more}."


def _caption(results: Row) -> str:
    cut = pick.get(results, "concentration.cut_sentence") or "One key per distinct prefix."
    keys = pick.get(results, "concentration.keys")
    return f"{cut} {numbers.count(keys)} keys." if keys else str(cut)


def value_rank(results: Row, width: int = 640) -> Figure | None:
    """Keys from longest to shortest in tenths: how many are used once only, and what part of requests they carry.

    Without tenths (under ten keys) the longest tenth alone, as bars. None where the log has no keys.
    """
    tenths = pick.get(results, "value_rank.deciles", [])
    rows = _decile_rows(tenths)
    chart = _decile_chart(rows, width) if rows else None
    if chart is None:
        rows = _tenth_rows(results)
        chart = _tenth_bars(rows, width) if rows else None
    if chart is None:
        return None
    return Figure("value_rank", _rank_finding(results), _rank_alt(results), _rank_caption(results), chart, rows)


def _decile_rows(tenths: list[Row]) -> list[Row]:
    total = sum(row.get("requests") or 0 for row in tenths)
    if not total:
        return []
    return [
        {
            "tenth": row["decile"],
            "shortest_tokens": row.get("min_prefix_tokens"),
            "longest_tokens": row.get("max_prefix_tokens"),
            "one_shot_share": row.get("one_shot_share"),
            "request_share": (row.get("requests") or 0) / total,
        }
        for row in tenths
    ]


def _decile_chart(rows: list[Row], width: int) -> Any:
    plot, height = width - 60 - 110, 220
    axis = alt.Axis(title="Tenths of keys, longest first", values=list(range(1, 11)), format="d", grid=False)
    x = alt.X("tenth:Q", scale=alt.Scale(domain=[1, 10]), axis=axis)
    layers = _lines(rows, DECILE_LINES, x, _share_axis("Share"), height, _tenth)
    return alt.layer(*layers).properties(width=plot, height=height)


def _tenth(point: Row) -> str:
    return f"tenth {point['tenth']} ({numbers.short(point['shortest_tokens'])} tokens and longer)"


def _tenth_rows(results: Row) -> list[Row]:
    tenth = pick.get(results, "value_rank.longest_tenth", {})
    measures = (
        ("value_share", "of value (length x count)"),
        ("requests_share", "of requests"),
        ("one_shot_share", "used only once"),
    )
    return [
        {"measure": label, "share": tenth[field]} for field, label in measures if numbers.is_known(tenth.get(field))
    ]


def _tenth_bars(rows: list[Row], width: int) -> Any:
    values = [{**row, "text": numbers.percent(row["share"])} for row in rows]
    y = alt.Y(
        "measure:N",
        sort=[row["measure"] for row in rows],
        axis=alt.Axis(title=None, labelLimit=180, ticks=False, domain=False),
    )
    x = alt.X(
        "share:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(title="Longest tenth of keys", format="~%", tickCount=5),
    )
    base = alt.Chart(alt.Data(values=values))
    bars = base.mark_bar(color=BLUE, height=16).encode(x=x, y=y)
    text = base.mark_text(align="left", dx=5).encode(x=x, y=y, text="text:N")
    return (bars + text).properties(width=width - 170 - 50, height=38 * len(rows))


def _rank_finding(results: Row) -> str:
    rank = pick.get(results, "value_rank.spearman_length_count")
    if rank is None:
        return "What the longest keys are worth"
    said = "Length says little about reuse"
    if abs(rank) >= 0.3:
        said = f"Longer keys tend to be reused {'less' if rank < 0 else 'more'}"
    return f"{said} (rank correlation {numbers.signed(rank, 2)})"


def _rank_alt(results: Row) -> str:
    tenth = pick.get(results, "value_rank.longest_tenth", {})
    said = [
        f"{numbers.percent(tenth.get('requests_share'))} of requests",
        f"{numbers.percent(tenth.get('value_share'))} of value (length x count)",
        f"{numbers.percent(tenth.get('one_shot_share'))} of them used only once",
    ]
    return f"Chart of keys by length. The longest tenth of keys: {', '.join(said)}."


def _rank_caption(results: Row) -> str:
    value, count = (pick.get(results, f"value_rank.spearman_length_{name}") for name in ("value", "count"))
    if value is None or count is None:
        return "Too few keys for a rank correlation of length with use."
    value, count = numbers.signed(value, 2), numbers.signed(count, 2)
    return f"Rank correlation (Spearman, over keys) of length with length x count {value}, with count {count}."
