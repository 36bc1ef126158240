"""Redis approximate LRU: five sampled keys per eviction go into a pool of sixteen, the longest idle of it leaves.

Source: Redis @4f8cdc2, `src/evict.c`, `allkeys-lru`, maxmemory-samples 5. Idle time has the clock's resolution of one
second; the pool stays from one eviction to the next, keys that are gone (or pinned, or no leaves any more) are skipped.
Ties: the key pooled earlier. Leaves are drawn uniformly with replacement, all of them where there are no more than
five. Seeded draws: report the spread over seeds.
Leaves out: Redis's own key sampling (not quite uniform), several databases.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies.samples import add_leaf, cover, draw, leave, no_leaves, uncover

__all__ = ["cover", "enter", "leave", "pool", "touch", "uncover", "victim"]

TITLE = "Redis LRU (sampled)"
PARAMETERS: dict[str, float] = {"samples": 5.0, "seed": 1.0}
OVERLAPS = True
POOLED = 16
SECOND_US = 1_000_000


class Pool(NamedTuple):
    """Resident leaves (see `kit.policies.samples`); `used` second of the last use per node; `pooled` nodes by rising
    idle time, its first `filled` [1] entries; `idle` of them; `now` [1] second; `samples` [1]."""

    leaves: NDArray[np.int32]
    at: NDArray[np.int32]
    size: NDArray[np.int64]
    random: NDArray[np.int64]
    used: NDArray[np.int64]
    pooled: NDArray[np.int64]
    idle: NDArray[np.int64]
    filled: NDArray[np.int64]
    now: NDArray[np.int64]
    samples: NDArray[np.int64]
    ts_us: NDArray[np.int64]


def pool(nodes: int, ts_us: NDArray[np.int64], samples: float = 5.0, seed: float = 1.0) -> Pool:
    """Nothing resident."""
    return Pool(*no_leaves(nodes, seed), np.zeros(nodes, np.int64), np.zeros(POOLED, np.int64),
                np.zeros(POOLED, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([int(samples)]),
                ts_us)  # fmt: skip


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident."""
    p.now[0] = request
    p.used[node] = now_us // SECOND_US
    if is_leaf:
        add_leaf(p, node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again."""
    p.now[0] = request
    p.used[node] = now_us // SECOND_US


def staleness(p: Any, node: int, now_us: int) -> int:
    """Seconds since the last use."""
    return now_us // SECOND_US - p.used[node]


def pool_in(p: Any, node: int, idle: int) -> None:
    """Put a sampled key in its place of the pool; a full pool drops its least idle, or the newcomer if that is less."""
    place = np.int64(0)
    filled = p.filled[0]
    while place < filled and p.idle[place] < idle:
        place += 1
    if filled == POOLED:
        if place == 0:
            return
        for k in range(place - 1):
            p.pooled[k] = p.pooled[k + 1]
            p.idle[k] = p.idle[k + 1]
        place -= 1
    else:
        for k in range(filled, place, -1):
            p.pooled[k] = p.pooled[k - 1]
            p.idle[k] = p.idle[k - 1]
        p.filled[0] = filled + 1
    p.pooled[place] = node
    p.idle[place] = idle


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The most idle of the pool, refilled until one of it can go; -1 = no leaf can."""
    now_us = p.ts_us[request if request >= 0 else p.now[0]]
    if p.size[0] == 0 or (p.size[0] == 1 and nodes[p.leaves[0]].pinned == request):
        return np.int64(-1)
    while True:
        everything = p.size[0] <= p.samples[0]
        for k in range(p.size[0] if everything else p.samples[0]):
            node = np.int64(p.leaves[k if everything else draw(p, p.size[0])])
            pool_in(p, node, staleness(p, node, now_us))
        while p.filled[0] > 0:
            p.filled[0] -= 1
            node = np.int64(p.pooled[p.filled[0]])
            if p.at[node] >= 0 and nodes[node].pinned != request:
                return node
