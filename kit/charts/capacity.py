"""Hit tokens against capacity: LRU's whole curve, every policy's replayed points, and the bounds nobody can pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import altair as alt

from kit import numbers
from kit.charts import pick
from kit.charts.figure import Figure
from kit.charts.labels import spread, thin
from kit.charts.theme import GREY, INK, LINE, MUTED, look_of

MOST_LABELLED = 8
COLUMNS = ("capacity_tokens", "hit_tokens", "hit_token_ratio")
Row = dict[str, Any]


@dataclass(frozen=True)
class Frame:
    """The plot: budgets from `low` to `high` tokens on a logarithmic axis, ratios from `bottom` to `top`, pixels."""

    low: float
    high: float
    bottom: float
    top: float
    width: int
    height: int

    @property
    def x(self) -> alt.X:
        """The budget axis."""
        scale = alt.Scale(type="log", domain=[self.low, self.high], nice=False)
        axis = alt.Axis(title="Budget of the tier (tokens)", format="~s", tickCount=6, labelOverlap="greedy")
        return alt.X("capacity_tokens:Q", scale=scale, axis=axis)

    @property
    def y(self) -> alt.Y:
        """The axis of the hit-token ratio."""
        axis = alt.Axis(title="Input tokens found cached", format="~%", tickCount=6)
        return alt.Y("hit_token_ratio:Q", scale=alt.Scale(domain=[self.bottom, self.top], nice=False), axis=axis)


def capacity_curve(results: Row, width: int = 640) -> Figure | None:
    """Share of input tokens found cached against the budget, per policy, between ceiling and optimum.

    Up to eight policies are coloured and named; of more, LRU, the proposed and the best are; the others are thin grey
    lines. None where nothing was replayed.
    """
    rows = sorted(pick.online(pick.replay_rows(results)), key=lambda row: (row["policy"], row["capacity_tokens"]))
    rows = [row for row in rows if row.get("hit_token_ratio") is not None]
    if not rows:
        return None
    named = _named(results)
    frame = _frame(results, rows, named, width)
    layers = [*_bounds(results, frame), *_lru_line(results, frame), *_policy_lines(rows, named, frame)]
    layers += _names(results, rows, named, frame)
    chart = alt.layer(*layers).properties(width=frame.width, height=frame.height)
    said = _finding(results), _alt(results, rows, named), _caption(results, rows, named)
    return Figure("capacity_curve", *said, chart, _data(results, rows))


def _named(results: Row) -> list[str]:
    best_first = [row["policy"] for row in pick.policies_at_actual(results)]
    every = best_first or sorted({row["policy"] for row in pick.online(pick.replay_rows(results))})
    if len(every) <= MOST_LABELLED:
        return every
    wanted = dict.fromkeys(["lru", pick.proposed_policy(results), pick.other_policy(results) or "lru", *every])
    return [policy for policy in wanted if policy in every][:MOST_LABELLED]


def _frame(results: Row, rows: list[Row], named: list[str], width: int) -> Frame:
    replayed = [row["capacity_tokens"] for row in rows]
    curve = [point["capacity_tokens"] for point in pick.get(results, "lru_curve", [])]
    near = [size for size in curve if min(replayed) / 4 <= size <= max(replayed) * 4 and size > 0]
    low, high = max(min([*replayed, *near]), 1), max([*replayed, *near])
    bottom, top = _span(results, rows)
    longest = max([len(pick.short_title(results, policy)) for policy in named] + [len("best possible")])
    room = min(longest * 7 + 24, int(width * 0.38))
    height = 320 if width > 400 else 260
    return Frame(low, max(high, low + 1, 2), bottom, top, width - 60 - room, height)


def _span(results: Row, rows: list[Row]) -> tuple[float, float]:
    """From zero, unless everything lies in the upper half: then from a twentieth below the lowest point."""
    ratios = [row["hit_token_ratio"] for row in rows] + ([_ceiling(results) or 0.0] if _ceiling(results) else [])
    lowest, highest = min(ratios), max([*ratios, 0.01])
    close = lowest > 0.5 * highest
    bottom = max(math.floor((lowest - 0.1 * (highest - lowest) - 0.005) * 20) / 20, 0.0) if close else 0.0
    return bottom, min(highest + 0.05 * (highest - bottom), 1.0)


def _ceiling(results: Row) -> float | None:
    return pick.get(results, "bounds.ceiling.hit_token_ratio")


def _optimal(results: Row) -> list[Row]:
    rows = [row for row in pick.get(results, "bounds.optimal", []) if row.get("hit_token_ratio") is not None]
    return sorted(rows, key=lambda row: row["capacity_tokens"])


def _points(rows: list[Row]) -> list[Row]:
    return [{name: row[name] for name in ("capacity_tokens", "hit_token_ratio")} for row in rows]


def _bounds(results: Row, frame: Frame) -> list[alt.Chart]:
    layers, ceiling, optimal = [], _ceiling(results), _optimal(results)
    if ceiling is not None:
        rule = alt.Chart(alt.Data(values=[{"hit_token_ratio": ceiling, "label": "ceiling, no limit"}]))
        words = rule.mark_text(align="left", dy=-7, dx=4, color=MUTED, fontSize=11)
        layers.append(rule.mark_rule(color=INK, strokeDash=[1, 3], strokeWidth=1.5).encode(y=frame.y))
        layers.append(words.encode(y=frame.y, x=alt.value(0), text="label:N"))
    if optimal:
        line = alt.Chart(alt.Data(values=_points(optimal)))
        layers.append(line.mark_line(color=GREY, strokeDash=[4, 2], strokeWidth=1.2).encode(x=frame.x, y=frame.y))
    return layers


def _lru_line(results: Row, frame: Frame) -> list[alt.Chart]:
    curve = [
        point
        for point in pick.get(results, "lru_curve", [])
        if frame.low <= point["capacity_tokens"] <= frame.high and (point.get("hit_token_ratio") or 0.0) >= frame.bottom
    ]
    if len(curve) < 2:
        return []
    line = alt.Chart(alt.Data(values=_points(thin(curve, max(frame.width // 4, 20)))))
    return [line.mark_line(color=look_of("lru").colour, strokeWidth=1, opacity=0.7).encode(x=frame.x, y=frame.y)]


def _policy_lines(rows: list[Row], named: list[str], frame: Frame) -> list[alt.Chart]:
    every = dict.fromkeys(row["policy"] for row in rows)
    layers = [_line(rows, policy, frame, policy in named) for policy in every]
    for policy in named:
        values = [] if policy == "lru" else _bars(rows, policy)
        if values:
            bars = alt.Chart(alt.Data(values=values)).mark_rule(color=look_of(policy).colour, strokeWidth=1.5)
            layers.append(bars.encode(x=frame.x, y=frame.y, y2="high:Q"))
    return layers


def _line(rows: list[Row], policy: str, frame: Frame, coloured: bool) -> alt.Chart:
    base = alt.Chart(alt.Data(values=_points([row for row in rows if row["policy"] == policy])))
    if not coloured:
        return base.mark_line(color=LINE, strokeWidth=1).encode(x=frame.x, y=frame.y)
    look = look_of(policy)
    mark = {"shape": look.shape, "color": look.colour, "size": 60, "filled": True}
    return base.mark_line(color=look.colour, strokeDash=list(look.dash), point=mark).encode(x=frame.x, y=frame.y)


def _bars(rows: list[Row], policy: str) -> list[Row]:
    """Intervals of a policy's difference, set on LRU's point at the same budget."""
    lru = {row["capacity_tokens"]: row["hit_token_ratio"] for row in rows if row["policy"] == "lru"}
    found = [(row["capacity_tokens"], pick.interval(row, "hit_token_ratio")) for row in rows if row["policy"] == policy]
    return [
        {"capacity_tokens": size, "hit_token_ratio": lru[size] + band["low"], "high": lru[size] + band["high"]}
        for size, band in found
        if band and size in lru
    ]


def _names(results: Row, rows: list[Row], named: list[str], frame: Frame) -> list[alt.Chart]:
    """Each line's name at the right edge, as near its end as a line of text for each allows."""
    ends = {row["policy"]: row["hit_token_ratio"] for row in rows if row["policy"] in named}
    order = sorted(ends, key=lambda policy: (ends[policy], -named.index(policy)))
    wanted, optimal = [ends[policy] for policy in order], _optimal(results)
    wanted += [optimal[-1]["hit_token_ratio"]] if optimal else []
    gap = (frame.top - frame.bottom) * 15 / frame.height
    places = spread(wanted, gap, frame.bottom, frame.top)
    layers = []
    for policy, place in zip([*order, None], places, strict=bool(optimal)):
        label = pick.short_title(results, policy) if policy else "best possible"
        data = alt.Data(values=[{"hit_token_ratio": place, "label": label}])
        layers += _name(alt.Chart(data), policy, frame)
    return layers


def _name(base: alt.Chart, policy: str | None, frame: Frame) -> list[alt.Chart]:
    """A name in its colour after the mark of its line; the optimum has no mark."""
    look = look_of(policy) if policy else None
    text = base.mark_text(align="left", dx=20, color=look.label_colour if look else GREY, fontSize=12)
    layers = [text.encode(x=alt.value(frame.width), y=frame.y, text="label:N")]
    if look:
        key = base.mark_point(color=look.colour, shape=look.shape, filled=True, size=45, xOffset=12)
        layers.append(key.encode(x=alt.value(frame.width), y=frame.y))
    return layers


def _finding(results: Row) -> str:
    ceiling, lru = _ceiling(results), (pick.at_actual(results, "lru") or {}).get("hit_token_ratio")
    best = next((row for row in pick.policies_at_actual(results) if row["policy"] != "lru"), None)
    if lru is None:
        return "What each policy keeps, by budget"
    reach = f"LRU finds {numbers.percent(lru)} of input tokens cached at this budget"
    if ceiling:
        reach = f"LRU reaches {numbers.percent(lru / ceiling, 0)} of the ceiling at this budget"
    if best is None:
        return reach
    gain = best["hit_token_ratio"] - lru
    if gain < 0.0005:
        return f"{reach}; no other policy finds more"
    return f"{reach}; {pick.title_of(results, best['policy'])} adds {numbers.points(gain).lstrip('+')}"


def _alt(results: Row, rows: list[Row], named: list[str]) -> str:
    capacity = pick.actual_capacity(results)
    here = ", ".join(
        f"{pick.title_of(results, row['policy'])} {numbers.percent(row['hit_token_ratio'])}"
        for row in pick.policies_at_actual(results)
        if row["policy"] in named
    )
    sizes = [row["capacity_tokens"] for row in rows]
    optimum = next((row for row in _optimal(results) if row["capacity_tokens"] == capacity), None)
    parts = [
        "Line chart. Share of input tokens found cached, for budgets between "
        f"{numbers.short(min(sizes))} and {numbers.short(max(sizes))} tokens."
    ]
    parts += [f"At {numbers.short(capacity)} tokens: {here}."] if here else []
    parts += [f"Best possible there {numbers.percent(optimum['hit_token_ratio'])}."] if optimum else []
    parts += [f"Ceiling without any limit {numbers.percent(_ceiling(results))}."] if _ceiling(results) else []
    return " ".join(parts)


def _caption(results: Row, rows: list[Row], named: list[str]) -> str:
    ttl = pick.get(results, "settings.ttl_seconds")
    expiry = f"expiry {numbers.seconds(ttl)}" if ttl else "no expiry"
    lines = [f"Replay of this log, {pick.main_window(results)} window, {expiry}; marks are the replayed budgets."]
    lines += ["The thin line is LRU at every budget."] if pick.get(results, "lru_curve") else []
    if any(pick.interval(row, "hit_token_ratio") for row in rows):
        lines.append("Upright bars are 95% intervals against LRU.")
    bottom = _span(results, rows)[0]
    lines += [f"The upright axis starts at {numbers.percent(bottom, 0)}."] if bottom else []
    left = len({row["policy"] for row in rows}) - len(named)
    lines += [f"{left} other policies are thin grey lines; their numbers are in the data."] if left > 0 else []
    return " ".join(lines)


def _data(results: Row, rows: list[Row]) -> list[Row]:
    table = [{"policy": row["policy"], **{name: row.get(name) for name in COLUMNS}} for row in rows]
    table += [{"policy": "optimal", **{name: row.get(name) for name in COLUMNS}} for row in _optimal(results)]
    ceiling = pick.get(results, "bounds.ceiling")
    if ceiling:
        table.append({"policy": "infinite", **{name: ceiling.get(name) for name in COLUMNS}})
    curve = thin(pick.get(results, "lru_curve", []), 200)
    return table + [{"policy": "lru_curve", **{name: row.get(name) for name in COLUMNS}} for row in curve]
