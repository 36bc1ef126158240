"""Length: longest prefix first; equal lengths: the oldest use first.

Source: the billing lever "evict the largest stored prefix first"; libCacheSim Size. The length is that of the whole
path, so the deepest block goes first and parents stay until their children are gone.
Leaves out: reuse, by design: it is right only where the longest are also the least reused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TITLE = "Length (longest first)"
PARAMETERS: dict[str, float] = {}


class Own(NamedTuple):
    """`path_tokens`: tokens from the root to each node."""

    path_tokens: NDArray[np.int64]


def own(nodes: int, path_tokens: NDArray[np.int64]) -> Own:
    """Lengths as the log has them."""
    return Own(path_tokens)


def key(own: Any, node: int) -> float:
    """Longest first."""
    return -float(own.path_tokens[node])
