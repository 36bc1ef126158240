"""Redis LFU: an 8-bit logarithmic counter that falls by one a minute, on the sampling and pool of `redis_lru`.

Source: Redis @4f8cdc2, `src/evict.c`, `allkeys-lfu`, lfu-log-factor 10, lfu-decay-time 1. A key starts at 5; a use
first takes off one per whole `decay_minutes` since the last update, then adds one with probability
1 / (max(0, counter - 5) x `log_factor` + 1), 255 at most. Score = 255 - counter, decayed. Ties: the key pooled earlier.
Seeded draws: report the spread over seeds. Leaves out: what `redis_lru` leaves out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies.redis_lru import POOLED, cover, leave, pool_in, uncover
from kit.policies.samples import add_leaf, draw, no_leaves

__all__ = ["cover", "enter", "leave", "pool", "touch", "uncover", "victim"]

TITLE = "Redis LFU (sampled)"
PARAMETERS: dict[str, float] = {"samples": 5.0, "log_factor": 10.0, "decay_minutes": 1.0, "seed": 1.0}
OVERLAPS = True
MINUTE_US = 60_000_000
START, MOST = 5, 255
FINE = 1_000_000


class Pool(NamedTuple):
    """As in `redis_lru`, with `counter` and `minute` of its last update per node, and `given` [3]: samples, log factor,
    decay minutes."""

    leaves: NDArray[np.int32]
    at: NDArray[np.int32]
    size: NDArray[np.int64]
    random: NDArray[np.int64]
    counter: NDArray[np.int64]
    minute: NDArray[np.int64]
    pooled: NDArray[np.int64]
    idle: NDArray[np.int64]
    filled: NDArray[np.int64]
    now: NDArray[np.int64]
    given: NDArray[np.int64]
    ts_us: NDArray[np.int64]


def pool(
    nodes: int, ts_us: NDArray[np.int64], samples: float = 5.0, log_factor: float = 10.0, decay_minutes: float = 1.0,
    seed: float = 1.0,
) -> Pool:  # fmt: skip
    """Nothing resident."""
    return Pool(*no_leaves(nodes, seed), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64),
                np.zeros(POOLED, np.int64), np.zeros(POOLED, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64),
                np.array([int(samples), int(log_factor), int(decay_minutes)]), ts_us)  # fmt: skip


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident with counter 5."""
    p.now[0] = request
    p.counter[node] = START
    p.minute[node] = now_us // MINUTE_US
    if is_leaf:
        add_leaf(p, node)


def decayed(p: Any, node: int, now_us: int) -> int:
    """The counter, less one per whole decay time since its last update."""
    periods = (now_us // MINUTE_US - p.minute[node]) // p.given[2] if p.given[2] > 0 else np.int64(0)
    return max(p.counter[node] - periods, 0)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again."""
    p.now[0] = request
    counter = decayed(p, node, now_us)
    if counter < MOST and draw(p, FINE) * (max(counter - START, 0) * p.given[1] + 1) < FINE:
        counter += 1
    p.counter[node] = counter
    p.minute[node] = now_us // MINUTE_US


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The highest score of the pool, refilled until one of it can go; -1 = no leaf can."""
    now_us = p.ts_us[request if request >= 0 else p.now[0]]
    if p.size[0] == 0 or (p.size[0] == 1 and nodes[p.leaves[0]].pinned == request):
        return np.int64(-1)
    while True:
        everything = p.size[0] <= p.given[0]
        for k in range(p.size[0] if everything else p.given[0]):
            node = np.int64(p.leaves[k if everything else draw(p, p.size[0])])
            pool_in(p, node, MOST - decayed(p, node, now_us))
        while p.filled[0] > 0:
            p.filled[0] -= 1
            node = np.int64(p.pooled[p.filled[0]])
            if p.at[node] >= 0 and nodes[node].pinned != request:
                return node
