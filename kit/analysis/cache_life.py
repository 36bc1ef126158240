"""What becomes of cached tokens under each policy: pushed out unused or not, at what age, and how deep hits reach."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from kit.analysis.parts import Parts
from kit.replay import Tally
from kit.replay.loop import FIELDS
from kit.reuse.concentration import share

TENTHS = 10
MOST_HOURS = 31 * 24


def cache_life(made: Parts) -> list[dict[str, Any]]:
    """One row per policy at the budget (neutral, all requests); empty where nothing was replayed.

    `evicted_tokens` pushed out for room; `evicted_unused_tokens` left (pushed out or expired) without ever being read,
    as a share of what was written; `eviction_age`: evicted tokens by whole seconds since their last use, in doubling
    steps, and the step that holds the median; `reuse_span`: the same for tokens that were found, how long after their
    last use that was; `hit_depth`: hit requests by the tenth of the prompt their hit reached;
    `resident_tokens_mean` over the time of the log.
    """
    tallies = [made.tally(policy) for policy in made.policy_names]
    return [_life(made, tally) for tally in tallies if tally is not None]


def _life(made: Parts, tally: Tally) -> dict[str, Any]:
    ages, spans, total = tally.eviction_age_tokens, tally.reuse_span_tokens, tally.total()
    return {
        "policy": tally.policy,
        "evicted_tokens": int(ages.sum()),
        "written_tokens": total["write_tokens"],
        "evicted_unused_tokens": total["evicted_unused_tokens"],
        "evicted_unused_share": share(total["evicted_unused_tokens"], total["write_tokens"]),
        "median_eviction_age": _median_step(ages),
        "eviction_age": _steps(ages),
        "median_reuse_span": _median_step(spans),
        "reuse_span": _steps(spans),
        "hit_depth": _depths(tally.hit_depth_requests),
        "resident_tokens_mean": _resident(made, tally),
    }


def age_step(at: int) -> dict[str, int]:
    """The whole seconds of one step of ages, from and up to but not including: 0-1, 1-2, 2-4, 4-8 ..."""
    return {"from_seconds": 0 if at == 0 else 1 << (at - 1), "to_seconds": 1 << at}


def _steps(tokens: Any) -> list[dict[str, int]]:
    """Tokens by doubling steps of seconds, steps without any left out."""
    return [{**age_step(at), "tokens": int(tokens[at])} for at in range(len(tokens)) if tokens[at]]


def _median_step(ages: Any) -> dict[str, int] | None:
    if not ages.sum():
        return None
    return age_step(int(np.searchsorted(np.cumsum(ages), ages.sum() / 2)))


def _depths(requests: Any) -> list[dict[str, Any]]:
    """Hit requests by how much of the prompt hit; the last row is all of it."""
    return [
        {"from_share": tenth / TENTHS, "to_share": min(tenth + 1, TENTHS) / TENTHS, "requests": int(requests[tenth])}
        for tenth in range(TENTHS + 1)
    ]


def _resident(made: Parts, tally: Tally) -> float | None:
    """Tokens held on average over the time of the log."""
    paths = made.scene.paths
    if paths is None or paths.requests < 2 or paths.ts_us[-1] == paths.ts_us[0]:
        return None
    return tally.resident_token_seconds / (float(paths.ts_us[-1] - paths.ts_us[0]) / 1e6)


def hours(made: Parts) -> list[dict[str, Any]]:
    """Hour by hour what LRU finds at the budget (neutral), hours with requests only; empty for logs over 31 days."""
    lru = made.tally("lru")
    if lru is None or len(lru.by_hour) > MOST_HOURS:
        return []
    counts = lru.by_hour.sum(axis=1)[:, [FIELDS.index(name) for name in ("requests", "input_tokens", "hit_tokens")]]
    start = datetime.fromtimestamp(made.bills.first_hour * 3600, UTC)
    return [
        {
            "hour": start + timedelta(hours=hour), "requests": requests, "input_tokens": total, "hit_tokens_lru": hit,
            "hit_token_ratio_lru": hit / total if total else None,
        }
        for hour, (requests, total, hit) in enumerate(counts.tolist())
        if requests
    ]  # fmt: skip
