"""Files for a spreadsheet: no cell can start a formula, unknown is an empty cell, numbers stay numbers."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


def safe_cell(value: Any) -> Any:
    """A value as a spreadsheet may hold it: text that could start a formula gets a leading apostrophe, a fraction keeps
    twelve significant digits, unknown is empty."""
    if value is None:
        return ""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, str) and value.lstrip(" ").startswith(FORMULA_STARTS):
        return f"'{value}"
    return value


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> Path:
    """Write rows as CSV (UTF-8, comma, one header line) and return the path. `columns` fixes names and order.

    Without rows the file holds the header of `columns`, or nothing.
    """
    rows = list(rows)
    names = list(columns) if columns is not None else list(rows[0]) if rows else []
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([safe_cell(name) for name in names])
        writer.writerows([safe_cell(row.get(name)) for name in names] for row in rows)
    return path


BILL_COLUMNS = (
    "day", "provider", "model", "basis", "token_class", "tokens", "price_per_million", "cost", "currency", "label",
)  # fmt: skip
CHARGEBACK_COLUMNS = (
    "owner", "model", "day", "requests", "uncached_tokens", "read_tokens", "write_tokens", "write_long_tokens",
    "output_tokens", "cost", "output_cost", "avoidable_tokens", "avoidable_cost", "currency", "label",
)  # fmt: skip


BOOKS = {"bill": BILL_COLUMNS, "chargeback": CHARGEBACK_COLUMNS}


def write_books(folder: Path, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Path]:
    """bill.csv and chargeback.csv in `folder`, those of the tables of a `kit.billing.ledger` that are given."""
    return [
        write_csv(folder / f"{name}.csv", tables[name], columns) for name, columns in BOOKS.items() if name in tables
    ]
