"""S3-FIFO: a small queue for newcomers, a main queue for what was used twice, a ghost queue of keys that fell out.

Source: S3-FIFO (SOSP 2023) as libCacheSim 0.3.5 has it. Victim: the oldest of main while main is over its share or
small is empty, else the oldest of small. Small's oldest moves to main at `promote_uses` uses or more, else it leaves
and its key becomes a ghost; main's oldest goes round again while it has uses left (3 at most, one less each round). A
ghost that returns enters main; so does a newcomer that finds small full before anything was ever evicted. Nested paths:
only leaves stand in the queues; a block whose last child has gone stands at the old end of its own queue.
Leaves out: the refusal of what is larger than the small queue (it enters main here).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies import lists
from kit.policies.lists import (
    GHOST,
    head_leaf,
    join,
    link,
    link_oldest,
    put,
    remember,
    soon,
    take,
    unlink,
    welcome_back,
)

__all__ = ["cover", "enter", "leave", "pool", "soon", "touch", "uncover", "victim"]

TITLE = "S3-FIFO"
PARAMETERS: dict[str, float] = {"small_share": 0.10, "ghost_share": 0.90, "promote_uses": 2.0}
SMALL, MAIN = range(2)
MOST_USES = 3
MANY = 30_000


class Pool(NamedTuple):
    """Lists SMALL, MAIN and those of `kit.policies.lists.welcome_back`; the links' `uses` since a node was queued;
    `limit` tokens of each list; `promote` uses; `seen` [2]: last request looked at, whether anything was evicted;
    `leaf` of each request."""

    links: Any
    tokens: NDArray[np.int64]
    limit: NDArray[np.int64]
    promote: NDArray[np.int64]
    seen: NDArray[np.int64]
    leaf: NDArray[np.int32]


def pool(
    nodes: int, room_tokens: NDArray[np.int64], leaf: NDArray[np.int32], capacity_tokens: int,
    small_share: float = 0.10, ghost_share: float = 0.90, promote_uses: float = 2.0,
) -> Pool:  # fmt: skip
    """Empty queues; shares are of the capacity, between 0 and 1."""
    small = int(capacity_tokens * small_share)
    limit = np.array([small, capacity_tokens - small, int(capacity_tokens * ghost_share), 0])
    return Pool(*lists.empty(room_tokens, 4), limit, np.array([int(promote_uses)]),
                np.array([-1, 0]), leaf)  # fmt: skip


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident, in small or (a ghost, or too large, or in the first fill) in main."""
    queue = np.int64(SMALL)
    if p.links[node].where >= GHOST:
        take(p, node)
        queue = np.int64(MAIN)
    elif p.links[node].room >= p.limit[SMALL] or (p.seen[1] == 0 and p.tokens[SMALL] >= p.limit[SMALL]):
        queue = np.int64(MAIN)
    p.links[node].uses = 0
    join(p, queue, node)
    if is_leaf:
        link(p, queue, node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again."""
    p.links[node].uses = min(p.links[node].uses + 1, MANY)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted (out of small: its key becomes a ghost) or expires."""
    was_small = p.links[node].where == SMALL
    take(p, node)
    if evicted and was_small:
        remember(p, node)


def cover(p: Any, own: Any, node: int) -> None:
    """No leaf any more."""
    unlink(p, node)


def uncover(p: Any, own: Any, node: int) -> None:
    """A leaf again: the next of its queue."""
    link_oldest(p, np.int64(p.links[node].where), node)


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The node to evict next; promotions and rounds happen on the way. -1 = none."""
    welcome_back(p, nodes, request)
    p.seen[1] = 1
    while True:
        small = head_leaf(p, np.int64(SMALL), nodes, request)
        main = head_leaf(p, np.int64(MAIN), nodes, request)
        if main >= 0 and (small < 0 or p.tokens[MAIN] > p.limit[MAIN]):
            if p.links[main].uses == 0:
                return main
            p.links[main].uses = min(p.links[main].uses, MOST_USES) - 1
            unlink(p, main)
            link(p, np.int64(MAIN), main)
        elif small >= 0 and p.links[small].uses >= p.promote[0]:
            take(p, small)
            p.links[small].uses = 0
            put(p, np.int64(MAIN), small)
        else:
            return small
