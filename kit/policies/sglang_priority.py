"""SGLang's radix cache with policy `priority`: the leaf node of lowest priority goes whole, among equals the longest
unused.

Source: SGLang 0.5.23, `mem_cache/evict_policy.py`, policy `priority` (priority, last_access). Nodes, stamps, whole-node
eviction and the capped last token are those of `sglang_lru`. A node has the highest priority of the requests that
inserted or covered it (0 where a request gives none, 100 at most here); the upper part of a split inherits it, it is
lost with the node.
Leaves out: what `sglang_lru` leaves out, and the one step of priority a prompt has over its own answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies import lists
from kit.policies.lists import free, oldest_leaf, put, take
from kit.policies.radix import grow, readable, unfinished
from kit.policies.sglang_slru import cover, leave, look, own, uncover

__all__ = ["cover", "enter", "free", "leave", "own", "pool", "readable", "touch", "uncover", "unfinished", "victim"]

TITLE = "SGLang priority (whole leaf nodes)"
PARAMETERS: dict[str, float] = {}
OVERLAPS = True
NEEDS = ("priority",)
HIGHEST = 100


class Pool(NamedTuple):
    """One recency list per priority (see `kit.policies.lists`); `priority` per request."""

    links: Any
    tokens: NDArray[np.int64]
    priority: NDArray[np.int64]


def pool(room_tokens: NDArray[np.int64], priority: NDArray[np.int64]) -> Pool:
    """Nothing resident. `priority` 0 to 100 per request (below 0 = not given: 0)."""
    return Pool(*lists.empty(room_tokens, HIGHEST + 1), np.clip(priority, 0, HIGHEST).astype(np.int64))


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A block becomes resident at the request's priority."""
    look(p, own, request)
    grow(own, node, request)
    put(p, p.priority[request], node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident block is used again: most recent of the higher of the two priorities."""
    look(p, own, request)
    highest = max(np.int64(p.links[node].where), p.priority[request])
    take(p, node)
    put(p, highest, node)


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The rest of the run being evicted, else the oldest leaf of the lowest priority that has one; -1 = none."""
    if own.last[3] >= 0:
        return own.last[3]
    look(p, own, request)
    for priority in range(HIGHEST + 1):
        node = oldest_leaf(p, np.int64(priority), nodes, request)
        if node >= 0:
            return node
    return np.int64(-1)
