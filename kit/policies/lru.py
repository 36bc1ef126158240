"""LRU: least recently used first.

Source: SGLang `lru` (last access), vLLM free queue, libCacheSim LRU. State: one list of all resident nodes. A request
touches its path from leaf to root, so the root ends most recent and the list's old end is always a leaf: no tree is
needed for prefix closure. Tie inside a request: the deeper block goes first.
Where requests overlap (`Setting.hold_until_end`) a path counts as used when its request ends, as vLLM frees it then.
Leaves out: blocks of generated tokens.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies.ahead import fetch
from kit.policies.pins import pinned

TITLE = "LRU"
PARAMETERS: dict[str, float] = {}
INLINE = True
OVERLAPS = True
SEGMENTS = "always"
NEWER, OLDER = range(2)


class Pool(NamedTuple):
    """Doubly linked list over nodes, `links` int32[nodes + 1, 2]: the NEWER and OLDER neighbour of each, side by side
    in memory; the last row is both ends (its NEWER is the oldest node)."""

    links: NDArray[np.int32]


def pool(nodes: int) -> Pool:
    """An empty list for `nodes` nodes."""
    return Pool(np.full((nodes + 1, 2), nodes, np.int32))


def push(p: Any, node: int) -> None:
    """Link a node at the recent end."""
    end = p.links.shape[0] - 1
    recent = p.links[end, OLDER]
    p.links[recent, NEWER] = node
    p.links[node, OLDER] = recent
    p.links[node, NEWER] = end
    p.links[end, OLDER] = node


def unlink(p: Any, node: int) -> None:
    """Take a node out of the list."""
    newer, older = p.links[node, NEWER], p.links[node, OLDER]
    p.links[older, NEWER] = newer
    p.links[newer, OLDER] = older


def soon(p: Any, own: Any, nodes: Any, node: int, close: int) -> None:
    """`node` will be asked for soon, `close` sooner: have their links, their neighbours and the next victim at hand."""
    fetch(p.links, node)
    fetch(p.links, np.int64(p.links[close, NEWER]))
    fetch(p.links, np.int64(p.links[close, OLDER]))
    end = p.links.shape[0] - 1
    second = np.int64(p.links[p.links[end, NEWER], NEWER])
    if second != end:
        fetch(p.links, second)
        fetch(nodes, second)


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


def free(p: Any, own: Any, node: int, end_us: int) -> None:
    """The last running request that uses a node has ended: most recent."""
    unlink(p, node)
    push(p, node)


def cover(p: Any, own: Any, node: int) -> None:
    """Nothing: recency alone keeps parents after their children."""


def uncover(p: Any, own: Any, node: int) -> None:
    """Nothing: recency alone keeps parents after their children."""


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The oldest node that is not pinned; pinned ones move to the recent end, as their use or its end would anyway."""
    end = p.links.shape[0] - 1
    node = p.links[end, NEWER]
    while node != end and pinned(nodes, node, request):
        unlink(p, node)
        push(p, node)
        node = p.links[end, NEWER]
    return node if node != end else -1
