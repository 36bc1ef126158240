"""Accept, revert or inconclusive: may a policy replace the one that runs now?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kit.billing.bill import Bill


class Difference(Protocol):
    """An interval of (proposed - now): `kit.intervals.Interval`."""

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


@dataclass(frozen=True)
class Accept:
    """`ok` when the proposed policy may run; `verdict` is accept, revert or inconclusive; `reason` is one sentence."""

    ok: bool
    verdict: str
    reason: str


def per_request(drawn: Bill) -> float | None:
    """What a request costs on average: money, or prefill tokens where you run the model yourself."""
    return drawn.equivalents_per_request if drawn.tier_mode == "engine" else drawn.cost_per_request


def per_hit(drawn: Bill) -> float | None:
    """Billed per request with a local hit: money where there are prices (models share no common token), else m_eq."""
    return drawn.m_money if drawn.m_money is not None else drawn.m_eq


def accept(now: Bill, proposed: Bill, interval: Difference | None) -> Accept:
    """Accept if cost per request does not rise, billed tokens per hit request fall and the hit ratio does not fall.

    Billed per hit alone can be fooled: it falls when more requests hit, even while the bill rises, so the cost of all
    requests is asked first. `interval` is the paired interval of cost per request, proposed minus now (engine mode:
    prefill tokens per request, and billed per hit is not asked). Without an interval nothing is proven: inconclusive.
    """
    before, after = per_request(now), per_request(proposed)
    if before is None or after is None or interval is None:
        return Accept(False, "inconclusive", "cost per request is not found for both policies, so nothing is proven")
    if interval.low > 0:
        return Accept(
            False, "revert", f"cost per request rises by {after / before - 1:.1%}" if before else "cost rises"
        )
    if _falls(proposed.hit_request_ratio, now.hit_request_ratio):
        return Accept(False, "revert", "fewer requests find their prefix")
    if _falls(proposed.hit_token_ratio, now.hit_token_ratio):
        return Accept(False, "revert", "fewer tokens are found resident")
    if interval.high > 0:
        return Accept(False, "inconclusive", "the interval of the change in cost per request includes a rise")
    if now.tier_mode != "engine" and not _cheaper(per_hit(proposed), per_hit(now)):
        return Accept(False, "inconclusive", "billed tokens per hit request do not fall")
    if after >= before:
        return Accept(False, "inconclusive", "cost per request does not change")
    return Accept(True, "accept", f"cost per request falls by {1 - after / before:.1%} and nothing gets worse")


def _falls(after: float | None, before: float | None) -> bool:
    return after is not None and before is not None and after < before


def _cheaper(after: float | None, before: float | None) -> bool:
    """Where nobody hit there is no figure per hit: any hit beats that, and having none beats nothing."""
    return after is not None and (before is None or after < before)
