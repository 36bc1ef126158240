"""Before and after a change: what both logs' providers reported, priced alike, put side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kit import decide, prices, providers
from kit.analysis.parameters import Parameters
from kit.decide.change import Side
from kit.intervals import Floats
from kit.log import Log, LogError, load, open_log

BLOCKS = 200
STRETCHES = 50
FEWEST_PRICED = 0.5
PER_MILLION = 1e6
PRICES = ("input", "read", "write_short", "write_long")
LOG_DB = "log.duckdb"


def judge(before: str, after: str, parameters: Parameters) -> Mapping[str, Any]:
    """Accept, revert or inconclusive as plain values; LogError where a log reports no cached tokens."""
    sides = []
    for source in (before, after):
        log = _log(source, parameters)
        try:
            sides.append(_side(log, source, parameters))
        finally:
            log.con.close()
    if sides[0].currency != sides[1].currency:
        raise LogError(
            f"{before} is priced in {sides[0].currency or 'nothing'} and {after} in {sides[1].currency or 'nothing'}; "
            "give both the same price_overlay"
        )
    found = decide.judge(sides[0], sides[1], parameters.replicates, parameters.seed)
    return {"before": Path(before).name, "after": Path(after).name, **found.as_dict()}


def _log(source: str, parameters: Parameters) -> Log:
    """A log, or the one stored in a report folder."""
    stored = Path(source) / LOG_DB
    if stored.exists():
        return open_log(stored)
    return load(source, None, format=parameters.format, column_map=dict(parameters.column_map) or None)


def _side(log: Log, source: str, parameters: Parameters) -> Side:
    """Reported tokens and money of one log by session type and bootstrap block."""
    if not log.facts.has_cached_tokens:
        raise LogError(
            f"{source}: the log reports no cached tokens, so nothing was measured; compare needs read_tokens (and "
            "write_tokens) as the provider reported them, before and after"
        )
    rates = prices.rate_table(log, parameters.price_overlay, parameters.service_class)
    stretch = f"request_id * {STRETCHES} // {log.facts.requests}"
    classes = ", ".join(f"coalesce({name}, 0) AS {name}" for name in providers.CLASSES)
    rows = log.con.sql(
        f"""SELECT coalesce(session_type, 'all') AS kind, input_tokens, {classes},
                   CASE WHEN session_id IS NULL THEN {stretch} ELSE (hash(session_id) % {BLOCKS})::BIGINT END AS block
            FROM request ORDER BY request_id"""
    ).pl()
    money, base, currency = _paid(rows, rates, source)
    read, known = rows["read_tokens"].to_numpy(), np.isfinite(money)
    one = np.ones(rows.height)
    columns = np.stack([one, read > 0, read, rows["input_tokens"].to_numpy(), money, money / base], axis=1)[known]
    kinds, blocks = rows["kind"].to_numpy()[known], rows["block"].to_numpy()[known]
    tables = {str(kind): _by_block(columns[kinds == kind], blocks[kinds == kind]) for kind in sorted(set(kinds))}
    return Side(tables, currency)


def _paid(rows: Any, rates: prices.Rates, source: str) -> tuple[Floats, Floats, str | None]:
    """Money per request, the price of its plain input token, the currency; without any price the prefill tokens."""
    if not any(rate.found for rate in rates.rows):
        prefill = (rows["input_tokens"] - rows["read_tokens"]).to_numpy().astype(np.float64)
        return prefill, np.ones(rows.height), None
    money, base = _priced(rows, rates)
    tokens = rows["input_tokens"].to_numpy()
    share = float(tokens[np.isfinite(money)].sum() / max(tokens.sum(), 1))
    if share < FEWEST_PRICED:
        raise LogError(
            f"{source}: only {share:.0%} of input tokens have a price, so cost cannot be compared; give price_overlay "
            "(see python -m kit prices)"
        )
    return money, base, rates.currency


def _priced(rows: Any, rates: prices.Rates) -> tuple[Floats, Floats]:
    """Money per request and the price of its plain input token; NaN where a class that was used has no price."""
    of_class = {
        name: np.array([_price(rate, price) for rate in rates.rows])
        for name, price in zip(providers.CLASSES, PRICES, strict=True)
    }
    money = np.zeros(rows.height)
    for name, price in of_class.items():
        tokens = rows[name].to_numpy().astype(np.float64)
        money += np.where(tokens > 0, tokens * price[rates.rate_of_request], 0.0)
    return money, of_class["uncached_tokens"][rates.rate_of_request]


def _price(rate: prices.Rate, name: str) -> float:
    price = getattr(rate, name) if rate.found else None
    return np.nan if price is None else price / PER_MILLION


def _by_block(columns: Floats, blocks: Any) -> Floats:
    """Sums per bootstrap block, float64[blocks, columns]."""
    summed = np.zeros((BLOCKS, columns.shape[1]))
    np.add.at(summed, blocks, columns)
    return summed
