"""Which retention would have been cheapest on this log: short, long, keep-alive or no cache, with money and interval.

The bill of each choice is exact (see `kit.billing.touches`): reads for tokens re-used within the retention, writes for
the rest. A keep-alive re-reads a chain's whole prefix once per short retention while the chain is idle, as often as is
cheapest for the group, also for chains that never come back. It must win by a margin: it spends rate limit.
Whose return it waits for is not known when it is sent, so it is not asked per trigger.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kit.billing.arithmetic import break_even_reads, most_pings
from kit.billing.choices import KEEP_ALIVE_MARGIN, TOO_CLOSE, Choices, Grouping, Prices
from kit.billing.touches import Touches, chain_codes, read_touches
from kit.numbers import money, with_level
from kit.prefix import Paths, load_paths
from kit.prices import Rates
from kit.providers import Rule, default_setting_facts

PER_MILLION = 1e6
DIMENSIONS = ("session_type", "trigger", "owner", "model")
NAMES = {"short": "the short retention", "long": "the long retention", "keep_alive": "keep-alive", "none": "no cache"}
OTHERS = "all others"
MOST_GROUPS = 20
MOST_PINGS = 60
Floats = NDArray[np.float64]


def ttl_advice(
    log: Any,
    rates: Rates | None = None,
    paths: Paths | None = None,
    rule: Rule | None = None,
    minimum_tokens: int | None = None,
    replicates: int = 2000,
    seed: int = 1,
) -> dict[str, Any]:
    """The retention verdict of a log, ready for results.json.

    Keys: choice (short | long | keep_alive | none | too close to call | None = cannot tell), sentence, ttl_seconds,
    currency, costs by choice (input side, whole log), saving (of the choice against the next best), groups (the same
    per session type, trigger, owner, model, segment), dead_writes, first_read, break_even_reads, assumptions. `rule`
    defaults to the dominant model's, `paths` to the log's own. Money is None where prices are not found.
    """
    facts = default_setting_facts(log)
    rule = rule or facts["rule"]
    refusal = _cannot_tell(log, rule, rates)
    if refusal or rates is None:
        return {"choice": None, "sentence": refusal, "groups": [], "costs": {}}
    short, long = rule.choice("short"), rule.choice("long")
    assert short is not None and short.seconds is not None
    long_seconds = long.seconds if long is not None and long.seconds is not None else short.seconds
    paths = paths or load_paths(log, block_tokens=log.facts.block_tokens or rule.block_tokens)
    minimum = facts["minimum_tokens"] if minimum_tokens is None else minimum_tokens
    touches = read_touches(paths, chain_codes(log.con), short.seconds, long_seconds, minimum)
    has_long = long is not None and long_seconds > short.seconds
    prices, derived = _prices(rates, long.write_multiplier if long is not None and has_long else None, has_long)
    used = _long_share(log)
    choices = Choices(touches, prices, short.seconds, paths, _most_pings(rates), replicates, seed)
    groups = [*choices.groups(_groupings(log, paths.requests)), *choices.segments()]
    everything = groups[0]
    return {
        "choice": everything["choice"],
        "sentence": _sentence(everything, rates.currency, short.name, long.name if long else None, used),
        "ttl_seconds": {"short": short.seconds, "long": long_seconds if has_long else None},
        "long_share_of_writes": used,
        "currency": rates.currency,
        "costs": everything["costs"],
        "saving": everything["saving"],
        "groups": groups,
        "dead_writes": choices.dead_writes(),
        "first_read": _first_read(touches, short.seconds, long_seconds),
        "break_even_reads": _break_even(rates),
        "assumptions": [
            "room for every prefix, so these costs are below the bill of a limited budget",
            f"retentions of {rule.id}: {short.name}" + (f" and {long.name}" if long else ""),
            "a gap counts from the start of one request to the start of the next",
            "a group holds the requests that come back; what they find was written one request earlier",
            f"keep-alive has to be {KEEP_ALIVE_MARGIN:.0%} cheaper than the best other choice, as it spends rate limit",
            *derived,
        ],
    }


def _cannot_tell(log: Any, rule: Rule, rates: Rates | None) -> str | None:
    if not log.facts.has_clock:
        return "This log has no common clock, so the cheapest retention cannot be told."
    if log.facts.identity is None:
        return "This log has no prefix identity, so the cheapest retention cannot be told."
    choice = rule.choice("short")
    if choice is None or choice.seconds is None:
        if rule.id is None:
            return "No provider with a published caching rule is named, so there is no retention to choose."
        return "The provider publishes no retention to choose, so there is no advice on it."
    if rates is None:
        return "An engine of one's own has no bill, so there is no retention to choose by its price."
    if not any(rate.found for rate in rates.rows):
        return "No price is found for this log's models, so the cheapest retention cannot be told in money."
    return None


def _long_share(log: Any) -> float | None:
    """Share of the reported written tokens that have the long retention; None where the log does not tell."""
    query = "SELECT sum(write_long_tokens)::BIGINT, sum(write_tokens)::BIGINT FROM request"
    long, short = log.con.sql(query).fetchall()[0]
    return long / (long + short) if long is not None and short is not None and long + short else None


def _prices(rates: Rates, long_multiplier: float | None, has_long: bool) -> tuple[Prices, list[str]]:
    """Prices per request, and a statement where the long write's is derived from the rule because the list has none."""

    def column(name: str) -> Floats:
        by_rate = [getattr(rate, name) for rate in rates.rows]
        listed = np.array([np.nan if price is None else price for price in by_rate], np.float64) / PER_MILLION
        return listed[rates.rate_of_request]

    plain = column("input")
    long = column("write_long") if has_long else np.full(plain.size, np.nan)
    missing, derived = np.isnan(long) & np.isfinite(plain), []
    if has_long and long_multiplier is not None and missing.any():
        long = np.where(missing, plain * long_multiplier, long)
        derived = [f"derived: no long-write price is listed, {long_multiplier:g} x input is the provider's rule"]
    return Prices(plain, column("read"), column("write_short"), long), derived


def _most_pings(rates: Rates) -> int:
    """Whole keep-alive reads that may still cost less than the write they save, over all prices of the log."""
    pairs = [(rate.write_short, rate.read) for rate in rates.rows if rate.write_short is not None and rate.read]
    return max([1, *(min(most_pings(write, read), MOST_PINGS) for write, read in pairs if read)])


def _groupings(log: Any, requests: int) -> list[Grouping]:
    """Everything as one group, then every dimension with at least two values: the largest, the rest pooled.

    None names the requests of which the log does not say it.
    """
    frame = pl.DataFrame(log.con.sql(f"SELECT {', '.join(DIMENSIONS)} FROM request ORDER BY request_id"))
    groupings = [Grouping("all", ["all"], np.zeros(requests, np.int64))]
    for dimension in DIMENSIONS:
        counted = frame[dimension].value_counts(sort=False).sort(["count", dimension], descending=[True, False])
        if counted.height < 2:
            continue
        names = counted[dimension].to_list()
        kept = names if len(names) <= MOST_GROUPS else [*names[: MOST_GROUPS - 1], OTHERS]
        code_of = {name: min(at, len(kept) - 1) for at, name in enumerate(names)}
        places = pl.DataFrame({dimension: names, "code": list(code_of.values())}, schema_overrides={"code": pl.Int64})
        found = frame.select(dimension).join(places, on=dimension, how="left", nulls_equal=True, maintain_order="left")
        codes = found["code"].to_numpy()
        groupings.append(Grouping(dimension, kept, codes, keep_alive=dimension != "trigger"))
    return groupings


def _first_read(touches: Touches, short_seconds: float, long_seconds: float) -> dict[str, Any]:
    """How soon first-written tokens are used again: token shares by retention, and the median of those that are."""
    first, tokens = touches.first_read_us, touches.node_tokens
    total = int(tokens.sum())
    if not total:
        return {"within_short": None, "within_long": None, "later": None, "never": None, "median_seconds": None}
    edges = [0, round(short_seconds * 1e6) + 1, round(long_seconds * 1e6) + 1]
    place = np.where(first < 0, 3, np.searchsorted(edges, first, side="right") - 1)
    shares = np.bincount(place, weights=tokens.astype(np.float64), minlength=4) / total
    seen = first >= 0
    order = np.argsort(first[seen], kind="stable")
    weight = np.cumsum(tokens[seen][order])
    median = first[seen][order][np.searchsorted(weight, weight[-1] / 2)] / 1e6 if seen.any() else None
    names = ("within_short", "within_long", "later", "never")
    return {**{name: float(share) for name, share in zip(names, shares, strict=True)},
            "median_seconds": float(median) if median is not None else None}  # fmt: skip


def _break_even(rates: Rates) -> list[dict[str, Any]]:
    """Reads that pay for one write, per model with prices (short and long)."""
    rows = []
    for rate in rates.rows:
        if rate.input and rate.read is not None and rate.write_short is not None and rate.read < rate.input:
            read, short = rate.read / rate.input, rate.write_short / rate.input
            long = rate.write_long / rate.input if rate.write_long is not None else None
            rows.append({
                "provider": rate.provider, "model": rate.model, "tier_above": rate.tier_above,
                "short": break_even_reads(short, read),
                "long": break_even_reads(long, read) if long is not None else None,
            })  # fmt: skip
    return rows


def _sentence(group: dict[str, Any], currency: str, short_name: str, long_name: str | None, used: float | None) -> str:
    """The verdict in words, computed from the group's own figures; `used` is the long share of reported writes."""
    names = {**NAMES, "short": f"the short retention ({short_name})", "long": f"the long retention ({long_name})"}
    best, second, saving = group["cheapest"], group["next_best"], group["saving"]
    if group["choice"] == TOO_CLOSE:
        return f"Too close to call: {names[best]} and {names[second]} cost about the same on this log."
    value, low, high = (money(saving[end], currency, detail=True) for end in ("value", "low", "high"))
    ends = f"{value} ({with_level(low, high, saving.get('units'))})"
    verb = "Do without a cache" if best == "none" else f"Use {names[best]}"
    share = {"short": None if used is None else 1 - used, "long": used}.get(best)
    practice = f" {share:.0%} of its reported writes have it already." if share is not None else ""
    return f"{verb}: on this log it costs {ends} less than {names[second]}.{practice}"
