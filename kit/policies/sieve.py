"""SIEVE: a queue, one visited bit per node, and a hand that moves from old to new and evicts what it finds unvisited.

Source: SIEVE (NSDI 2024); libCacheSim Sieve. A hit sets the bit and moves nothing; the hand clears bits it passes and
stays where it evicted; past the newest it starts again at the oldest. Nested paths: only leaves stand in the queue, and
a block whose last child has gone is what the hand looks at next. Ties: none, the queue is a total order.
Leaves out: nothing of the published rule.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies import lists
from kit.policies.lists import link, unlink

TITLE = "SIEVE"
PARAMETERS: dict[str, float] = {}
INLINE = True
QUEUE = 0


class Pool(NamedTuple):
    """One list (see `kit.policies.lists`), `visited` per node, `hand` [1]: the node it looks at next (the end of the
    list = start again at the oldest)."""

    newer: NDArray[np.int32]
    older: NDArray[np.int32]
    where: NDArray[np.int8]
    tokens: NDArray[np.int64]
    room: NDArray[np.int64]
    visited: NDArray[np.bool_]
    hand: NDArray[np.int32]


def pool(nodes: int, room_tokens: NDArray[np.int64]) -> Pool:
    """An empty queue."""
    return Pool(*lists.empty(room_tokens, 1), np.zeros(nodes, np.bool_), np.full(1, nodes, np.int32))


def step_over(p: Any, node: int) -> None:
    """Unlink a node; a hand that looks at it goes on to the next newer one."""
    if p.hand[0] == node:
        p.hand[0] = p.newer[node]
    unlink(p, node)


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident: newest, not visited."""
    p.visited[node] = False
    if is_leaf:
        link(p, np.int64(QUEUE), node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again."""
    p.visited[node] = True


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted or expires."""
    step_over(p, node)


def cover(p: Any, own: Any, node: int) -> None:
    """No leaf any more."""
    step_over(p, node)


def uncover(p: Any, own: Any, node: int) -> None:
    """A leaf again: linked just before the hand, which looks at it next."""
    after = p.hand[0]
    if after == p.where.size:
        after = p.newer[after]
    before = p.older[after]
    p.newer[before] = node
    p.older[node] = before
    p.newer[node] = after
    p.older[after] = node
    p.hand[0] = node


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The first unvisited leaf from the hand on, bits cleared on the way; pinned leaves are passed over."""
    end = p.where.size
    if p.newer[end] == end:
        return np.int64(-1)
    node = np.int64(p.hand[0])
    while True:
        if node == end:
            node = np.int64(p.newer[end])
        if nodes[node].pinned != request:
            if not p.visited[node]:
                break
            p.visited[node] = False
        node = np.int64(p.newer[node])
    p.hand[0] = node
    return node
