"""Does the top set stay? A skewed log whose keys change every day is a moving window, and counts do not help there."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import numpy as np

from kit.reuse.concentration import share, top_count
from kit.reuse.cuts import Keys, cut_keys
from kit.reuse.trace import HOUR_US, Ints, read_trace

NO_CLOCK = "this log has no common clock: rotation cannot be told"
NO_KEY = "this log has no prefix key: rotation cannot be told"


def counts_per_period(period: Ints, keys: Keys) -> list[tuple[int, Ints, Ints]]:
    """(period, key numbers, requests per key) for every period in which a key was seen."""
    held = keys.of_request >= 0
    cell, counts = np.unique(period[held] * keys.count + keys.of_request[held], return_counts=True)
    start = np.flatnonzero(np.diff(cell // keys.count, prepend=-1))
    pieces = zip(np.split(cell, start[1:]), np.split(counts, start[1:]), strict=True)
    return [(int(cells[0] // keys.count), cells % keys.count, number) for cells, number in pieces if len(cells)]


def top_set(names: Ints, counts: Ints, lengths: Ints, fraction: float) -> Ints:
    """The top ``fraction`` of the keys of one period, never a key seen once: that tells nothing about popularity."""
    order = np.lexsort((names, -lengths[names], -counts))[: top_count(len(names), fraction)]
    return names[order][counts[order] >= 2]


def _pair(before: tuple[int, Ints, Ints], after: tuple[int, Ints, Ints], lengths: Ints, fraction: float) -> Any:
    old = top_set(before[1], before[2], lengths, fraction)
    new = top_set(after[1], after[2], lengths, fraction)
    by_old = int(after[2][np.isin(after[1], old)].sum())
    by_new = int(after[2][np.isin(after[1], new)].sum())
    return {
        "overlap": share(np.isin(old, new).sum(), len(old)),
        "carried_share": share(by_old, after[2].sum()),
        "own_top_share": share(by_new, after[2].sum()),
        "top_keys": len(old),
        "new_key_share": share((~np.isin(after[1], before[1])).sum(), len(after[1])),
    }


def _pairs(period: Ints, keys: Keys, fraction: float) -> list[dict[str, Any]]:
    """One row per two neighbouring periods; periods without requests between them make no pair."""
    found = counts_per_period(period, keys)
    return [
        {"from": before[0], "to": after[0], **_pair(before, after, keys.prefix_tokens, fraction)}
        for before, after in pairwise(found)
        if after[0] == before[0] + 1
    ]


def median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def _day(number: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=number)).isoformat()


def _new_keys(period: Ints, keys: Keys) -> list[tuple[int, int, int]]:
    """(period, keys seen, keys seen for the first time) in time order."""
    first = np.full(keys.count, np.iinfo(np.int64).max)
    held = keys.of_request >= 0
    np.minimum.at(first, keys.of_request[held], period[held])
    fresh, number = np.unique(first, return_counts=True)
    new = dict(zip(fresh.tolist(), number.tolist(), strict=True))
    return [(at, len(names), new.get(at, 0)) for at, names, _ in counts_per_period(period, keys)]


def rotation(log: Any, top_fraction: float = 0.05, cut: str | None = None, zone: str = "UTC") -> dict[str, Any]:
    """Overlap of the top set between neighbouring days of ``zone``, and its median.

    ``day_overlap``: per pair of days the share of the first day's top keys (top ``top_fraction`` of the keys seen that
    day, seen at least twice) that is in the next day's top too; None where a day has no such key. ``day_pairs`` adds
    ``carried_share``, what yesterday's top carries of today's requests, beside ``own_top_share``, what today's own top
    carries: many equally popular keys make the sets differ by chance, never these two. ``days``: keys and new keys.
    """
    trace = read_trace(log, zone)
    keys = cut_keys(trace, cut)
    reason = NO_CLOCK if not trace.has_clock else NO_KEY
    if not trace.has_clock or keys is None or not keys.count:
        return {"zone": zone, "day_overlap": [], "median": None, "day_pairs": [], "days": [], "cannot_tell": reason}
    day = trace.day.astype(np.int64)
    pairs = _pairs(day, keys, top_fraction)
    for pair in pairs:
        pair["from"], pair["to"] = _day(pair["from"]), _day(pair["to"])
    overlap = [pair["overlap"] for pair in pairs]
    return {
        "zone": zone,
        "cut": keys.cut,
        "day_overlap": overlap,
        "median": median(overlap),
        "day_pairs": pairs,
        "days": [
            {"day": _day(at), "keys": seen, "new_keys": new, "new_key_share": share(new, seen)}
            for at, seen, new in _new_keys(day, keys)
        ],
    }


def hourly_rotation(log: Any, top_fraction: float = 0.05, cut: str | None = None) -> dict[str, Any]:
    """The same hour by hour (hours of UTC): ``median`` overlap, ``pairs`` and the hour-by-hour figures."""
    trace = read_trace(log)
    keys = cut_keys(trace, cut)
    if not trace.has_clock or keys is None or not keys.count:
        return {"median": None, "pairs": 0, "hour_overlap": []}
    pairs = _pairs(trace.ts_us // HOUR_US, keys, top_fraction)
    overlap = [pair["overlap"] for pair in pairs]
    return {"median": median(overlap), "pairs": len(pairs), "hour_overlap": overlap}
