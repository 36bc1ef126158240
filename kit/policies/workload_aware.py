"""Workload-aware: one recency list per session type and turn; the class whose oldest block is least likely to return.

Source: KVCache in the Wild (ATC 2025); vLLM PR 22236 (closed unmerged). Reuse gaps of a class are taken as exponential
with the mean seen so far (`prior_seconds` before any); an oldest block idle for t returns within the next `life` with
probability exp(-t / mean) x (1 - exp(-life / mean)). Lowest first; ties: the deeper block. A log without session_type
and turn is one class, and the order is then LRU.
Leaves out: the published offline fit over the first hour (the mean follows the log here), the exact published formula.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies import lists
from kit.policies.lists import free, oldest_leaf, put, take

__all__ = ["cover", "enter", "free", "leave", "pool", "touch", "uncover", "victim"]

TITLE = "Workload-aware"
PARAMETERS: dict[str, float] = {"life_seconds": 300.0, "prior_seconds": 60.0}
OVERLAPS = True
WANTS = ("session_type", "turn")
LAST_TURN = 8
MOST_CLASSES = 120


class Pool(NamedTuple):
    """One recency list per class (see `kit.policies.lists`); `used_us` per node; `group` of each request; `gaps`
    [classes, 2]: sum of gaps in seconds, number; `now` [1] last request; `ts_us` per request; `life` [1] seconds."""

    links: Any
    tokens: NDArray[np.int64]
    used_us: NDArray[np.int64]
    depth: NDArray[np.int32]
    group: NDArray[np.int64]
    gaps: NDArray[np.float64]
    now: NDArray[np.int64]
    ts_us: NDArray[np.int64]
    life: NDArray[np.float64]


def groups(ts_us: NDArray[np.int64], session_type: Any, turn: Any) -> NDArray[np.int64]:
    """Class of each request: session type and turn (turn 8 and later together), numbered from 0."""
    kinds = np.zeros(ts_us.size, np.int64) if session_type is None else np.asarray(session_type, np.int64)
    turns = np.zeros(ts_us.size, np.int64) if turn is None else np.clip(np.asarray(turn, np.int64), 0, LAST_TURN)
    _, group = np.unique(kinds * (LAST_TURN + 1) + turns, return_inverse=True)
    return np.minimum(group, MOST_CLASSES - 1).astype(np.int64)


def pool(
    nodes: int, room_tokens: NDArray[np.int64], depth: NDArray[np.int32], ts_us: NDArray[np.int64],
    session_type: Any = None, turn: Any = None, life_seconds: float = 300.0, prior_seconds: float = 60.0,
) -> Pool:  # fmt: skip
    """Nothing resident; every class starts with one gap of `prior_seconds`."""
    group = groups(ts_us, session_type, turn)
    classes = int(group.max()) + 1 if group.size else 1
    gaps = np.tile(np.array([prior_seconds, 1.0]), (classes, 1))
    return Pool(*lists.empty(room_tokens, classes), np.zeros(nodes, np.int64), depth, group, gaps,
                np.zeros(1, np.int64), ts_us, np.array([life_seconds]))  # fmt: skip


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident in the class of the request."""
    p.now[0] = request
    p.used_us[node] = now_us
    put(p, np.int64(p.group[request]), node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again: its class learns the gap, then it joins the class of the request."""
    before = p.links[node].where
    p.gaps[before, 0] += (now_us - p.used_us[node]) * 1e-6
    p.gaps[before, 1] += 1.0
    take(p, node)
    enter(p, own, node, depth, False, request, now_us)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted or expires."""
    take(p, node)


def cover(p: Any, own: Any, node: int) -> None:
    """Nothing: the lists hold all resident nodes."""


def uncover(p: Any, own: Any, node: int) -> None:
    """Nothing: the lists hold all resident nodes."""


def returns(idle_seconds: float, mean_seconds: float, life_seconds: float) -> float:
    """Probability of a reuse within `life_seconds` from now, gaps exponential with this mean."""
    return math.exp(-idle_seconds / mean_seconds) * (1.0 - math.exp(-life_seconds / mean_seconds))


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The oldest leaf of a class that is least likely to return; -1 = none."""
    now_us = p.ts_us[request if request >= 0 else p.now[0]]
    best = np.int64(-1)
    lowest = np.inf
    for group in range(p.gaps.shape[0]):
        node = oldest_leaf(p, np.int64(group), nodes, request)
        if node < 0:
            continue
        mean = max(p.gaps[group, 0] / p.gaps[group, 1], 1e-6)
        chance = returns((now_us - p.used_us[node]) * 1e-6, mean, p.life[0])
        if chance < lowest or (chance == lowest and p.depth[node] > p.depth[best]):
            best = node
            lowest = chance
    return best
