"""List prices: the genai-prices package, read offline and cut into cells that never overlap.

The package resolves one request at a time (about half a millisecond). Here each model's dates, size tiers and hours of
the day become the edges of a small grid; the package is asked once per cell, so its own rules decide every price.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Any

import genai_prices
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, StartDateConstraint, TieredPrices, TimeOfDateConstraint

from kit.prices.rate import DAY_MINUTES, PriceError, Rate

LIBRARY = "genai-prices"
LOCKED_VERSION = "0.2.3"
LOCK_DATE = date(2026, 11, 29)
LIBRARY_KEYS = {
    "input": "input_mtok",
    "read": "cache_read_mtok",
    "write_short": "cache_write_mtok",
    "write_long": "cache_write_1h_mtok",
    "output": "output_mtok",
}
SERVICE_CLASSES: dict[str, dict[str, str]] = {
    "standard": {},
    "batch": {"processing": "batch"},
    "flex": {"service_tier": "flex"},
    "priority": {"service_tier": "priority"},
    "fast": {"service_tier": "fast", "speed": "fast"},
}


def installed_version() -> str:
    """Version of the price package that is really installed (the lock names `LOCKED_VERSION`)."""
    return str(genai_prices.__version__)


def list_cells(provider: str | None, model: str | None, service_class: str = "standard") -> list[Rate]:
    """Every list-price cell of one model, in date, hour, tier order; one "not found" cell when nobody lists it.

    Prices are USD per million tokens. Raises PriceError for an unknown service class.
    """
    if service_class not in SERVICE_CLASSES:
        raise PriceError(
            f"service class {service_class!r} is not known; accepted: {', '.join(SERVICE_CLASSES)}; "
            "change the parameter service_class"
        )
    info = _find(provider, model)
    if info is None:
        return [Rate(0, provider, model)]
    blank = Rate(0, provider, model, source=f"{LIBRARY} {installed_version()}")
    return [cell for span in _spans(info, blank) for cell in _tiers(span, info, service_class)]


def has_provider(provider: str) -> bool:
    """Whether the price list knows a provider by this name or one of its other names."""
    try:
        return bool(get_snapshot().find_provider(None, provider, None))
    except LookupError:
        return False


def provider_names() -> list[str]:
    """The providers of the price list, by their plain names."""
    return sorted(provider.id for provider in get_snapshot().providers)


def model_names(provider: str | None = None) -> list[str]:
    """The models of the price list, of one provider where it is named and known."""
    known = get_snapshot().providers
    mine = [get_snapshot().find_provider(None, provider, None)] if provider and has_provider(provider) else known
    return sorted({model.id for one in mine for model in one.models})


def _find(provider: str | None, model: str | None) -> ModelInfo | None:
    """The package's entry for a model, by provider when the log names one, else by the model's own name."""
    if not model:
        return None
    try:
        return get_snapshot().find_provider_model(model, None, provider, None)[1]
    except LookupError:
        return None


def _constraints(info: ModelInfo) -> Iterator[Any]:
    prices = info.prices if isinstance(info.prices, list) else []
    yield from (entry.constraint for entry in prices if entry.constraint is not None)
    yield from (variant.constraint for variant in info.price_variants or () if variant.constraint is not None)


def _minute(value: time) -> int:
    moment = datetime.combine(date(2000, 1, 1), value)
    moment = moment if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.hour * 60 + moment.minute


def _spans(info: ModelInfo, blank: Rate) -> Iterator[Rate]:
    """Date x hour cells of a model, without prices yet."""
    dates: set[date] = set()
    minutes: set[int] = set()
    for constraint in _constraints(info):
        if isinstance(constraint, StartDateConstraint):
            dates.add(constraint.start_date)
        elif isinstance(constraint, TimeOfDateConstraint):
            minutes |= {_minute(constraint.start_time), _minute(constraint.end_time)}
    starts: list[date | None] = [None, *sorted(dates)]
    edges = sorted({0, DAY_MINUTES, *minutes})
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        for lower, upper in pairwise(edges):
            yield replace(blank, valid_from=start, valid_to=end, minute_from=lower, minute_to=upper)


def _prices_at(span: Rate, info: ModelInfo, service_class: str) -> dict[str, Any]:
    """What the package charges inside a span: our price names -> Decimal, TieredPrices or None."""
    day = span.valid_from or (span.valid_to or date(2000, 1, 2)) - timedelta(days=1)
    moment = datetime.combine(day, time(span.minute_from // 60, span.minute_from % 60), UTC)
    found = info.get_prices(moment, SERVICE_CLASSES[service_class] or None)
    return {ours: getattr(found, theirs) for ours, theirs in LIBRARY_KEYS.items()}


def _tiers(span: Rate, info: ModelInfo, service_class: str) -> Iterator[Rate]:
    """One cell per input-size tier: a tier is a cliff, the whole request pays its price."""
    prices = _prices_at(span, info, service_class)
    tiered = [value for value in prices.values() if isinstance(value, TieredPrices)]
    starts = sorted({0, *(tier.start for value in tiered for tier in value.tiers)})
    for start, end in zip(starts, [*starts[1:], None], strict=True):
        values: dict[str, Any] = {name: _price_above(value, start) for name, value in prices.items()}
        yield _fill(replace(span, tier_above=start, tier_to=end, **values))


def _price_above(value: Any, start: int) -> float | None:
    if not isinstance(value, TieredPrices):
        return None if value is None else float(value)
    reached = [tier.price for tier in value.tiers if 0 < tier.start <= start]
    return float(reached[-1] if reached else value.base)


def _fill(rate: Rate) -> Rate:
    """Without a listed read or short-write price those tokens are billed as input; the long write stays unknown."""
    if rate.input is None:
        return replace(rate, source="not found", note="listed without an input price")
    missing = [name for name in ("read", "write_short") if getattr(rate, name) is None]
    if not missing:
        return rate
    values: dict[str, Any] = dict.fromkeys(missing, rate.input)
    return replace(rate, note=f"no {' or '.join(missing)} price listed: billed as input", **values)


def catalogue() -> list[Rate]:
    """Today's list price of every model that sells cached reads, by provider and model: what `kit prices` shows."""
    today, rows = datetime.now(UTC).date(), []
    for provider in get_snapshot().providers:
        for model in provider.models:
            cells = (cell for cell in list_cells(provider.id, model.id) if _is_current(cell, today))
            rows += [cell for cell in cells if cell.read is not None]
    return sorted((replace(row, rate_id=0) for row in rows), key=lambda row: (row.provider or "", row.model or ""))


def _is_current(cell: Rate, day: date) -> bool:
    return (cell.valid_from or day) <= day and (cell.valid_to is None or day < cell.valid_to)
