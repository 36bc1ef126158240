"""Hours that bring mostly tokens nobody had before and nobody asks for again: scans."""

from __future__ import annotations

from typing import Any

import numpy as np

from kit.reuse.concentration import share
from kit.reuse.cuts import one_shot_tokens
from kit.reuse.rotation import median
from kit.reuse.trace import HOUR_US, read_trace

NO_CLOCK = "this log has no common clock: scans cannot be told"


def scans(log: Any, threshold: float = 0.3) -> dict[str, Any]:
    """Hours (UTC) in which ``threshold`` or more of the prompt tokens belong to prefixes seen once in the whole log.

    Every block of a nested log is a prefix of its own, so a one-shot document behind a shared system prompt counts
    with its own tokens only. ``hours``: those hours as {hour_index from the log's first hour, hour, requests, tokens,
    one_shot_tokens, share}; ``max_share``, ``median_share`` and ``median_hour_tokens`` over all hours with traffic;
    ``max_busy_share`` over those with at least the median's tokens: a single request at night is no scan.
    """
    trace = read_trace(log)
    measures = ("hours_with_traffic", "max_share", "max_busy_share", "median_share", "median_hour_tokens")
    empty: dict[str, Any] = {"threshold": threshold, "hours": [], **dict.fromkeys(measures)}
    if not trace.has_clock or not trace.requests:
        return {**empty, "cannot_tell": NO_CLOCK}
    hour = trace.ts_us // HOUR_US
    first = int(hour[0])
    length = np.append(trace.path_tokens, 0)[trace.leaf]
    tokens = np.bincount(hour - first, weights=length)
    alone = np.bincount(hour - first, weights=one_shot_tokens(trace))
    requests = np.bincount(hour - first)
    part = np.divide(alone, tokens, out=np.zeros_like(alone), where=tokens > 0)
    flagged = np.flatnonzero((part >= threshold) & (alone > 0))
    usual = median(tokens[tokens > 0].tolist())
    return {
        "threshold": threshold,
        "hours_with_traffic": int((tokens > 0).sum()),
        "max_share": float(part.max()) if tokens.any() else None,
        "max_busy_share": None if usual is None else float(part[tokens >= usual].max()),
        "median_share": median(part[tokens > 0].tolist()),
        "median_hour_tokens": usual,
        "one_shot_token_share": share(alone.sum(), tokens.sum()),
        "hours": [
            {
                "hour_index": int(at),
                "hour": str(np.datetime64(int(at + first), "h")) + ":00Z",
                "requests": int(requests[at]),
                "tokens": int(tokens[at]),
                "one_shot_tokens": int(alone[at]),
                "share": float(part[at]),
            }
            for at in flagged
        ],
    }
