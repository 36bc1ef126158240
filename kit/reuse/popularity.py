"""How long a key stays popular, how many keys are new, and how much is in use at once: skew or a moving window?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit

from kit.reuse.concentration import share
from kit.reuse.cuts import Keys, cut_keys
from kit.reuse.rotation import counts_per_period, top_set
from kit.reuse.trace import HOUR_US, Ints, Trace, read_trace

WINDOWS_SECONDS = (3_600, 86_400, 604_800)
LONGEST_LAG = {"hours": 24, "days": 7}


def remaining(period: Ints, keys: Keys, fraction: float, longest: int) -> list[dict[str, Any]]:
    """What is left of a top set's traffic some periods later, as a share of what it had in its own period.

    Ratio of sums of shares of traffic over all periods that have both ends in the log, so a busy hour weighs no more
    than a quiet one and more traffic is not more popularity. One row per lag: lag, remaining, pairs.
    """
    found = counts_per_period(period, keys)
    place = {at: number for number, (at, _, _) in enumerate(found)}
    own, later, pairs = np.zeros(longest + 1), np.zeros(longest + 1), np.zeros(longest + 1, dtype=np.int64)
    chosen = np.zeros(keys.count, dtype=bool)
    for at, names, counts in found:
        top = top_set(names, counts, keys.prefix_tokens, fraction)
        chosen[top] = True
        held = counts[chosen[names]].sum() / counts.sum()
        for lag in range(1, longest + 1) if len(top) else ():
            if at + lag in place:
                _, there, number = found[place[at + lag]]
                own[lag] += held
                later[lag] += number[chosen[there]].sum() / number.sum()
                pairs[lag] += 1
        chosen[top] = False
    lags = np.flatnonzero(pairs)
    return [{"lag": int(lag), "remaining": float(later[lag] / own[lag]), "pairs": int(pairs[lag])} for lag in lags]


def half_life(decay: list[dict[str, Any]], unit: str) -> dict[str, float | None]:
    """The lag at which half the popularity is gone, straight between the two lags around it.

    ``half_life_<unit>`` is None where that happens before the first lag (``shorter_than_<unit>``) or after the last one
    (``longer_than_<unit>``), or cannot be told.
    """
    found: dict[str, float | None] = dict.fromkeys(
        f"{name}_{unit}" for name in ("half_life", "shorter_than", "longer_than")
    )
    gone = next((at for at, row in enumerate(decay) if row["remaining"] <= 0.5), None)
    if gone is None:
        found[f"longer_than_{unit}"] = decay[-1]["lag"] if decay else None
    elif gone == 0:
        found[f"shorter_than_{unit}"] = decay[0]["lag"]
    else:
        before, after = decay[gone - 1], decay[gone]
        part = (before["remaining"] - 0.5) / (before["remaining"] - after["remaining"])
        found[f"half_life_{unit}"] = before["lag"] + (after["lag"] - before["lag"]) * part
    return found


def popularity(log: Any, top_fraction: float = 0.05, cut: str | None = None, zone: str = "UTC") -> dict[str, Any]:
    """How fast the top set's traffic fades, by hours and by days.

    ``half_life_hours`` (looked for up to 24 h) and ``half_life_days`` (up to 7 days of the zone), see `half_life`.
    ``by_hours``, ``by_days``: the share remaining at each lag. A key left alone for a night may come back.
    """
    trace = read_trace(log, zone)
    keys = cut_keys(trace, cut)
    found: dict[str, Any] = {}
    told = trace.has_clock and keys is not None and keys.count > 0
    for unit, period in (("hours", trace.ts_us // HOUR_US), ("days", trace.day.astype(np.int64))):
        decay = remaining(period, keys, top_fraction, LONGEST_LAG[unit]) if told and keys is not None else []
        found |= {**half_life(decay, unit), f"by_{unit}": decay}
    return found


@njit(cache=True, nogil=True)
def _touched(leaf: Ints, parent: Ints, tokens: Ints, window: Ints, windows: int) -> Ints:
    """Distinct tokens touched in each window (numbers that never fall)."""
    last = np.full(len(parent), -1, dtype=np.int64)
    found = np.zeros(windows, dtype=np.int64)
    for request in range(len(leaf)):
        node = leaf[request]
        while node >= 0 and last[node] != window[request]:  # an ancestor of a touched node is touched too
            last[node] = window[request]
            found[window[request]] += tokens[node]
            node = parent[node]
    return found


def _window(trace: Trace, seconds: int) -> dict[str, Any]:
    window = (trace.ts_us - trace.ts_us[0]) // (seconds * 1_000_000)
    window = np.maximum.accumulate(window)
    found = _touched(trace.leaf, trace.parent, trace.tokens, window, int(window[-1]) + 1)
    busy = found[found > 0]
    return {
        "window_seconds": seconds,
        "windows": len(busy),
        "median_tokens": float(np.median(busy)),
        "max_tokens": int(busy.max()),
        "share_of_all_tokens": share(float(np.median(busy)), int(trace.tokens[trace.passes > 0].sum())),
    }


def working_set(log: Any, windows_seconds: Sequence[int] = WINDOWS_SECONDS) -> list[dict[str, Any]]:
    """Distinct prefix tokens in use within 1 hour, 1 day and 7 days, windows back to back from the log's start.

    Median and largest over the windows with traffic: what a cache would need to hold all that one window touches. Empty
    where the log has no clock or nothing cacheable.
    """
    trace = read_trace(log)
    if not trace.has_clock or not (trace.leaf >= 0).any() or not trace.tokens.any():
        return []
    return [_window(trace, seconds) for seconds in windows_seconds]
