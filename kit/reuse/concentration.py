"""How much of the traffic the top keys carry: requests, and tokens without counting a shared block twice."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from math import ceil
from typing import Any

import numpy as np

from kit.reuse.cuts import Keys, cut_keys, prompt_tokens, reusable_tokens
from kit.reuse.trace import Ints, Trace, least_from_leaves, read_trace

CURVE_POINTS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FIGURES = (
    *("cut", "cut_sentence", "keys", "reused_keys", "top_count", "requests_without_key", "request_share"),
    *("token_share", "prompt_token_share", "reusable_tokens", "one_shot_key_share", "one_shot_request_share", "gini"),
)
NO_KEY = "this log has no prefix key, block ids or chains: concentration cannot be told"


def share(part: float, whole: float) -> float | None:
    """part / whole, None where there is no whole."""
    return float(part) / float(whole) if whole else None


def top_count(keys: int, fraction: float) -> int:
    """Keys in the top ``fraction`` of ``keys``, rounded up, so that the top of a few keys is at least one."""
    return ceil(round(keys * fraction, 9))


def ranking(keys: Keys) -> Ints:
    """Key numbers from most to fewest requests; equal counts: longer first, then the earlier key."""
    return np.lexsort((np.arange(keys.count), -keys.prefix_tokens, -keys.requests))


def marginal(trace: Trace, keys: Keys, order: Ints, worth: Ints) -> Ints:
    """Tokens that each key of ``order`` adds to the keys before it: a block shared with a better key counts there.

    ``worth`` is a value per node. The sum over all keys is the worth of every node that some key covers.
    """
    rank = np.empty(keys.count, dtype=np.int64)
    rank[order] = np.arange(keys.count)
    best = np.full(len(trace.parent), keys.count, dtype=np.int64)
    np.minimum.at(best, keys.credit_node, rank[keys.credit_key])
    best = least_from_leaves(trace.parent, best)
    added = np.zeros(keys.count + 1, dtype=np.int64)
    np.add.at(added, best, worth)
    return added[:-1]


def gini(counts: Ints) -> float | None:
    """Gini coefficient of requests over keys: 0 all keys alike, towards 1 one key has everything."""
    ordered = np.sort(counts).astype(np.float64)
    n, total = len(ordered), ordered.sum()
    if not total:
        return None
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * total))


def _curve(requests: Ints, reusable: Ints, all_requests: int, all_reusable: int) -> list[dict[str, Any]]:
    keys = len(requests)
    sizes = sorted({min(keys, max(1, top_count(keys, point))) for point in CURVE_POINTS})
    by_request, by_token = np.cumsum(requests), np.cumsum(reusable)
    return [
        {
            "keys": size,
            "key_share": size / keys,
            "request_share": share(by_request[size - 1], all_requests),
            "token_share": share(by_token[size - 1], all_reusable),
        }
        for size in sizes
    ]


def _moment(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _top_keys(trace: Trace, keys: Keys, order: Ints, added: Ints, all_reusable: int) -> list[dict[str, Any]]:
    """The first keys of ``order`` with aliases k1, k2, ...: the log's own keys are never printed."""
    place = np.full(keys.count + 1, -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    at = place[keys.of_request]
    rows = []
    for number, key in enumerate(order):
        mine = np.flatnonzero(at == number)
        sessions = trace.session[mine]
        clock = trace.has_clock
        rows.append(
            {
                "alias": f"k{number + 1}",
                "requests": int(keys.requests[key]),
                "request_share": share(keys.requests[key], trace.requests),
                "holders": int(keys.holders[key]),
                "prefix_tokens": int(keys.prefix_tokens[key]),
                "value_tokens": int(keys.prefix_tokens[key] * keys.holders[key]),
                "reusable_tokens": int(added[number]),
                "token_share": share(added[number], all_reusable),
                "sessions": len(np.unique(sessions[sessions >= 0])) if trace.has_sessions else None,
                "first_seen": _moment(trace.ts_us[mine[0]]) if clock else None,
                "last_seen": _moment(trace.ts_us[mine[-1]]) if clock else None,
                "days_seen": len(np.unique(trace.day[mine])) if clock else None,
            }
        )
    return rows


def concentration(
    log: Any, top_fraction: float = 0.05, cut: str | None = None, top: int = 20, zone: str = "UTC"
) -> dict[str, Any]:
    """What the top ``top_fraction`` of all keys (reused or not, rounded up) carry.

    ``request_share``: of all requests of the log. ``token_share``: of all reusable tokens of the log (every pass
    through a block but the first), each block counted once, at the best key that covers it. ``prompt_token_share``: of
    all prompt tokens, first passes included. ``curve``: both shares for growing numbers of keys. ``top_keys``: the
    first ``top`` keys. A log without any prefix identity gives None everywhere and a ``cannot_tell``.
    """
    trace = read_trace(log, zone)
    keys = cut_keys(trace, cut)
    head: dict[str, Any] = {"top_fraction": top_fraction, "top_of": "all keys", "curve": [], "top_keys": []}
    if keys is None or not keys.count:
        return {**head, **dict.fromkeys(FIGURES), "cannot_tell": NO_KEY}
    order = ranking(keys)
    reusable, prompt = reusable_tokens(trace), prompt_tokens(trace)
    added, brought = marginal(trace, keys, order, reusable), marginal(trace, keys, order, prompt)
    all_reusable = int(reusable.sum())
    size = top_count(keys.count, top_fraction)
    ordered = keys.requests[order]
    one_shot = ~keys.reused
    return {
        **head,
        "cut": keys.cut,
        "cut_sentence": keys.sentence,
        "keys": keys.count,
        "reused_keys": int(keys.reused.sum()),
        "top_count": size,
        "requests_without_key": int((keys.of_request < 0).sum()),
        "request_share": share(ordered[:size].sum(), trace.requests),
        "token_share": share(added[:size].sum(), all_reusable),
        "prompt_token_share": share(brought[:size].sum(), prompt.sum()),
        "reusable_tokens": all_reusable,
        "one_shot_key_share": share(one_shot.sum(), keys.count),
        "one_shot_request_share": share(keys.requests[one_shot].sum(), trace.requests),
        "gini": gini(keys.requests),
        "curve": _curve(ordered, added, trace.requests, all_reusable),
        "top_keys": _top_keys(trace, keys, order[:top], added, all_reusable),
    }


def cut_sentence(figures: dict[str, Any], others: list[dict[str, Any]]) -> str:
    """Where the key was cut, and how the answer would change with another cut."""
    if figures["cut"] is None:
        return NO_KEY
    told = [f"{row['cut']} {row['request_share']:.1%}" for row in others if row["cut"] != figures["cut"]]
    change = f" Cut elsewhere: {', '.join(told)}." if told else ""
    top = f"the top {figures['top_fraction']:.0%} of keys carry {figures['request_share']:.1%} of requests"
    return f"{figures['cut_sentence']} With it {top}.{change}"


def other_cuts(log: Any, cuts: Sequence[str], top_fraction: float = 0.05) -> list[dict[str, Any]]:
    """The concentration under other key cuts, those the log can give: cut, keys, reused_keys and the two shares."""
    trace = read_trace(log)
    wanted = ("cut", "cut_sentence", "keys", "reused_keys", "request_share", "token_share", "gini")
    found = [concentration(trace, top_fraction, cut, top=0) for cut in cuts]
    return [{name: figures[name] for name in wanted} for figures in found if figures["keys"]]
