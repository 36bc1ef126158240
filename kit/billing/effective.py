"""The effective price of an input token: what the log really paid, beside the formula that slides and seeds quote.

The formula C_eff = (1 - a) x write + a x read needs one write price and nothing uncached, and `a` as a share of tokens.
Here both are computed from the reported classes, and what keeps the formula from being exact on this log is listed.
"""

from __future__ import annotations

from typing import Any

from kit.billing.arithmetic import effective_multiplier, read_share_for_saving
from kit.prices import Rates, rate_sums
from kit.providers import CLASSES

OFTEN_QUOTED_SAVING = 0.75
PRICES = {"uncached_tokens": "input", "read_tokens": "read", "write_tokens": "write_short",
          "write_long_tokens": "write_long"}  # fmt: skip


def effective_price(log: Any, rates: Rates) -> dict[str, Any]:
    """The mean price of an input token in units of an uncached one, from reported classes with prices.

    Keys: read_share (of tokens), request_share (requests that read anything), paid (true multiplier), saving (against
    no cache), formula and formula_saving (C_eff at read_share with the log's mean short-write and read multipliers),
    formula_error (formula / paid - 1), request_formula (C_eff at request_share: the usual mistake), share_for_75 (read
    share that the formula needs to save 75 %; None = none is enough), limits (why the formula is not exact here).
    Every figure is None where the log reports no classes or none has a price.
    """
    sums = [row for row in _sums(log, rates) if _priced(rates, row)]
    total = sum(row[name] for row in sums for name in CLASSES)
    if not total:
        names = ("read_share", "request_share", "paid", "saving", "formula", "formula_saving", "formula_error",
                 "request_formula", "share_for_75")  # fmt: skip
        return {**dict.fromkeys(names), "limits": []}
    tokens = {name: sum(row[name] for row in sums) for name in CLASSES}
    paid = sum(_equivalents(rates, row, CLASSES) for row in sums) / total
    write, read = (_mean(rates, sums, name) for name in ("write_short", "read"))
    share = tokens["read_tokens"] / total
    requests = sum(row["readers"] for row in sums) / sum(row["requests"] for row in sums)
    formula = effective_multiplier(share, write, read)
    return {
        "read_share": share,
        "request_share": requests,
        "paid": paid,
        "saving": 1 - paid,
        "formula": formula,
        "formula_saving": 1 - formula,
        "formula_error": formula / paid - 1,
        "request_formula": effective_multiplier(requests, write, read),
        "share_for_75": read_share_for_saving(OFTEN_QUOTED_SAVING, write, read),
        "limits": _limits(tokens, total, len({rates.rows[row["rate_id"]].model for row in sums})),
    }


def _sums(log: Any, rates: Rates) -> list[dict[str, Any]]:
    told = "q.read_tokens IS NOT NULL"
    columns = ", ".join(f"coalesce(sum(q.{n}) FILTER ({told}), 0)::BIGINT AS {n}" for n in CLASSES)
    counts = f"count(*) FILTER ({told}) AS requests, count(*) FILTER (q.read_tokens > 0) AS readers"
    return rate_sums(log.con, rates.rate_of_request, f"{columns}, {counts}")


def _priced(rates: Rates, row: dict[str, Any]) -> bool:
    """True when every class that the rate's requests used has a price, and an input price to measure it in."""
    rate = rates.rows[row["rate_id"]]
    return bool(rate.input) and all(getattr(rate, PRICES[name]) is not None for name in CLASSES if row[name])


def _equivalents(rates: Rates, row: dict[str, Any], names: Any) -> float:
    rate = rates.rows[row["rate_id"]]
    return sum(row[name] * getattr(rate, PRICES[name]) for name in names if row[name]) / (rate.input or 1.0)


def _mean(rates: Rates, sums: list[dict[str, Any]], price: str) -> float:
    """Multiplier of a price over input, weighted by every rate's input tokens."""
    weighted, weight = 0.0, 0
    for row in sums:
        rate, tokens = rates.rows[row["rate_id"]], sum(row[name] for name in CLASSES)
        value = getattr(rate, price)
        weighted += tokens * (value if value is not None else rate.input) / rate.input
        weight += tokens
    return weighted / weight


def _limits(tokens: dict[str, int], total: int, models: int) -> list[str]:
    """What the formula leaves out on this log."""
    found = []
    if tokens["uncached_tokens"]:
        found.append(f"{tokens['uncached_tokens'] / total:.2%} of input tokens are neither written nor read")
    if tokens["write_long_tokens"]:
        written = tokens["write_tokens"] + tokens["write_long_tokens"]
        found.append(f"{tokens['write_long_tokens'] / written:.1%} of written tokens have the long retention's price")
    if models > 1:
        found.append(f"{models} models with prices of their own are pooled")
    return [*found, "output tokens are on top and are not cached"]
