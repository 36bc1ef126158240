"""What the loop does otherwise where requests overlap: a request holds its path until it has ended.

An engine cannot evict blocks that a running request reads or has written (vLLM counts references, SGLang locks nodes,
TensorRT-LLM claims blocks), and frees them tail first when it ends. So a path is pinned from its request's start to its
`ts_end`, and recency policies count it as used then (vLLM's free queue; SGLang stamps the path again at its end). A
request without `ts_end` holds nothing once it is served. Ends come before a start at the same time.

What the log cannot tell: an engine short of room lets a request wait or recomputes another one. Here the times are
those of the log, so a path that does not fit beside what is held is not stored at all (cause: oversize), and how often
that happened is counted (`crowded_requests`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies.lru import cover, uncover
from kit.prefix import Paths
from kit.replay import loop
from kit.replay.loop import N_FIELDS, book, serve

IN_USE, MOST_IN_USE, CROWDED = range(3)


class Week(NamedTuple):
    """As `kit.replay.loop.Week`; `until` the last request that starts before this one has ended (itself at least),
    `ending` the requests in the order in which they end, `end_us` when each does (its start at least)."""

    ts_us: NDArray[np.int64]
    input_tokens: NDArray[np.int64]
    leaf: NDArray[np.int32]
    block: NDArray[np.int32]
    rate: NDArray[np.int32]
    hour: NDArray[np.int32]
    warm: NDArray[np.bool_]
    lost: NDArray[np.bool_]
    until: NDArray[np.int32]
    ending: NDArray[np.int32]
    end_us: NDArray[np.int64]


class Tier(NamedTuple):
    """As `kit.replay.loop.Tier`; `until` per node until which request it is held (-1 never held, -2 - k held until
    request k and free since), `holds` per request whether it holds its path, `room` [3] tokens held by running
    requests, most of them at once, requests that found no room beside them."""

    nodes: Any
    row: NDArray[np.int64]
    used: NDArray[np.int64]
    path: NDArray[np.int32]
    ages: NDArray[np.int64]
    depths: NDArray[np.int64]
    until: NDArray[np.int32]
    holds: NDArray[np.bool_]
    room: NDArray[np.int64]


# A policy may bring its own versions of these three. A held end is covered, as by a child, in any case.
def hold(pool: Any, own: Any, node: int) -> None:
    """A running request ends at a resident node."""


def unhold(pool: Any, own: Any, node: int) -> None:
    """A running request that ends at a node has ended."""


def free(pool: Any, own: Any, node: int, end_us: int) -> None:
    """The last running request that uses a node has ended, at `end_us`."""


def requests(paths: Paths, lost: NDArray[np.bool_]) -> Week:
    """The requests of a log with the order of their ends. ValueError where no request has an end."""
    end = paths.tags.get("ts_end_us")
    if end is None:
        raise ValueError("holding a path until its request has ended needs ts_end, which this log does not have; "
                         "set hold_until_end=False, or give the column with --map ts_end=COLUMN")  # fmt: skip
    itself = np.arange(paths.requests)
    end = np.maximum(np.asarray(end, np.int64), paths.ts_us)
    until = np.maximum(np.searchsorted(paths.ts_us, end, side="left") - 1, itself)
    ending = np.lexsort((itself, end, until))
    return Week(*loop.requests(paths, lost), until.astype(np.int32), ending.astype(np.int32), end)


def tier(paths: Paths) -> Tier:
    """An empty tier over the nodes of a log."""
    return Tier(*loop.tier(paths), np.full(paths.parent.size, -1, np.int32), np.zeros(paths.requests, np.bool_),
                np.zeros(3, np.int64))  # fmt: skip


def fits(week: Any, t: Any, length: int, held: int, capacity: int, request: int) -> bool:
    """Whether the path has room beside what running requests hold; what they hold of it stays pinned for them."""
    shared = np.int64(0)
    for k in range(length):
        node = t.nodes[t.path[k]]
        if t.until[t.path[k]] >= request:
            shared += node.room_tokens
            node.pinned = t.until[t.path[k]]
    enough = held - shared + t.room[IN_USE] <= capacity
    if held <= capacity and not enough:
        t.room[CROWDED] += 1
    return enough


def keep(week: Any, t: Any, pool: Any, own: Any, length: int, request: int) -> None:
    """The request holds its path: its end is no leaf, and no node of it can be a victim."""
    for k in range(length):
        node = t.path[k]
        if t.until[node] < 0:
            t.room[IN_USE] += t.nodes[node].room_tokens
        t.until[node] = max(t.until[node], week.until[request])
        t.nodes[node].pinned = t.until[node]
    t.room[MOST_IN_USE] = max(t.room[MOST_IN_USE], t.room[IN_USE])
    t.holds[request] = True
    end: Any = np.int64(t.path[0])
    t.nodes[end].children += 1
    hold(pool, own, end)
    if t.nodes[end].children == 1:
        cover(pool, own, end)


def finish(week: Any, t: Any, pool: Any, own: Any, request: int) -> None:
    """A request has ended: what no other running request holds is free, tail first."""
    if not t.holds[request]:
        return
    node: Any = np.int64(week.leaf[request])
    t.nodes[node].children -= 1
    unhold(pool, own, node)
    if t.nodes[node].children == 0:
        uncover(pool, own, node)
    over = np.int64(week.until[request])
    while node >= 0:
        if t.until[node] == over:
            t.room[IN_USE] -= t.nodes[node].room_tokens
            t.until[node] = -2 - over
        if t.until[node] == -2 - over:
            free(pool, own, node, week.end_us[request])
        node = np.int64(t.nodes[node].parent)


def run(week: Any, t: Any, pool: Any, own: Any, capacity: int, ttl_us: int, visible_us: int, minimum_tokens: int,
        newcomer: bool, refresh: bool, by_block: Any, by_hour: Any, resident: Any) -> None:  # fmt: skip
    """As `kit.replay.loop.run`, without lifetimes."""
    row = t.row
    ended = np.int64(0)
    done: Any
    for request in range(week.leaf.size):
        now = week.ts_us[request]
        if request > 0:
            resident[0] += t.used[0] * ((now - week.ts_us[request - 1]) * 1e-6)
        while week.until[week.ending[ended]] < request:
            done = np.int64(week.ending[ended])
            finish(week, t, pool, own, done)
            ended += 1
        for field in range(N_FIELDS):
            row[field] = 0
        serve(week, t, pool, own, request, capacity, visible_us, minimum_tokens, newcomer, refresh)
        book(week, t, request, by_block, by_hour)
