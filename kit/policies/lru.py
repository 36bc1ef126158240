"""LRU: least recently used first.

Source: SGLang `lru` (last access), vLLM free queue, libCacheSim LRU. State: one list of all resident nodes. A request
touches its path from leaf to root, so the root ends most recent and the list's old end is always a leaf: no tree is
needed for prefix closure. Tie inside a request: the deeper block goes first.
Leaves out: engines that order by finish time (needs `ts_end`), reference counts of running requests.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TITLE = "LRU"
PARAMETERS: dict[str, float] = {}
INLINE = True
SEGMENTS = "always"


class Pool(NamedTuple):
    """Doubly linked list over nodes; the last index is the sentinel (its `newer` is the oldest node)."""

    newer: NDArray[np.int32]
    older: NDArray[np.int32]


def pool(nodes: int) -> Pool:
    """An empty list for `nodes` nodes."""
    return Pool(np.full(nodes + 1, nodes, np.int32), np.full(nodes + 1, nodes, np.int32))


def push(p: Any, node: int) -> None:
    """Link a node at the recent end."""
    end = p.newer.size - 1
    recent = p.older[end]
    p.newer[recent] = node
    p.older[node] = recent
    p.newer[node] = end
    p.older[end] = node


def unlink(p: Any, node: int) -> None:
    """Take a node out of the list."""
    newer, older = p.newer[node], p.older[node]
    p.newer[older] = newer
    p.older[newer] = older


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident: most recent."""
    push(p, node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again: most recent."""
    unlink(p, node)
    push(p, node)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted or expires."""
    unlink(p, node)


def cover(p: Any, own: Any, node: int) -> None:
    """Nothing: recency alone keeps parents after their children."""


def uncover(p: Any, own: Any, node: int) -> None:
    """Nothing: recency alone keeps parents after their children."""


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The oldest node not pinned by this request; pinned ones move to the recent end, as their use would anyway."""
    end = p.newer.size - 1
    node = p.newer[end]
    while node != end and nodes[node].pinned == request:
        unlink(p, node)
        push(p, node)
        node = p.newer[end]
    return node if node != end else -1
