"""Hyperbolic caching: of a sample, the lowest uses per request of age goes first.

Source: Hyperbolic Caching (ATC 2017); libCacheSim Hyperbolic. Priority = uses since insertion / requests since
insertion, looked at only when something has to go: 64 leaves drawn with replacement, all of them where there are no
more. Ties: the one looked at first. Seeded draws: report the spread over seeds.
Leaves out: cost and size classes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies.samples import add_leaf, cover, draw, leave, no_leaves, uncover

__all__ = ["cover", "enter", "leave", "pool", "touch", "uncover", "victim"]

TITLE = "Hyperbolic"
PARAMETERS: dict[str, float] = {"samples": 64.0, "seed": 1.0}
OVERLAPS = True


class Pool(NamedTuple):
    """Resident leaves (see `kit.policies.samples`); `uses` and `since` (request of insertion) per node; `now` [1] last
    request; `samples` [1]."""

    leaves: NDArray[np.int32]
    at: NDArray[np.int32]
    size: NDArray[np.int64]
    random: NDArray[np.int64]
    uses: NDArray[np.int32]
    since: NDArray[np.int32]
    now: NDArray[np.int64]
    samples: NDArray[np.int64]


def pool(nodes: int, samples: float = 64.0, seed: float = 1.0) -> Pool:
    """Nothing resident."""
    return Pool(*no_leaves(nodes, seed), np.zeros(nodes, np.int32), np.zeros(nodes, np.int32), np.zeros(1, np.int64),
                np.array([int(samples)]))  # fmt: skip


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident, used once."""
    p.now[0] = request
    p.uses[node] = 1
    p.since[node] = request
    if is_leaf:
        add_leaf(p, node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again."""
    p.now[0] = request
    p.uses[node] += 1


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The lowest priority of the sample, never a pinned leaf; -1 = none."""
    now = request if request >= 0 else p.now[0]
    everything = p.size[0] <= p.samples[0]
    best = np.int64(-1)
    lowest = np.inf
    for k in range(p.size[0] if everything else p.samples[0]):
        node = np.int64(p.leaves[k if everything else draw(p, p.size[0])])
        priority = p.uses[node] / max(now - p.since[node], 1)
        if priority < lowest and nodes[node].pinned != request:
            best = node
            lowest = priority
    return best
