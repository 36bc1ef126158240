"""What one-shot tokens cost LRU: the same log with and without the room they take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from kit.reuse.concentration import share
from kit.reuse.trace import HOUR_US, Ints, Trace, read_trace


@njit(cache=True, nogil=True)
def _up_to(tree: Ints, request: int) -> int:
    """Tokens whose last use is a request up to ``request`` (Fenwick prefix sum)."""
    total, at = 0, request + 1
    while at > 0:
        total += tree[at]
        at -= at & -at
    return total


@njit(cache=True, nogil=True)
def _add(tree: Ints, request: int, tokens: int) -> None:
    at = request + 1
    while at < len(tree):
        tree[at] += tokens
        at += at & -at


@njit(cache=True, nogil=True)
def lru_hits(leaf: Ints, parent: Ints, tokens: Ints, room: Ints, capacity: int, hour: Ints, hours: int) -> Ints:
    """Tokens that LRU of ``capacity`` would hit in each hour, in one pass.

    A node is resident while the room of everything used since, itself included, is within the capacity. On a path the
    last uses only grow towards the root, so nodes with the same last use are one step: one look into the tree, then the
    nodes between, counted from the root down.
    """
    last = np.full(len(parent), -1, dtype=np.int64)
    tree = np.zeros(len(leaf) + 1, dtype=np.int64)
    found = np.zeros(hours, dtype=np.int64)
    used = 0
    for request in range(len(leaf)):
        node = leaf[request]
        moved = 0
        while node >= 0:
            before, top, together = last[node], node, 0
            while top >= 0 and last[top] == before:
                together += room[top]
                top = parent[top]
            if before >= 0:
                beyond = used - _up_to(tree, before)
                depth = together
                while node != top:
                    if beyond + depth <= capacity:
                        found[hour[request]] += tokens[node]
                    depth -= room[node]
                    last[node] = request
                    node = parent[node]
                _add(tree, before, -together)
                used -= together
            else:
                while node != top:
                    last[node] = request
                    node = parent[node]
            moved += together
        _add(tree, request, moved)
        used += moved
    return found


def scan_effect(log: Any, capacity_tokens: int) -> dict[str, Any]:
    """Hit tokens that LRU at this budget loses to tokens nobody uses again (no TTL, tokens unrounded).

    ``lru_hit_tokens`` as the log is; ``without_one_shots`` when one-shot tokens took no room: what perfect scan
    resistance could add at most. ``lost_token_share`` of all prompt tokens, ``hours``: lost tokens per hour (UTC, by
    ``hour_index`` from the log's first hour) where any were lost. None everywhere on a log without prefixes.
    """
    trace = read_trace(log)
    names = ("lru_hit_tokens", "without_one_shots", "lost_tokens", "lost_token_share")
    if not (trace.leaf >= 0).any():
        return {"capacity_tokens": capacity_tokens, **dict.fromkeys(names), "hours": []}
    hour = trace.ts_us // HOUR_US
    hour = hour - hour.min()
    kept = np.where(trace.passes == 1, 0, trace.tokens)
    asis, without = (_hits(trace, room, capacity_tokens, hour) for room in (trace.tokens, kept))
    brought = np.bincount(hour, weights=np.append(trace.path_tokens, 0)[trace.leaf])
    lost = without - asis
    return {
        "capacity_tokens": capacity_tokens,
        "lru_hit_tokens": int(asis.sum()),
        "without_one_shots": int(without.sum()),
        "lost_tokens": int(lost.sum()),
        "lost_token_share": share(lost.sum(), brought.sum()),
        "hours": [
            {"hour_index": int(at), "lost_tokens": int(lost[at]), "lost_token_share": share(lost[at], brought[at])}
            for at in np.flatnonzero(lost)
        ],
    }


def _hits(trace: Trace, room: Ints, capacity: int, hour: Ints) -> Ints:
    return lru_hits(trace.leaf, trace.parent, trace.tokens, room, capacity, hour, int(hour.max()) + 1)
