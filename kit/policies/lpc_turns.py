"""LPC by turn count: lowest P(the conversation goes on | turn, session type) x exp(-idle / 100 s) first.

Source: Learned Prefix Caching (NeurIPS 2025), its turn-count ablation: the decay is the paper's 0.01 per second; the
continuation rate of each (session type, turn) is counted as the log goes by (Laplace: one of each before any).
`oracle` = 1 knows whether the session asks again. Inside one class the order is LRU, so class heads are compared.
Tie: the deeper node.
Leaves out: the text model over the last prompts (a log without prompts cannot feed it), the maximum over conversations
that share a block (the last one to use it counts).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies import lists
from kit.policies.lists import free, oldest_leaf, put, take
from kit.policies.sessions import agents, later_turns, owners

__all__ = ["cover", "enter", "free", "leave", "pool", "touch", "uncover", "victim"]

TITLE = "LPC (turn count)"
PARAMETERS: dict[str, float] = {"decay_per_second": 0.01, "oracle": 0.0}
OVERLAPS = True
WANTS = ("session_id", "session_type")
LAST_TURN = 16


class Pool(NamedTuple):
    """Recency lists per class (`kit.policies.lists`), `used_us` and `depth` per node, `session`, `agent` and `more` per
    request, `turns` per session, `rate` [classes, 2]: conversations that went on, conversations seen; `now` [3]:
    request, time, class of the request; `options`: decay per second, oracle."""

    links: Any
    tokens: NDArray[np.int64]
    used_us: NDArray[np.int64]
    depth: NDArray[np.int32]
    session: NDArray[np.int64]
    agent: NDArray[np.bool_]
    more: NDArray[np.bool_]
    turns: NDArray[np.int64]
    rate: NDArray[np.float64]
    now: NDArray[np.int64]
    options: NDArray[np.float64]


def pool(
    nodes: int, room_tokens: NDArray[np.int64], depth: NDArray[np.int32], leaf: NDArray[np.int32], session: Any = None,
    session_type: Any = None, decay_per_second: float = 0.01, oracle: float = 0.0,
) -> Pool:  # fmt: skip
    """Nothing resident; one conversation of each class that went on and one that did not."""
    who = owners(session, leaf.size)
    agent = agents(session_type, leaf.size)
    rate = np.tile(np.array([1.0, 2.0]), (2 * LAST_TURN, 1))
    return Pool(*lists.empty(room_tokens, 2 * LAST_TURN), np.zeros(nodes, np.int64), depth, who, agent,
                later_turns(who), np.zeros(int(who.max(initial=-1)) + 1, np.int64), rate, np.full(3, -1, np.int64),
                np.array([decay_per_second, oracle]))  # fmt: skip


def arrive(p: Any, request: int, now_us: int) -> None:
    """The first node of a request: the session's turn before this one went on; choose the class of this one."""
    who = p.session[request]
    side = LAST_TURN if p.agent[request] else 0
    before = min(p.turns[who], LAST_TURN) - 1
    if before >= 0:
        p.rate[side + before, 0] += 1.0
    p.turns[who] += 1
    at = side + min(p.turns[who], LAST_TURN) - 1
    p.rate[at, 1] += 1.0
    if p.options[1] > 0.0:
        at = 1 if p.more[request] else 0
    p.now[0] = request
    p.now[1] = now_us
    p.now[2] = at


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident in the class of the request."""
    if p.now[0] != request:
        arrive(p, request, now_us)
    p.used_us[node] = now_us
    put(p, np.int64(p.now[2]), node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again: it joins the class of the request."""
    take(p, node)
    enter(p, own, node, depth, False, request, now_us)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted or expires."""
    take(p, node)


def cover(p: Any, own: Any, node: int) -> None:
    """Nothing: the lists hold all resident nodes."""


def uncover(p: Any, own: Any, node: int) -> None:
    """Nothing: the lists hold all resident nodes."""


def chance(p: Any, which: int) -> float:
    """Probability that a conversation of this class goes on; the oracle's classes are 0 and 1."""
    if p.options[1] > 0.0:
        return float(which)
    return p.rate[which, 0] / p.rate[which, 1]


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The leaf with the lowest chance x decay among the oldest leaves of all classes; -1 = none."""
    best = np.int64(-1)
    lowest = np.inf
    for which in range(p.tokens.size):
        if p.tokens[which] == 0:
            continue
        node = oldest_leaf(p, np.int64(which), nodes, request)
        if node < 0:
            continue
        idle = (p.now[1] - p.used_us[node]) * 1e-6
        value = chance(p, which) * math.exp(-p.options[0] * idle)
        if value < lowest or (value == lowest and p.depth[node] > p.depth[best]):
            best = node
            lowest = value
    return best
