"""Bounds that stand beside every replay: the ceiling, the best possible at a budget, and LRU at every budget.

*MIN* (Belady) is exact for nested blocks of one size: next_use(parent) <= next_use(child), so evicting the farthest
next use, deeper first, never breaks a prefix, and with bypass it keeps the most block hits any policy could. *PFOO-L*
(SIGMETRICS 2018) bounds the hit tokens of entries of any size: the space-time a hit occupies, cheapest first, until
capacity x requests is used up, the last one in part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import njit

from kit.prefix import Ints, Paths

CURVE_BINS = 1 << 20


@dataclass(frozen=True)
class Bound:
    """Most hit tokens at a capacity, over all requests (`hit_tokens`) and in the warm window (`warm_hit_tokens`).

    `exact` is True for MIN, False for the PFOO-L upper bound; `method` names it. Ratios are of all input tokens.
    """

    capacity_tokens: int
    hit_tokens: int
    hit_token_ratio: float | None
    warm_hit_tokens: int
    warm_hit_token_ratio: float | None
    exact: bool
    method: str


@njit(cache=True, nogil=True)
def _touches(parent: Any, depth: Any, path_tokens: Any, leaf: Any, minimum_tokens: Any) -> Any:
    """Offsets of each request's path and the node at each touch, root first; too short prefixes have no path."""
    offsets = np.zeros(leaf.size + 1, np.int64)
    for request in range(leaf.size):
        end = leaf[request]
        counts = end >= 0 and path_tokens[end] >= minimum_tokens
        offsets[request + 1] = offsets[request] + (depth[end] + 1 if counts else 0)
    node_at = np.empty(offsets[-1], np.int32)
    for request in range(leaf.size):
        node = leaf[request]
        for at in range(offsets[request + 1] - 1, offsets[request] - 1, -1):
            node_at[at] = node
            node = parent[node]
    return offsets, node_at


@njit(cache=True, nogil=True)
def _next_touch(offsets: Any, node_at: Any, ts_us: Any, nodes: int, ttl_us: Any) -> Any:
    """Next touch of the same node (-1 = never, or only after it expired), and the request of each touch."""
    following = np.full(nodes, -1, np.int64)
    request_of = np.empty(node_at.size, np.int64)
    result = np.full(node_at.size, -1, np.int64)
    for request in range(offsets.size - 2, -1, -1):
        for at in range(offsets[request], offsets[request + 1]):
            request_of[at] = request
            node = node_at[at]
            later = following[node]
            if later >= 0 and (ttl_us == 0 or ts_us[request_of[later]] - ts_us[request] <= ttl_us):
                result[at] = later
            following[node] = at
    return result, request_of


@njit(cache=True, nogil=True)
def _set(words: Any, starts: Any, levels: int, x: Any) -> None:
    for level in range(levels):
        word = starts[level] + (x >> 6)
        old = words[word]
        words[word] = old | (np.uint64(1) << np.uint64(x & 63))
        if old != 0:
            return
        x >>= 6


@njit(cache=True, nogil=True)
def _clear(words: Any, starts: Any, levels: int, x: Any) -> None:
    for level in range(levels):
        word = starts[level] + (x >> 6)
        words[word] &= ~(np.uint64(1) << np.uint64(x & 63))
        if words[word] != 0:
            return
        x >>= 6


@njit(cache=True, nogil=True)
def _largest(words: Any, starts: Any, levels: int) -> Any:
    x = np.int64(0)
    for level in range(levels - 1, -1, -1):
        word = words[starts[level] + x]
        high = np.int64(0)
        for step in (32, 16, 8, 4, 2, 1):
            if word >> np.uint64(step) != 0:
                word >>= np.uint64(step)
                high += step
        x = (x << 6) | high
    return x


@njit(cache=True, nogil=True)
def _min(offsets: Any, node_at: Any, following: Any, tokens: Any, warm: Any, slots: Any) -> Any:
    """Hit tokens of MIN with bypass over all requests and over the warm ones; `slots` = nodes that fit."""
    starts = np.zeros(12, np.int64)
    levels, total, width = 0, 0, max(node_at.size, 1)
    while True:
        width = (width + 63) >> 6
        starts[levels] = total
        total += width
        levels += 1
        if width == 1:
            break
    words = np.zeros(total, np.uint64)
    next_of = np.full(tokens.size, -1, np.int64)
    used = 0
    hits = np.zeros(2, np.int64)
    for request in range(offsets.size - 1):
        for at in range(offsets[request], offsets[request + 1]):
            node = node_at[at]
            if next_of[node] == at:
                hits[0] += tokens[node]
                hits[1] += tokens[node] if warm[request] else 0
                _clear(words, starts, levels, at)
            else:
                used += 1
            next_of[node] = following[at]
            if following[at] >= 0:
                _set(words, starts, levels, following[at])
            else:
                used -= 1
        while used > slots:
            farthest = _largest(words, starts, levels)
            _clear(words, starts, levels, farthest)
            next_of[node_at[farthest]] = -1
            used -= 1
    return hits


@njit(cache=True, nogil=True)
def _min_at(parent: Any, depth: Any, path_tokens: Any, leaf: Any, ts_us: Any, ttl_us: Any, minimum_tokens: Any,
            tokens: Any, warm: Any, slots: Any) -> Any:  # fmt: skip
    """`_min` for several numbers of slots: hit tokens int64[slots, 2]."""
    offsets, node_at = _touches(parent, depth, path_tokens, leaf, minimum_tokens)
    following, _ = _next_touch(offsets, node_at, ts_us, parent.size, ttl_us)
    found = np.empty((slots.size, 2), np.int64)
    for at in range(slots.size):
        found[at] = _min(offsets, node_at, following, tokens, warm, slots[at])
    return found


def _pfoo(paths: Paths, node_at: Any, following: Any, request_of: Any, capacity_tokens: int, warm_only: bool) -> int:
    kept = np.flatnonzero(following >= 0)
    if warm_only:
        kept = kept[paths.warm[request_of[following[kept]]]]
    node = node_at[kept]
    span = request_of[following[kept]] - request_of[kept]
    volume = paths.room_tokens[node] * span
    order = np.argsort(volume / paths.tokens[node], kind="stable")
    volume, worth = volume[order], paths.tokens[node][order]
    budget = capacity_tokens * paths.requests
    filled = np.cumsum(volume)
    whole = int(np.searchsorted(filled, budget, side="right"))
    hit = int(worth[:whole].sum())
    if whole < volume.size:
        left = budget - (int(filled[whole - 1]) if whole else 0)
        hit += int(worth[whole] * left // volume[whole])
    return hit


def microseconds(ttl_seconds: float | None) -> int:
    """A TTL as the loop counts it: 0 for none, else at least one microsecond."""
    return 0 if ttl_seconds is None else max(1, round(ttl_seconds * 1e6))


def optimal(paths: Paths, capacity_tokens: int, ttl_seconds: float | None = None, minimum_tokens: int = 0) -> Bound:
    """The best possible at a budget: MIN where all nodes take the same room, else the PFOO-L upper bound.

    A gap longer than `ttl_seconds` can never be a hit and is cut before anything else.
    """
    return optima(paths, [capacity_tokens], ttl_seconds, minimum_tokens)[0]


def optima(
    paths: Paths, capacities: Sequence[int], ttl_seconds: float | None = None, minimum_tokens: int = 0
) -> list[Bound]:
    """`optimal` at several budgets; the log is gone through once for what they share."""
    ttl_us = microseconds(ttl_seconds)
    exact = paths.equal_units
    if exact:
        paths = paths.by_unit
        size = int(paths.room_tokens[0]) if paths.room_tokens.size else 1
        hits = _min_at(paths.parent, paths.depth, paths.path_tokens, paths.leaf, paths.ts_us, ttl_us, minimum_tokens,
                       paths.tokens, paths.warm, np.array(capacities, np.int64) // size).tolist()  # fmt: skip
    else:
        offsets, node_at = _touches(paths.parent, paths.depth, paths.path_tokens, paths.leaf, minimum_tokens)
        following, request_of = _next_touch(offsets, node_at, paths.ts_us, paths.parent.size, ttl_us)
        hits = [[_pfoo(paths, node_at, following, request_of, capacity, warm_only) for warm_only in (False, True)]
                for capacity in capacities]  # fmt: skip
    total, warm_total = int(paths.input_tokens.sum()), int(paths.input_tokens[paths.warm].sum())
    return [
        Bound(capacity, cold, cold / total if total else None, warm, warm / warm_total if warm_total else None,
              exact, "MIN" if exact else "PFOO-L")
        for capacity, (cold, warm) in zip(capacities, hits, strict=True)
    ]  # fmt: skip


@njit(cache=True, nogil=True)
def _add(tree: Any, slot: Any, value: Any) -> None:
    slot += 1
    while slot < tree.size:
        tree[slot] += value
        slot += slot & -slot


@njit(cache=True, nogil=True)
def _upto(tree: Any, slot: Any) -> Any:
    total = np.int64(0)
    slot += 1
    while slot > 0:
        total += tree[slot]
        slot -= slot & -slot
    return total


@njit(cache=True, nogil=True)
def _compact(slot_of: Any, room: Any, tree: Any, order: Any, filled: int) -> int:
    """Renumber the live slots from 0, oldest first; `order` holds the node of each slot (-1 = stale)."""
    tree[:] = 0
    live = 0
    for slot in range(filled):
        node = order[slot]
        if node >= 0 and slot_of[node] == slot:
            order[live] = node
            slot_of[node] = live
            _add(tree, live, room[node])
            live += 1
    return live


@njit(cache=True, nogil=True)
def _distances(parent: Any, room: Any, unit: Any, tokens: Any, path_tokens: Any, leaf: Any, ts_us: Any, counted: Any,
               ttl_us: Any, minimum_tokens: Any, longest: int, bin_tokens: Any, whole: Any,
               units: Any) -> None:  # fmt: skip
    """Where tokens of `counted` requests start to hit, in bins of capacity: `whole[d]` tokens of nodes that hit from d
    bins on, and for segments the change at each bin in how many units start to hit there (`units`, a difference
    array)."""
    nodes = parent.size
    size = 2 * nodes + longest + 1
    tree = np.zeros(size + 1, np.int64)
    order = np.full(size, -1, np.int32)
    slot_of = np.full(nodes, -1, np.int64)
    used_us = np.zeros(nodes, np.int64)
    filled, held = 0, np.int64(0)
    for request in range(leaf.size):
        end = leaf[request]
        if end < 0 or path_tokens[end] < minimum_tokens:
            continue
        if filled + longest >= size:
            filled = _compact(slot_of, room, tree, order, filled)
        node = end if counted[request] else -1
        while node >= 0:
            slot = slot_of[node]
            if slot >= 0 and (ttl_us == 0 or ts_us[request] - used_us[node] <= ttl_us):
                above = held - _upto(tree, slot)
                if unit[node] < room[node]:
                    units[above // bin_tokens + 1] += 1
                    units[(above + room[node]) // bin_tokens + 1] -= 1
                else:
                    whole[min(-(-(above + room[node]) // bin_tokens), whole.size - 1)] += tokens[node]
            node = parent[node]
        node = end
        while node >= 0:
            slot = slot_of[node]
            if slot >= 0:
                _add(tree, slot, -room[node])
                order[slot] = -1
            else:
                held += room[node]
            slot_of[node] = filled
            order[filled] = node
            _add(tree, filled, room[node])
            used_us[node] = ts_us[request]
            filled += 1
            node = parent[node]


def lru_curve(
    paths: Paths, ttl_seconds: float | None = None, minimum_tokens: int = 0, window: str = "cold"
) -> tuple[Ints, Ints]:
    """LRU's hit tokens at every capacity in one pass: (capacity_tokens, hit_tokens), both int64, rising.

    By stack distance over node touches, the root of a path most recent; over all requests, or with `window` "warm"
    those of the warm window. Exact where all units take the same room and no path is larger than the capacity; with
    mixed sizes exact up to the last entry that only partly fits and to 1/1,048,576 of the footprint.
    """
    if window not in ("cold", "warm"):
        raise ValueError(f"window must be 'cold' (all requests) or 'warm', got {window!r}")
    counted = paths.warm if window == "warm" else np.ones(paths.requests, np.bool_)
    if paths.parent.size == 0:
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    if not paths.equal_units:
        paths = replace(paths, unit_tokens=paths.room_tokens)
    footprint = int(paths.room_tokens.sum())
    step = int(paths.unit_tokens[0]) if paths.equal_units else max(1, -(-footprint // CURVE_BINS))
    whole, units = np.zeros(-(-footprint // step) + 3, np.int64), np.zeros(-(-footprint // step) + 3, np.int64)
    _distances(paths.parent, paths.room_tokens, paths.unit_tokens, paths.tokens, paths.path_tokens, paths.leaf,
               paths.ts_us, counted, microseconds(ttl_seconds), minimum_tokens, int(paths.depth.max()) + 1, step, whole,
               units)  # fmt: skip
    return np.arange(whole.size, dtype=np.int64) * step, np.cumsum(whole + np.cumsum(units) * step)


def knee(capacity_tokens: Ints, hit_tokens: Ints, share: float = 0.8) -> int | None:
    """Smallest capacity on a rising curve that reaches `share` of its end; None where nothing ever hits."""
    if hit_tokens[-1] <= 0:
        return None
    return int(capacity_tokens[int(np.searchsorted(hit_tokens, share * float(hit_tokens[-1])))])


def default_capacity(paths: Paths, ttl_seconds: float | None = None, minimum_tokens: int = 0) -> tuple[int, str]:
    """(capacity in tokens, why): the larger of LRU's knee (80 % of its ceiling) and twice the longest prefix."""
    bend = knee(*lru_curve(paths, ttl_seconds, minimum_tokens))
    double = 2 * paths.longest_prefix_tokens
    if bend is not None and bend >= double:
        return bend, f"assumed: the smallest budget at which LRU reaches 80 % of the ceiling ({bend:,} tokens)"
    return max(double, 1), f"assumed: twice the longest prefix in the log ({double:,} tokens)"
