"""The bill of a replay: tokens by class, money, and billed tokens per hit request, raw and price-weighted.

Every figure is a ratio of sums. Money is summed from integer tokens per rate, in a fixed order, so a second run gives
the same digits. In `mirror` a hit is a provider read and any other cacheable token a provider write; in `absorb` and
`engine` a hit costs nothing, and a miss is plain input (absorb) or prefill work (engine, which has no money at all).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kit.prices import Rate, Rates
from kit.replay.loop import FIELDS

PER_MILLION = 1e6
TIER_MODES = ("mirror", "absorb", "engine")
CAUSES = ("cold", "evicted", "expired", "lost", "below_minimum", "in_flight", "oversize")
NEVER_WRITTEN = ("below_minimum", "oversize")
AVOIDABLE = ("evicted", "expired", "lost", "in_flight")
Floats = NDArray[np.float64]


class BillingError(ValueError):
    """A bill that cannot be drawn up: one line that says what to change."""


class CountsByBlock(Protocol):
    """What a bill needs of `kit.replay.Tally`: counts[2 (not warm, warm), rates, blocks, FIELDS] and token-seconds."""

    @property
    def by_block(self) -> NDArray[np.int64]: ...

    @property
    def resident_token_seconds(self) -> float: ...


@dataclass(frozen=True)
class Bill:
    """One replay as a bill. Tokens are counts, money is in `currency` (input side), None is "not found".

    read + write + write_long + uncached tokens = input_tokens in every mode; `billed_tokens` leaves out what a local
    hit keeps away from the provider. `m_raw` = billed tokens / requests with a local hit, split into read, write and
    uncached in `m_parts`; `m_eq` the same in input-token equivalents (1 = one uncached input token), `m_money` in
    money. All of them are None when nobody hit. `cost_per_request` and `equivalents_per_request` are over all requests.
    Figures that need prices cover the rates that have them: `priced_token_share` says how much that is. `*_by_block`
    are float64[blocks]. `missed_cost` is what the missed tokens cost, by cause; `avoidable_cost` the part that a hit
    would have saved on tokens seen before (evicted, expired, lost, in flight).
    """

    tier_mode: str
    write_class: str
    window: str
    requests: int
    hits: int
    input_tokens: int
    read_tokens: int
    write_tokens: int
    write_long_tokens: int
    uncached_tokens: int
    billed_tokens: int
    cost: float | None
    cost_per_request: float | None
    m_raw: float | None
    m_parts: dict[str, float] | None
    m_eq: float | None
    m_money: float | None
    equivalents: float | None
    equivalents_per_request: float | None
    cost_by_block: Floats | None
    equivalents_by_block: Floats | None
    requests_by_block: Floats
    missed_cost: dict[str, float] | None
    avoidable_cost: float | None
    storage_cost: float | None
    priced_token_share: float | None
    currency: str | None
    label: str | None

    @property
    def hit_token_ratio(self) -> float | None:
        """Tokens served from the tier / all input tokens; None without tokens."""
        return self.read_tokens / self.input_tokens if self.input_tokens else None

    @property
    def hit_request_ratio(self) -> float | None:
        """Requests with a local hit / all requests; None without requests."""
        return self.hits / self.requests if self.requests else None


def window_counts(tally: CountsByBlock, window: str) -> NDArray[np.int64]:
    """int64[rates, blocks, FIELDS] of a window: "cold" is every request, "warm" those after the warm-up."""
    if window not in ("cold", "warm"):
        raise BillingError(f"window is {window!r}; accepted: cold (all requests), warm (after the warm-up)")
    return tally.by_block.sum(axis=0) if window == "cold" else tally.by_block[1]


def class_prices(rate: Rate | None, tier_mode: str, write_class: str) -> tuple[float, float, float] | None:
    """Price of a (hit, missed and cacheable, uncacheable) token, in currency per million; None where one is unknown."""
    if rate is None or rate.input is None or tier_mode == "engine":
        return None
    if tier_mode == "absorb":
        return 0.0, rate.input, rate.input
    written = rate.write_short if write_class == "short" else rate.write_long
    if rate.read is None or written is None:
        return None
    return rate.read, written, rate.input


def class_equivalents(rate: Rate | None, tier_mode: str, write_class: str) -> tuple[float, float, float] | None:
    """The same in input-token equivalents. Local hits need no price list: they cost 0, everything else 1."""
    if tier_mode != "mirror":
        return 0.0, 1.0, 1.0
    prices = class_prices(rate, tier_mode, write_class)
    if prices is None or not prices[2]:
        return None
    return prices[0] / prices[2], prices[1] / prices[2], 1.0


def bill(
    tally: CountsByBlock,
    rates: Rates | None = None,
    tier_mode: str = "mirror",
    write_class: str = "short",
    window: str = "cold",
    storage_per_mtok_hour: float | None = None,
) -> Bill:
    """The bill of one replay. `rates` prices it (None: tokens only); `write_class` is the write that misses pay for.

    `storage_per_mtok_hour` adds what holding the tier costs (explicit caches; cold window only). Raises BillingError
    for an unknown mode, class or window, or when the replay was not run with these rates.
    """
    _check(tally, rates, tier_mode, write_class)
    counts = window_counts(tally, window)
    rows: list[Rate | None] = list(rates.rows) if rates else [None] * counts.shape[0]
    prices = [class_prices(rate, tier_mode, write_class) for rate in rows]
    weights = [class_equivalents(rate, tier_mode, write_class) for rate in rows]
    total = dict(zip(FIELDS, counts.sum(axis=(0, 1)).tolist(), strict=True))
    money, equal = _weighted(counts, prices, PER_MILLION), _weighted(counts, weights, 1.0)
    local = tier_mode != "mirror"
    billed = total["input_tokens"] - (total["hit_tokens"] if local else 0)
    short = tier_mode != "mirror" or write_class == "short"
    causes = _missed(counts, prices) if money.found else {}
    return Bill(
        tier_mode=tier_mode,
        write_class=write_class,
        window=window,
        requests=total["requests"],
        hits=total["hits"],
        input_tokens=total["input_tokens"],
        read_tokens=total["hit_tokens"],
        write_tokens=total["write_tokens"] if short else 0,
        write_long_tokens=0 if short else total["write_tokens"],
        uncached_tokens=total["uncached_tokens"],
        billed_tokens=billed,
        cost=money.total,
        cost_per_request=_per(money.total, money.requests),
        m_raw=_per(billed, total["hits"]),
        m_parts=_parts(total, local),
        m_eq=_per(equal.total, equal.hits),
        m_money=_per(money.total, money.hits),
        equivalents=equal.total,
        equivalents_per_request=_per(equal.total, equal.requests),
        cost_by_block=money.by_block,
        equivalents_by_block=equal.by_block,
        requests_by_block=(money if money.found else equal).requests_by_block,
        missed_cost={cause: paid for cause, (paid, _) in causes.items()} or None,
        avoidable_cost=sum(causes[cause][1] for cause in AVOIDABLE) if causes else None,
        storage_cost=_storage(tally, storage_per_mtok_hour, window),
        priced_token_share=_per(money.tokens, total["input_tokens"]),
        currency=rates.currency if rates and money.found else None,
        label=rates.label if rates and money.found else None,
    )


def _check(tally: CountsByBlock, rates: Rates | None, tier_mode: str, write_class: str) -> None:
    if tier_mode not in TIER_MODES:
        raise BillingError(f"tier_mode is {tier_mode!r}; accepted: {', '.join(TIER_MODES)}")
    if write_class not in ("short", "long"):
        raise BillingError(f"write_class is {write_class!r}; accepted: short, long")
    if rates is not None and tally.by_block.shape[1] != len(rates.rows):
        raise BillingError(
            f"the replay has {tally.by_block.shape[1]} rate groups and the rate table {len(rates.rows)} rows; "
            "replay paths loaded with rate=rates.rate_of_request"
        )


def _per(amount: float | None, count: float) -> float | None:
    """amount / count; None when either is unknown or there is nothing to divide by."""
    return amount / count if amount is not None and count else None


@dataclass(frozen=True)
class _Weighted:
    """Sums of one kind of weight over the rates that have it."""

    found: bool
    total: float | None
    by_block: Floats | None
    requests: int
    hits: int
    tokens: int
    requests_by_block: Floats


def _weighted(counts: NDArray[np.int64], weights: list[tuple[float, float, float] | None], unit: float) -> _Weighted:
    """Tokens by class times their weight per `unit` tokens, over the rates that have weights."""
    fields = {name: n for n, name in enumerate(FIELDS)}
    known = [n for n, weight in enumerate(weights) if weight is not None]
    part = counts[known]
    tokens = part[:, :, [fields["hit_tokens"], fields["write_tokens"], fields["uncached_tokens"]]]
    matrix = np.array([weights[n] for n in known], dtype=np.float64).reshape(len(known), 3)
    by_block = np.einsum("rbc,rc->b", tokens.astype(np.float64), matrix) / unit
    total = sum((tokens.sum(axis=1) * matrix).ravel().tolist()) / unit
    return _Weighted(
        bool(known),
        total if known else None,
        by_block if known else None,
        int(part[:, :, fields["requests"]].sum()),
        int(part[:, :, fields["hits"]].sum()),
        int(part[:, :, fields["input_tokens"]].sum()),
        part[:, :, fields["requests"]].sum(axis=0).astype(np.float64),
    )


def _parts(total: Mapping[str, int], local: bool) -> dict[str, float] | None:
    """Read, write and uncached tokens per request with a local hit: the three parts of m_raw."""
    if not total["hits"]:
        return None
    read = 0 if local else total["hit_tokens"]
    parts = {"read": read, "write": total["write_tokens"], "uncached": total["uncached_tokens"]}
    return {name: tokens / total["hits"] for name, tokens in parts.items()}


def _missed(
    counts: NDArray[np.int64], prices: list[tuple[float, float, float] | None]
) -> dict[str, tuple[float, float]]:
    """Per cause: (money paid for its missed tokens, what a hit would have saved on them).

    A replay says what was written and what was not, and why each token missed, but not both for one token. Tokens
    below a minimum or larger than the tier are the ones never written, so they take the uncacheable price first;
    whatever is left of either class is shared evenly by the rest. The causes add up to the cost of all missed tokens.
    """
    paid, saved = dict.fromkeys(CAUSES, 0.0), dict.fromkeys(CAUSES, 0.0)
    for rate, price in zip(counts.sum(axis=1).tolist(), prices, strict=True):
        if price is None:
            continue
        row = dict(zip(FIELDS, rate, strict=True))
        mean = _mean_prices(row, price)
        for cause in CAUSES:
            tokens, each = row[f"missed_{cause}"], mean[cause in NEVER_WRITTEN]
            paid[cause] += tokens * each / PER_MILLION
            saved[cause] += tokens * (each - price[0]) / PER_MILLION
    return {cause: (paid[cause], saved[cause]) for cause in CAUSES}


def _mean_prices(row: Mapping[str, int], price: tuple[float, float, float]) -> tuple[float, float]:
    """Mean price paid per missed token for (causes that are written, causes that are never written)."""
    never = sum(row[f"missed_{cause}"] for cause in NEVER_WRITTEN)
    missed = row["write_tokens"] + row["uncached_tokens"]
    plain = min(row["uncached_tokens"], never)
    never_cost = plain * price[2] + (never - plain) * price[1]
    rest_cost = row["write_tokens"] * price[1] + row["uncached_tokens"] * price[2] - never_cost
    return (rest_cost / (missed - never) if missed > never else 0.0), (never_cost / never if never else 0.0)


def _storage(tally: CountsByBlock, per_mtok_hour: float | None, window: str) -> float | None:
    """Money for holding the tier: token-seconds held, priced per million tokens and hour; None for the warm window."""
    if per_mtok_hour is None or window != "cold":
        return None
    return tally.resident_token_seconds / 3600 / PER_MILLION * per_mtok_hour
