"""Hit tokens against capacity: LRU's whole curve, every policy's replayed points, and the bounds nobody can pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import altair as alt

from kit import numbers
from kit.charts import pick
from kit.charts.figure import Figure
from kit.charts.labels import listed, spread, thin
from kit.charts.theme import GREY, INK, LINE, MUTED, Look, look_of

MOST_LABELLED = 8
KEY_PIXELS = 48  # of a line sample before its name
KEY_BELOW = 54  # from the plot to a key that stands below it: the axis and its title
LINE_PIXELS = 16
WINDOWS = {"cold": "all requests from an empty cache", "warm": "requests after the warm-up"}
OPTIMUM_DASH = (4, 2)
OPTIMUM = "best possible"
COLUMNS = ("capacity_tokens", "hit_tokens", "hit_token_ratio")
Row = dict[str, Any]


@dataclass(frozen=True)
class Frame:
    """The plot: budgets from `low` to `high` tokens on a logarithmic axis, ratios from `bottom` to `top`, pixels.

    `beside`: the key stands to the right of the plot, else (on a phone) below it.
    """

    low: float
    high: float
    bottom: float
    top: float
    width: int
    height: int
    beside: bool

    @property
    def x(self) -> alt.X:
        """The budget axis."""
        scale = alt.Scale(type="log", domain=[self.low, self.high], nice=False)
        title = "Budget of the tier (tokens)"
        apart: dict[str, Any] = {"labelOverlap": "greedy", "labelSeparation": 8}
        axis = alt.Axis(title=title, format="~s", **_ticks(self.low, self.high), **apart)
        return alt.X("capacity_tokens:Q", scale=scale, axis=axis)

    @property
    def y(self) -> alt.Y:
        """The axis of the hit-token ratio."""
        axis = alt.Axis(title="Input tokens found cached", format="~%", tickCount=6)
        return alt.Y("hit_token_ratio:Q", scale=alt.Scale(domain=[self.bottom, self.top], nice=False), axis=axis)


def _ticks(low: float, high: float) -> dict[str, Any]:
    """Marks at 1, 2 and 5 times a power of ten from end to end of the axis; left to the drawing where these are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [step * 10**power for power in powers for step in (1, 2, 5) if low <= step * 10**power <= high]
    return {"values": values} if len(values) > 2 else {"tickCount": 6}


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
    layers = [*_budget(results, frame), *_bounds(results, frame)]
    layers += [*_policy_lines(results, rows, named, frame), *_key(results, rows, named, frame)]
    chart = alt.layer(*layers).properties(width=frame.width, height=frame.height)
    said = _finding(results), _alt(results, rows, named), _caption(results, rows, named)
    return Figure("capacity_curve", *said, chart, _data(results, rows), (frame.low, frame.high))


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
    beside = width > 400
    longest = max([len(pick.short_title(results, policy)) for policy in named] + [len(OPTIMUM)])
    room = min(longest * 7 + KEY_PIXELS, int(width * 0.38)) if beside else 10
    return Frame(low, max(high, low + 1, 2), bottom, top, width - 60 - room, 320 if beside else 260, beside)


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


def _budget(results: Row, frame: Frame) -> list[alt.Chart]:
    """An upright line at the budget under study."""
    capacity = pick.actual_capacity(results)
    if capacity is None or not frame.low <= capacity <= frame.high:
        return []
    base = alt.Chart(alt.Data(values=[{"capacity_tokens": capacity, "label": "this budget"}]))
    words = base.mark_text(align="center", color=MUTED, fontSize=11).encode(x=frame.x, y=alt.value(-7), text="label:N")
    return [base.mark_rule(color=MUTED, strokeWidth=1).encode(x=frame.x), words]


def _bounds(results: Row, frame: Frame) -> list[alt.Chart]:
    layers, ceiling, optimal = [], _ceiling(results), _optimal(results)
    if ceiling is not None:
        rule = alt.Chart(alt.Data(values=[{"hit_token_ratio": ceiling, "label": "ceiling, no limit"}]))
        words = rule.mark_text(align="left", dy=-7, dx=4, color=MUTED, fontSize=11)
        layers.append(rule.mark_rule(color=INK, strokeDash=[1, 3], strokeWidth=1.5).encode(y=frame.y))
        layers.append(words.encode(y=frame.y, x=alt.value(0), text="label:N"))
    if optimal:
        base = alt.Chart(alt.Data(values=_points(optimal)))
        line = base.mark_line(color=GREY, strokeDash=list(OPTIMUM_DASH), strokeWidth=1.2, **mark_words(OPTIMUM, "line"))
        layers.append(line.encode(x=frame.x, y=frame.y))
    return layers


def _lru_curve(results: Row, frame: Frame) -> list[Row]:
    """LRU at every budget inside the plot; empty where fewer than two are known."""
    curve = [
        point
        for point in pick.get(results, "lru_curve", [])
        if frame.low <= point["capacity_tokens"] <= frame.high and (point.get("hit_token_ratio") or 0.0) >= frame.bottom
    ]
    return _points(thin(curve, max(frame.width // 4, 20))) if len(curve) > 1 else []


def _policy_lines(results: Row, rows: list[Row], named: list[str], frame: Frame) -> list[alt.Chart]:
    every = dict.fromkeys(row["policy"] for row in rows)
    layers = [layer for policy in every for layer in _line(results, rows, policy, frame, policy in named)]
    for policy in named:
        values = [] if policy == "lru" else _bars(rows, policy)
        if values:
            said = mark_words(pick.title_of(results, policy), "interval")
            bars = alt.Chart(alt.Data(values=values)).mark_rule(color=look_of(policy).colour, strokeWidth=1.5, **said)
            layers.append(bars.encode(x=frame.x, y=frame.y, y2="high:Q"))
    return layers


def _line(results: Row, rows: list[Row], policy: str, frame: Frame, coloured: bool) -> list[alt.Chart]:
    mine = [row for row in rows if row["policy"] == policy]
    base, title = alt.Chart(alt.Data(values=_points(mine))), pick.title_of(results, policy)
    exact = _lru_curve(results, frame) if policy == "lru" else []
    whole = alt.Chart(alt.Data(values=exact)) if exact else base
    if not coloured:
        faint = whole.mark_line(color=LINE, strokeWidth=1, **mark_words(title, "line"))
        return [faint.encode(x=frame.x, y=frame.y)]
    look = look_of(policy)
    line = whole.mark_line(color=look.colour, strokeDash=list(look.dash), **mark_words(title, "line"))
    said = mark_words(title, "mark")
    points = base.mark_point(shape=look.shape, color=look.colour, size=60, filled=True, **said)
    return [line.encode(x=frame.x, y=frame.y), points.encode(x=frame.x, y=frame.y)]


def mark_words(title: str, part: str) -> dict[str, Any]:
    """What tells the report's script, which shows and hides policies, whose mark this is: "LRU: line"."""
    return {"aria": True, "description": f"{title}: {part}"}


def _bars(rows: list[Row], policy: str) -> list[Row]:
    """Intervals of a policy's difference, set on LRU's point at the same budget."""
    lru = {row["capacity_tokens"]: row["hit_token_ratio"] for row in rows if row["policy"] == "lru"}
    found = [(row["capacity_tokens"], pick.interval(row, "hit_token_ratio")) for row in rows if row["policy"] == policy]
    return [
        {"capacity_tokens": size, "hit_token_ratio": lru[size] + band["low"], "high": lru[size] + band["high"]}
        for size, band in found
        if band and size in lru
    ]


def _key(results: Row, rows: list[Row], named: list[str], frame: Frame) -> list[alt.Chart]:
    """A line sample with each name: beside the plot near the line's end, or in a list below it; highest first."""
    ends = {row["policy"]: row["hit_token_ratio"] for row in rows if row["policy"] in named}
    order: list[str | None] = [*sorted(ends, key=lambda policy: (ends[policy], -named.index(policy)))]
    optimal = _optimal(results)
    wanted = [ends[str(policy)] for policy in order] + ([optimal[-1]["hit_token_ratio"]] if optimal else [])
    order += [None] if optimal else []
    places = spread(wanted, (frame.top - frame.bottom) * LINE_PIXELS / frame.height, frame.bottom, frame.top)
    layers = []
    for rank, (policy, place) in enumerate(zip(order, places, strict=True)):
        share = (frame.top - place) / (frame.top - frame.bottom)
        below = frame.height + KEY_BELOW + (len(order) - 1 - rank) * LINE_PIXELS
        x, y = (frame.width + 8, share * frame.height) if frame.beside else (0.0, float(below))
        layers += _key_line(results, policy, round(x, 1), round(y, 1))
    return layers


def _key_line(results: Row, policy: str | None, x: float, y: float) -> list[alt.Chart]:
    """One entry of the key at a pixel: the line's dash, its mark, its name; None is the optimum, which has no mark."""
    look = look_of(policy) if policy else Look(GREY, OPTIMUM_DASH, "")
    base = alt.Chart(alt.Data(values=[{"label": pick.short_title(results, policy) if policy else OPTIMUM}]))
    said = mark_words(pick.title_of(results, policy) if policy else OPTIMUM, "key")
    line = base.mark_rule(color=look.colour, strokeDash=list(look.dash), strokeWidth=2, **said)
    text = base.mark_text(align="left", dx=36, color=look.label_colour, fontSize=12, **said)
    layers = [line.encode(x=alt.value(x), x2=alt.value(x + 30), y=alt.value(y))]
    if policy:
        mark = base.mark_point(color=look.colour, shape=look.shape, filled=True, size=45, **said)
        layers.append(mark.encode(x=alt.value(x + 15), y=alt.value(y)))
    return [*layers, text.encode(x=alt.value(x), y=alt.value(y), text="label:N")]


def _finding(results: Row) -> str:
    ceiling, lru = _ceiling(results), (pick.at_actual(results, "lru") or {}).get("hit_token_ratio")
    others = [row for row in pick.policies_at_actual(results) if row["policy"] != "lru"]
    best = others[0] if others else None
    if lru is None:
        return "What each policy keeps, by budget"
    reach = f"LRU finds {numbers.percent(lru)} of input tokens cached at this budget"
    if ceiling:
        reach = f"LRU reaches {numbers.percent(lru / ceiling)} of the ceiling at this budget"
    if best is None:
        return reach
    gain = best["hit_token_ratio"] - lru
    if gain < 0.0005:
        return f"{reach}; none of the {len(others)} other policies tried finds more"
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
    lines = [f"Replay of this log, {WINDOWS[pick.main_window(results)]}, {expiry}; marks are the replayed budgets."]
    held = pick.get(results, "overlap") is not None
    line = "takes requests one after the other, its marks hold running ones" if held else "is exact at every budget"
    lines += [f"LRU's line {line}."] if pick.get(results, "lru_curve") else []
    if any(pick.interval(row, "hit_token_ratio") for row in rows):
        lines.append("Upright bars are 95% intervals against LRU.")
    bottom = _span(results, rows)[0]
    lines += [f"The upright axis starts at {numbers.percent(bottom, 0)}."] if bottom else []
    lines += same_lines(results)
    left = len({row["policy"] for row in rows}) - len(named)
    lines += [f"{left} other policies are thin grey lines; their numbers are in the data."] if left > 0 else []
    return " ".join(lines)


def same_lines(results: Row) -> list[str]:
    """Which policies find exactly what another finds at every replayed budget, so that one line hides the others."""
    found: dict[str, dict[int, int]] = {}
    for row in pick.online(pick.replay_rows(results)):
        found.setdefault(row["policy"], {})[row["capacity_tokens"]] = row["hit_tokens"]
    alike: dict[tuple[tuple[int, int], ...], list[str]] = {}
    for policy in sorted(found, key=lambda name: (name != "lru", name)):
        alike.setdefault(tuple(sorted(found[policy].items())), []).append(policy)
    titles = [[pick.title_of(results, policy) for policy in group] for group in alike.values() if len(group) > 1]
    return [f"{listed(same)} {'finds' if len(same) == 1 else 'find'} what {first} finds." for first, *same in titles]


def _data(results: Row, rows: list[Row]) -> list[Row]:
    table = [{"policy": row["policy"], **{name: row.get(name) for name in COLUMNS}} for row in rows]
    table += [{"policy": "optimal", **{name: row.get(name) for name in COLUMNS}} for row in _optimal(results)]
    ceiling = pick.get(results, "bounds.ceiling")
    if ceiling:
        table.append({"policy": "infinite", **{name: ceiling.get(name) for name in COLUMNS}})
    curve = thin(pick.get(results, "lru_curve", []), 200)
    return table + [{"policy": "lru_curve", **{name: row.get(name) for name in COLUMNS}} for row in curve]
