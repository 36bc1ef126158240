"""2Q: a first-in queue for newcomers, a recency list for what came back, and the keys that fell out of the queue.

Source: 2Q (VLDB 1994), full version; libCacheSim TwoQ. A hit in the queue moves nothing; a key asked for again after it
fell out of the queue enters the recency list. Victim: the oldest of the queue while that is over `in_share` of the
capacity (its key is remembered, `out_share` of the capacity), else the oldest of the recency list. Nested paths: only
leaves stand in the queue, a block whose last child has gone stands at its old end; the recency list gives its oldest
leaf. Leaves out: the refusal of what is larger than the queue.
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
    oldest_leaf,
    put,
    remember,
    soon,
    take,
    unlink,
    welcome_back,
)

__all__ = ["cover", "enter", "leave", "pool", "soon", "touch", "uncover", "victim"]

TITLE = "2Q"
PARAMETERS: dict[str, float] = {"in_share": 0.25, "out_share": 0.50}
IN, MAIN = range(2)


class Pool(NamedTuple):
    """Lists IN (leaves only), MAIN (all) and those of `kit.policies.lists.welcome_back`; `limit` tokens of each; `seen`
    [1] last request looked at; `leaf` of each request."""

    links: Any
    tokens: NDArray[np.int64]
    limit: NDArray[np.int64]
    seen: NDArray[np.int64]
    leaf: NDArray[np.int32]


def pool(
    room_tokens: NDArray[np.int64], leaf: NDArray[np.int32], capacity_tokens: int, in_share: float = 0.25,
    out_share: float = 0.50,
) -> Pool:  # fmt: skip
    """Empty queues; shares are of the capacity, between 0 and 1."""
    limit = np.array([int(capacity_tokens * in_share), capacity_tokens, int(capacity_tokens * out_share), 0])
    return Pool(*lists.empty(room_tokens, 4), limit, np.array([-1]), leaf)


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident: in the recency list if its key was remembered."""
    if p.links[node].where >= GHOST:
        take(p, node)
        put(p, np.int64(MAIN), node)
        return
    join(p, np.int64(IN), node)
    if is_leaf:
        link(p, np.int64(IN), node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again: only the recency list moves."""
    if p.links[node].where == MAIN:
        unlink(p, node)
        link(p, np.int64(MAIN), node)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted (out of the queue: its key is remembered) or expires."""
    was_in = p.links[node].where == IN
    take(p, node)
    if evicted and was_in:
        remember(p, node)


def cover(p: Any, own: Any, node: int) -> None:
    """No leaf any more."""
    if p.links[node].where == IN:
        unlink(p, node)


def uncover(p: Any, own: Any, node: int) -> None:
    """A leaf again."""
    if p.links[node].where == IN:
        link_oldest(p, np.int64(IN), node)


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The node to evict next; -1 = none."""
    welcome_back(p, nodes, request)
    waiting = head_leaf(p, np.int64(IN), nodes, request)
    if waiting >= 0 and p.tokens[IN] > p.limit[IN]:
        return waiting
    node = oldest_leaf(p, np.int64(MAIN), nodes, request)
    return node if node >= 0 else waiting
