"""SGLang's radix cache with policy `lfu`: the leaf node with fewest hits goes whole, among equals the longest unused.

Source: SGLang 0.5.23, `mem_cache/radix_cache.py` and `evict_policy.py`, policy `lfu` (hit_count, last_access). Nodes,
stamps, whole-node eviction and the capped last token are those of `sglang_lru`; a new node counts 1, every request that
covers it adds 1, the upper part of a split inherits, the count is lost with the node.
Leaves out: what `sglang_lru` leaves out, and the extra counts of chunked prefill.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit.policies.lfu import append, close, cover, free, least_used, pool, remove, renew, uncover
from kit.policies.radix import Runs, grow, no_runs, readable, shrink, split, unfinished

__all__ = ["cover", "enter", "free", "leave", "own", "pool", "readable", "touch", "uncover", "unfinished", "victim"]

TITLE = "SGLang LFU (whole leaf nodes)"
PARAMETERS: dict[str, float] = {}
OVERLAPS = True


def own(parent: NDArray[np.int32], leaf: NDArray[np.int32], block_tokens: int) -> Runs:
    """Nothing resident."""
    return no_runs(parent, leaf, block_tokens)


def restamp(p: Any, node: int, count: int) -> None:
    """Most recent at this count, one more than its own."""
    before = np.int64(p.links[node].uses)
    remove(p, node)
    append(p, node, count, count if p.counts[count].oldest >= 0 else before)
    close(p, before)


def look(p: Any, own: Any, request: int) -> None:
    """Split the run in which this request's match ends and stamp what lies behind, its count unchanged."""
    node = split(own, request)
    while node >= 0:
        renew(p, node)
        node = np.int64(-1) if own.head[node] else np.int64(own.parent[node])


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A block becomes resident with count 1."""
    look(p, own, request)
    grow(own, node, request)
    one = np.int64(1)
    append(p, node, one, one if p.counts[1].oldest >= 0 else np.int64(0))


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident block is used again: count + 1."""
    look(p, own, request)
    restamp(p, node, np.int64(p.links[node].uses) + 1)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A block is evicted or expires; its count is forgotten."""
    count = np.int64(p.links[node].uses)
    remove(p, node)
    close(p, count)
    p.links[node].uses = 0
    shrink(own, node, evicted)


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The rest of the run being evicted, else the least used, then oldest block not pinned; -1 = none."""
    if own.last[3] >= 0:
        return own.last[3]
    look(p, own, request)
    return least_used(p, nodes, request)
