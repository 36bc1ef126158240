"""Simulated against reported: does the kit's model explain what the provider reported, and where does it not?

The model is `kit.providers.simulate`, in two settings. *Neutral*: the published retentions, nothing lost. *Observed*:
the retentions the log shows where it shows one, and the share of reads that other sessions lose. What remains is named
by cause, request by request: totals hide offsets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kit.prefix import Paths, load_paths
from kit.prices import Rates
from kit.providers.observed import ttl_observed
from kit.providers.rules import Rule, rule_for
from kit.providers.simulate import Simulated, expected_losses, simulate

CAUSES = {
    "as simulated": "within 64 tokens or 1 % of the prompt",
    "gone inside the retention": "the entry should have been alive; nothing was read",
    "only an earlier part matched": "the entry should have been alive; a shorter prefix was read",
    "still being written": "the request before had not finished when this one started",
    "held beyond the retention": "the entry should have expired; it was read",
    "shared root": "what a chain's first request found of a shared root, against the other first requests",
    "shorter prompt": "the chain went on with a much shorter prompt: what is left of its prefix is not in the log",
    "more than the log shows": "more was read than any prefix in the log holds: calls missing from the log",
    "expected losses": "reads the observed setting takes off, at the share that the other sessions lose",
}
CLOSE_TOKENS, CLOSE_SHARE = 64, 0.01
PER_MILLION = 1e6
NEW_CLASSES = ("write_tokens", "write_long_tokens", "uncached_tokens")


def reconcile(
    log: Any,
    rates: Rates | None = None,
    paths: Paths | None = None,
    rule: Rule | None = None,
    ttl_seconds: tuple[float | None, float | None] | None = None,
    minimum_tokens: int | None = None,
    edges: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Simulated against reported tokens and money, in total, per day and model, by cause, and per request.

    Keys: total, days (rows with day and model), causes (cause, meaning, requests, read_tokens = simulated minus
    reported, cost of that difference; they add up to the total's), errors (of single requests before expected losses:
    share within 1 % and 5 % of their prompt, mean and quantiles of |simulated - reported| / prompt), assumptions. Every
    row holds simulated (observed setting), neutral and reported read_tokens and new_tokens (written + uncached), the
    relative differences of both settings, and costs where prices are found; simulated also holds its new tokens by
    class (write_tokens, write_long_tokens, uncached_tokens). `total` is None where the log reports no cached tokens.
    `ttl_seconds` (short, long) replaces the observed retentions; `edges` are the rows of `ttl_observed` where known.
    """
    rule = rule or dominant_rule(log)
    paths = paths or load_paths(log, block_tokens=log.facts.block_tokens or rule.block_tokens)
    minimum = (rule.minimum_tokens or 0) if minimum_tokens is None else minimum_tokens
    published = published_seconds(rule)
    ttl = ttl_seconds or _observed(ttl_observed(log) if edges is None else edges, published)
    neutral, run = simulate(log, paths, published, minimum), simulate(log, paths, ttl, minimum)
    if not run.told.any():
        return {"total": None, "days": [], "causes": [], "errors": None, "assumptions": []}
    frame = _frame(log, neutral, run, rates, minimum)
    return {
        "total": _row(frame),
        "days": _days(frame),
        "causes": _causes(frame),
        "errors": _errors(frame),
        "assumptions": [
            f"neutral, rule {rule.id or 'none'}: short writes live {_seconds(published[0])}, long ones "
            f"{_seconds(published[1])}, from the last start that wrote or read them; nothing is lost",
            f"observed: {_seconds(ttl[0])} and {_seconds(ttl[1])}, and reads lost at the share that the other sessions "
            "lose, by what triggered the request",
            f"each write has its reported class; prefixes under {minimum:,} tokens are not cached; room for everything",
            "derived: a shared root is as long as the median reported read of the other first requests there",
            "money: what is not read is priced as a write of the request's class (as input under the minimum), "
            "simulated and reported alike",
        ],
    }


def _observed(
    edges: list[dict[str, Any]], published: tuple[float | None, float | None]
) -> tuple[float | None, float | None]:
    """The published retentions, replaced by the log's own where it shows an edge."""
    shown = {row["write_class"]: row["ttl_seconds"] for row in edges}
    return shown.get("short", published[0]), shown.get("long", published[1])


def dominant_rule(log: Any) -> Rule:
    """The published rule of the model with the most input tokens; `Rule()` where nobody published one."""
    query = "SELECT provider, model FROM request GROUP BY ALL ORDER BY sum(input_tokens) DESC, provider, model LIMIT 1"
    named = log.con.sql(query).fetchall()
    return rule_for(*named[0]) if named else Rule()


def published_seconds(rule: Rule) -> tuple[float | None, float | None]:
    """Seconds that (short, long) writes live by a rule; the long is the short where only one is sold."""
    short, long = rule.choice("short"), rule.choice("long")
    first = short.seconds if short else None
    return first, long.seconds if long else first


def _seconds(value: float | None) -> str:
    return "for ever" if value is None else f"{value:,.0f} s"


def _cause(run: Simulated) -> NDArray[np.int64]:
    """Index into CAUSES per request; the first condition that holds."""
    gap = run.read - run.reported
    slack = np.maximum(CLOSE_TOKENS, CLOSE_SHARE * run.input)
    by_name = {
        "as simulated": np.abs(gap) <= slack,
        "shared root": run.starts & ~run.follows,
        "shorter prompt": run.starts,
        "still being written": (gap > 0) & run.in_flight,
        "gone inside the retention": (gap > 0) & (run.reported == 0),
        "only an earlier part matched": gap > 0,
        "held beyond the retention": (run.read < run.matched - slack) & (run.reported <= run.matched + slack),
    }
    order = list(CAUSES)
    codes = [np.full(gap.size, order.index(name)) for name in by_name]
    return np.select(list(by_name.values()), codes, order.index("more than the log shows"))


def _frame(log: Any, neutral: Simulated, run: Simulated, rates: Rates | None, minimum: int) -> pl.DataFrame:
    """One row per request with a reported read: day, model, tokens three ways, cause, prices (null = not found)."""
    head = log.con.sql("SELECT strftime(ts, '%Y-%m-%d') AS day, model FROM request ORDER BY request_id").pl()
    cached = run.input >= minimum
    read, written = _prices(rates, run, cached)
    frame = head.with_columns(
        input=pl.Series(run.input),
        neutral=pl.Series(neutral.read.astype(np.float64)),
        held=pl.Series(run.read.astype(np.float64)),
        simulated=pl.Series(run.read - expected_losses(log, run)),
        reported=pl.Series(run.reported.astype(np.float64)),
        cause=pl.Series(_cause(run)),
        new_class=pl.Series(np.where(cached, run.write_class, NEW_CLASSES.index("uncached_tokens")).astype(np.int64)),
        read_minus_write=pl.Series(read - written, nan_to_null=True),
        written=pl.Series(written, nan_to_null=True),
    )
    return frame.filter(pl.Series(run.told))


def _prices(rates: Rates | None, run: Simulated, cached: NDArray[np.bool_]) -> tuple[Any, Any]:
    """Money per token of a read and of what is new in a request, per request; NaN where not found."""
    if rates is None:
        return np.full(run.input.size, np.nan), np.full(run.input.size, np.nan)
    prices = [(rate.read, rate.write_short, rate.write_long, rate.input) for rate in rates.rows]
    table = np.array([[np.nan if price is None else price for price in row] for row in prices]) / PER_MILLION
    own = table[rates.rate_of_request]
    return own[:, 0], np.where(~cached, own[:, 3], np.where(run.write_class == 1, own[:, 2], own[:, 1]))


def _cost(frame: pl.DataFrame, column: str) -> float | None:
    priced = frame.filter(pl.col("read_minus_write").is_not_null())
    each = priced.select(pl.col(column) * pl.col("read_minus_write") + pl.col("input") * pl.col("written")).to_series()
    return float(np.sum(each.to_numpy())) if priced.height else None


def _sum(frame: pl.DataFrame, column: str) -> int:
    return round(float(np.sum(frame[column].to_numpy())))


def _row(frame: pl.DataFrame) -> dict[str, Any]:
    """Totals of some requests: tokens and money three ways, and how far the two settings are from what was reported."""
    total = int(frame["input"].sum())
    reads = {column: _sum(frame, column) for column in ("simulated", "neutral", "reported")}
    row: dict[str, Any] = {"requests": frame.height, "input_tokens": total}
    for column, read in reads.items():
        row[column] = {"read_tokens": read, "new_tokens": total - read, "cost": _cost(frame, column)}
    row["simulated"] |= _new_classes(frame, total - reads["simulated"])
    told = reads["reported"]
    for prefix, column in (("", "simulated"), ("neutral_", "neutral")):
        gap = reads[column] - told
        row[f"{prefix}read_difference"] = gap / told if told else None
        row[f"{prefix}new_difference"] = -gap / (total - told) if total > told else None
    return row


def _new_classes(frame: pl.DataFrame, new: int) -> dict[str, int]:
    """Simulated new tokens by class; rounding of expected losses goes to the short writes, so they add up to `new`."""
    by_class = {}
    for code, name in enumerate(NEW_CLASSES):
        own = frame.filter(pl.col("new_class") == code)
        by_class[name] = int(own["input"].sum()) - _sum(own, "simulated")
    by_class["write_tokens"] += new - sum(by_class.values())
    return by_class


def _days(frame: pl.DataFrame) -> list[dict[str, Any]]:
    parts = frame.partition_by(["day", "model"], as_dict=True)
    order = sorted(parts, key=lambda key: (str(key[0]), str(key[1])))
    return [{"day": key[0], "model": key[1], **_row(parts[key])} for key in order]


def _causes(frame: pl.DataFrame) -> list[dict[str, Any]]:
    expected = len(CAUSES) - 1
    rows = []
    for code, (cause, meaning) in enumerate(CAUSES.items()):
        part = frame if code == expected else frame.filter(pl.col("cause") == code)
        gap = (part["simulated"] - part["held"] if code == expected else part["held"] - part["reported"]).to_numpy()
        known = part["read_minus_write"].is_not_null().to_numpy()
        money = (gap * part["read_minus_write"].fill_null(0.0).to_numpy())[known].sum()
        rows.append({
            "cause": cause, "meaning": meaning, "requests": int((gap != 0).sum()) if code == expected else part.height,
            "read_tokens": round(float(gap.sum())), "cost": float(money) if known.any() or not part.height else None,
        })  # fmt: skip
    return rows


def _errors(frame: pl.DataFrame) -> dict[str, float]:
    """How far single requests are off, as a share of their prompt."""
    sized = frame.filter(pl.col("input") > 0)
    error = ((sized["held"] - sized["reported"]).abs() / sized["input"]).to_numpy()
    return {
        "within_1_percent": float((error <= 0.01).mean()),
        "within_5_percent": float((error <= 0.05).mean()),
        "mean": float(error.mean()),
        **{f"p{level}": float(np.quantile(error, level / 100)) for level in (50, 90, 95, 99)},
    }
