"""The user's own prices: a small TOML file laid over the list, entry by entry.

```toml
currency = "USD"                # optional
[[price]]
provider = "anthropic"          # "*" = every provider
model = "claude-sonnet-4-6*"    # a pattern; "*" = every model
valid_from = 2026-10-01         # optional, UTC day, inclusive
valid_to = 2027-10-01           # optional, exclusive
multiplier = 0.85               # of the list price, or absolute prices per million tokens:
input = 2.55                    # read, write_short, write_long, output are optional: left out = list price
note = "contract 4711"          # printed in the report
[[invoice]]
provider = "anthropic"
month = "2026-10"
amount = 1234.56
```
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Any

from kit.prices.rate import PRICE_FIELDS, PriceError, Rate

ENTRY_KEYS = {"provider", "model", "valid_from", "valid_to", "tier_above", "multiplier", "note", *PRICE_FIELDS}
INVOICE_KEYS = {"provider", "month", "amount", "note"}


@dataclass(frozen=True)
class Entry:
    """One negotiated price: absolute prices per million tokens, or a multiplier on the list price."""

    position: int
    provider: str
    model: str
    valid_from: date | None
    valid_to: date | None
    tier_above: int
    multiplier: float | None
    prices: dict[str, float]
    note: str

    def rank(self) -> tuple[int, date, int, int]:
        """Precedence: an exact model beats a pattern, then the later start, the higher tier, the later entry."""
        exact = 2 * ("*" not in self.model) + ("*" not in self.provider)
        return exact, self.valid_from or date.min, self.tier_above, self.position


@dataclass(frozen=True)
class Invoice:
    """What a provider really charged in one UTC calendar month, in the overlay's currency."""

    provider: str
    month: str
    amount: float
    note: str


@dataclass(frozen=True)
class Overlay:
    """A parsed overlay file."""

    entries: tuple[Entry, ...] = ()
    invoices: tuple[Invoice, ...] = ()
    currency: str = "USD"
    source: str = ""


def load_overlay(source: str | Path | Overlay | None) -> Overlay:
    """An overlay from a TOML file; None gives an empty one. Raises PriceError naming file, entry and key."""
    if source is None:
        return Overlay()
    if isinstance(source, Overlay):
        return source
    path = Path(source)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise PriceError(f"price overlay {path}: cannot be read ({error.strerror}); check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PriceError(f"price overlay {path}: not valid TOML ({error}); see the example in data/") from None
    return parse_overlay(document, path.name)


def parse_overlay(document: dict[str, Any], source: str) -> Overlay:
    """The overlay in an already decoded TOML document; `source` is the file name used in messages and reports."""
    unknown = sorted(set(document) - {"currency", "price", "invoice"})
    if unknown:
        accepted = "currency, [[price]], [[invoice]]"
        raise PriceError(f"price overlay {source}: unknown key {unknown[0]!r}; accepted: {accepted}")
    for key in ("price", "invoice"):
        if not isinstance(document.get(key, []), list):
            raise PriceError(f"price overlay {source}: {key} is no list of tables; write [[{key}]] above each entry")
    entries = tuple(_entry(raw, n, source) for n, raw in enumerate(document.get("price", []), 1))
    invoices = tuple(_invoice(raw, n, source) for n, raw in enumerate(document.get("invoice", []), 1))
    if not entries and not invoices:
        raise PriceError(f"price overlay {source}: no [[price]] and no [[invoice]] in it; see the example in data/")
    return Overlay(entries, invoices, str(document.get("currency", "USD")), source)


def _check_keys(raw: Any, accepted: set[str], where: str) -> None:
    if not isinstance(raw, dict):
        raise PriceError(f"{where}: found {type(raw).__name__}, accepted is a table of keys; see the example in data/")
    unknown = sorted(set(raw) - accepted)
    if unknown:
        raise PriceError(f"{where}: unknown key {unknown[0]!r}; accepted: {', '.join(sorted(accepted))}")


def _number(raw: dict[str, Any], key: str, where: str) -> float | None:
    value = raw.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise PriceError(f"{where}: {key} is {value!r}; accepted is a number of at least 0")
    return float(value)


def _day(raw: dict[str, Any], key: str, where: str) -> date | None:
    value = raw.get(key)
    if value is None:
        return None
    if not isinstance(value, date) or isinstance(value, datetime):
        raise PriceError(f"{where}: {key} is {value!r}; accepted is a day without quotes, as in {key} = 2026-10-01")
    return value


def _entry(raw: Any, position: int, source: str) -> Entry:
    where = f"price overlay {source}: [[price]] entry {position}"
    _check_keys(raw, ENTRY_KEYS, where)
    prices = {key: value for key in PRICE_FIELDS if (value := _number(raw, key, where)) is not None}
    multiplier = _number(raw, "multiplier", where)
    if bool(prices) == (multiplier is not None):
        raise PriceError(f"{where}: give either multiplier or prices ({', '.join(PRICE_FIELDS)}), one of the two")
    first, last, tier = _day(raw, "valid_from", where), _day(raw, "valid_to", where), _number(raw, "tier_above", where)
    if first and last and last <= first:
        raise PriceError(f"{where}: valid_to {last} is not after valid_from {first}, so it never holds")
    if tier is not None and tier != int(tier):
        raise PriceError(f"{where}: tier_above is {tier:g}; accepted is a whole number of tokens")
    return Entry(
        position,
        str(raw.get("provider", "*")),
        str(raw.get("model", "*")),
        first,
        last,
        int(tier or 0),
        multiplier,
        prices,
        str(raw.get("note", "")),
    )


def _invoice(raw: Any, position: int, source: str) -> Invoice:
    where = f"price overlay {source}: [[invoice]] entry {position}"
    _check_keys(raw, INVOICE_KEYS, where)
    amount = _number(raw, "amount", where)
    month = str(raw.get("month", ""))
    try:
        date.fromisoformat(f"{month}-01")
    except ValueError:
        raise PriceError(f'{where}: month is {month!r}; accepted is "YYYY-MM" in quotes') from None
    if amount is None:
        raise PriceError(f"{where}: amount is missing; give the invoice total of that month as a number")
    return Invoice(str(raw.get("provider", "*")), month, amount, str(raw.get("note", "")))


def lay_over(cells: list[Rate], overlay: Overlay) -> list[Rate]:
    """List cells cut at the entries' dates and tiers; where an entry matches, its prices and the label CONTRACT."""
    if not cells:
        return []
    matching = [entry for entry in overlay.entries if _names(entry, cells[0])]
    if not matching:
        return cells
    pieces = [piece for cell in cells for piece in _cut(cell, matching)]
    return [_apply(piece, matching, overlay) for piece in pieces]


def idle_entries(overlay: Overlay, cells: list[Rate]) -> list[str]:
    """A warning for each entry that names none of the providers and models of a log."""
    return [
        f"price overlay {overlay.source} entry {entry.position} ({entry.provider} / {entry.model}) names no "
        "provider and model of this log, so it changes no price"
        for entry in overlay.entries
        if not any(_names(entry, cell) for cell in cells)
    ]


def _names(entry: Entry, rate: Rate) -> bool:
    provider, model = (rate.provider or "").lower(), (rate.model or "").lower()
    return fnmatchcase(provider, entry.provider.lower()) and fnmatchcase(model, entry.model.lower())


def _cut(cell: Rate, entries: list[Entry]) -> Iterator[Rate]:
    """The cell split at every date and tier edge of the entries, so that each piece has one answer."""
    low, high = cell.valid_from or date.min, cell.valid_to or date.max
    dates = sorted({d for e in entries for d in (e.valid_from, e.valid_to) if d and low < d < high})
    top = cell.tier_to if cell.tier_to is not None else float("inf")
    tiers = sorted({e.tier_above for e in entries if cell.tier_above < e.tier_above < top})
    days: list[date | None] = [cell.valid_from, *dates, cell.valid_to]
    sizes: list[int | None] = [cell.tier_above, *tiers, cell.tier_to]
    for start, end in pairwise(days):
        for lower, upper in pairwise(sizes):
            yield replace(cell, valid_from=start, valid_to=end, tier_above=lower or 0, tier_to=upper)


def _apply(piece: Rate, entries: list[Entry], overlay: Overlay) -> Rate:
    active = [entry for entry in entries if _covers(entry, piece)]
    if not active:
        return piece
    entry = max(active, key=Entry.rank)
    if entry.multiplier is not None and not piece.found:
        return replace(piece, note=f"{overlay.source} gives a multiplier, but no list price is found")
    values, listed = _multiplied(piece, entry) if entry.multiplier is not None else _own(piece, entry, overlay)
    note = "; ".join(part for part in (entry.note, listed) if part)
    currency = piece.currency if entry.multiplier is not None else overlay.currency
    source = f"{overlay.source} entry {entry.position}"
    return replace(piece, source=source, label="CONTRACT", note=note, currency=currency, **values)


def _multiplied(piece: Rate, entry: Entry) -> tuple[dict[str, Any], str]:
    """The list prices times the multiplier, and the list row's own note."""
    return {name: _scale(getattr(piece, name), entry.multiplier or 0.0) for name in PRICE_FIELDS}, piece.note


def _scale(price: float | None, multiplier: float) -> float | None:
    return None if price is None else price * multiplier


def _own(piece: Rate, entry: Entry, overlay: Overlay) -> tuple[dict[str, Any], str]:
    """The entry's own prices; a class it leaves out keeps the list price (said in the note), or is billed as input.

    PriceError where that list is in another currency.
    """
    values = {name: entry.prices.get(name, getattr(piece, name)) for name in PRICE_FIELDS}
    listed = [name for name in PRICE_FIELDS if name not in entry.prices and getattr(piece, name) is not None]
    if listed and overlay.currency != piece.currency:
        raise PriceError(
            f"price overlay {overlay.source}: [[price]] entry {entry.position} gives no {', '.join(listed)} for "
            f"{piece.provider} / {piece.model}, whose list is in {piece.currency}; give each in {overlay.currency}"
        )
    for name in ("read", "write_short"):
        values[name] = values["input"] if values[name] is None else values[name]
    return values, f"{', '.join(listed)} from the list" if listed else ""


def _covers(entry: Entry, piece: Rate) -> bool:
    starts = (piece.valid_from or date.min) >= (entry.valid_from or date.min)
    ends = (piece.valid_to or date.max) <= (entry.valid_to or date.max)
    return starts and ends and piece.tier_above >= entry.tier_above
