"""LHD: of a sample, the node with the least expected hits per token and time goes first.

Source: LHD (NSDI 2018); libCacheSim LHD: 32 samples, the last 8 low-density admissions, 16 classes by the ages of the
last two hits, 20,000 ages, decay 0.9. Densities are learnt again every `period` uses: the published 2^20, but at most
one fiftieth of the log's, else short logs would never learn. The unit of age follows from the number of nodes the tier
holds. Time counts uses. Ties: the leaf looked at first. Seeded draws: report the spread over seeds.
Leaves out: explorers (1 % never evicted while learning), application classes, the early sample of 8.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies.lfu_halving import entries
from kit.policies.samples import add_leaf, cover, draw, drop_leaf, no_leaves, uncover

__all__ = ["cover", "enter", "leave", "pool", "touch", "uncover", "victim"]

TITLE = "LHD"
PARAMETERS: dict[str, float] = {"samples": 32.0, "period": 1_048_576.0, "seed": 1.0}
OVERLAPS = True
CLASSES, AGES, ADMISSIONS = 16, 20_000, 8
DECAY = 0.9


class Pool(NamedTuple):
    """Resident leaves (see `kit.policies.samples`); per node `used` (clock) and `ages` [nodes, 2] of its last two hits;
    `hits`, `gone` and `density` [classes, ages]; `recent` nodes admitted though of low density; `state` [5]: clock,
    uses to the next learning, period, shift of ages, next place in `recent`; `level` [1] density of recent victims."""

    leaves: NDArray[np.int32]
    at: NDArray[np.int32]
    size: NDArray[np.int64]
    random: NDArray[np.int64]
    used: NDArray[np.int64]
    ages: NDArray[np.int64]
    room: NDArray[np.int64]
    hits: NDArray[np.float64]
    gone: NDArray[np.float64]
    density: NDArray[np.float64]
    recent: NDArray[np.int64]
    state: NDArray[np.int64]
    level: NDArray[np.float64]
    samples: NDArray[np.int64]


def pool(
    nodes: int, room_tokens: NDArray[np.int64], depth: NDArray[np.int32], leaf: NDArray[np.int32],
    capacity_tokens: int, samples: float = 32.0, period: float = 1_048_576.0, seed: float = 1.0,
) -> Pool:  # fmt: skip
    """Nothing resident; densities start as (class + 1) / (age + 1)."""
    uses = int((depth[leaf[leaf >= 0]].astype(np.int64) + 1).sum())
    every = max(min(int(period), uses // 50), 1000)
    unit = entries(room_tokens, capacity_tokens) / (0.01 * AGES)
    shift = max(int(np.ceil(np.log2(max(unit, 1.0)))), 1)
    table = np.zeros((CLASSES, AGES))
    start = np.arange(1.0, CLASSES + 1)[:, None] / np.arange(1.0, AGES + 1)[None, :]
    return Pool(*no_leaves(nodes, seed), np.zeros(nodes, np.int64), np.zeros((nodes, 2), np.int64), room_tokens, table,
                table.copy(), start, np.full(ADMISSIONS, -1), np.array([0, every, every, shift, 0]), np.zeros(1),
                np.array([int(samples)]))  # fmt: skip


def age_of(p: Any, node: int) -> int:
    """Units of age since the last use."""
    return min((p.state[0] - p.used[node]) >> p.state[3], AGES - 1)


def class_of(p: Any, node: int) -> int:
    """0 (never hit) to 15 (hit twice at once): how recently its last two hits came."""
    ages = p.ages[node, 0] + p.ages[node, 1]
    if ages == 0:
        return np.int64(CLASSES - 1)
    group = np.int64(0)
    while ages < AGES and group < CLASSES - 1:
        ages <<= 1
        group += 1
    return group


def rank(p: Any, node: int) -> float:
    """Hit density per token; lowest for what is beyond the last age."""
    age = age_of(p, node)
    return p.density[class_of(p, node), age] / p.room[node] if age < AGES - 1 else -np.inf


def densities(hits: Any, gone: Any, out: Any) -> None:
    """Expected hits per expected lifetime from each age on; one row per class, the oldest age gets 0."""
    for group in range(hits.shape[0]):
        last = hits.shape[1] - 1
        hit = hits[group, last]
        events = hit + gone[group, last]
        lifetime = events
        out[group, last] = 0.0
        for age in range(last - 1, -1, -1):
            hit += hits[group, age]
            events += hits[group, age] + gone[group, age]
            lifetime += events
            out[group, age] = hit / lifetime if events > 1e-5 else 0.0


def tick(p: Any, node: int) -> None:
    """One use on the clock; at the end of a period the densities are learnt again."""
    p.used[node] = p.state[0]
    p.state[0] += 1
    p.state[1] -= 1
    if p.state[1] == 0:
        p.state[1] = p.state[2]
        for group in range(CLASSES):
            for age in range(AGES):
                p.hits[group, age] *= DECAY
                p.gone[group, age] *= DECAY
        densities(p.hits, p.gone, p.density)


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident."""
    p.ages[node, 0] = 0
    p.ages[node, 1] = AGES
    p.used[node] = p.state[0]
    if rank(p, node) < p.level[0]:
        p.recent[p.state[4] % ADMISSIONS] = node
        p.state[4] += 1
    tick(p, node)
    if is_leaf:
        add_leaf(p, node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again: a hit of its class at its age."""
    age = age_of(p, node)
    p.hits[class_of(p, node), age] += 1.0
    p.ages[node, 1] = p.ages[node, 0]
    p.ages[node, 0] = age
    tick(p, node)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted (an end of its class at its age) or expires."""
    if evicted:
        p.gone[class_of(p, node), age_of(p, node)] += 1.0
    drop_leaf(p, node)


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The lowest density among the sample and the recent admissions, never a pinned leaf; -1 = none."""
    everything = p.size[0] <= p.samples[0]
    drawn = p.size[0] if everything else p.samples[0]
    best = np.int64(-1)
    lowest = np.inf
    for k in range(drawn + ADMISSIONS):
        node = p.recent[k - drawn] if k >= drawn else np.int64(-1)
        if k < drawn:
            node = np.int64(p.leaves[k if everything else draw(p, p.size[0])])
        if node >= 0 and p.at[node] >= 0 and nodes[node].pinned != request:
            density = rank(p, node)
            if best < 0 or density < lowest:
                best = node
                lowest = density
    if lowest > -np.inf and best >= 0:
        p.level[0] = DECAY * p.level[0] + (1.0 - DECAY) * lowest
    return best
