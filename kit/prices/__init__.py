"""Prices: one flat, dated rate table per report, from the offline list and the user's overlay.

Source of list prices: the genai-prices package, pinned; nothing here touches the network. A model nobody lists keeps a
row whose prices are None ("not found"): its tokens are counted, never priced at 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from kit.prices.book import (
    LIBRARY,
    LOCK_DATE,
    LOCKED_VERSION,
    SERVICE_CLASSES,
    has_provider,
    installed_version,
    list_cells,
    model_names,
    provider_names,
)
from kit.prices.overlay import Entry, Invoice, Overlay, idle_entries, lay_over, load_overlay, parse_overlay
from kit.prices.rate import DAY_MINUTES, PRICE_FIELDS, PriceError, Rate

__all__ = [
    "LIBRARY", "LOCKED_VERSION", "LOCK_DATE", "PRICE_FIELDS", "SERVICE_CLASSES", "STALE_AFTER_DAYS", "Entry", "Invoice",
    "Overlay", "PriceError", "Rate", "Rates", "has_provider", "list_cells", "load_overlay", "model_names",
    "parse_overlay", "provider_names", "rate_sums", "rate_table", "registered",
]  # fmt: skip

STALE_AFTER_DAYS = 60
FAR_PAST = datetime(1, 1, 1, tzinfo=UTC)
FAR_FUTURE = datetime(9999, 12, 31, tzinfo=UTC)
NO_LIMIT = 2**62


class HasConnection(Protocol):
    """Anything with an open DuckDB connection that has a `request` table (kit.log.Log)."""

    @property
    def con(self) -> Any: ...


@dataclass(frozen=True)
class Rates:
    """The rate table of one log, and which row each request falls under.

    `rate_of_request` is int32[requests] in request_id order, an index into `rows`. `priced_token_share` is the share of
    input tokens whose row has a price (None for a log without tokens). `price_version` and `lock_date` date the list.
    """

    rows: tuple[Rate, ...]
    rate_of_request: np.ndarray
    priced_token_share: float | None
    price_version: str
    lock_date: date
    warnings: tuple[str, ...]
    currency: str
    label: str
    invoices: tuple[Invoice, ...] = ()

    def frame(self) -> pl.DataFrame:
        """The rate table as a frame, one row per rate, the columns of `Rate` (saved beside every report)."""
        return _frame(self.rows)

    def as_rows(self) -> list[dict[str, Any]]:
        """The rate table as plain dictionaries for results.json."""
        return [rate.as_row() for rate in self.rows]


def rate_table(
    log: HasConnection, overlay: str | Path | Overlay | None = None, service_class: str = "standard"
) -> Rates:
    """The rates a log needs, in USD (or the overlay's currency) per million tokens.

    Every request gets exactly one row by provider, model, UTC date, UTC hour and input size; only rows that some
    request uses are kept. Raises PriceError for a bad overlay, mixed currencies or an unknown service class.
    """
    laid = load_overlay(overlay)
    pairs = log.con.sql("SELECT DISTINCT provider, model FROM request ORDER BY ALL").fetchall()
    cells = [cell for provider, model in pairs for cell in lay_over(list_cells(provider, model, service_class), laid)]
    cells = [replace(cell, rate_id=n) for n, cell in enumerate(cells)]
    assigned, tokens, long_tokens = _assign(log.con, cells)
    rows, rate_of_request = _only_used(cells, assigned)
    share, warnings = _coverage(rows, rate_of_request, tokens, long_tokens)
    return Rates(
        rows,
        rate_of_request,
        share,
        f"{LIBRARY} {installed_version()}",
        LOCK_DATE,
        tuple(_list_warnings(log.con, rows) + warnings + idle_entries(laid, cells)),
        _one_currency(rows, laid),
        "CONTRACT" if any(rate.label == "CONTRACT" for rate in rows) else "LIST",
        laid.invoices,
    )


def _frame(rows: tuple[Rate, ...] | list[Rate]) -> pl.DataFrame:
    schema = {
        "rate_id": pl.Int32, "provider": pl.String, "model": pl.String, "valid_from": pl.Date, "valid_to": pl.Date,
        "tier_above": pl.Int64, "tier_to": pl.Int64, "minute_from": pl.Int32, "minute_to": pl.Int32,
        "input": pl.Float64, "read": pl.Float64, "write_short": pl.Float64, "write_long": pl.Float64,
        "output": pl.Float64, "currency": pl.String, "source": pl.String, "label": pl.String, "note": pl.String,
    }  # fmt: skip
    return pl.DataFrame({name: [getattr(rate, name) for rate in rows] for name in schema}, schema=schema)


def _cell_frame(cells: list[Rate]) -> pl.DataFrame:
    """Cells with closed edges (no nulls), as the range join wants them."""
    midnight = datetime.min.time()

    def instant(day: date | None, open_end: datetime) -> datetime:
        return datetime.combine(day, midnight, UTC) if day else open_end

    return pl.DataFrame(
        {
            "rate_id": [cell.rate_id for cell in cells],
            "provider": [cell.provider for cell in cells],
            "model": [cell.model for cell in cells],
            "from_ts": [instant(cell.valid_from, FAR_PAST) for cell in cells],
            "to_ts": [instant(cell.valid_to, FAR_FUTURE) for cell in cells],
            "above": [cell.tier_above if cell.tier_above else -1 for cell in cells],
            "up_to": [cell.tier_to if cell.tier_to is not None else NO_LIMIT for cell in cells],
            "minute_from": [cell.minute_from for cell in cells],
            "minute_to": [cell.minute_to for cell in cells],
        },
        schema={
            "rate_id": pl.Int32, "provider": pl.String, "model": pl.String, "from_ts": pl.Datetime("us", "UTC"),
            "to_ts": pl.Datetime("us", "UTC"), "above": pl.Int64, "up_to": pl.Int64, "minute_from": pl.Int32,
            "minute_to": pl.Int32,
        },
    )  # fmt: skip


@contextmanager
def registered(con: Any, **frames: pl.DataFrame) -> Iterator[None]:
    """Frames visible to SQL under their keyword names while the block runs; always taken away again."""
    for name, frame in frames.items():
        con.register(name, frame)
    try:
        yield
    finally:
        for name in frames:
            con.unregister(name)


def _assign(con: Any, cells: list[Rate]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(cell of each request, its input tokens, its long-write tokens), in request order: one range join in SQL."""
    hours = any(cell.minute_from or cell.minute_to < DAY_MINUTES for cell in cells)
    minute = "AND date_part('hour', q.ts) * 60 + date_part('minute', q.ts) BETWEEN c.minute_from AND c.minute_to - 1"
    query = f"""
        SELECT q.request_id, c.rate_id, coalesce(q.input_tokens, 0) AS tokens,
          coalesce(q.write_long_tokens, 0) AS long_tokens
        FROM request q JOIN kit_cell c
          ON q.provider IS NOT DISTINCT FROM c.provider AND q.model IS NOT DISTINCT FROM c.model
         AND q.ts >= c.from_ts AND q.ts < c.to_ts
         AND coalesce(q.input_tokens, 0) > c.above AND coalesce(q.input_tokens, 0) <= c.up_to
         {minute if hours else ""}"""
    with registered(con, kit_cell=_cell_frame(cells)):
        found = con.sql(query).fetchnumpy()
    order = np.asarray(found["request_id"])
    columns = []
    for name, kind in (("rate_id", np.int32), ("tokens", np.int64), ("long_tokens", np.int64)):
        column = np.zeros(len(order), dtype=kind)
        column[order] = np.asarray(found[name])
        columns.append(column)
    return columns[0], columns[1], columns[2]


def _only_used(cells: list[Rate], assigned: np.ndarray) -> tuple[tuple[Rate, ...], np.ndarray]:
    used = np.flatnonzero(np.bincount(assigned, minlength=len(cells)))
    position = np.full(max(len(cells), 1), -1, dtype=np.int32)
    position[used] = np.arange(len(used), dtype=np.int32)
    rows = tuple(replace(cells[old], rate_id=new) for new, old in enumerate(used.tolist()))
    return rows, position[assigned].astype(np.int32)


def rate_sums(con: Any, rate_of_request: np.ndarray, columns: str, group: str = "") -> list[dict[str, Any]]:
    """Integer sums of request columns per rate (and per `group`), ordered; the exact base of every money figure.

    `columns` is the SQL select list of sums over request `q`; `group` optional leading grouping expressions.
    """
    request_id = np.arange(len(rate_of_request), dtype=np.int64)
    request_rate = pl.DataFrame({"request_id": request_id, "rate_id": rate_of_request})
    lead = f"{group}, " if group else ""
    query = f"""SELECT {lead}r.rate_id, {columns} FROM request q JOIN kit_request_rate r USING (request_id)
                GROUP BY ALL ORDER BY ALL"""
    with registered(con, kit_request_rate=request_rate):
        return list(con.sql(query).pl().iter_rows(named=True))


def _coverage(
    rows: tuple[Rate, ...], rate_of_request: np.ndarray, tokens: np.ndarray, long_tokens: np.ndarray
) -> tuple[float | None, list[str]]:
    """Share of input tokens with a price, and one warning per thing that has none. Sums of whole tokens are exact."""
    by_rate = [np.bincount(rate_of_request, weights=column, minlength=len(rows)) for column in (tokens, long_tokens)]
    total = float(by_rate[0].sum())
    priced = sum(count for count, rate in zip(by_rate[0].tolist(), rows, strict=True) if rate.found)
    warnings = [
        text for rate, *counts in zip(rows, *by_rate, strict=True) for text in _not_found(rate, *map(int, counts))
    ]
    return (priced / total if total else None), warnings


def _not_found(rate: Rate, tokens: int, long_tokens: int) -> Iterator[str]:
    name = f"{rate.provider or 'no provider'} / {rate.model or 'no model'}"
    if not rate.found:
        yield (
            f"price of {name} not found: {tokens:,} input tokens have no money figure; add the model to a price overlay"
        )
    elif long_tokens and rate.write_long is None:
        yield (
            f"long-write price of {name} not found: {long_tokens:,} long-write tokens have no money figure; "
            "add write_long to a price overlay"
        )


def _list_warnings(con: Any, rows: tuple[Rate, ...]) -> list[str]:
    """What dates the list: a log much newer than the lock, another version than the locked one, hourly prices."""
    warnings = []
    newest = con.sql("SELECT max(ts) FROM request").fetchall()[0][0]
    if newest is not None and newest.date() > LOCK_DATE + timedelta(days=STALE_AFTER_DAYS):
        warnings.append(
            f"the log ends on {newest.date()}, more than {STALE_AFTER_DAYS} days after the price list was locked "
            f"({LOCK_DATE}); refresh the lock of {LIBRARY} before quoting money"
        )
    if installed_version() != LOCKED_VERSION:
        warnings.append(f"{LIBRARY} {installed_version()} is installed, the lock of {LOCK_DATE} names {LOCKED_VERSION}")
    if any(rate.minute_to - rate.minute_from < DAY_MINUTES for rate in rows):
        warnings.append(
            "a model has prices by hour of the day; the list charges its peak hours at weekends too, "
            "so its cost is an upper bound"
        )
    return warnings


def _one_currency(rows: tuple[Rate, ...], overlay: Overlay) -> str:
    currencies = sorted({rate.currency for rate in rows if rate.found})
    if len(currencies) > 1:
        raise PriceError(
            f"price overlay {overlay.source}: {' and '.join(currencies)} are mixed in one log; "
            "give every model of the log a price in the overlay's currency, or write the overlay in USD"
        )
    return currencies[0] if currencies else overlay.currency
