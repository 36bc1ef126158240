"""The pool for policies that rank by a key which changes only on use: an indexed 4-ary heap over the resident leaves.

A policy that uses it gives four small functions over its own state: `on_enter(own, node, request, now_us)`,
`on_touch(own, node, request, now_us)`, `on_leave(own, node, key, evicted)` and `key(own, node)`, a float64: smallest
goes first. Equal keys: the older stamp goes first, then the deeper node. The stamp is the last use, or the insertion
where the policy sets RESTAMP = False. Only leaves are in the heap, so an ancestor never leaves before its children.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

DEEPEST = 1 << 20

RESTAMP = True


class Pool(NamedTuple):
    """Heap of node ids (`heap`, `size`), where each node stands in it (`at`, -1 = not in it), its key and tie."""

    heap: NDArray[np.int32]
    at: NDArray[np.int32]
    key: NDArray[np.float64]
    tie: NDArray[np.int64]
    size: NDArray[np.int64]


def pool(nodes: int) -> Pool:
    """An empty heap for `nodes` nodes."""
    return Pool(
        np.empty(nodes, np.int32), np.full(nodes, -1, np.int32), np.zeros(nodes), np.zeros(nodes, np.int64),
        np.zeros(1, np.int64),
    )  # fmt: skip


# These names are bound to the policy's own functions when its loop is built; bare, they are plain insertion order.
def key(own: Any, node: int) -> float:
    """Rank of a node, smallest evicted first (here: all equal, so the tie decides)."""
    return 0.0


def on_enter(own: Any, node: int, request: int, now_us: int) -> None:
    """Bookkeeping when a node becomes resident (here: none)."""


def on_touch(own: Any, node: int, request: int, now_us: int) -> None:
    """Bookkeeping when a resident node is used again (here: none)."""


def on_leave(own: Any, node: int, last_key: float, evicted: bool) -> None:
    """Bookkeeping when a node is evicted (evicted=True) or expires (here: none)."""


def before(p: Any, a: int, b: int) -> bool:
    """Whether node a is evicted before node b."""
    return p.key[a] < p.key[b] or (p.key[a] == p.key[b] and p.tie[a] < p.tie[b])


def rise(p: Any, start: int) -> None:
    """Move the node at `start` up to its place."""
    node = p.heap[start]
    here = start
    while here > 0:
        above = (here - 1) >> 2
        other = p.heap[above]
        if not before(p, node, other):
            break
        p.heap[here] = other
        p.at[other] = here
        here = above
    p.heap[here] = node
    p.at[node] = here


def sink(p: Any, start: int) -> None:
    """Move the node at `start` down to its place."""
    node = p.heap[start]
    size = p.size[0]
    here = start
    while True:
        first = (here << 2) + 1
        if first >= size:
            break
        best = first
        for child in range(first + 1, min(first + 4, size)):
            if before(p, p.heap[child], p.heap[best]):
                best = child
        other = p.heap[best]
        if not before(p, other, node):
            break
        p.heap[here] = other
        p.at[other] = here
        here = best
    p.heap[here] = node
    p.at[node] = here


def add(p: Any, own: Any, node: int) -> None:
    """Put a node into the heap at its current key."""
    p.key[node] = key(own, node)
    last = p.size[0]
    p.heap[last] = node
    p.size[0] = last + 1
    rise(p, last)


def drop(p: Any, node: int) -> None:
    """Take a node out of the heap, wherever it stands; nothing happens where it is not in it."""
    here = p.at[node]
    if here < 0:
        return
    p.at[node] = -1
    last = p.size[0] - 1
    p.size[0] = last
    if here < last:
        moved = p.heap[last]
        p.heap[here] = moved
        p.at[moved] = here
        sink(p, here)
        rise(p, p.at[moved])


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident."""
    on_enter(own, node, request, now_us)
    p.tie[node] = request * DEEPEST + (DEEPEST - 1 - depth)
    if is_leaf:
        add(p, own, node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again."""
    on_touch(own, node, request, now_us)
    if RESTAMP:
        p.tie[node] = request * DEEPEST + (DEEPEST - 1 - depth)
    here = p.at[node]
    if here >= 0:
        p.key[node] = key(own, node)
        sink(p, here)
        rise(p, p.at[node])


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted or expires."""
    last_key = p.key[node]
    drop(p, node)
    on_leave(own, node, last_key, evicted)


def cover(p: Any, own: Any, node: int) -> None:
    """A resident node gets its first resident child: no leaf any more."""
    drop(p, node)


def uncover(p: Any, own: Any, node: int) -> None:
    """A resident node lost its last resident child: a leaf again, at its own old stamp."""
    add(p, own, node)


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The leaf to evict next, never one pinned by this request (a path pins at most one leaf); -1 = none."""
    size = p.size[0]
    if size == 0:
        return -1
    if nodes[p.heap[0]].pinned != request:
        return p.heap[0]
    best = -1
    for child in range(1, min(5, size)):
        if best < 0 or before(p, p.heap[child], p.heap[best]):
            best = child
    return p.heap[best] if best >= 0 else -1
