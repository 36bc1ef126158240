"""LRU-2: the node whose last use but one is longest ago goes first; those used once go before all others.

Source: LRU-K (SIGMOD 1993) with K = 2, no correlated-reference period, history kept for ever. The history counts every
use, before and after eviction. Ties (used once): the oldest use, then the deeper block.
Leaves out: K above 2, the correlated-reference period, forgetting old history.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TITLE = "LRU-2"
PARAMETERS: dict[str, float] = {}


class Own(NamedTuple):
    """`last` and `last_but_one` use of each node: number of the request, -1 = none."""

    last: NDArray[np.int32]
    last_but_one: NDArray[np.int32]


def own(nodes: int) -> Own:
    """No uses yet."""
    return Own(np.full(nodes, -1, np.int32), np.full(nodes, -1, np.int32))


def on_enter(own: Any, node: int, request: int, now_us: int) -> None:
    """A use."""
    own.last_but_one[node] = own.last[node]
    own.last[node] = request


def on_touch(own: Any, node: int, request: int, now_us: int) -> None:
    """A use."""
    own.last_but_one[node] = own.last[node]
    own.last[node] = request


def key(own: Any, node: int) -> float:
    """The last use but one."""
    return float(own.last_but_one[node])
