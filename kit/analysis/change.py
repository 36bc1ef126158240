"""Before and after a change: what both logs' providers reported, priced alike, put side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kit import decide, prices, providers
from kit.analysis.parameters import ParameterError, Parameters
from kit.analysis.run import read_log
from kit.decide.change import ONE_TYPE, Side
from kit.intervals import Floats
from kit.log import Log, LogError, open_log
from kit.prefix import DAY_US

BLOCKS = 200
STRETCHES = 50
FEWEST_PRICED = 0.5
PER_MILLION = 1e6
PRICES = ("input", "read", "write_short", "write_long")
LOG_DB = "log.duckdb"
ONE_SIDED = (
    "the two logs do not name session types in the same way, so all requests are compared as one type: a shift of the "
    "mix between short and long sessions would look like a change"
)


def judge(before: str, after: str, parameters: Parameters) -> Mapping[str, Any]:
    """Accept, revert or inconclusive as plain values; LogError where a log reports no cached tokens.

    ParameterError where both are the same log. With tier_mode=engine no prices are asked: what counts is the tokens not
    read from the cache.
    """
    logs = [_log(source, parameters) for source in (before, after)]
    try:
        if logs[0].facts.sha256 == logs[1].facts.sha256:
            raise ParameterError(f"BEFORE and AFTER hold the same rows ({before}, {after}); give the log of each side")
        alike = len({_types_from(log) for log in logs}) == 1
        sides = [_side(log, source, parameters, alike) for log, source in zip(logs, (before, after), strict=True)]
        notes = [*([] if alike else [ONE_SIDED]), *_order(*logs)]
    finally:
        for log in logs:
            log.con.close()
    _same_money(sides, (before, after))
    found = decide.judge(sides[0], sides[1], parameters.replicates, parameters.seed, notes)
    return {"before": Path(before).name, "after": Path(after).name, **found.as_dict()}


def _same_money(sides: Sequence[Side], sources: Sequence[str]) -> None:
    """Both sides in one currency, or both without a price."""
    if sides[0].currency == sides[1].currency:
        return
    told = [f"{source} {f'is priced in {side.currency}' if side.currency else 'has no price'}"
            for side, source in zip(sides, sources, strict=True)]  # fmt: skip
    raise LogError(
        f"{' and '.join(told)}; give both the same price_overlay or model (--set model=...), or compare tokens alone "
        "with --set tier_mode=engine"
    )


def _types_from(log: Log) -> str:
    """Where the session types of a log come from: the log itself, the kit (from triggers and turns), or nowhere."""
    if any(text.startswith("session_type:") for text in log.facts.derived):
        return "kit"
    named = log.con.sql("select count(session_type)::BIGINT from request").fetchall()[0][0]
    return "log" if named else "nowhere"


def _order(first: Log, second: Log) -> list[str]:
    """What the times of the two logs say about which came first; nothing without a common clock."""
    one, two = first.facts, second.facts
    if not (one.has_clock and two.has_clock and one.start and one.end and two.start and two.end):
        return []
    if two.end < one.start:
        return ["AFTER ends before BEFORE begins: were the two given in this order?"]
    if two.start < one.end:
        return [f"the logs overlap in time from {max(one.start, two.start):%Y-%m-%d %H:%M} UTC on, so requests of one "
                "may be in the other too"]  # fmt: skip
    return []


def _log(source: str, parameters: Parameters) -> Log:
    """A log with the user's provider and model, or the one stored in a report folder."""
    stored = Path(source) / LOG_DB
    return open_log(stored) if stored.exists() else read_log(source, parameters, None)


def _side(log: Log, source: str, parameters: Parameters, by_type: bool) -> Side:
    """Reported tokens and money of one log by session type, by bootstrap block and by day.

    Requests whose reported classes do not make up their input are counted and left out: a 0 would pass for money.
    """
    if not log.facts.has_cached_tokens:
        raise LogError(
            f"{source}: the log reports no cached tokens, so nothing was measured; compare needs read_tokens (and "
            "write_tokens) as the provider reported them, before and after"
        )
    stretch = f"request_id * {STRETCHES} // {log.facts.requests}"
    classes = ", ".join(f"coalesce({name}, 0) AS {name}" for name in providers.CLASSES)
    told = "(" + " + ".join(f"coalesce(request.{name}, 0)" for name in providers.CLASSES) + ")"
    kind = f"coalesce(session_type, '{ONE_TYPE}')" if by_type else f"'{ONE_TYPE}'"
    rows = log.con.sql(
        f"""SELECT {kind} AS kind, input_tokens, {classes}, (epoch_us(ts) // {DAY_US})::BIGINT AS day,
                   CASE WHEN session_id IS NULL THEN {stretch} ELSE (hash(session_id) % {BLOCKS})::BIGINT END AS block,
                   request.uncached_tokens IS NOT NULL AND {told} = request.input_tokens AS reported
            FROM request ORDER BY request_id"""
    ).pl()
    engine = parameters.tier_mode == "engine"
    rates = None if engine else prices.rate_table(log, parameters.price_overlay, parameters.service_class)
    reported = rows["reported"].to_numpy()
    rows, rate_of = rows.filter(reported), None if rates is None else rates.rate_of_request[reported]
    money, base, currency = _paid(rows, rates, rate_of, source)
    known, tokens = np.isfinite(money), rows["input_tokens"].to_numpy()
    columns = _columns(rows, money, base)
    kinds, blocks, days = (rows[name].to_numpy() for name in ("kind", "block", "day"))
    names = sorted(set(kinds))
    days = days - days.min(initial=0) if log.facts.has_clock else None
    return Side(
        {str(name): _by_unit(columns[kinds == name], blocks[kinds == name], BLOCKS) for name in names},
        currency,
        {}
        if days is None
        else {
            str(name): _by_unit(columns[kinds == name], days[kinds == name], int(days.max(initial=0)) + 1)
            for name in names
        },
        int((~reported).sum()),
        float(tokens[~known].sum() / max(tokens.sum(), 1)),
    )


def _columns(rows: Any, money: Floats, base: Floats) -> Floats:
    """`decide.change.COLUMNS` per request, float64[requests, columns]; money of a request without a price is 0."""
    known = np.isfinite(money)
    read, tokens = (rows[name].to_numpy() for name in ("read_tokens", "input_tokens"))
    paid, equal = np.where(known, money, 0.0), np.where(known, money / base, 0.0)
    return np.stack([np.ones(rows.height), read > 0, read, tokens, paid, equal, known, known & (read > 0)], axis=1)


def _paid(rows: Any, rates: prices.Rates | None, rate_of: Any, source: str) -> tuple[Floats, Floats, str | None]:
    """Money per request, the price of its plain input token, the currency; without any price the prefill tokens."""
    if rates is None or not any(rate.found for rate in rates.rows):
        prefill = (rows["input_tokens"] - rows["read_tokens"]).to_numpy().astype(np.float64)
        return prefill, np.ones(rows.height), None
    money, base = _priced(rows, rates, rate_of)
    tokens = rows["input_tokens"].to_numpy()
    share = float(tokens[np.isfinite(money)].sum() / max(tokens.sum(), 1))
    if share < FEWEST_PRICED:
        raise LogError(
            f"{source}: only {share:.0%} of input tokens have a price, so cost cannot be compared; give price_overlay "
            "(see python -m kit prices)"
        )
    return money, base, rates.currency


def _priced(rows: Any, rates: prices.Rates, rate_of: Any) -> tuple[Floats, Floats]:
    """Money per request and the price of its plain input token; NaN where a class that was used has no price."""
    of_class = {
        name: np.array([_price(rate, price) for rate in rates.rows])
        for name, price in zip(providers.CLASSES, PRICES, strict=True)
    }
    money = np.zeros(rows.height)
    for name, price in of_class.items():
        tokens = rows[name].to_numpy().astype(np.float64)
        money += np.where(tokens > 0, tokens * price[rate_of], 0.0)
    return money, of_class["uncached_tokens"][rate_of]


def _price(rate: prices.Rate, name: str) -> float:
    price = getattr(rate, name) if rate.found else None
    return np.nan if price is None else price / PER_MILLION


def _by_unit(columns: Floats, unit: Any, units: int) -> Floats:
    """Sums per bootstrap block or day, float64[units, columns]."""
    summed = np.zeros((units, columns.shape[1]))
    np.add.at(summed, unit, columns)
    return summed
