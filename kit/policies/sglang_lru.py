"""SGLang's radix cache with its default policy: the leaf node used longest ago goes, whole.

Source: SGLang 0.5.23, `mem_cache/radix_cache.py` and `evict_policy.py`, policy `lru`. A node is the run of blocks that
one request added, split where a later match ends; the part that did not match is stamped too. Eviction may free more
than was asked for. A hit is capped at the prompt less one token. Ties: the deeper block first.
A request that has ended stamps its path again (`Setting.hold_until_end`).
Leaves out: generated tokens, the split that the capped last page makes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit.policies.lru import NEWER, cover, free, pool, push, uncover, unlink
from kit.policies.pins import pinned
from kit.policies.radix import Runs, grow, no_runs, readable, shrink, split, unfinished

__all__ = ["cover", "enter", "free", "leave", "own", "pool", "readable", "touch", "uncover", "unfinished", "victim"]

TITLE = "SGLang LRU (whole leaf nodes)"
PARAMETERS: dict[str, float] = {}
OVERLAPS = True


def own(parent: NDArray[np.int32], leaf: NDArray[np.int32], block_tokens: int) -> Runs:
    """Nothing resident."""
    return no_runs(parent, leaf, block_tokens)


def look(p: Any, own: Any, request: int) -> None:
    """Split the run in which this request's match ends and stamp what lies behind."""
    node = split(own, request)
    while node >= 0:
        unlink(p, node)
        push(p, node)
        node = np.int64(-1) if own.head[node] else np.int64(own.parent[node])


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A block becomes resident: most recent."""
    look(p, own, request)
    grow(own, node, request)
    push(p, node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident block is used again: most recent."""
    look(p, own, request)
    unlink(p, node)
    push(p, node)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A block is evicted or expires."""
    unlink(p, node)
    shrink(own, node, evicted)


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The rest of the run being evicted, else the oldest block that is not pinned; -1 = none."""
    if own.last[3] >= 0:
        return own.last[3]
    look(p, own, request)
    end = p.links.shape[0] - 1
    node = np.int64(p.links[end, NEWER])
    while node != end and pinned(nodes, node, request):
        unlink(p, node)
        push(p, node)
        node = np.int64(p.links[end, NEWER])
    return node if node != end else np.int64(-1)
