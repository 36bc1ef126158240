"""Chargeback: who pays for the input side and whose saving it is, where the parameter `name_owners` asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kit import numbers
from kit.charts import pick
from kit.report.table import Table, plain

Row = dict[str, Any]
MOST_OWNERS = 20
UNNAMED, TOTAL = "not named in the log", "all owners"
SAVINGS = {
    "policy": "of the recommended policy against LRU",
    "retention": "of the recommended retention against the next best",
}
HEAD = ("Requests", "Input tokens", "Read", "Written", "Uncached")


def owners(results: Row) -> Table | None:
    """Requests, tokens by class, cost and saving per owner, most costly first, and their total; None if not asked."""
    found = pick.get(results, "chargeback", {})
    rows = found.get("owners") or []
    if not rows:
        return None
    currency, kind = found.get("currency"), found.get("saving_of")
    lines = [line(row, currency) for row in rows[:MOST_OWNERS]]
    lines.append(line({**found["total"], "owner": TOTAL}, currency, whole=True))
    note = f"Tokens and cost: {plain(found.get('basis'))}."
    if kind:
        note += f" Saving over this log: {SAVINGS[kind]}; below zero: this owner pays more, so shares may exceed 100%."
    left = len(rows) - MOST_OWNERS
    note += f" {left} more owners are in owner_bill.csv, beside this report; the total holds them." if left > 0 else ""
    return Table(
        "owners", "Chargeback by owner", head(currency), tuple(lines), note, marked=frozenset({len(lines) - 1}),
        narrow="scroll",
    )  # fmt: skip


def name_of(owner: str | None) -> str:
    """An owner as the log names it, in quotes where that is what a row of another kind is called."""
    if owner is None:
        return UNNAMED
    return f'"{plain(owner)}"' if owner in (UNNAMED, TOTAL) else plain(owner)


def head(currency: str | None) -> tuple[str, ...]:
    """The heads of a chargeback table; money is in the currency, if there is one."""
    unit = f" ({currency})" if currency else ""
    return ("Owner", *HEAD, f"Input cost{unit}", "Share of cost", f"Saving{unit}", "Share of saving")


def line(row: Row, currency: str | None, whole: bool = False) -> tuple[str, ...]:
    """One owner's cells; `whole` is the total, whose shares are all."""
    written = _sum([row.get("write_tokens"), row.get("write_long_tokens")])
    shares = (numbers.percent(1.0), numbers.percent(1.0)) if whole else (_share(row, "cost"), _share(row, "saving"))
    cost, saving = (_money(row.get(name), currency) for name in ("cost", "saving"))
    tokens = (row.get("input_tokens"), row.get("read_tokens"), written, row.get("uncached_tokens"))
    cells = (numbers.count(row.get("requests")), *(numbers.short(amount) for amount in tokens))
    return (
        TOTAL if whole else name_of(row.get("owner")),
        *cells,
        cost,
        shares[0],
        saving,
        shares[1] if row.get("saving") is not None else "-",
    )


def _share(row: Row, name: str) -> str:
    share = row.get(f"{name}_share")
    if share is None:
        return numbers.ABSENT
    return f"{numbers.signed(share * 100, 1)}%" if share < 0 else numbers.percent(share)


def _money(amount: float | None, currency: str | None) -> str:
    return numbers.ABSENT if amount is None and not currency else numbers.money(amount, currency or "USD", True)


def _sum(amounts: Sequence[int | None]) -> int | None:
    return None if None in amounts else sum(amount or 0 for amount in amounts)
