"""How long until the next turn: fitted log-normal curves per kind of session, over what was observed."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from kit import numbers
from kit.charts import pick
from kit.charts.figure import Figure
from kit.charts.labels import spread
from kit.charts.theme import COLOURS, DASHES, GREY, MUTED, SHAPES, TEXT_ON_WHITE

Row = dict[str, Any]
MOST_LINES = 6
LONGEST_NAME = 18
FEWEST_GAPS = 30
TICKS = {0.1: "0.1 s", 1: "1 s", 10: "10 s", 60: "1 min", 300: "5 min", 3600: "1 h", 86_400: "1 day", 604_800: "1 week"}


def rows_shown(results: Row) -> list[Row]:
    """The fits worth a line: start to start (what an expiry clock sees), by trigger where told, most gaps first."""
    fits = [
        row
        for row in pick.get(results, "inter_turn", [])
        if row.get("clock") == "start_to_start"
        and (row.get("n") or 0) >= FEWEST_GAPS
        and numbers.is_known(row.get("mu"))
        and row.get("sigma")
    ]
    by_trigger = [row for row in fits if row.get("trigger") not in (None, "all")]
    chosen = (
        by_trigger
        if len({row.get("trigger") for row in by_trigger}) > 1
        else [row for row in fits if row.get("trigger") in (None, "all")]
    )
    chosen = chosen or fits
    by_type = [row for row in chosen if row.get("session_type") not in (None, "all")]
    return sorted(by_type or chosen, key=lambda row: (-row["n"], label_of(row)))[:MOST_LINES]


def label_of(row: Row) -> str:
    """What a line is called: the session type, and what started the turn where it is known."""
    kind, trigger = row.get("session_type"), row.get("trigger")
    name = "all sessions" if kind in (None, "all") else _short(kind)
    return name if trigger in (None, "all") else f"{name}, {_short(trigger)}"


def _short(word: object) -> str:
    text = numbers.visible(str(word))
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def within(mu: float, sigma: float, seconds: float) -> float:
    """Probability that a log-normal gap is at most this long."""
    return 0.5 * math.erfc((mu - math.log(seconds)) / (sigma * math.sqrt(2)))


def gap_fits(results: Row, width: int = 640) -> Figure | None:
    """Share of next turns that have arrived against time since the last one; None where no gap could be fitted."""
    rows = rows_shown(results)
    if not rows:
        return None
    room = min(max(len(label_of(row)) for row in rows) * 7 + 12, int(width * 0.36))
    plot, height = width - 60 - room, 280
    low = min(1.0, *(math.exp(row["mu"] - 2 * row["sigma"]) for row in rows))
    low, high = max(low, 0.1), max(7200.0, *(math.exp(row["mu"] + 2 * row["sigma"]) for row in rows))
    x = alt.X("seconds:Q", scale=alt.Scale(type="log", domain=[low, high], nice=False), axis=_time_axis(low, high))
    y = alt.Y(
        "share:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(title="Next turn has arrived", format="~%", tickCount=5),
    )
    layers = [layer for seconds in _clocks(results) if low < seconds < high for layer in _rule(seconds, x)]
    layers += [layer for index, row in enumerate(rows) for layer in _curve(row, index, x, y, low, high)]
    layers += _names(rows, x, y, high, height)
    chart = alt.layer(*layers).properties(width=plot, height=height)
    return Figure("gap_fits", _finding(results, rows), _alt(rows), _caption(rows), chart, _data(results))


def _time_axis(low: float, high: float) -> alt.Axis:
    ticks = [tick for tick in TICKS if low <= tick <= high]
    words = "{" + ",".join(f"'{tick:g}':'{said}'" for tick, said in TICKS.items()) + "}"
    return alt.Axis(title="Time since the last turn started", values=ticks, labelExpr=f"{words}[toString(datum.value)]")


def _clocks(results: Row) -> list[float]:
    stated = pick.get(results, "settings.ttl_seconds")
    return sorted({300.0, 3600.0, *([float(stated)] if numbers.is_known(stated) and stated else [])})


def _rule(seconds: float, x: alt.X) -> list[alt.Chart]:
    base = alt.Chart(alt.Data(values=[{"seconds": seconds, "label": numbers.seconds(seconds)}]))
    return [
        base.mark_rule(color=GREY, strokeDash=[2, 2]).encode(x=x),
        base.mark_text(align="left", dx=4, color=MUTED, fontSize=11).encode(x=x, y=alt.value(-6), text="label:N"),
    ]


def _curve(row: Row, index: int, x: alt.X, y: alt.Y, low: float, high: float) -> list[alt.Chart]:
    steps = [low * (high / low) ** (step / 60) for step in range(61)]
    fitted = [{"seconds": round(t, 4), "share": round(within(row["mu"], row["sigma"], t), 5)} for t in steps]
    seen = [
        {"seconds": float(key), "share": share}
        for key, share in (row.get("p_within") or {}).items()
        if share is not None
    ]
    if numbers.is_known(row.get("median_seconds")) and row["median_seconds"] > 0:
        seen.append({"seconds": row["median_seconds"], "share": 0.5})
    seen = [point for point in seen if low <= point["seconds"] <= high]
    colour = COLOURS[index % len(COLOURS)]
    line = alt.Chart(alt.Data(values=fitted)).mark_line(color=colour, strokeDash=list(DASHES[index % len(DASHES)]))
    for point in seen:
        arrived = f"{numbers.percent(point['share'])} within {numbers.seconds(point['seconds'])}"
        point["words"] = f"{label_of(row)}: {arrived} (observed)"
    shape = SHAPES[index % len(SHAPES)]
    dots = alt.Chart(alt.Data(values=seen)).mark_point(color=colour, shape=shape, filled=True, aria=True)
    return [line.encode(x=x, y=y), dots.encode(x=x, y=y, description="words:N")]


def _names(rows: list[Row], x: alt.X, y: alt.Y, high: float, height: int) -> list[alt.Chart]:
    places = spread([within(row["mu"], row["sigma"], high) for row in rows], 15 / height, 0.0, 1.0)
    layers = []
    for index, (row, place) in enumerate(zip(rows, places, strict=True)):
        colour = COLOURS[index % len(COLOURS)]
        values = [{"seconds": high, "share": place, "label": label_of(row)}]
        text = alt.Chart(alt.Data(values=values)).mark_text(align="left", dx=8, color=TEXT_ON_WHITE.get(colour, colour))
        layers.append(text.encode(x=x, y=y, text="label:N"))
    return layers


def _five_minutes(row: Row) -> float | None:
    return (row.get("p_within") or {}).get("300")


def _finding(results: Row, rows: list[Row]) -> str:
    known = [row for row in rows if _five_minutes(row) is not None]
    if not known:
        return "How long until the next turn"
    said = [f"{numbers.percent(_five_minutes(row), 0)} ({label_of(row)})" for row in known[:2]]
    return f"Within 5 minutes the next turn has started in {' and '.join(said)} of cases"


def _alt(rows: list[Row]) -> str:
    said = "; ".join(
        f"{label_of(row)}: {numbers.count(row['n'])} gaps, median {numbers.seconds(row.get('median_seconds'))}, "
        f"within 5 min {numbers.percent(_five_minutes(row))}"
        for row in rows
    )
    return f"Line chart. Share of next turns that have started, against time since the last turn started. {said}."


def _caption(rows: list[Row]) -> str:
    censored = sum(row.get("censored") or 0 for row in rows)
    return (
        "Lines are fitted log-normals, marks are observed shares and medians. Gaps run from start to start, the clock "
        f"an expiry counts on; {numbers.count(censored)} last turns have no next one."
    )


def _data(results: Row) -> list[Row]:
    keep = (
        "session_type",
        "trigger",
        "clock",
        "n",
        "censored",
        "mu",
        "sigma",
        "median_seconds",
        "fitted_median_seconds",
        "ks",
    )
    return [
        {
            **{key: row.get(key) for key in keep},
            **{f"p_within_{key}_s": value for key, value in (row.get("p_within") or {}).items()},
        }
        for row in pick.get(results, "inter_turn", [])
    ]
