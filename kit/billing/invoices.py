"""Invoices against the priced log: what the provider really charged per month, and the effective rate against list."""

from __future__ import annotations

from calendar import monthrange
from typing import Any

from kit.prices import Invoice, Rates, rate_sums
from kit.providers import CLASSES, class_cost

TOLERANCE = 0.05
PER_MILLION = 1e6


def check_invoices(log: Any, rates: Rates) -> list[dict[str, Any]]:
    """One row per [[invoice]] of the price overlay, in file order.

    Keys: provider, month, invoiced, priced (reported tokens at `rates`, input and output), effective_rate = invoiced /
    priced, agrees (within 5 %; None where it cannot be told), days_covered and days_in_month, currency, label
    (INVOICED), note. A log without some of the month's days, without output tokens or without a price for some of them
    cannot agree or disagree: the note says why.
    """
    if not rates.invoices:
        return []
    months = _months(log, rates)
    return [_row(invoice, months, rates) for invoice in rates.invoices]


def _months(log: Any, rates: Rates) -> list[dict[str, Any]]:
    """Reported tokens per provider, month and rate."""
    columns = ", ".join(f"coalesce(sum(q.{name}), 0)::BIGINT AS {name}" for name in (*CLASSES, "output_tokens"))
    days = "list(DISTINCT strftime(q.ts, '%Y-%m-%d')) AS days, count(q.read_tokens) AS told, count(*) AS requests"
    return rate_sums(
        log.con, rates.rate_of_request, f"{columns}, {days}", "q.provider, strftime(q.ts, '%Y-%m') AS month"
    )


def _row(invoice: Invoice, months: list[dict[str, Any]], rates: Rates) -> dict[str, Any]:
    own = [row for row in months if row["month"] == invoice.month and _same(invoice.provider, row["provider"])]
    priced, unpriced = 0.0, 0
    for row in own:
        rate, tokens = rates.rows[row["rate_id"]], {name: row[name] for name in CLASSES}
        money, known = class_cost(rate, tokens)
        priced += (money or 0.0) + row["output_tokens"] * (rate.output or 0.0) / PER_MILLION
        unpriced += sum(tokens.values()) - known
    year, month = (int(part) for part in invoice.month.split("-"))
    covered, whole = len({day for row in own for day in row["days"]}), monthrange(year, month)[1]
    why = _why_not(own, covered, whole, unpriced)
    effective = invoice.amount / priced if priced else None
    return {
        "provider": invoice.provider,
        "month": invoice.month,
        "invoiced": invoice.amount,
        "priced": priced if own else None,
        "effective_rate": effective,
        "agrees": None if why or effective is None else abs(effective - 1) <= TOLERANCE,
        "days_covered": covered,
        "days_in_month": whole,
        "currency": rates.currency,
        "label": "INVOICED",
        "note": "; ".join(part for part in (invoice.note, why) if part),
    }


def _same(wanted: str, provider: str | None) -> bool:
    return wanted == "*" or wanted.lower() == (provider or "").lower()


def _why_not(own: list[dict[str, Any]], covered: int, whole: int, unpriced: int) -> str:
    """Why an invoice cannot be held against this log; empty where it can."""
    if not own:
        return "the log has no request of this provider in this month"
    if any(row["told"] < row["requests"] for row in own):
        return "some requests report no cached tokens"
    if unpriced:
        return f"{unpriced:,} tokens have no price"
    if covered < whole:
        return f"the log covers {covered} of {whole} days"
    return ""
