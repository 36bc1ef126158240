"""What misses cost by cause, and what every other policy would change, with its interval."""

from __future__ import annotations

from typing import Any

import altair as alt

from kit import numbers
from kit.charts import pick
from kit.charts.figure import Figure
from kit.charts.theme import BLUE, GREY, look_of

Row = dict[str, Any]
LEAST_GAIN = 0.0005  # what is written as 0.0
ZERO_PLAIN = "datum.value === 0 ? '0' : datum.label"


def miss_causes(results: Row, width: int = 640) -> Figure | None:
    """Tokens (and money where prices are known) lost to each miss cause under LRU at the budget under study."""
    row = pick.at_actual(results, "lru")
    missed = (row or {}).get("missed") or {}
    if not any(missed.values()):
        return None
    cost, currency = pick.get(results, "miss_cost", {}), pick.get(results, "money.currency", "USD")
    rows = []
    for cause, words in pick.CAUSES.items():
        if missed.get(cause):
            paid = cost.get(cause)
            text = (
                f"{numbers.money(paid, currency)}, {numbers.short(missed[cause])}"
                if paid is not None
                else numbers.short(missed[cause])
            )
            rows.append({"cause": words, "tokens": missed[cause], "money": paid, "text": text})
    measure = "money" if all(item["money"] is not None for item in rows) else "tokens"
    rows.sort(key=lambda item: (-item[measure], item["cause"]))
    chart = _cause_bars(rows, measure, currency, width)
    return Figure(
        "miss_causes",
        _cause_finding(rows, measure, currency),
        _cause_alt(rows),
        _cause_caption(results),
        chart,
        [
            {"cause": item["cause"], "tokens": item["tokens"], "cost": item["money"], "currency": currency}
            for item in rows
        ],
    )


def _cause_bars(rows: list[Row], field: str, currency: str, width: int) -> Any:
    title = f"Billed for missed tokens ({currency})" if field == "money" else "Missed tokens"
    room = max(len(row["text"]) for row in rows) * 7 + 8
    scale = alt.Scale(domain=[0, max(row[field] for row in rows) or 1], nice=False)
    small = field == "money" and max(row[field] for row in rows) < 10_000
    axis = alt.Axis(title=title, format=",f" if small else "~s", tickCount=4, labelExpr=ZERO_PLAIN)
    x = alt.X(f"{field}:Q", scale=scale, axis=axis)
    y = alt.Y(
        "cause:N",
        sort=[row["cause"] for row in rows],
        axis=alt.Axis(title=None, labelLimit=190, ticks=False, domain=False),
    )
    base = alt.Chart(alt.Data(values=rows))
    bars = base.mark_bar(color=BLUE, height=16).encode(x=x, y=y)
    text = base.mark_text(align="left", dx=5).encode(x=x, y=y, text="text:N")
    return (bars + text).properties(width=max(width - 160 - room, 70), height=32 * len(rows))


def _cause_finding(rows: list[Row], measure: str, currency: str) -> str:
    total, worst = sum(row[measure] for row in rows), rows[0]
    share = numbers.percent(worst[measure] / total if total else None, 0)
    if measure == "money":
        return f"Of {numbers.money(total, currency)} paid for misses, {share} went to tokens {worst['cause']}"
    return f"Of {numbers.short(total)} missed tokens, {share} were {worst['cause']}"


def _cause_alt(rows: list[Row]) -> str:
    return (
        "Bar chart. Missed tokens under LRU by cause: "
        + "; ".join(f"{row['cause']} {row['text']}" for row in rows)
        + "."
    )


def _cause_caption(results: Row) -> str:
    capacity = numbers.short(pick.actual_capacity(results))
    return (
        f"LRU at {capacity} tokens. Every missed token has exactly one cause. What was never seen before "
        "misses under every policy; what is evicted or expires depends on it."
    )


def policy_change(results: Row, width: int = 640) -> Figure | None:
    """Change against LRU at the budget under study, per policy: cost per request, or without prices hit tokens."""
    rows = [row for row in pick.policies_at_actual(results) if row["policy"] != "lru"]
    base = pick.at_actual(results, "lru")
    if not rows or base is None:
        return None
    measure = "cost_per_request" if base.get("cost_per_request") else "hit_token_ratio"
    scale = base["cost_per_request"] if measure == "cost_per_request" else 1.0
    points = [point for row in rows if (point := _point(results, row, base, measure, scale))]
    if not points:
        return None
    points.sort(key=lambda p: (p["change"] if measure == "cost_per_request" else -p["change"], p["label"]))
    title = (
        "Cost per request against LRU"
        if measure == "cost_per_request"
        else "Input tokens found cached against LRU (share of all)"
    )
    for point in points:
        point["words"] = _change_text(point, measure)
    chart = _dots(points, title, width)
    return Figure(
        "policy_change",
        _change_finding(points, measure, pick.all_alike(results)),
        _change_alt(points, measure),
        _change_caption(points),
        chart,
        [
            {
                "policy": p["policy"],
                "measure": measure,
                "change": p["change"],
                "low": p.get("low"),
                "high": p.get("high"),
            }
            for p in points
        ],
    )


def _point(results: Row, row: Row, base: Row, measure: str, scale: float) -> Row | None:
    if row.get(measure) is None or base.get(measure) is None:
        return None
    found = pick.interval(row, measure)
    point = {
        "policy": row["policy"],
        "label": pick.short_title(results, row["policy"]),
        "change": (row[measure] - base[measure]) / scale,
    }
    if found:
        point |= {"low": found["low"] / scale, "high": found["high"] / scale}
    return point


def _dots(points: list[Row], title: str, width: int) -> Any:
    edges = [value for p in points for value in (p["change"], p.get("low"), p.get("high"), 0.0) if value is not None]
    pad = max((max(edges) - min(edges)) * 0.05, 0.001)
    scale = alt.Scale(domain=[min(edges) - pad, max(edges) + pad], nice=False)
    x = alt.X("change:Q", scale=scale, axis=alt.Axis(title=title, format="+~%", tickCount=5, labelExpr=ZERO_PLAIN))
    y = alt.Y(
        "label:N",
        sort=[p["label"] for p in points],
        axis=alt.Axis(title=None, labelLimit=170, ticks=False, domain=False),
    )
    layers = [alt.Chart(alt.Data(values=[{"change": 0}])).mark_rule(color=GREY).encode(x=x)]
    for point in points:
        look, base = look_of(point["policy"]), alt.Chart(alt.Data(values=[point]))
        if "low" in point:
            layers.append(
                base.mark_rule(color=look.colour, strokeWidth=2).encode(x=alt.X("low:Q", scale=scale), x2="high:Q", y=y)
            )
        dot = base.mark_point(color=look.colour, shape=look.shape, filled=True, size=70, aria=True)
        layers.append(dot.encode(x=x, y=y, description="words:N"))
    room = min(max(len(p["label"]) for p in points) * 7 + 20, 190)
    return alt.layer(*layers).properties(width=max(width - room - 20, 150), height=max(26 * len(points), 40))


def _change_text(point: Row, measure: str) -> str:
    write = (lambda v: f"{numbers.signed(v * 100, 1)}%") if measure == "cost_per_request" else numbers.points
    band = f" ({write(point['low'])} to {write(point['high'])})" if "low" in point else ""
    return f"{point['label']} {write(point['change'])}{band}"


def _change_finding(points: list[Row], measure: str, alike: bool) -> str:
    best = points[0]
    if alike:
        return "Every other policy tried finds exactly what LRU finds"
    gain = -best["change"] if measure == "cost_per_request" else best["change"]
    what = "cost per request" if measure == "cost_per_request" else "tokens found cached"
    if gain <= 0:
        return f"No other policy improves {what} over LRU"
    if gain < LEAST_GAIN:
        return f"No other policy improves {what} by 0.1{'%' if measure == 'cost_per_request' else ' pt'} over LRU"
    lost = "low" in best and best["low"] <= 0 <= best["high"]
    return f"Best against LRU on {what}: {_change_text(best, measure)}" + ("; too close to call" if lost else "")


def _change_alt(points: list[Row], measure: str) -> str:
    what = "Cost per request" if measure == "cost_per_request" else "Share of input tokens found cached"
    return f"Dot chart. {what}, change against LRU: " + "; ".join(_change_text(p, measure) for p in points) + "."


def _change_caption(points: list[Row]) -> str:
    bars = (
        "Bars are 95% paired bootstrap intervals; a bar across zero is too close to call."
        if any("low" in p for p in points)
        else ("Intervals were not computed.")
    )
    return f"Same requests, same budget, one row per policy. {bars}"
