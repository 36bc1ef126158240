"""Heavy hitters by attention: the leaf whose block drew the least attention first, then the oldest use.

Source: the heavy-hitter rule of H2O (NeurIPS 2023) on whole prefix blocks: a block's score is the attention it drew,
summed over the requests that used it since it became resident. H2O itself drops tokens inside one request, per layer
and head, and changes what the model answers; this only chooses among whole blocks, so answers stay exact. It runs only
where the log says how much attention each block of each prompt drew (`kit.analysis.own_columns.with_attention`).
Leaves out: layers and heads (one number per block), the window of recent tokens (the request at hand is never evicted).
Tie: the oldest use, then the deeper node.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TITLE = "Heavy hitters by attention (H2O-style, whole blocks)"
PARAMETERS: dict[str, float] = {}
NEEDS = ("attention",)


class Own(NamedTuple):
    """`drawn` attention of every block of every request, root first, request by request from `start`; `depth` per node;
    `score` per node."""

    drawn: NDArray[np.float64]
    start: NDArray[np.int64]
    depth: NDArray[np.int32]
    score: NDArray[np.float64]


def own(nodes: int, depth: NDArray[np.int32], attention: Any) -> Own:
    """No block has drawn anything; `attention` holds one array per request (or one number, for paths of one piece)."""
    parts = [np.atleast_1d(one) for one in attention]
    sizes = np.array([part.size for part in parts], np.int64)
    drawn = np.concatenate([*parts, np.zeros(1)])
    return Own(drawn, np.cumsum(sizes) - sizes, depth, np.zeros(nodes))


def on_enter(own: Any, node: int, request: int, now_us: int) -> None:
    """What the block drew before it was evicted is forgotten."""
    own.score[node] = own.drawn[own.start[request] + own.depth[node]]


def on_touch(own: Any, node: int, request: int, now_us: int) -> None:
    """The block draws more."""
    own.score[node] += own.drawn[own.start[request] + own.depth[node]]


def key(own: Any, node: int) -> float:
    """Attention so far."""
    return own.score[node]
