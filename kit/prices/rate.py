"""One price for one kind of request: the row of the flat, dated rate table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

PRICE_FIELDS = ("input", "read", "write_short", "write_long", "output")
DAY_MINUTES = 24 * 60


class PriceError(ValueError):
    """A price list, overlay or invoice that cannot be used: one line that says what to change."""


@dataclass(frozen=True)
class Rate:
    """Prices in `currency` per million tokens of one class, for the requests that fall into this row's cell.

    A cell is (provider, model) as the log spells them, UTC dates `valid_from` <= day < `valid_to`, input size
    `tier_above` < tokens <= `tier_to`, and UTC minute of the day `minute_from` <= minute < `minute_to`; None is open.
    Cells never overlap, so a request has exactly one rate. A rate whose `input` is None is "not found".
    `write_long` None means no long-write price is known (it is never replaced by the short one).
    """

    rate_id: int
    provider: str | None
    model: str | None
    valid_from: date | None = None
    valid_to: date | None = None
    tier_above: int = 0
    tier_to: int | None = None
    minute_from: int = 0
    minute_to: int = DAY_MINUTES
    input: float | None = None
    read: float | None = None
    write_short: float | None = None
    write_long: float | None = None
    output: float | None = None
    currency: str = "USD"
    source: str = "not found"
    label: str = "LIST"
    note: str = ""

    @property
    def found(self) -> bool:
        """True when input tokens have a price."""
        return self.input is not None

    def as_row(self) -> dict[str, Any]:
        """The rate as plain values (dates as ISO text) for results.json, CSV and the report."""
        row = asdict(self)
        for key in ("valid_from", "valid_to"):
            row[key] = row[key].isoformat() if row[key] else None
        return row
