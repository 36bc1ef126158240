"""LeCaR: an LRU and an LFU expert; each victim is chosen by one of them, drawn by weights that regret teaches.

Source: LeCaR (HotStorage 2018); libCacheSim LeCaR: learning rate 0.45, discount 0.005^(1/N), weights 0.5 at first, one
ghost list as large as the tier. A ghost asked for t requests after an expert evicted it costs that expert a factor
exp(-rate x discount^t). N is the number of nodes of average size that the tier holds. Ties: LFU by the oldest use.
Seeded draws: report the spread over seeds. Leaves out: nothing of the published rule.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies import lfu, lists
from kit.policies.ahead import fetch
from kit.policies.lfu import append, close, least_used, remove
from kit.policies.lfu_halving import entries
from kit.policies.lists import oldest, oldest_leaf, put, take
from kit.policies.samples import draw

TITLE = "LeCaR"
PARAMETERS: dict[str, float] = {"learning_rate": 0.45, "seed": 1.0}
RECENCY, GHOST = range(2)
BY_LRU, BY_LFU = range(2)
FINE = 1_000_000


class Pool(NamedTuple):
    """A recency list and a ghost list (see `kit.policies.lists`); `frequency` the lists of `kit.policies.lfu`; per node
    `blame` (which expert evicted it) and `left` (request of that); `weight` [1] of LRU; `given` [2]: learning rate,
    discount; `state` [4]: last request looked at, expert of the last victim, last request, capacity; `leaf`."""

    links: Any
    tokens: NDArray[np.int64]
    frequency: lfu.Pool
    blame: NDArray[np.int8]
    left: NDArray[np.int64]
    weight: NDArray[np.float64]
    given: NDArray[np.float64]
    state: NDArray[np.int64]
    random: NDArray[np.int64]
    leaf: NDArray[np.int32]


def pool(
    nodes: int, most_uses: int, room_tokens: NDArray[np.int64], leaf: NDArray[np.int32], capacity_tokens: int,
    learning_rate: float = 0.45, seed: float = 1.0,
) -> Pool:  # fmt: skip
    """Nothing resident, equal weights."""
    discount = 0.005 ** (1.0 / entries(room_tokens, capacity_tokens))
    return Pool(*lists.empty(room_tokens, 2), lfu.pool(nodes, most_uses), np.zeros(nodes, np.int8),
                np.zeros(nodes, np.int64), np.full(1, 0.5), np.array([learning_rate, discount]),
                np.array([-1, 0, 0, capacity_tokens]), np.array([int(seed)]), leaf)  # fmt: skip


def regretted(weight: float, age: int, rate: float, discount: float) -> float:
    """The weight of an expert whose victim came back after `age` requests (the other's is the rest to 1)."""
    less = weight * math.exp(-rate * discount**age)
    return less / (less + 1.0 - weight)


def learn(p: Any, node: int, request: int) -> None:
    """A ghost is asked for: its expert loses weight, and the key is no ghost any more."""
    age = request - p.left[node]
    if p.blame[node] == BY_LRU:
        p.weight[0] = regretted(p.weight[0], age, p.given[0], p.given[1])
    else:
        p.weight[0] = 1.0 - regretted(1.0 - p.weight[0], age, p.given[0], p.given[1])
    take(p, node)


def look(p: Any, nodes: Any, request: int) -> None:
    """Learn from the ghosts on this request's path before anything is evicted for it."""
    if request < 0 or p.state[0] == request:
        return
    p.state[0] = request
    p.state[2] = request
    node = np.int64(p.leaf[request])
    while node >= 0:
        if p.links[node].where == GHOST:
            learn(p, node, request)
        node = np.int64(nodes[node].parent)


def soon(p: Any, own: Any, nodes: Any, node: int, close: int) -> None:
    """`node` will be asked for soon, `close` sooner: have what both experts keep of them at hand."""
    fetch(p.links, node)
    fetch(p.frequency.links, node)
    for place in (p.links[close].newer, p.links[close].older, p.frequency.links[close].newer,
                  p.frequency.links[close].older):  # fmt: skip
        fetch(p.links, np.int64(max(place, 0)))
        fetch(p.frequency.links, np.int64(max(place, 0)))


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident with count 1."""
    p.state[2] = request
    if p.links[node].where == GHOST:
        learn(p, node, request)
    put(p, np.int64(RECENCY), node)
    one = np.int64(1)
    append(p.frequency, node, one, one if p.frequency.counts[1].oldest >= 0 else np.int64(0))


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again."""
    p.state[2] = request
    take(p, node)
    put(p, np.int64(RECENCY), node)
    count = np.int64(p.frequency.links[node].uses)
    remove(p.frequency, node)
    append(p.frequency, node, count + 1, count + 1 if p.frequency.counts[count + 1].oldest >= 0 else count)
    close(p.frequency, count)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted (and becomes a ghost of the expert that chose it) or expires."""
    count = np.int64(p.frequency.links[node].uses)
    remove(p.frequency, node)
    close(p.frequency, count)
    p.frequency.links[node].uses = 0
    take(p, node)
    if evicted:
        p.blame[node] = p.state[1]
        p.left[node] = p.state[2]
        put(p, np.int64(GHOST), node)
        while p.tokens[GHOST] > p.state[3]:
            take(p, oldest(p, np.int64(GHOST)))


def cover(p: Any, own: Any, node: int) -> None:
    """Nothing: both experts keep parents after their children."""


def uncover(p: Any, own: Any, node: int) -> None:
    """Nothing: both experts keep parents after their children."""


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The choice of the expert drawn; -1 = none."""
    look(p, nodes, request)
    if draw(p, FINE) < p.weight[0] * FINE:
        p.state[1] = BY_LRU
        return oldest_leaf(p, np.int64(RECENCY), nodes, request)
    p.state[1] = BY_LFU
    return least_used(p.frequency, nodes, request)
