"""Perfect LFU: lowest count first, counts kept after eviction; then the oldest use, then the deeper block.

Source: the textbook form (every use of a key counts, resident or not), as in `perfect LFU` of cache studies. Its memory
is one counter per key ever seen, which no engine keeps; it bounds what frequency alone can do.
Leaves out: ageing, so yesterday's favourites stay.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TITLE = "Perfect LFU (keeps counts)"
PARAMETERS: dict[str, float] = {}
SEGMENTS = "fitting"


class Own(NamedTuple):
    """`uses`: uses of each node so far."""

    uses: NDArray[np.float64]


def own(nodes: int) -> Own:
    """No uses yet."""
    return Own(np.zeros(nodes))


def on_enter(own: Any, node: int, request: int, now_us: int) -> None:
    """A use."""
    own.uses[node] += 1.0


def on_touch(own: Any, node: int, request: int, now_us: int) -> None:
    """A use."""
    own.uses[node] += 1.0


def key(own: Any, node: int) -> float:
    """Uses so far."""
    return own.uses[node]
