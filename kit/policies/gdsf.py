"""GDSF: greedy dual size frequency, smallest H = L + count / tokens first; L is the H of the last victim.

Source: Cherkasova, GreedyDual-Size with Frequency; libCacheSim GDSF with cost 1. The count restarts on eviction, L only
grows. H is recomputed on use. Tie: the older update goes first.
Leaves out: costs other than 1 (hit requests are what it maximises, not hit tokens).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TITLE = "GDSF"
PARAMETERS: dict[str, float] = {}


class Own(NamedTuple):
    """`uses` and `level` (H) per node, `inflation` = L, `room_tokens` per node."""

    uses: NDArray[np.float64]
    level: NDArray[np.float64]
    inflation: NDArray[np.float64]
    room_tokens: NDArray[np.int64]


def own(nodes: int, room_tokens: NDArray[np.int64]) -> Own:
    """Nothing resident, L = 0."""
    return Own(np.zeros(nodes), np.zeros(nodes), np.zeros(1), room_tokens)


def on_enter(own: Any, node: int, request: int, now_us: int) -> None:
    """First use since it was inserted."""
    own.uses[node] = 1.0
    own.level[node] = own.inflation[0] + 1.0 / own.room_tokens[node]


def on_touch(own: Any, node: int, request: int, now_us: int) -> None:
    """One more use, at today's L."""
    own.uses[node] += 1.0
    own.level[node] = own.inflation[0] + own.uses[node] / own.room_tokens[node]


def on_leave(own: Any, node: int, last_key: float, evicted: bool) -> None:
    """The victim's H becomes L (an expiry leaves L alone)."""
    if evicted:
        own.inflation[0] = last_key


def key(own: Any, node: int) -> float:
    """H of the last update."""
    return own.level[node]
