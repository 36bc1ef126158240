"""Hit tokens against capacity: LRU's whole curve, every policy's replayed points, and the two bounds nobody can pass."""

from __future__ import annotations

from typing import Any

import altair as alt

from kit import numbers
from kit.charts import pick
from kit.charts.figure import Figure
from kit.charts.labels import spread, thin
from kit.charts.theme import GREY, INK, LINE, MUTED, look_of

MOST_LABELLED = 8
Row = dict[str, Any]


def capacity_curve(results: Row, width: int = 640) -> Figure | None:
    """Share of input tokens found cached against the budget, per policy, between ceiling and optimum.

    Up to eight policies are coloured and named; of more, LRU, the proposed and the best are, the rest are thin grey lines.
    None where nothing was replayed.
    """
    rows = sorted(pick.online(pick.replay_rows(results)), key=lambda row: (row["policy"], row["capacity_tokens"]))
    rows = [row for row in rows if row.get("hit_token_ratio") is not None]
    if not rows:
        return None
    named = _named(results)
    height = 320 if width > 400 else 260
    plot = width - 60 - _label_room(results, named, width)
    layers = [*_bounds(results, rows), *_lru_line(results, plot), *_policy_lines(results, rows, named, height)]
    chart = alt.layer(*layers).properties(width=plot, height=height)
    return Figure(
        "capacity_curve", _finding(results), _alt(results, rows, named), _caption(results, rows, named), chart,
        _data(results, rows),
    )  # fmt: skip


def _named(results: Row) -> list[str]:
    best_first = [row["policy"] for row in pick.policies_at_actual(results)]
    every = best_first or sorted({row["policy"] for row in pick.online(pick.replay_rows(results))})
    if len(every) <= MOST_LABELLED:
        return every
    wanted = dict.fromkeys(["lru", pick.proposed_policy(results), pick.other_policy(results) or "lru", *every])
    return [policy for policy in wanted if policy in every][:MOST_LABELLED]


def _label_room(results: Row, named: list[str], width: int) -> int:
    longest = max((len(pick.title_of(results, policy)) for policy in [*named]), default=0)
    return min(max(longest, 13) * 7 + 12, int(width * 0.36))


def _x(capacities: list[int]) -> alt.X:
    low, high = min(capacities), max(capacities)
    scale = alt.Scale(type="log", domain=[max(low, 1), max(high, low + 1, 2)], nice=False)
    axis = alt.Axis(title="Budget of the tier (tokens)", format="~s", tickCount=6, labelOverlap="greedy")
    return alt.X("capacity_tokens:Q", scale=scale, axis=axis)


def _frame(results: Row, rows: list[Row]) -> tuple[alt.X, alt.Y]:
    curve = [point["capacity_tokens"] for point in pick.get(results, "lru_curve", [])]
    replayed = [row["capacity_tokens"] for row in rows]
    lowest, highest = min(replayed), max(replayed)
    inside = [value for value in curve if lowest / 4 <= value <= highest * 4 and value > 0]
    top = max([row["hit_token_ratio"] for row in rows] + [_ceiling(results) or 0.0, 0.01])
    y = alt.Y(
        "hit_token_ratio:Q", scale=alt.Scale(domain=[0, min(top * 1.05, 1.0)], nice=False),
        axis=alt.Axis(title="Input tokens found cached", format="~%", tickCount=6),
    )  # fmt: skip
    return _x([*replayed, *inside]), y


def _ceiling(results: Row) -> float | None:
    return pick.get(results, "bounds.ceiling.hit_token_ratio")


def _bounds(results: Row, rows: list[Row]) -> list[alt.Chart]:
    x, y = _frame(results, rows)
    layers = []
    ceiling = _ceiling(results)
    if ceiling is not None:
        rule = alt.Chart(alt.Data(values=[{"hit_token_ratio": ceiling, "label": "ceiling, no limit"}]))
        layers += [
            rule.mark_rule(color=INK, strokeDash=[1, 3], strokeWidth=1.5).encode(y=y),
            rule.mark_text(align="left", dy=-7, dx=4, color=MUTED, fontSize=11).encode(
                y=y, x=alt.value(0), text="label:N"),
        ]  # fmt: skip
    optimal = [row for row in pick.get(results, "bounds.optimal", []) if row.get("hit_token_ratio") is not None]
    if optimal:
        layers.append(
            alt.Chart(alt.Data(values=sorted(optimal, key=lambda row: row["capacity_tokens"])))
            .mark_line(color=GREY, strokeDash=[4, 2], strokeWidth=1.2, point={"shape": "stroke", "color": GREY, "size": 90})
            .encode(x=x, y=y)
        )
    return layers


def _lru_line(results: Row, plot: int) -> list[alt.Chart]:
    rows = pick.online(pick.replay_rows(results))
    x, y = _frame(results, [row for row in rows if row.get("hit_token_ratio") is not None])
    low, high = x.to_dict()["scale"]["domain"]
    curve = [
        {key: point[key] for key in ("capacity_tokens", "hit_token_ratio")}
        for point in pick.get(results, "lru_curve", [])
        if low <= point["capacity_tokens"] <= high and point.get("hit_token_ratio") is not None
    ]
    if len(curve) < 2:
        return []
    look = look_of("lru")
    line = alt.Chart(alt.Data(values=thin(curve, max(plot // 4, 20))))
    return [line.mark_line(color=look.colour, strokeWidth=1, opacity=0.7).encode(x=x, y=y)]


def _policy_lines(results: Row, rows: list[Row], named: list[str], height: int) -> list[alt.Chart]:
    x, y = _frame(results, rows)
    top = y.to_dict()["scale"]["domain"][1]
    layers = [_line(rows, policy, x, y, named) for policy in dict.fromkeys(row["policy"] for row in rows)]
    layers += [_bars(results, rows, policy, x, y) for policy in named if policy != "lru"]
    return [layer for layer in layers if layer is not None] + _names(results, rows, named, x, y, top, height)


def _line(rows: list[Row], policy: str, x: alt.X, y: alt.Y, named: list[str]) -> alt.Chart:
    points = [{key: row[key] for key in ("capacity_tokens", "hit_token_ratio")} for row in rows if row["policy"] == policy]
    base = alt.Chart(alt.Data(values=points))
    if policy not in named:
        return base.mark_line(color=LINE, strokeWidth=1).encode(x=x, y=y)
    look = look_of(policy)
    mark = {"shape": look.shape, "color": look.colour, "size": 60, "filled": True}
    return base.mark_line(color=look.colour, strokeDash=list(look.dash), point=mark).encode(x=x, y=y)


def _bars(results: Row, rows: list[Row], policy: str, x: alt.X, y: alt.Y) -> alt.Chart | None:
    base = {row["capacity_tokens"]: row["hit_token_ratio"] for row in rows if row["policy"] == "lru"}
    values = []
    for row in rows:
        found = pick.interval(row, "hit_token_ratio")
        if row["policy"] == policy and found and row["capacity_tokens"] in base:
            lru = base[row["capacity_tokens"]]
            values.append({"capacity_tokens": row["capacity_tokens"], "hit_token_ratio": lru + found["low"], "high": lru + found["high"]})
    if not values:
        return None
    mark = alt.Chart(alt.Data(values=values)).mark_rule(color=look_of(policy).colour, strokeWidth=1.5)
    return mark.encode(x=x, y=y, y2="high:Q")


def _names(results: Row, rows: list[Row], named: list[str], x: alt.X, y: alt.Y, top: float, height: int) -> list[alt.Chart]:
    ends = {}
    for row in rows:
        if row["policy"] in named:
            ends[row["policy"]] = row
    order = list(ends)
    optimal = sorted(pick.get(results, "bounds.optimal", []), key=lambda row: row["capacity_tokens"])
    marks = [(pick.title_of(results, policy), look_of(policy).label_colour, ends[policy]) for policy in order]
    if optimal and optimal[-1].get("hit_token_ratio") is not None:
        marks.append(("best possible", GREY, optimal[-1]))
    places = spread([row["hit_token_ratio"] for _, _, row in marks], top * 15 / height, 0.0, top)
    edge = max(row["capacity_tokens"] for row in rows)
    layers = []
    for (label, colour, _), place in zip(marks, places, strict=True):
        values = [{"capacity_tokens": edge, "hit_token_ratio": place, "label": label}]
        text = alt.Chart(alt.Data(values=values)).mark_text(align="left", dx=9, color=colour, fontSize=12)
        layers.append(text.encode(x=x, y=y, text="label:N"))
    return layers


def _finding(results: Row) -> str:
    ceiling, lru = _ceiling(results), (pick.at_actual(results, "lru") or {}).get("hit_token_ratio")
    best = next((row for row in pick.policies_at_actual(results) if row["policy"] != "lru"), None)
    if lru is None:
        return "What each policy keeps, by budget"
    reach = f"LRU reaches {numbers.percent(lru / ceiling, 0)} of the ceiling at this budget" if ceiling else (
        f"LRU finds {numbers.percent(lru)} of input tokens cached at this budget")  # fmt: skip
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
        for row in pick.policies_at_actual(results) if row["policy"] in named
    )  # fmt: skip
    budgets = " and ".join(numbers.short(value) for value in (min(r["capacity_tokens"] for r in rows), max(r["capacity_tokens"] for r in rows)))
    best = next((b for b in pick.get(results, "bounds.optimal", []) if b["capacity_tokens"] == capacity), {})
    parts = [f"Line chart. Share of input tokens found cached, for budgets between {budgets} tokens."]
    if here:
        parts.append(f"At {numbers.short(capacity)} tokens: {here}.")
    if best.get("hit_token_ratio") is not None:
        parts.append(f"Best possible there {numbers.percent(best['hit_token_ratio'])}.")
    if _ceiling(results) is not None:
        parts.append(f"Ceiling without any limit {numbers.percent(_ceiling(results))}.")
    return " ".join(parts)


def _caption(results: Row, rows: list[Row], named: list[str]) -> str:
    left = len({row["policy"] for row in rows}) - len(named)
    more = f" {left} other policies are thin grey lines; their numbers are in the data." if left > 0 else ""
    ttl = pick.get(results, "settings.ttl_seconds")
    expiry = f"expiry {numbers.seconds(ttl)}" if ttl else "no expiry"
    bars = " Upright bars are 95% intervals against LRU." if any(pick.interval(row, "hit_token_ratio") for row in rows) else ""
    return f"Replay of this log, {pick.main_window(results)} window, {expiry}; points are the replayed budgets, the thin line is LRU at every budget.{bars}{more}"


def _data(results: Row, rows: list[Row]) -> list[Row]:
    keep = ("policy", "capacity_tokens", "hit_tokens", "hit_token_ratio")
    table = [{key: row.get(key) for key in keep} for row in rows]
    table += [{"policy": "optimal", **{key: row.get(key) for key in keep[1:]}} for row in pick.get(results, "bounds.optimal", [])]
    ceiling = pick.get(results, "bounds.ceiling")
    if ceiling:
        table.append({"policy": "infinite", "capacity_tokens": None, "hit_tokens": ceiling.get("hit_tokens"), "hit_token_ratio": ceiling.get("hit_token_ratio")})
    table += [{"policy": "lru_curve", **{key: row.get(key) for key in keep[1:]}} for row in thin(pick.get(results, "lru_curve", []), 200)]
    return table
