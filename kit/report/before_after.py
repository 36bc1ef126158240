"""LRU beside the policy the decision names (or the best other): money, billed tokens per hit, tokens found."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

from kit import numbers
from kit.charts import pick
from kit.report.engine import budget_words, sample_label
from kit.report.table import Table, plain, units
from kit.report.verdict import has_money, is_switch, percent_change

Row = dict[str, Any]
Line = tuple[str, ...]


def before_after(results: Row) -> Table | None:
    """Both policies at the budget under study, their change and its interval; None without a second policy."""
    other, lru = pick.other_policy(results), pick.at_actual(results, "lru")
    row = pick.at_actual(results, other) if other else None
    if not row or not lru:
        return None
    title = pick.title_of(results, row["policy"])
    caption, beside = "Before and after", title
    if not is_switch(results):
        caption, beside = "LRU beside the best other policy", f"{title}, not recommended"
    if pick.all_alike(results):
        caption, beside = "LRU beside the other policies", "Every other policy tried"
    head = ("Measure", "LRU", beside, "Change", "95% interval")
    lines = [*_money_lines(results, lru, row), *_token_lines(lru, row)]
    return Table("before_after", f"{caption}, {span_words(results)}", head, tuple(lines), _note(results))


def _note(results: Row) -> str:
    blocks = pick.get(results, "settings.bootstrap_blocks")
    basis = plain(pick.get(results, "settings.block_basis", "requests"))
    return (
        f"Budget {budget_words(results)}, {assumption_words(results)}, "
        f"{window_words(results)}. Intervals: paired bootstrap over {numbers.count(blocks)} blocks ({basis}); "
        "they cover chance in this traffic, not new prices or growth."
    )


def assumption_words(results: Row) -> str:
    """The assumption in words."""
    found, settings = pick.main_assumption(results), pick.get(results, "settings", {})
    lives = "time to live as published" if settings.get("ttl_seconds", 0) is not None else "no expiry"
    return {"neutral": f"{lives} and nothing lost"}.get(found, f"{plain(found)} assumption")


def window_words(results: Row) -> str:
    """The window in words."""
    label = sample_label(results)
    if pick.main_window(results) == "warm":
        return str(pick.get(results, "settings.warm_basis", "after warm-up")) + label
    return "all requests, from an empty cache" + label


def span_words(results: Row) -> str:
    """How much time the figures cover."""
    days, span = pick.get(results, "log.days"), _span_days(results)
    if pick.get(results, "log.has_clock") is False:
        return "over the whole log, which has no common clock"
    if not days:
        return "over the whole log"
    if span is not None and span > days:
        return f"over {numbers.count(days)} days with requests, of {numbers.count(span)}"
    return f"over {numbers.count(days)} calendar {'day' if days == 1 else 'days'}"


def _span_days(results: Row) -> int | None:
    """Calendar days from the first request to the last, both counted; None where the log has no dates."""
    ends = [str(pick.get(results, f"log.{end}") or "")[:10] for end in ("start", "end")]
    try:
        start, end = (date.fromisoformat(text) for text in ends)
    except ValueError:
        return None
    return (end - start).days + 1


def _band(row: Row, measure: str, write: Callable[[float], str], scale: float = 1.0) -> str:
    found = pick.interval(row, measure)
    if not found:
        return numbers.ABSENT
    return numbers.between(write(found["low"] * scale), write(found["high"] * scale), units(found))


def _money_lines(results: Row, lru: Row, row: Row) -> list[Line]:
    if pick.get(results, "settings.tier_mode") == "engine":
        return []  # there is no bill: you run the engine
    if not has_money(results) or row.get("cost_per_request") is None:
        return [("Input bill", numbers.NOT_FOUND, numbers.NOT_FOUND, numbers.ABSENT, numbers.ABSENT)]
    currency = pick.get(results, "money.currency", "USD")
    return [
        _cost_line(f"Cost per 1,000 requests, input side ({currency}, estimated)", lru, row, currency),
        _bill_line(f"Input bill ({currency}, estimated)", lru, row, currency),
        _equivalents_line("Billed tokens per request that found its prefix, weighted by price", lru, row),
    ]


def _cost_line(name: str, lru: Row, row: Row, currency: str) -> Line:
    before, after = lru["cost_per_request"] * 1000, row["cost_per_request"] * 1000
    in_cents = min(before, after) >= 0.1

    def change(amount: float) -> str:
        return (
            numbers.money_change(amount, currency, True) if in_cents else numbers.unit_price_change(amount, currency)
        )

    written = (numbers.unit_price(amount, currency) for amount in (before, after))
    return (name, *written, change(after - before), _band(row, "cost_per_request", change, 1000))


def _bill_line(name: str, lru: Row, row: Row, currency: str) -> Line:
    small = max(lru["cost"], row["cost"]) < 1000

    def change(amount: float) -> str:
        return numbers.money_change(amount, currency, small)

    written = (numbers.money(amount, currency, small) for amount in (lru["cost"], row["cost"]))
    band = _band(row, "cost_per_request", change, lru["requests"])
    return (name, *written, change(row["cost"] - lru["cost"]), band)


def _equivalents_line(name: str, lru: Row, row: Row) -> Line:
    before, after = lru.get("m_eq"), row.get("m_eq")
    written = (numbers.count(before), numbers.count(after))
    if not before or after is None:
        return (name, *written, numbers.ABSENT, numbers.ABSENT)
    return (name, *written, percent_change(after / before - 1), _band(row, "m_eq", percent_change, 1 / before))


def _token_lines(lru: Row, row: Row) -> list[Line]:
    rates = [line["hits"] / line["requests"] if line.get("requests") else None for line in (lru, row)]
    ratios = [line.get("hit_token_ratio") for line in (lru, row)]
    return [
        _share_line("Input tokens found cached", ratios, _band(row, "hit_token_ratio", numbers.points)),
        _share_line("Requests that found their prefix", rates, _band(row, "request_hit_rate", numbers.points)),
    ]


def _share_line(name: str, shares: list[float | None], band: str) -> Line:
    before, after = shares
    if before is None or after is None:
        return (name, numbers.percent(before), numbers.percent(after), numbers.NOT_FOUND, band)
    digits = digits_that_subtract(before, after)
    written = (numbers.percent(share, digits) for share in shares)
    return (name, *written, numbers.points(after - before, digits), band)


def digits_that_subtract(before: float, after: float) -> int:
    """One digit for percentages where the shown ones subtract to the shown difference, else two."""
    shown = round(after * 100, 1) - round(before * 100, 1)
    return 1 if round(shown, 1) == round((after - before) * 100, 1) else 2
