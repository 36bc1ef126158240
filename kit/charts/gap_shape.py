"""Does the curve fit the gaps? Waiting times seen beside the fit, quantile by quantile, and session by session."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from kit import numbers
from kit.charts import pick
from kit.charts.figure import Figure
from kit.charts.labels import spread
from kit.charts.theme import COLOURS, DASHES, GREY, MUTED, SHAPES, TEXT_ON_WHITE
from kit.charts.turns import TICKS, label_of, rows_shown

Row = dict[str, Any]
MOST_KINDS = 4
FEWEST_TICKS = 3
TAILS = (0.05, 0.95)


def _time(title: str, values: list[float]) -> dict[str, Any]:
    """Scale and axis of logarithmic time over all values, ticks named as a person would say them."""
    low, high = min(values), max(values)
    named = [float(tick) for tick in TICKS if low <= tick <= high]
    steps = (digit * 10.0**power for power in range(-3, 8) for digit in (1, 2, 5))
    ticks = named if len(named) >= FEWEST_TICKS else [step for step in steps if low <= step <= high]
    words = ", ".join(f"'{tick:g}': '{TICKS.get(tick) or numbers.seconds(tick)}'" for tick in ticks)
    axis = alt.Axis(title=title, values=ticks, labelExpr=f"({{{words}}})[toString(datum.value)]")
    return {"scale": alt.Scale(type="log", domain=[low, high], nice=False), "axis": axis}


def _kinds(results: Row, table: str) -> list[tuple[Row, list[Row]]]:
    """The fits worth showing, each with its rows of a table of the turns."""
    every = pick.get(results, table, [])
    found = [
        (fit, [row for row in every if all(row.get(name) == fit.get(name) for name in ("session_type", "trigger"))])
        for fit in rows_shown(results)
    ]
    return [(fit, rows) for fit, rows in found if rows][:MOST_KINDS]


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def _label(text: str, index: int, x: alt.X, y: alt.Y, at: Row, before: bool = False) -> alt.Chart:
    """The name of a series beside a point: after it, or before and a little above it."""
    colour = _colour(index)
    place: dict[str, Any] = {"align": "right", "dx": -8, "dy": -6} if before else {"align": "left", "dx": 8}
    base = alt.Chart(alt.Data(values=[{**at, "label": text}]))
    return base.mark_text(color=TEXT_ON_WHITE.get(colour, colour), **place).encode(x=x, y=y, text="label:N")


def gap_survival(results: Row, width: int = 640) -> Figure | None:
    """Share of next turns that have not come yet: as seen (Kaplan-Meier) and as fitted; None without fits."""
    kinds = _kinds(results, "turns.survival")
    if not kinds:
        return None
    kinds = [(fit, _of_those_that_come(fit, rows)) for fit, rows in kinds]
    seconds = [row["seconds"] for _, rows in kinds for row in rows]
    x = alt.X("seconds:Q", **_time("Time since the last turn started", seconds))
    y = alt.Y("share:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title="Not yet come", format="~%", tickCount=5))
    layers: list[alt.Chart] = []
    for index, (_, rows) in enumerate(kinds):
        for name, dash, wide in (("seen", [1, 0], 2), ("fitted", [4, 3], 1.5)):
            values = [{"seconds": row["seconds"], "share": row[name]} for row in rows]
            line = alt.Chart(alt.Data(values=values)).mark_line(color=_colour(index), strokeDash=dash, strokeWidth=wide)
            layers.append(line.encode(x=x, y=y))
    ends = spread([rows[-1]["seen"] for _, rows in kinds], 0.06, 0.0, 1.0)
    last = max(seconds)
    for index, ((fit, _), end) in enumerate(zip(kinds, ends, strict=True)):
        layers.append(_label(label_of(fit), index, x, y, {"seconds": last, "share": end}))
    worst = max(kinds, key=lambda kind: _distance(kind[1]))
    told = f"{label_of(worst[0])} {numbers.points(_distance(worst[1]))}"
    chart = alt.layer(*layers).properties(width=width - 60 - 150, height=260)
    caption = "Of the turns that come at all. Solid: as seen (Kaplan-Meier, open last turns counted). Dashed: the fit."
    data = [row for _, rows in kinds for row in rows]
    return Figure("gap_survival", f"The fit strays most for {told}", _survival_alt(kinds), caption, chart, data)


def _of_those_that_come(fit: Row, rows: list[Row]) -> list[Row]:
    """The same among the turns that are followed by one of this kind at all."""
    come = fit.get("continues") or 1 - rows[-1]["fitted"]
    return [{**row, **{name: max(0.0, 1 - (1 - row[name]) / come) for name in ("seen", "fitted")}} for row in rows]


def _distance(rows: list[Row]) -> float:
    return max(abs(row["seen"] - row["fitted"]) for row in rows)


def _survival_alt(kinds: list[tuple[Row, list[Row]]]) -> str:
    told = [
        f"{label_of(fit)}: at most {numbers.points(_distance(rows))} between seen and fitted" for fit, rows in kinds
    ]
    return f"Line chart. Share of next turns not yet come against time, as seen and as fitted. {'; '.join(told)}."


def gap_quantiles(results: Row, width: int = 640) -> Figure | None:
    """Quantiles of the gaps against those of their log-normal; on the line they agree. None without fits."""
    kinds = _kinds(results, "turns.qq")
    if not kinds:
        return None
    ends = [row[name] for _, rows in kinds for row in rows for name in ("observed_seconds", "fitted_seconds")]
    x = alt.X("fitted_seconds:Q", **_time("Fitted quantile", ends))
    y = alt.Y("observed_seconds:Q", **_time("Quantile seen", ends))
    straight = [{"fitted_seconds": end, "observed_seconds": end} for end in (min(ends), max(ends))]
    layers = [alt.Chart(alt.Data(values=straight)).mark_line(color=GREY, strokeDash=[2, 2]).encode(x=x, y=y)]
    for index, (fit, rows) in enumerate(kinds):
        values = [{name: row[name] for name in ("fitted_seconds", "observed_seconds")} for row in rows]
        shape = SHAPES[index % len(SHAPES)]
        dots = alt.Chart(alt.Data(values=values)).mark_point(color=_colour(index), shape=shape, filled=True, size=25)
        layers.append(dots.encode(x=x, y=y))
        layers.append(_label(label_of(fit), index, x, y, values[-1], before=True))
    chart = alt.layer(*layers).properties(width=width - 60 - 40, height=300)
    data = [row for _, rows in kinds for row in rows]
    caption = "Each mark is one quantile from 0.5% to 99.5%; above the line the real gap is longer than the fit says."
    return Figure("gap_quantiles", _tail_finding(kinds), _tail_alt(kinds), caption, chart, data)


def _off(rows: list[Row], level: float) -> float:
    """Seen over fitted at the quantile nearest to a level."""
    row = min(rows, key=lambda row: abs(row["level"] - level))
    return float(row["observed_seconds"] / row["fitted_seconds"])


def _tail_finding(kinds: list[tuple[Row, list[Row]]]) -> str:
    fit, rows = max(kinds, key=lambda kind: abs(math.log(_off(kind[1], TAILS[1]))))
    times = numbers.decimal(_off(rows, TAILS[1]))
    return f"The longest gaps of {label_of(fit)} are {times} times what the fit says"


def _tail_alt(kinds: list[tuple[Row, list[Row]]]) -> str:
    told = [
        f"{label_of(fit)}: seen over fitted {numbers.decimal(_off(rows, TAILS[0]))} at the 5% quantile and "
        f"{numbers.decimal(_off(rows, TAILS[1]))} at the 95% quantile"
        for fit, rows in kinds
    ]
    return f"Quantile plot of gaps against their log-normal. {'; '.join(told)}."


def session_fits(results: Row, width: int = 640) -> Figure | None:
    """Every shown session's median gap, alone and pulled toward its type, with its interval; None without sessions."""
    types = pick.get(results, "turns.per_session.types", [])
    rows = pick.get(results, "turns.per_session.sessions", [])
    if not types or not rows:
        return None
    shown = [{**row, "place": place} for place, row in enumerate(_by_type(rows, types), start=1)]
    ends = [math.exp(row[name]) for row in shown for name in ("mu_low", "mu_high")]
    ends += [math.exp(row["mu_alone"]) for row in shown if row["mu_alone"] is not None]
    time = _time("Median gap of the session", ends)
    x, low = alt.X("seconds:Q", **time), alt.X("low:Q", **time)
    y = alt.Y("place:Q", scale=alt.Scale(domain=[0, len(shown) + 1], reverse=True), axis=None)
    layers: list[alt.Chart] = []
    for index, kind in enumerate(types):
        mine = [row for row in shown if row["session_type"] == kind["session_type"]]
        layers += _caterpillar(kind, mine, index, (x, low, y))
    chart = alt.layer(*layers).properties(width=width - 60 - 100, height=max(120, 5 * len(shown)))
    caption = "Marks: pulled toward the type, with 95% intervals. Hollow: the session alone. Dashed: the type."
    return Figure("session_fits", _session_finding(types), _session_alt(types), caption, chart, shown)


def _by_type(rows: list[Row], types: list[Row]) -> list[Row]:
    order = {kind["session_type"]: place for place, kind in enumerate(types)}
    return sorted(rows, key=lambda row: (order.get(row["session_type"], len(order)), row["rank"]))


def _caterpillar(kind: Row, rows: list[Row], index: int, axes: tuple[alt.X, alt.X, alt.Y]) -> list[alt.Chart]:
    x, low, y = axes
    colour, shape = _colour(index), SHAPES[index % len(SHAPES)]
    values = [
        {
            "place": row["place"],
            "seconds": math.exp(row["mu"]),
            "low": math.exp(row["mu_low"]),
            "high": math.exp(row["mu_high"]),
        }
        for row in rows
    ]
    alone = [{"place": r["place"], "seconds": math.exp(r["mu_alone"])} for r in rows if r["mu_alone"] is not None]
    first, last, typical = rows[0]["place"], rows[-1]["place"], math.exp(kind["type_mu"])
    base = alt.Chart(alt.Data(values=values))
    middle = alt.Chart(alt.Data(values=[{"seconds": typical, "place": first - 0.5, "until": last + 0.5}]))
    dash = list(DASHES[1])
    return [
        base.mark_rule(color=colour, opacity=0.5).encode(x=low, x2="high:Q", y=y),
        alt.Chart(alt.Data(values=alone)).mark_point(color=MUTED, filled=False, size=14).encode(x=x, y=y),
        base.mark_point(color=colour, shape=shape, filled=True, size=22).encode(x=x, y=y),
        middle.mark_rule(color=colour, strokeDash=dash).encode(x=x, y=y, y2="until:Q"),
        _label(label_of({**kind, "trigger": "all"}), index, x, y, {"seconds": typical, "place": first}),
    ]


def _session_finding(types: list[Row]) -> str:
    kind = max(types, key=lambda one: one["fitted_sessions"])
    pulled = numbers.percent(kind["mean_mu_shrinkage"], 0)
    name = label_of({**kind, "trigger": "all"})
    sessions = numbers.count(kind["fitted_sessions"])
    return f"{sessions} {name} sessions have a curve of their own, {pulled} of it from their type"


def _session_alt(types: list[Row]) -> str:
    told = [
        f"{label_of({**kind, 'trigger': 'all'})}: {numbers.count(kind['fitted_sessions'])} sessions, median gap "
        f"{numbers.seconds(math.exp(kind['type_mu']))}, spread of mu {numbers.decimal(kind['type_between'])}, "
        f"pulled {numbers.percent(kind['mean_mu_shrinkage'], 0)} of the way"
        for kind in types
    ]
    return f"Interval plot of the median gap of sessions, sorted. {'; '.join(told)}."
