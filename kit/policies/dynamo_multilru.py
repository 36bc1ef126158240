"""Dynamo's MultiLRU pool: four recency lists by how often a block was used, the coldest list first.

Source: Dynamo KVBM `lib/kvbm-logical/src/pools/inactive/backends/multi_lru_backend` @53fe970, thresholds 3, 8 and 15.
A use counts (15 at most, kept after eviction), then the block joins the recent end of its level. Ties: none.
Leaves out: the sketch's collisions (counts are exact here) and its halving after 20 million counts; Dynamo's default
pool (lineage: leaf-only recency) is `lru`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies import lists
from kit.policies.lists import free, oldest_leaf, put, take

__all__ = ["cover", "enter", "free", "leave", "pool", "touch", "uncover", "victim"]

TITLE = "Dynamo MultiLRU"
PARAMETERS: dict[str, float] = {"warm_uses": 3.0, "hot_uses": 8.0, "hottest_uses": 15.0}
OVERLAPS = True
LEVELS = 4
MOST_USES = 15


class Pool(NamedTuple):
    """Four recency lists (see `kit.policies.lists`), coldest first; `uses` per node, `from_uses` of each level."""

    links: Any
    tokens: NDArray[np.int64]
    uses: NDArray[np.int8]
    from_uses: NDArray[np.int64]


def pool(
    nodes: int, room_tokens: NDArray[np.int64], warm_uses: float = 3.0, hot_uses: float = 8.0,
    hottest_uses: float = 15.0,
) -> Pool:  # fmt: skip
    """Nothing resident, no uses."""
    levels = np.array([0, int(warm_uses), int(hot_uses), int(hottest_uses)])
    return Pool(*lists.empty(room_tokens, LEVELS), np.zeros(nodes, np.int8), levels)


def settle_in(p: Any, node: int) -> None:
    """One use more, then the recent end of the level it has reached."""
    if p.uses[node] < MOST_USES:
        p.uses[node] += 1
    level = np.int64(0)
    while level + 1 < LEVELS and p.uses[node] >= p.from_uses[level + 1]:
        level += 1
    put(p, level, node)


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident."""
    settle_in(p, node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again."""
    take(p, node)
    settle_in(p, node)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted or expires."""
    take(p, node)


def cover(p: Any, own: Any, node: int) -> None:
    """Nothing: the lists hold all resident nodes."""


def uncover(p: Any, own: Any, node: int) -> None:
    """Nothing: the lists hold all resident nodes."""


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The oldest leaf of the coldest level that has one; -1 = none."""
    for level in range(LEVELS):
        node = oldest_leaf(p, np.int64(level), nodes, request)
        if node >= 0:
            return node
    return np.int64(-1)
