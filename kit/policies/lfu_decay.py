"""LFU with decay: lowest exponentially decayed count first, counts kept after eviction.

Source: exponential ageing with a half-life in wall time (the continuous form of halving all counters). A use at time t
adds 2^(t / half_life); the key is the log2 of the sum, so it changes only on use and the order is the order of the
decayed counts at any moment. Ties: oldest use, then the deeper block.
Leaves out: Caffeine's halving by accesses and Redis's logarithmic counter, which are their own rules.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TITLE = "LFU with decay"
PARAMETERS: dict[str, float] = {"half_life_seconds": 86_400.0}
SEGMENTS = "fitting"


class Own(NamedTuple):
    """`level`: log2 of the decayed count plus time in half-lives (-inf = never used); `half_life_us`."""

    level: NDArray[np.float64]
    half_life_us: NDArray[np.float64]


def own(nodes: int, half_life_seconds: float = 86_400.0) -> Own:
    """No uses yet; `half_life_seconds` > 0."""
    if not half_life_seconds > 0:
        raise ValueError(f"half_life_seconds must be above 0, got {half_life_seconds}; the default is one day (86400)")
    return Own(np.full(nodes, -np.inf), np.array([half_life_seconds * 1e6]))


def on_enter(own: Any, node: int, request: int, now_us: int) -> None:
    """A use: level = log2(2^level + 2^now)."""
    now = now_us / own.half_life_us[0]
    level = own.level[node]
    if level == -np.inf:
        own.level[node] = now
    else:
        own.level[node] = max(level, now) + math.log2(1.0 + 2.0 ** -abs(level - now))


def on_touch(own: Any, node: int, request: int, now_us: int) -> None:
    """A use: level = log2(2^level + 2^now)."""
    now = now_us / own.half_life_us[0]
    level = own.level[node]
    own.level[node] = max(level, now) + math.log2(1.0 + 2.0 ** -abs(level - now))


def key(own: Any, node: int) -> float:
    """Decayed count on a log scale."""
    return own.level[node]
