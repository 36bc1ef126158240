"""Marconi: recency and floating-point work saved per byte, each scaled to 0..1 over the leaves, lowest sum first.

Source: Marconi (MLSys 2025) @0801661, `radix_cache_hybrid.py`. Utility = `alpha` x scaled(work saved / bytes) +
scaled(1 / idle seconds); all equal scales to 1; ties: the leaf looked at first. Work of a prefix of L tokens in a pure
attention model of width D: 24 L D^2 + 4 L^2 D per layer, against 4 L D bytes; a hit refreshes the deepest matched block
only. Every eviction looks at all leaves: slow where there are many.
`alpha` is searched as there, once, where it is not given: 0 (recency) until `window` times as many requests as came
before the first eviction have followed it, then the value of 0, 0.1 ... 2 that saves most work on those requests (ties:
the smallest). A log that ends before that has alpha 0 throughout. `alpha` given holds from request `start` on.
Leaves out: inner nodes with one child, Mamba layers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies.samples import add_leaf, cover, leave, no_leaves, uncover

__all__ = ["cover", "enter", "leave", "pool", "touch", "uncover", "victim"]

TITLE = "Marconi (recency and work saved)"
PARAMETERS: dict[str, float] = {"alpha": 0.0, "start": 0.0, "width": 4096.0, "window": 5.0}
OVERLAPS = True
SEARCHED = "alpha"
GRID = tuple(step / 10 for step in range(21))


class Pool(NamedTuple):
    """Resident leaves (see `kit.policies.samples`); per node `used_us` and `worth` (work per byte); `now` [2]: last
    request, last one with a hit; `ts_us` per request; `alpha` [2]: the weight, the request from which it holds."""

    leaves: NDArray[np.int32]
    at: NDArray[np.int32]
    size: NDArray[np.int64]
    random: NDArray[np.int64]
    used_us: NDArray[np.int64]
    worth: NDArray[np.float64]
    now: NDArray[np.int64]
    ts_us: NDArray[np.int64]
    alpha: NDArray[np.float64]


def upto_parent(path_tokens: NDArray[np.int64], parent: NDArray[np.int32]) -> NDArray[np.int64]:
    """Tokens from the root to the parent of each block, inclusive; 0 for a root."""
    return np.where(parent >= 0, path_tokens[np.maximum(parent, 0)], 0) if parent.size else path_tokens


def efficiency(path_tokens: NDArray[np.int64], parent: NDArray[np.int32], width: float) -> NDArray[np.float64]:
    """Work saved by a block beyond its parent, per byte of it: 6 D + (tokens up to it + tokens up to its parent)."""
    return 6.0 * width + path_tokens + upto_parent(path_tokens, parent)


def work(path_tokens: NDArray[np.int64], parent: NDArray[np.int32], width: float) -> NDArray[np.float64]:
    """Work saved by a block beyond its parent, in units of 4 D operations per layer: what the search adds up."""
    return efficiency(path_tokens, parent, width) * (path_tokens - upto_parent(path_tokens, parent))


def pool(
    nodes: int, path_tokens: NDArray[np.int64], parent: NDArray[np.int32], ts_us: NDArray[np.int64],
    alpha: float = 0.0, width: float = 4096.0, start: float = 0.0,
) -> Pool:  # fmt: skip
    """Nothing resident."""
    return Pool(*no_leaves(nodes, 1.0), np.zeros(nodes, np.int64), efficiency(path_tokens, parent, width),
                np.array([0, -1]), ts_us, np.array([alpha, start]))  # fmt: skip


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident."""
    p.now[0] = request
    p.used_us[node] = now_us
    if is_leaf:
        add_leaf(p, node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again: only the deepest of the match is refreshed (the first met, from the leaf up)."""
    p.now[0] = request
    if p.now[1] != request:
        p.now[1] = request
        p.used_us[node] = now_us


def recency(p: Any, node: int, now_us: int) -> float:
    """1 / idle seconds, an idle time below a microsecond counting as one."""
    return 1e6 / max(now_us - p.used_us[node], 1)


def scaled(value: float, low: float, high: float) -> float:
    """0 at the lowest, 1 at the highest, 1 where there is one value only."""
    return (value - low) / (high - low) if high > low else 1.0


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The leaf of lowest utility not pinned by this request; -1 = none."""
    now = request if request >= 0 else p.now[0]
    now_us = p.ts_us[now]
    alpha = p.alpha[0] if now >= p.alpha[1] else 0.0
    low_worth, high_worth, low_recency, high_recency = np.inf, -np.inf, np.inf, -np.inf
    for k in range(p.size[0]):
        node = np.int64(p.leaves[k])
        if nodes[node].pinned != request:
            fresh = recency(p, node, now_us)
            low_worth, high_worth = min(low_worth, p.worth[node]), max(high_worth, p.worth[node])
            low_recency, high_recency = min(low_recency, fresh), max(high_recency, fresh)
    best = np.int64(-1)
    lowest = np.inf
    for k in range(p.size[0]):
        node = np.int64(p.leaves[k])
        if nodes[node].pinned != request:
            worth = scaled(p.worth[node], low_worth, high_worth)
            utility = alpha * worth + scaled(recency(p, node, now_us), low_recency, high_recency)
            if utility < lowest:
                best = node
                lowest = utility
    return best
