"""SGLang's radix cache with policy `slru`: leaf nodes used once go before those used again; inside each, by recency.

Source: SGLang 0.5.23, `mem_cache/evict_policy.py`, policy `slru` (hit_count >= 2, last_access). Nodes, stamps,
whole-node eviction and the capped last token are those of `sglang_lru`. The protected part has no bound of its own.
Leaves out: what `sglang_lru` leaves out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies import lists
from kit.policies.lists import free, link, oldest_leaf, put, take, unlink
from kit.policies.radix import Runs, grow, no_runs, readable, shrink, split, unfinished

__all__ = ["cover", "enter", "free", "leave", "own", "pool", "readable", "touch", "uncover", "unfinished", "victim"]

TITLE = "SGLang SLRU (whole leaf nodes)"
PARAMETERS: dict[str, float] = {"protected_uses": 2.0}
OVERLAPS = True
PROBATION, PROTECTED = range(2)


class Pool(NamedTuple):
    """Two recency lists (see `kit.policies.lists`), `uses` per node, `enough` [1] uses to be protected."""

    links: Any
    tokens: NDArray[np.int64]
    uses: NDArray[np.int32]
    enough: NDArray[np.int64]


def pool(nodes: int, room_tokens: NDArray[np.int64], protected_uses: float = 2.0) -> Pool:
    """Nothing resident."""
    return Pool(*lists.empty(room_tokens, 2), np.zeros(nodes, np.int32), np.array([int(protected_uses)]))


def own(parent: NDArray[np.int32], leaf: NDArray[np.int32], block_tokens: int) -> Runs:
    """Nothing resident."""
    return no_runs(parent, leaf, block_tokens)


def look(p: Any, own: Any, request: int) -> None:
    """Split the run in which this request's match ends and stamp what lies behind."""
    node = split(own, request)
    while node >= 0:
        unlink(p, node)
        link(p, np.int64(p.links[node].where), node)
        node = np.int64(-1) if own.head[node] else np.int64(own.parent[node])


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A block becomes resident, used once."""
    look(p, own, request)
    grow(own, node, request)
    p.uses[node] = 1
    put(p, np.int64(PROTECTED if p.enough[0] <= 1 else PROBATION), node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident block is used again."""
    look(p, own, request)
    p.uses[node] += 1
    take(p, node)
    put(p, np.int64(PROTECTED if p.uses[node] >= p.enough[0] else PROBATION), node)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A block is evicted or expires; its count is forgotten."""
    take(p, node)
    shrink(own, node, evicted)


def cover(p: Any, own: Any, node: int) -> None:
    """Nothing: the lists hold all resident blocks."""


def uncover(p: Any, own: Any, node: int) -> None:
    """Nothing: the lists hold all resident blocks."""


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The rest of the run being evicted, else the oldest block used once, else the oldest; -1 = none."""
    if own.last[3] >= 0:
        return own.last[3]
    look(p, own, request)
    node = oldest_leaf(p, np.int64(PROBATION), nodes, request)
    return node if node >= 0 else oldest_leaf(p, np.int64(PROTECTED), nodes, request)
