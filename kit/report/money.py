"""Money: what is billed under each policy, what the provider reported, at which prices, and what is left out."""

from __future__ import annotations

import math
from typing import Any

from kit import numbers
from kit.charts import pick
from kit.report.before_after import span_words
from kit.report.evidence import pictures
from kit.report.money_reported import warnings, write_class
from kit.report.owners import owners
from kit.report.retention import mixed, retention
from kit.report.table import Items, Part, Section, Table, Text, plain
from kit.report.verdict import has_money, is_switch, no_bill

Row = dict[str, Any]
CLASSES = (
    ("read_tokens", "Cache reads"),
    ("write_tokens", "Cache writes, short"),
    ("write_long_tokens", "Cache writes, long"),
    ("uncached_tokens", "Uncached input"),
)
ENGINE_CLASSES = {
    "read_tokens": "Found cached",
    "write_tokens": "Computed, then cached",
    "write_long_tokens": "Computed, then cached for long",
    "uncached_tokens": "Computed, not cached",
}
LABELS = {"LIST": "list prices", "CONTRACT": "prices of your contract", "INVOICED": "prices of an invoice"}


def money(results: Row, with_figure: bool) -> Section:
    """The bill by policy and token class, reported beside simulated, unit prices, and what is not in it."""
    parts: list[Part] = [*(pictures(results, ("miss_causes",)) if with_figure else [])]
    parts += [table for table in (bills(results),) if table]
    parts += [Text(line) for line in (write_class(results), *warnings(results)) if line]
    parts += [table for table in (retention(results),) if table]
    parts += [Text(mix)] if (mix := mixed(results)) else []
    parts += [table for table in (owners(results), reported(results), rates(results)) if table]
    parts.append(Items(tuple(left_out(results))))
    title = "Money: what the input side costs" if has_money(results) else "Money: no bill could be computed"
    return Section("money", title, tuple(parts))


def bills(results: Row) -> Table | None:
    """The bill by policy and token class, cheapest first: money that adds up as printed, or tokens without prices."""
    rows = pick.policies_at_actual(results)
    if not rows:
        return None
    if not has_money(results):
        return _tokens_by_class(results, rows)
    currency, proposed = pick.get(results, "money.currency") or "USD", pick.proposed_policy(results)
    rows = sorted(rows, key=lambda row: (row.get("cost") is None, row.get("cost") or 0.0, row["policy"] != "lru"))
    parts = {row["policy"]: _class_costs(results, row["policy"]) for row in rows}
    priced = all(None not in costs for costs in parts.values())
    lines = tuple(
        (
            pick.title_of(results, row["policy"]),
            *(_money_cells(row, parts, currency) if priced else _token_cells(row, currency)),
        )
        for row in rows
    )
    unit = currency if priced else "tokens"
    head = ("Policy", *(f"{words} ({unit})" for _, words in CLASSES), f"Total ({currency}, estimated)")
    marked = frozenset(place for place, row in enumerate(rows) if is_switch(results) and row["policy"] == proposed)
    caption = f"Input bill {span_words(results)}, by policy"
    return Table("bills", caption, head, lines, _price_note(results), marked=marked, narrow="scroll")


def _tokens_by_class(results: Row, rows: list[Row]) -> Table:
    """What each policy finds and what it does not, by what becomes of it; tokens, for there is no bill."""
    names = dict(CLASSES) if pick.get(results, "settings.tier_mode") != "engine" else ENGINE_CLASSES
    shown = [name for name in names if name != "write_long_tokens" or any(row.get(name) for row in rows)]
    lines = tuple(
        (pick.title_of(results, row["policy"]), *(numbers.short(row.get(name)) for name in shown)) for row in rows
    )
    proposed = pick.proposed_policy(results)
    marked = frozenset(place for place, row in enumerate(rows) if is_switch(results) and row["policy"] == proposed)
    head = ("Policy", *(f"{names[name]} (tokens)" for name in shown))
    caption = f"Input tokens {span_words(results)}, by policy"
    return Table("bills", caption, head, lines, "Each row adds up to all input tokens.", marked=marked, narrow="scroll")


def _class_costs(results: Row, policy: str) -> list[float | None]:
    costs = {
        line.get("token_class"): line.get("cost")
        for line in pick.get(results, "bill", [])
        if line.get("policy") == policy
    }
    return [costs.get(name) for name, _ in CLASSES]


def _token_cells(row: Row, currency: str) -> list[str]:
    return [*(numbers.short(row.get(field)) for field, _ in CLASSES), numbers.money(row.get("cost"), currency, True)]


def _money_cells(row: Row, parts: dict[str, list[float | None]], currency: str) -> list[str]:
    shown = add_up([cost or 0.0 for cost in parts[row["policy"]]])
    return [numbers.money(amount, currency, True) for amount in (*shown, sum(shown))]


def add_up(amounts: list[float]) -> list[float]:
    """Amounts in whole cents that add up to the rounded total: the cents left over go to the largest remainders."""
    cents = [round(amount * 100, 6) for amount in amounts]
    whole = [math.floor(cent) for cent in cents]
    left = round(sum(cents)) - sum(whole)
    by_remainder = sorted(range(len(cents)), key=lambda place: (whole[place] - cents[place], place))
    for place in by_remainder[:left]:
        whole[place] += 1
    return [cent / 100 for cent in whole]


def _price_note(results: Row) -> str:
    label = LABELS.get(str(pick.get(results, "money.label")), "prices")
    dated = f", checked {plain(pick.get(results, 'money.lock_date'))}" if pick.get(results, "money.lock_date") else ""
    share = pick.get(results, "money.priced_token_share")
    source = plain(pick.get(results, "money.price_version", "source not found"))
    ended = f" {ended_prices(results)}" if ended_prices(results) else ""
    return f"At {label}: {source}{dated}. {numbers.percent(share)} of tokens have a price.{ended}"


def ended_prices(results: Row) -> str:
    """Which prices no longer held when the price list was checked; empty where all did."""
    checked = str(pick.get(results, "money.lock_date") or "")[:10]
    ends = {
        plain(row.get("model") or "all models"): plain(row["valid_to"])[:10]
        for row in pick.get(results, "money.rates", [])
        if row.get("valid_to") and str(row["valid_to"])[:10] <= checked
    }
    if not ends:
        return ""
    named = "; ".join(f"{model} until {end}" for model, end in list(ends.items())[:6])
    more = f" and {len(ends) - 6} more" if len(ends) > 6 else ""
    return (
        f"Ended before that date: {named}{more}. They are right for this log; look up today's before planning on them."
    )


def reported(results: Row) -> Table | None:
    """What the provider reported beside the kit's model of the provider; None where the log reports nothing."""
    real, simulated = pick.get(results, "provider.reported", {}), pick.get(results, "provider.simulated", {})
    if not any(real.get(field) for field, _ in CLASSES):
        return None
    currency = str(real.get("currency") or pick.get(results, "money.currency", "USD"))
    fields = (*CLASSES, ("output_tokens", "Output"))
    lines = [(words, _tokens(real.get(field)), _tokens(simulated.get(field))) for field, words in fields]
    lines.append(
        (
            f"Cost ({currency})",
            numbers.money(real.get("cost"), currency, True),
            numbers.money(simulated.get("cost"), currency, True),
        )
    )
    head = ("Class (tokens)", "Reported in the log", "Simulated")
    note = "Simulated: the provider's own cache with the retention that was asked for, as observed in this log."
    return Table("reported", "What the provider reported, and what the model of it gives", head, tuple(lines), note)


def _tokens(value: int | None) -> str:
    return numbers.count(value)


def rates(results: Row) -> Table | None:
    """Unit prices per million tokens with their dates and origin."""
    rows = pick.get(results, "money.rates", [])
    if not rows:
        return None
    lines = tuple(
        (
            _priced_model(row),
            *(
                numbers.unit_price(row.get(field), row.get("currency") or "USD")
                for field in ("input", "read", "write_short", "write_long", "output")
            ),
            _dates(row),
            plain(row.get("label") or ""),
        )
        for row in rows[:40]
    )
    head = ("Model", "Input", "Read", "Write, short", "Write, long", "Output", "Valid", "Kind")
    left = len(rows) - len(lines)
    note = f"{left} more prices are in results.json. " if left > 0 else ""
    note += ended_prices(results).replace("that date", f"the list was checked ({_checked(results)})")
    return Table(
        "rates", "Prices per million tokens", head, lines, note, text_columns=frozenset({0, 6, 7}), narrow="scroll"
    )


def _priced_model(row: Row) -> str:
    """The model of a price, and the prompts it holds for where their length decides."""
    model, above, to = plain(row.get("model") or "all models"), row.get("tier_above"), row.get("tier_to")
    if above:
        return f"{model}, prompts over {numbers.count(above)} tokens"
    return f"{model}, prompts to {numbers.count(to)} tokens" if to else model


def _checked(results: Row) -> str:
    return plain(pick.get(results, "money.lock_date") or numbers.NOT_FOUND)


def _dates(row: Row) -> str:
    start, end = (plain(row[key])[:10] if row.get(key) else "" for key in ("valid_from", "valid_to"))
    if start and end:
        return f"{start} to {end}"
    if start or end:
        return f"from {start}" if start else f"until {end}"
    return "always" if row.get("input") is not None else numbers.ABSENT


def left_out(results: Row) -> list[str]:
    """What the totals do not hold, and how a month was reached."""
    currency = pick.get(results, "money.currency", "USD")
    output = pick.get(results, "money.output_cost")
    said = f" They would add {numbers.money(output, currency)}." if output is not None else ""
    lines = [f"Output tokens are left out: no eviction policy changes them.{said}"]
    if why := no_bill(results):
        return [f"{why[:1].upper()}{why[1:]}.", *map(plain, pick.get(results, "money.warnings", []))]
    if has_money(results):
        scaling = pick.get(results, "decision.saving_per_month.scaling")
        lines += [f"Money per month: {plain(scaling)}; growth is not foreseen."] if scaling else []
        lines.append("Amounts are estimates from tokens and prices, not an invoice.")
    return lines + [plain(warning) for warning in pick.get(results, "money.warnings", [])]
