"""Mooncake store: the entry whose lease ends first goes; eviction starts at 90 % and frees at least 5 % of the entries.

Source: Mooncake store @3b5a594, `mooncake-store/src/master_service.cpp`. Lease = max(put time, last get + 10 s): LRU
with a bonus for what was read. Above `high_watermark` of the capacity ceil(max(batch, used - watermark + batch) x
entries) leave at once. Ties: the older use, then the deeper block.
Leaves out: the refusal to evict under a running lease (those are last in this order), soft pins, groups, the flat map
(only leaves leave here), the check every 10 ms (here: once per request).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TITLE = "Mooncake store (lease order, batches)"
PARAMETERS: dict[str, float] = {"lease_seconds": 10.0, "high_watermark": 0.90, "batch_share": 0.05}


class Own(NamedTuple):
    """`lease` us per node; `room` tokens per node; `held` [3]: tokens, entries, entries still to leave in this batch;
    `given` [4]: lease us, watermark, batch share, capacity tokens."""

    lease: NDArray[np.float64]
    room: NDArray[np.int64]
    held: NDArray[np.int64]
    given: NDArray[np.float64]


def own(
    nodes: int, room_tokens: NDArray[np.int64], capacity_tokens: int, lease_seconds: float = 10.0,
    high_watermark: float = 0.90, batch_share: float = 0.05,
) -> Own:  # fmt: skip
    """Nothing held."""
    given = np.array([lease_seconds * 1e6, high_watermark, batch_share, float(capacity_tokens)])
    return Own(np.zeros(nodes), room_tokens, np.zeros(3, np.int64), given)


def on_enter(own: Any, node: int, request: int, now_us: int) -> None:
    """A put: the lease is over at once."""
    own.lease[node] = float(now_us)
    own.held[0] += own.room[node]
    own.held[1] += 1


def on_touch(own: Any, node: int, request: int, now_us: int) -> None:
    """A get: the lease runs from now."""
    own.lease[node] = max(own.lease[node], now_us + own.given[0])


def on_leave(own: Any, node: int, last_key: float, evicted: bool) -> None:
    """One entry less."""
    own.held[0] -= own.room[node]
    own.held[1] -= 1
    if evicted and own.held[2] > 0:
        own.held[2] -= 1


def key(own: Any, node: int) -> float:
    """End of the lease."""
    return own.lease[node]


def unfinished(p: Any, own: Any) -> bool:
    """Whether a batch is running, or has to start."""
    used = own.held[0] / own.given[3]
    if own.held[2] == 0 and used > own.given[1]:
        share = max(own.given[2], used - own.given[1] + own.given[2])
        own.held[2] = math.ceil(share * own.held[1])
    return own.held[2] > 0
