"""Which retention would have been cheapest on this log: short, long, keep-alive or no cache, with money and interval.

The bill of each choice is exact (see `kit.billing.touches`): reads for tokens re-used within the retention, writes for
the rest. A keep-alive re-reads a chain's whole prefix once per short retention while the chain is idle, as often as is
cheapest for the group, also for chains that never come back. It must win by a margin: it spends rate limit.
Whose return it waits for is not known when it is sent, so it is not asked per trigger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kit.billing.arithmetic import break_even_reads, most_pings
from kit.billing.touches import LATER, NEW, OWN, SHARED, WITHIN_LONG, WITHIN_SHORT, Touches, chain_codes, read_touches
from kit.intervals import Interval, paired_ratio
from kit.prefix import Paths, load_paths
from kit.prices import Rates
from kit.providers import Rule, default_setting_facts

PER_MILLION = 1e6
KEEP_ALIVE_MARGIN = 0.05
DIMENSIONS = ("session_type", "trigger", "owner", "model")
NAMES = {"short": "the short retention", "long": "the long retention", "keep_alive": "keep-alive", "none": "no cache"}
TOO_CLOSE = "too close to call"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Prices:
    """Per request, in money per token: plain input, read, short and long write; NaN = not found."""

    plain: Floats
    read: Floats
    short: Floats
    long: Floats


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
    costs = _Costs(touches, prices, short.seconds, paths, replicates, seed)
    everything = costs.group("all", "all", np.ones(paths.requests, np.bool_))
    groups = [everything, *_groups(log, costs), *costs.segments()]
    return {
        "choice": everything["choice"],
        "sentence": _sentence(everything, rates.currency, short.name, long.name if long else None, used),
        "ttl_seconds": {"short": short.seconds, "long": long_seconds if has_long else None},
        "long_share_of_writes": used,
        "currency": rates.currency,
        "costs": everything["costs"],
        "saving": everything["saving"],
        "groups": groups,
        "dead_writes": costs.dead_writes(),
        "first_read": _first_read(touches, short.seconds, long_seconds),
        "break_even_reads": _break_even(rates),
        "assumptions": [
            f"room for every prefix, {rule.id} retentions {short.name}" + (f" and {long.name}" if long else ""),
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
        return "The provider publishes no retention to choose, so there is no advice on it."
    if rates is None or not any(rate.found for rate in rates.rows):
        return "No price is found for this log's models, so the cheapest retention cannot be told in money."
    return None


def _long_share(log: Any) -> float | None:
    """Share of the reported written tokens that have the long retention; None where the log does not tell."""
    query = "SELECT sum(write_long_tokens)::BIGINT, sum(write_tokens)::BIGINT FROM request"
    long, short = log.con.sql(query).fetchall()[0]
    return long / (long + short) if long is not None and short is not None and long + short else None


def _prices(rates: Rates, long_multiplier: float | None, has_long: bool) -> tuple[_Prices, list[str]]:
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
    return _Prices(plain, column("read"), column("write_short"), long), derived


class _Costs:
    """Money per request of every choice, and its sums over any group of requests."""

    def __init__(
        self, touches: Touches, prices: _Prices, short_seconds: float, paths: Paths, replicates: int, seed: int
    ) -> None:
        self.touches, self.prices = touches, prices
        self.block, self.n_blocks, self.basis = paths.block, paths.n_blocks, paths.block_basis
        self.replicates, self.seed, self.short_us = replicates, seed, round(short_seconds * 1e6)
        self.priced = np.isfinite(prices.plain) & np.isfinite(prices.read) & np.isfinite(prices.short)
        self.rest = touches.rest_tokens * prices.plain
        whole = touches.tokens.sum(axis=1)
        self.by_choice = {name: self.rest + money for name, money in self._of(whole).items()}

    def _of(self, tokens: NDArray[np.int64]) -> dict[str, Floats]:
        """Money per request for token counts [requests, 4] under each plain choice; long only where it has a price."""
        p, hit = self.prices, tokens[:, WITHIN_SHORT]
        mid, lost = tokens[:, WITHIN_LONG], tokens[:, LATER] + tokens[:, NEW]
        found = {
            "none": (hit + mid + lost) * p.plain,
            "short": hit * p.read + (mid + lost) * p.short,
        }
        if np.isfinite(p.long[self.priced]).all() and self.priced.any():
            found["long"] = (hit + mid) * p.read + lost * p.long
        return found

    def _pinged(self, pings: int) -> Floats:
        """Money per request when up to `pings` keep-alive reads follow the chain's previous request."""
        t, p = self.touches, self.prices
        back = t.before >= 0
        earlier = np.maximum(t.before, 0)
        sent = np.where(back, np.minimum(pings, np.maximum(-(-t.gap_us // self.short_us) - 1, 0)), 0)
        saved = np.where(t.gap_us <= (pings + 1) * self.short_us, t.kept, 0) * (p.short - p.read)
        wasted = np.where(t.last, pings * t.path_tokens * p.read, 0.0)
        return self.by_choice["short"] - saved + sent * t.path_tokens[earlier] * p.read[earlier] + wasted

    def group(self, dimension: str, name: str, member: NDArray[np.bool_]) -> dict[str, Any]:
        """One group of requests: tokens by gap, cost of every choice, and which is cheapest."""
        member = member & self.priced
        columns = {choice: np.where(member, money, 0.0) for choice, money in self.by_choice.items()}
        pings = None
        if dimension != "trigger":
            pings, columns["keep_alive"] = self._best_pings(member)
        found = self._verdict(columns, member)
        tokens = self.touches.tokens[member].sum(axis=(0, 1))
        return {**self._head(dimension, name, member, tokens), **found, "pings": pings}

    def segments(self) -> list[dict[str, Any]]:
        """Prefixes that several chains share, and those of one chain alone, each with its own cheapest choice."""
        rows = []
        for name, segment in (("shared", SHARED), ("own", OWN)):
            tokens = self.touches.tokens[:, segment]
            if not tokens.any():
                continue
            columns = {choice: np.where(self.priced, money, 0.0) for choice, money in self._of(tokens).items()}
            head = self._head("segment", name, self.priced, tokens[self.priced].sum(axis=0))
            rows.append({**head, **self._verdict(columns, self.priced), "pings": None})
        return rows

    def _head(self, dimension: str, name: str, member: NDArray[np.bool_], tokens: Any) -> dict[str, Any]:
        classes = ("within_short", "within_long", "later", "new")
        counts = {label: int(count) for label, count in zip(classes, tokens, strict=True)}
        return {"dimension": dimension, "group": name, "requests": int(member.sum()), "tokens": counts}

    def _best_pings(self, member: NDArray[np.bool_]) -> tuple[int, Floats]:
        """The cheapest whole number of keep-alive reads, at least one, up to where a read costs the write it saves."""
        ratio = [(s, r) for s, r in zip(self.prices.short[member], self.prices.read[member], strict=True) if r > 0][:1]
        most = min(most_pings(*ratio[0]), 60) if ratio else 1
        trials = [np.where(member, self._pinged(pings), 0.0) for pings in range(1, max(most, 1) + 1)]
        best = int(np.argmin([trial.sum() for trial in trials]))
        return best + 1, trials[best]

    def _verdict(self, columns: dict[str, Floats], member: NDArray[np.bool_]) -> dict[str, Any]:
        """Costs, the cheapest choice, the next one, and what choosing saves against it with its interval."""
        costs = {choice: float(money.sum()) for choice, money in columns.items()}
        plain = {choice: cost for choice, cost in costs.items() if choice != "keep_alive"}
        best = min(plain, key=plain.__getitem__)
        if costs.get("keep_alive", np.inf) < plain[best] * (1 - KEEP_ALIVE_MARGIN):
            best = "keep_alive"
        others = {choice: cost for choice, cost in plain.items() if choice != best}
        second = min(others, key=others.__getitem__)
        saving = self._difference(columns[second], columns[best], member)
        sure = saving is not None and saving.low > 0
        return {
            "costs": costs,
            "choice": best if sure else TOO_CLOSE,
            "cheapest": best,
            "next_best": second,
            "saving": saving.as_dict() if saving else None,
        }

    def _difference(self, dearer: Floats, cheaper: Floats, member: NDArray[np.bool_]) -> Interval | None:
        requests = self._blocks(member.astype(np.float64))
        a, b = self._blocks(dearer), self._blocks(cheaper)
        told = paired_ratio(a, requests, b, requests, self.replicates, self.seed, basis=self.basis)
        return told.scaled(float(member.sum())) if told else None

    def _blocks(self, column: Floats) -> Floats:
        return np.bincount(self.block, weights=column, minlength=self.n_blocks).astype(np.float64)

    def dead_writes(self) -> dict[str, dict[str, Any]]:
        """Per retention: tokens written and never read within it, their share of all written, and their money."""
        rows: dict[str, dict[str, Any]] = {}
        whole = self.touches.tokens.sum(axis=1)
        for column, (name, price) in enumerate((("short", self.prices.short), ("long", self.prices.long))):
            written = whole[:, [WITHIN_LONG, LATER, NEW] if name == "short" else [LATER, NEW]].sum()
            dead = self.touches.dead[:, column]
            known = np.isfinite(price)
            rows[name] = {
                "tokens": int(dead.sum()),
                "share": float(dead.sum() / written) if written else None,
                "cost": float((dead[known] * price[known]).sum()) if known.any() else None,
            }
        return rows


def _groups(log: Any, costs: _Costs) -> list[dict[str, Any]]:
    """Every value of every dimension that has at least two, largest first; a null is written as "not found"."""
    frame = pl.DataFrame(log.con.sql(f"SELECT {', '.join(DIMENSIONS)} FROM request ORDER BY request_id"))
    rows = []
    for dimension in DIMENSIONS:
        column = frame[dimension].fill_null("not found")
        counted = column.value_counts(sort=False).sort(["count", dimension], descending=[True, False])
        if counted.height > 1:
            rows += [costs.group(dimension, name, (column == name).to_numpy()) for name in counted[dimension].to_list()]
    return rows


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
    ends = f"{currency} {saving['value']:,.2f} (95 % interval {saving['low']:,.2f} to {saving['high']:,.2f})"
    verb = "Do without a cache" if best == "none" else f"Use {names[best]}"
    share = {"short": None if used is None else 1 - used, "long": used}.get(best)
    practice = f" {share:.0%} of its reported writes have it already." if share is not None else ""
    return f"{verb}: on this log it costs {ends} less than {names[second]}.{practice}"
