"""Money: what is billed under each policy, what the provider reported, at which prices, and what is left out."""

from __future__ import annotations

from typing import Any

from kit import numbers
from kit.charts import pick
from kit.report.before_after import span_words
from kit.report.evidence import pictures
from kit.report.table import Items, Part, Section, Table, plain
from kit.report.verdict import has_money, is_switch

Row = dict[str, Any]
CLASSES = (
    ("read_tokens", "Cache reads"),
    ("write_tokens", "Cache writes, short"),
    ("write_long_tokens", "Cache writes, long"),
    ("uncached_tokens", "Uncached input"),
)
LABELS = {"LIST": "list prices", "CONTRACT": "prices of your contract", "INVOICED": "prices of an invoice"}


def money(results: Row, with_figure: bool) -> Section:
    """The bill by policy and token class, reported beside simulated, unit prices, and what is not in it."""
    parts: list[Part] = [*(pictures(results, ("miss_causes",)) if with_figure else [])]
    parts += [table for table in (bills(results), reported(results), rates(results)) if table]
    parts.append(Items(tuple(left_out(results))))
    title = "Money: what the input side costs" if has_money(results) else "Money: no bill could be computed"
    return Section("money", title, tuple(parts))


def bills(results: Row) -> Table | None:
    """Tokens by billing class and the total, for LRU, the policy beside it and every other, cheapest first."""
    rows = pick.policies_at_actual(results)
    if not rows:
        return None
    currency = pick.get(results, "money.currency", "USD")
    rows = sorted(rows, key=lambda row: (row.get("cost") is None, row.get("cost") or 0.0, row["policy"]))
    proposed = pick.proposed_policy(results)
    lines = tuple(
        (
            pick.title_of(results, row["policy"]),
            *(numbers.short(row.get(field)) for field, _ in CLASSES),
            numbers.money(row.get("cost"), currency, detail=_small(rows)),
        )
        for row in rows
    )
    head = ("Policy", *(f"{words} (tokens)" for _, words in CLASSES), f"Total ({currency}, estimated)")
    marked = frozenset(place for place, row in enumerate(rows) if is_switch(results) and row["policy"] == proposed)
    return Table(
        "bills",
        f"Input bill {span_words(results)}, by policy",
        head,
        lines,
        _price_note(results),
        marked=marked,
        narrow="scroll",
    )


def _small(rows: list[Row]) -> bool:
    return max((row.get("cost") or 0.0 for row in rows), default=0.0) < 1000


def _price_note(results: Row) -> str:
    if not has_money(results):
        return "No price: amounts are not found, token classes still add up to all input tokens."
    label = LABELS.get(str(pick.get(results, "money.label")), "prices")
    dated = f", checked {plain(pick.get(results, 'money.lock_date'))}" if pick.get(results, "money.lock_date") else ""
    share = pick.get(results, "money.priced_token_share")
    source = plain(pick.get(results, "money.price_version", "source not found"))
    return f"At {label}: {source}{dated}. {numbers.percent(share)} of tokens have a price."


def reported(results: Row) -> Table | None:
    """What the provider reported in the log beside what the replay of LRU says; None where the log reports nothing."""
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
    head = ("Class (tokens)", "Reported in the log", "Replay, LRU")
    return Table("reported", "What the provider reported, and what the replay says", head, tuple(lines))


def _tokens(value: int | None) -> str:
    return numbers.count(value)


def rates(results: Row) -> Table | None:
    """Unit prices per million tokens with their dates and origin."""
    rows = pick.get(results, "money.rates", [])
    if not rows:
        return None
    lines = tuple(
        (
            plain(row.get("model") or "all models"),
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
    note = f"{left} more prices are in results.json." if left > 0 else ""
    return Table(
        "rates", "Prices per million tokens", head, lines, note, text_columns=frozenset({0, 6, 7}), narrow="scroll"
    )


def _dates(row: Row) -> str:
    start, end = (plain(row[key])[:10] if row.get(key) else "" for key in ("valid_from", "valid_to"))
    if start or end:
        return f"{start or 'before'} to {end or 'now'}"
    return "always" if row.get("input") is not None else numbers.ABSENT


def left_out(results: Row) -> list[str]:
    """What the totals do not hold, and how a month was reached."""
    currency = pick.get(results, "money.currency", "USD")
    output = pick.get(results, "money.output_cost")
    said = f" They would add {numbers.money(output, currency)}." if output is not None else ""
    lines = [f"Output tokens are left out: no eviction policy changes them.{said}"]
    if has_money(results):
        lines.append("A month is 30 days of this traffic: the log's days are scaled, growth is not foreseen.")
        lines.append("Amounts are estimates from tokens and prices, not an invoice.")
    return lines + [plain(warning) for warning in pick.get(results, "money.warnings", [])]
