"""The ledger of what was really billed: by owner, model and day, and by what made tokens new.

Source of the classes: what the provider reported; where it reported nothing, the neutral simulation of its published
rule (`basis` says which; without prefix identity nothing is shared, so nothing is read). A token is new because it was
never seen before (`cold`), because its entry had outlived its retention (`expired`), because it was not read although
it should have been there (`lost`: dropped, or the client rewrote its prompt), or because its prompt is under the
provider's minimum. Expired and lost tokens are avoidable: their money is what they cost above a read. Within a request
they are taken from the written ones; the uncached tail is new.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from kit.prefix import Paths, load_paths, make_paths
from kit.prices import Rates
from kit.providers import Rule
from kit.providers.reconcile import CLOSE_SHARE, CLOSE_TOKENS, dominant_rule, published_seconds
from kit.providers.simulate import Simulated, simulate

CLASSES = ("uncached_tokens", "read_tokens", "write_tokens", "write_long_tokens")
PRICE_NAMES = ("input", "read", "write_short", "write_long")
NEW_CLASSES = {"write_long_tokens": "write_long", "write_tokens": "write_short", "uncached_tokens": "input"}
NEW_CAUSES = ("cold", "expired", "lost", "below_minimum")
AVOIDABLE_CAUSES = ("expired", "lost")
PER_MILLION = 1e6


def ledger(
    log: Any,
    rates: Rates,
    paths: Paths | None = None,
    rule: Rule | None = None,
    ttl_seconds: tuple[float | None, float | None] | None = None,
    minimum_tokens: int | None = None,
) -> dict[str, list[dict[str, Any]]]:
    """Three tables of plain rows, each adding up to the same bill.

    `bill`: per day, provider, model and token class: tokens, price per million, cost, label, basis. `chargeback`: per
    owner, model and day: requests, tokens by class, output tokens, cost (input side), output cost, avoidable tokens
    and cost. `causes`: per owner and cause: tokens, cost, avoidable cost. Owner None = the log names none; money is
    None where its price is not found.
    """
    frame = _requests(log, rates, paths, rule or dominant_rule(log), ttl_seconds, minimum_tokens)
    return {"bill": _bill(frame, rates), "chargeback": _chargeback(frame, rates), "causes": _causes(frame, rates)}


def _requests(log: Any, rates: Rates, paths: Paths | None, rule: Rule, ttl: Any, minimum: int | None) -> pl.DataFrame:
    """One row per request: owner, provider, model, day, rate, tokens by class and by cause."""
    columns = ", ".join(f"q.{name}" for name in (*CLASSES, "output_tokens", "input_tokens"))
    frame = log.con.sql(
        f"SELECT owner, provider, model, strftime(ts, '%Y-%m-%d') AS day, {columns}, "
        "read_tokens IS NOT NULL AS told FROM request q ORDER BY request_id"
    ).pl()
    if paths is None and log.facts.identity is not None:
        paths = load_paths(log, block_tokens=log.facts.block_tokens or rule.block_tokens)
    least = (rule.minimum_tokens or 0) if minimum is None else minimum
    run = simulate(log, paths or _nothing_shared(log), ttl or published_seconds(rule), least)
    if log.facts.output_is_placeholder:
        frame = frame.with_columns(output_tokens=pl.lit(None, pl.Int64))
    classes = _classes(frame, run, least)
    return frame.with_columns(
        rate_id=pl.Series(rates.rate_of_request),
        basis=pl.when("told").then(pl.lit("reported")).otherwise(pl.lit("simulated")),
        **{name: pl.Series(tokens) for name, tokens in classes.items()},
        **{name: pl.Series(tokens) for name, tokens in _new(classes, run, least).items()},
    )


def _nothing_shared(log: Any) -> Paths:
    """Paths of a log without prefix identity: no request has anything in common with another."""
    times = log.con.sql(
        "SELECT epoch_us(ts) AS ts_us, coalesce(input_tokens, 0) AS input FROM request ORDER BY request_id"
    ).pl()
    ts_us, total = (times[name].to_numpy().astype(np.int64) for name in ("ts_us", "input"))
    none = np.empty(0, np.int64)
    return make_paths(none.astype(np.int32), none, np.full(ts_us.size, -1, np.int32), ts_us, total)


def _classes(frame: pl.DataFrame, run: Simulated, minimum: int) -> dict[str, np.ndarray]:
    """Tokens by class: as reported, or simulated where the provider told nothing. They add up to the input."""
    told, total = frame["told"].to_numpy(), run.input
    reported = {name: frame[name].fill_null(0).to_numpy() for name in CLASSES}
    read = np.minimum(run.read, total)
    written = np.where(total >= minimum, total - read, 0)
    long = run.write_class == 1
    simulated = {
        "uncached_tokens": total - read - written,
        "read_tokens": read,
        "write_tokens": np.where(long, 0, written),
        "write_long_tokens": np.where(long, written, 0),
    }
    return {name: np.where(told, reported[name], simulated[name]) for name in CLASSES}


def _new(classes: dict[str, np.ndarray], run: Simulated, minimum: int) -> dict[str, np.ndarray]:
    """Tokens that were not read, by cause and class ("expired_write_tokens"); per class they add up to the class.

    A remainder within 64 tokens or 1 % of the prompt is the uncached tail of the request before, not a loss.
    """
    left = {name: classes[name].copy() for name in NEW_CLASSES}
    new, short = sum(left.values()), run.input < minimum
    seen = np.clip(np.minimum(run.matched, run.input) - classes["read_tokens"], 0, new)
    seen = np.where(seen <= np.maximum(CLOSE_TOKENS, CLOSE_SHARE * run.input), 0, seen)
    lost = np.clip(run.read - classes["read_tokens"], 0, seen)
    wanted = {"below_minimum": np.where(short, new, 0), "lost": np.where(short, 0, lost),
              "expired": np.where(short, 0, seen - lost), "cold": new}  # fmt: skip
    columns = {}
    for cause, tokens in wanted.items():
        for name in NEW_CLASSES:
            taken = np.minimum(tokens, left[name])
            columns[f"{cause}_{name}"], left[name], tokens = taken, left[name] - taken, tokens - taken
    return columns


def _priced(rates: Rates) -> pl.DataFrame:
    """Prices per million by rate_id."""
    return rates.frame().select("rate_id", "label", "currency", *PRICE_NAMES, output_price="output")


def _grouped(frame: pl.DataFrame, keys: list[str], columns: list[str]) -> pl.DataFrame:
    """Integer sums per group and rate, in a fixed order: the exact base of every money figure."""
    sums = [pl.col(name).sum() for name in columns]
    return frame.group_by([*keys, "rate_id"]).agg(pl.len().alias("requests"), *sums).sort([*keys, "rate_id"])


def _bill(frame: pl.DataFrame, rates: Rates) -> list[dict[str, Any]]:
    keys = ["day", "provider", "model", "basis"]
    sums = (
        _grouped(frame, keys, [*CLASSES, "output_tokens"]).join(_priced(rates), on="rate_id").sort([*keys, "rate_id"])
    )
    rows = []
    for row in sums.iter_rows(named=True):
        for name, price in zip((*CLASSES, "output_tokens"), (*PRICE_NAMES, "output_price"), strict=True):
            if row[name]:
                cost = row[name] * row[price] / PER_MILLION if row[price] is not None else None
                rows.append({
                    **{key: row[key] for key in keys}, "token_class": name.removesuffix("_tokens"),
                    "tokens": row[name], "price_per_million": row[price], "cost": cost,
                    "currency": row["currency"], "label": row["label"],
                })  # fmt: skip
    return rows


def _cost(row: dict[str, Any]) -> float | None:
    """Money for a group's input classes; None where any of its tokens has no price."""
    pairs = [(row[name], row[price]) for name, price in zip(CLASSES, PRICE_NAMES, strict=True) if row[name]]
    if any(price is None for _, price in pairs):
        return None
    return sum(tokens * price for tokens, price in pairs) / PER_MILLION


def _cause_cost(row: dict[str, Any], cause: str, above_read: bool = False) -> float | None:
    """What a cause's new tokens cost, or what they cost above a read; None where any of them has no price."""
    pairs = [(row[f"{cause}_{name}"], row[price]) for name, price in NEW_CLASSES.items() if row[f"{cause}_{name}"]]
    if any(price is None for _, price in pairs) or (above_read and pairs and row["read"] is None):
        return None
    saved = row["read"] if above_read and pairs else 0.0
    return sum(tokens * (price - saved) for tokens, price in pairs) / PER_MILLION


def _cause_tokens(row: dict[str, Any], cause: str) -> int:
    return sum(row[f"{cause}_{name}"] for name in NEW_CLASSES)


def _add(total: float | None, part: float | None) -> float | None:
    return None if total is None or part is None else total + part


def _chargeback(frame: pl.DataFrame, rates: Rates) -> list[dict[str, Any]]:
    keys = ["owner", "model", "day"]
    causes = [f"{cause}_{name}" for cause in AVOIDABLE_CAUSES for name in NEW_CLASSES]
    has_output = frame["output_tokens"].null_count() < frame.height
    sums = _grouped(frame, keys, [*CLASSES, "output_tokens", *causes]).join(_priced(rates), on="rate_id")
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sums.sort([*keys, "rate_id"]).iter_rows(named=True):
        names = tuple(row[key] for key in keys)
        empty = {**dict(zip(keys, names, strict=True)), "requests": 0, **dict.fromkeys(CLASSES, 0), "output_tokens": 0,
                 "cost": 0.0, "output_cost": 0.0, "avoidable_tokens": 0, "avoidable_cost": 0.0,
                 "currency": row["currency"], "label": row["label"]}  # fmt: skip
        line = rows.setdefault(names, empty)
        for name in ("requests", *CLASSES, "output_tokens"):
            line[name] += row[name]
        output = row["output_tokens"] * row["output_price"] / PER_MILLION if row["output_price"] is not None else None
        for cause in AVOIDABLE_CAUSES:
            line["avoidable_tokens"] += _cause_tokens(row, cause)
            line["avoidable_cost"] = _add(line["avoidable_cost"], _cause_cost(row, cause, above_read=True))
        line["cost"] = _add(line["cost"], _cost(row))
        line["output_cost"] = _add(line["output_cost"], output)
    return [line if has_output else {**line, "output_tokens": None, "output_cost": None} for line in rows.values()]


def _causes(frame: pl.DataFrame, rates: Rates) -> list[dict[str, Any]]:
    columns = [f"{cause}_{name}" for cause in NEW_CAUSES for name in NEW_CLASSES]
    sums = _grouped(frame, ["owner"], columns).join(_priced(rates), on="rate_id").sort("owner", "rate_id")
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sums.iter_rows(named=True):
        for cause in NEW_CAUSES:
            empty = {"owner": row["owner"], "cause": cause, "tokens": 0, "cost": 0.0, "avoidable_cost": 0.0}
            line = rows.setdefault((row["owner"], cause), empty)
            line["tokens"] += _cause_tokens(row, cause)
            line["cost"] = _add(line["cost"], _cause_cost(row, cause))
            if cause in AVOIDABLE_CAUSES:
                line["avoidable_cost"] = _add(line["avoidable_cost"], _cause_cost(row, cause, above_read=True))
    return list(rows.values())
