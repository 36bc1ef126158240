"""LFU with halving: 4-bit counts kept after eviction, all of them halved every ten capacities of uses.

Source: the ageing of Caffeine's FrequencySketch (v3.2.4: counts up to 15, sample of 10 x maximum), with exact counts
instead of a sketch. Lowest count first; ties: the oldest use, then the deeper block. The maximum is the number of nodes
of average size that the tier holds.
Leaves out: the sketch's collisions, and admission (`w_tinylfu` has both).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies import lists
from kit.policies.lists import free, link, nodes_of, oldest_leaf, put, take

__all__ = ["cover", "enter", "free", "leave", "pool", "touch", "uncover", "victim"]

TITLE = "LFU with halving"
PARAMETERS: dict[str, float] = {"sample_multiple": 10.0}
OVERLAPS = True
MOST = 15


class Pool(NamedTuple):
    """One recency list per count 0 to 15 (see `kit.policies.lists`); `count` and `used` (order of the last use) per
    node; `clock` [2]: uses so far, uses since the last halving; `period` [1] uses between halvings."""

    links: Any
    tokens: NDArray[np.int64]
    count: NDArray[np.int8]
    used: NDArray[np.int64]
    clock: NDArray[np.int64]
    period: NDArray[np.int64]


def entries(room_tokens: NDArray[np.int64], capacity_tokens: int) -> int:
    """Nodes of average size that the tier holds, at least 1."""
    return max(int(capacity_tokens / room_tokens.mean()), 1) if room_tokens.size else 1


def pool(nodes: int, room_tokens: NDArray[np.int64], capacity_tokens: int, sample_multiple: float = 10.0) -> Pool:
    """Nothing resident, no counts."""
    period = max(int(sample_multiple * entries(room_tokens, capacity_tokens)), 1)
    return Pool(*lists.empty(room_tokens, MOST + 1), np.zeros(nodes, np.int8), np.zeros(nodes, np.int64),
                np.zeros(2, np.int64), np.array([period]))  # fmt: skip


def merge(p: Any, low: int, high: int, into: int) -> None:
    """The nodes of two lists in order of use, as one list."""
    end = nodes_of(p) + into
    p.tokens[into] = p.tokens[low] + p.tokens[high]
    a = np.int64(p.links[nodes_of(p) + low].newer)
    b = np.int64(p.links[nodes_of(p) + high].newer)
    p.links[end].newer = end
    p.links[end].older = end
    while a < nodes_of(p) or b < nodes_of(p):
        if b >= nodes_of(p) or (a < nodes_of(p) and p.used[a] < p.used[b]):
            node = a
            a = np.int64(p.links[a].newer)
        else:
            node = b
            b = np.int64(p.links[b].newer)
        p.links[node].where = into
        link(p, into, node)


def halve(p: Any) -> None:
    """Halve every count, resident or not."""
    for node in range(p.count.size):
        p.count[node] >>= 1
    for count in range(MOST // 2 + 1):
        merge(p, 2 * count, 2 * count + 1, count)
    for count in range(MOST // 2 + 1, MOST + 1):
        end = nodes_of(p) + count
        p.links[end].newer = end
        p.links[end].older = end
        p.tokens[count] = 0
    p.clock[1] = 0


def count_use(p: Any, node: int) -> None:
    """A use; the node is in no list while this runs."""
    if p.clock[1] >= p.period[0]:
        halve(p)
    p.clock[0] += 1
    p.clock[1] += 1
    p.used[node] = p.clock[0]
    if p.count[node] < MOST:
        p.count[node] += 1
    put(p, np.int64(p.count[node]), node)


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident."""
    count_use(p, node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again."""
    take(p, node)
    count_use(p, node)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted or expires; its count stays."""
    take(p, node)


def cover(p: Any, own: Any, node: int) -> None:
    """Nothing: the lists hold all resident nodes."""


def uncover(p: Any, own: Any, node: int) -> None:
    """Nothing: the lists hold all resident nodes."""


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The oldest leaf of the lowest count that has one; -1 = none."""
    for count in range(MOST + 1):
        node = oldest_leaf(p, np.int64(count), nodes, request)
        if node >= 0:
            return node
    return np.int64(-1)
