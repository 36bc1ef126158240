"""Cache arithmetic on paper: what-ifs that need no log. The exact answers for a log are in `kit.billing.retention`.

Unit: the price of one uncached input token = 1 (an input-token equivalent). `write` and `read` are multiples of it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor, log

WHOLE_PING_TOLERANCE = 1e-9


def effective_multiplier(read_share: float, write: float, read: float) -> float:
    """C_eff: mean price of an input token when `read_share` of the *tokens* is read and the rest written.

    Exact only when nothing is uncached and one retention is used; the share is of tokens, not of requests.
    """
    return (1 - read_share) * write + read_share * read


def saving(read_share: float, write: float, read: float, input_per_output: float | None = None,
           output: float = 5.0) -> float:  # fmt: skip
    """Share of the bill saved against no cache; with `input_per_output` tokens per output token, of the whole bill.

    `output` is the price of an output token in input tokens.
    """
    multiplier = effective_multiplier(read_share, write, read)
    if input_per_output is None:
        return 1 - multiplier
    return 1 - (input_per_output * multiplier + output) / (input_per_output + output)


def read_share_for_saving(target: float, write: float, read: float) -> float | None:
    """Share of tokens that must be reads to save `target`; None where no share is enough."""
    share = (write - (1 - target)) / (write - read)
    return share if share <= 1 else None


def break_even_reads(write: float, read: float) -> float:
    """Reads after which one write has paid for itself against sending the prefix uncached every time."""
    return (write - 1) / (1 - read)


def break_even_read_share(write: float, read: float) -> float:
    """Share of cacheable tokens that must be reads for caching to cost no more than none."""
    return (write - 1) / (write - read)


def storage_break_even_reads_per_hour(storage_per_hour: float, input_price: float, read: float) -> float:
    """Reads per hour that pay for an explicit cache: storage and input price in the same money per million tokens."""
    return storage_per_hour / input_price / (1 - read)


def long_factor(write_short: float, write_long: float, read: float) -> float:
    """c in: the long write wins when P(short < gap <= long) > c x (P(gap > long) + new tokens / cached tokens)."""
    return (write_long - write_short) / (write_short - read)


def turn_cost(cached_tokens: float, new_tokens: float, within: float, write: float, read: float) -> float:
    """Expected cost of a turn when the prefix survives with probability `within`, in input-token equivalents."""
    return cached_tokens * (read * within + write * (1 - within)) + write * new_tokens


def most_pings(write: float, read: float) -> int:
    """Whole keep-alive reads that cost no more than the one write they save."""
    return floor((write - read) / read + WHOLE_PING_TOLERANCE)


def keep_alive_turn_cost(
    cached_tokens: float,
    new_tokens: float,
    gap_cdf: Callable[[float], float],
    ttl_seconds: float,
    pings: int,
    write: float,
    read: float,
    returns: float = 1.0,
) -> float:
    """Expected cost of a turn when up to `pings` reads, one per TTL, keep the prefix alive while the user is away.

    `gap_cdf(seconds)` is P(gap <= seconds), start to start; `returns` the share of turns that have a successor at all:
    the pings of the others are wasted.
    """
    expected, before = 0.0, 0.0
    for sent in range(pings + 1):
        within = gap_cdf((sent + 1) * ttl_seconds)
        expected += (within - before) * (sent + 1) * read * cached_tokens
        before = within
    expected += (1 - before) * (pings * read + write) * cached_tokens
    return returns * (expected + write * new_tokens) + (1 - returns) * pings * read * cached_tokens


def best_pings(cost_of: Callable[[int], float], most: int = 39) -> tuple[int, float]:
    """(pings, cost) of the cheapest number of keep-alive reads from 0 to `most`; the fewest of equals."""
    costs = [cost_of(pings) for pings in range(most + 1)]
    best = min(range(most + 1), key=costs.__getitem__)
    return best, costs[best]


def arrivals_that_pay(write: float, read: float, ttl_hours: float) -> float:
    """Requests per hour on one shared prefix (Poisson arrivals) above which caching it beats not caching."""
    return -log(1 - (write - 1) / (write - read)) / ttl_hours


def arrivals_where_long_wins(write_short: float, write_long: float, read: float, short_hours: float,
                             long_hours: float) -> float:  # fmt: skip
    """Requests per hour on one shared prefix (Poisson) above which the long write beats the short one."""
    return log(1 + long_factor(write_short, write_long, read)) / (long_hours - short_hours)
