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
from kit.policies.lists import link, nodes_of, soon, unlink

__all__ = ["cover", "enter", "leave", "pool", "soon", "touch", "uncover", "victim"]

TITLE = "SIEVE"
PARAMETERS: dict[str, float] = {}
INLINE = True
QUEUE = 0


class Pool(NamedTuple):
    """One list (see `kit.policies.lists`), `hand` [1]: the node it looks at next (the end of the
    list = start again at the oldest)."""

    links: Any
    tokens: NDArray[np.int64]
    hand: NDArray[np.int32]


def pool(nodes: int, room_tokens: NDArray[np.int64]) -> Pool:
    """An empty queue."""
    return Pool(*lists.empty(room_tokens, 1), np.full(1, nodes, np.int32))


def step_over(p: Any, node: int) -> None:
    """Unlink a node; a hand that looks at it goes on to the next newer one."""
    if p.hand[0] == node:
        p.hand[0] = p.links[node].newer
    unlink(p, node)


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident: newest, not visited."""
    p.links[node].visited = False
    if is_leaf:
        link(p, np.int64(QUEUE), node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again."""
    p.links[node].visited = True


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted or expires."""
    step_over(p, node)


def cover(p: Any, own: Any, node: int) -> None:
    """No leaf any more."""
    step_over(p, node)


def uncover(p: Any, own: Any, node: int) -> None:
    """A leaf again: linked just before the hand, which looks at it next."""
    after = p.hand[0]
    if after == nodes_of(p):
        after = p.links[after].newer
    before = p.links[after].older
    p.links[before].newer = node
    p.links[node].older = before
    p.links[node].newer = after
    p.links[after].older = node
    p.hand[0] = node


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The first unvisited leaf from the hand on, bits cleared on the way; pinned leaves are passed over."""
    end = nodes_of(p)
    if p.links[end].newer == end:
        return np.int64(-1)
    node = np.int64(p.hand[0])
    while True:
        if node == end:
            node = np.int64(p.links[end].newer)
        if nodes[node].pinned != request:
            if not p.links[node].visited:
                break
            p.links[node].visited = False
        node = np.int64(p.links[node].newer)
    p.hand[0] = node
    return node
