"""Time between two uses of the same tokens, and what a cache that never forgets would read, by type and place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit

from kit.reuse.concentration import share
from kit.reuse.trace import Ints, Trace, read_trace

GRID_SECONDS = tuple(float(10 ** (step / 20)) for step in range(-60, 141))
NAMED_SECONDS = (60.0, 300.0, 1800.0, 3600.0, 43200.0, 86400.0)
NO_CLOCK = "this log has no common clock: reuse gaps cannot be told"


@njit(cache=True, nogil=True)
def _gap_tokens(leaf: Ints, parent: Ints, tokens: Ints, ts_us: Ints, edges_us: Ints) -> Ints:
    """Tokens read again, by the gap since the request before that held them: one count per edge, one beyond the last.

    A gap belongs to the first edge that is at least as long.
    """
    last = np.full(len(parent), -1, dtype=np.int64)
    found = np.zeros(len(edges_us) + 1, dtype=np.int64)
    for request in range(len(leaf)):
        node = leaf[request]
        while node >= 0:
            if last[node] >= 0:
                gap = ts_us[request] - ts_us[last[node]]
                found[np.searchsorted(edges_us, gap)] += tokens[node]
            last[node] = request
            node = parent[node]
    return found


def _quantile(edges: Any, tokens: Ints, level: float) -> float | None:
    """The first edge by which ``level`` of the tokens have come back; None where that lies beyond the last edge."""
    total = tokens.sum()
    if not total:
        return None
    at = int(np.searchsorted(np.cumsum(tokens), level * total))
    return float(edges[at]) if at < len(edges) else None


def gap_tokens(trace: Trace, seconds: Sequence[float]) -> tuple[Any, Ints]:
    """Edges in seconds (a fine logarithmic grid and ``seconds``); tokens read again per edge, one more beyond."""
    edges = np.unique(np.array([*GRID_SECONDS, *NAMED_SECONDS, *seconds], dtype=np.float64))
    edges_us = np.round(edges * 1e6).astype(np.int64)
    return edges, _gap_tokens(trace.leaf, trace.parent, trace.tokens, trace.ts_us, edges_us)


def reuse_gaps(log: Any, ttl_seconds: float | None = None) -> dict[str, Any]:
    """How long until the same tokens are used again, start to start (the clock a TTL sees), weighted by tokens.

    ``longer_token_share``: share of all reused tokens whose gap exceeds ``ttl_seconds`` (None without a TTL or clock).
    ``within``: share that came back within 60 s ... one day. ``median_seconds``, ``p90_seconds``: upper edge of a grid
    of 20 steps per decade. Every pass through a block but its first is one reuse.
    """
    trace = read_trace(log)
    if not trace.has_clock:
        unknown = ("longer_token_share", "reused_tokens", "median_seconds", "p90_seconds")
        return {"ttl_seconds": ttl_seconds, **dict.fromkeys(unknown), "within": {}, "cannot_tell": NO_CLOCK}
    edges, tokens = gap_tokens(trace, [ttl_seconds] if ttl_seconds is not None else [])
    total = int(tokens.sum())
    upto = {second: share(tokens[: np.searchsorted(edges, second) + 1].sum(), total) for second in NAMED_SECONDS}
    longer = None
    if ttl_seconds is not None:
        longer = share(tokens[np.searchsorted(edges, ttl_seconds) + 1 :].sum(), total)
    return {
        "ttl_seconds": ttl_seconds,
        "longer_token_share": longer,
        "reused_tokens": total,
        "within": {f"{second:g}": part for second, part in upto.items()},
        "median_seconds": _quantile(edges, tokens, 0.5),
        "p90_seconds": _quantile(edges, tokens, 0.9),
    }
