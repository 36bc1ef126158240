"""W-TinyLFU: a small recency window, a segmented main part, and a frequency sketch that decides who stays.

Source: Caffeine v3.2.4, `BoundedLocalCache` and `FrequencySketch`, with its hill-climbing window. Newcomers enter the
window (1 %); what falls out of it stands as candidate at the recent end of probation. While the tier is over its
capacity the candidate stays and probation's oldest goes only if the candidate's count is higher (a tie keeps the
resident). A hit in probation moves to protected (80 % of main), which hands its oldest back. Counts are 4-bit, halved
every 10 x maximum; they start when the tier is half full. Inserts before it evicts. Nested paths: only leaves go.
Leaves out: the random admission of one warm candidate in 128, weights that change.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies import lists
from kit.policies.lfu_halving import entries
from kit.policies.lists import link, nodes_of, oldest, oldest_leaf, put, take, unlink

TITLE = "W-TinyLFU"
PARAMETERS: dict[str, float] = {
    "window_share": 0.01, "protected_share": 0.80, "count_from_share": 0.50, "adaptive": 1.0,
}  # fmt: skip
INSERT_FIRST = True
WINDOW, PROBATION, PROTECTED = range(3)
(CAPACITY, WINDOW_MOST, PROTECTED_MOST, SAMPLE, ADDED, HITS, MISSES, ADJUST, REQUEST, CANDIDATE, STAGE, COUNT_FROM,
 ADAPTIVE) = range(13)  # fmt: skip
NEW, FROM_PROBATION, FROM_WINDOW = range(3)
ROWS, MOST = 4, 15
SEEDS = (1_640_531_527, 97_531_371, 1_234_567_891, 668_265_263)
STEP, STEP_DECAY, RESTART, TRANSFERS = 0.0625, 0.98, 0.05, 1000


class Pool(NamedTuple):
    """Three recency lists (see `kit.policies.lists`), the sketch's `counts` [4, width], `state` (integers named above)
    and `climb` [2]: hit rate of the sample before, next step in tokens."""

    links: Any
    tokens: NDArray[np.int64]
    counts: NDArray[np.int8]
    state: NDArray[np.int64]
    climb: NDArray[np.float64]


def pool(
    room_tokens: NDArray[np.int64], capacity_tokens: int, window_share: float = 0.01, protected_share: float = 0.80,
    count_from_share: float = 0.50, adaptive: float = 1.0,
) -> Pool:  # fmt: skip
    """Nothing resident, no counts; the sketch has four counters per row for every node of average size."""
    size = entries(room_tokens, capacity_tokens)
    width = 4 << max(size - 1, 0).bit_length()
    window = capacity_tokens - int((1.0 - window_share) * capacity_tokens)
    protected = int(protected_share * (capacity_tokens - window))
    state = np.zeros(13, np.int64)
    state[[CAPACITY, WINDOW_MOST, PROTECTED_MOST, SAMPLE]] = capacity_tokens, window, protected, 10 * size
    state[[REQUEST, CANDIDATE, COUNT_FROM]] = -1, -1, int(count_from_share * capacity_tokens)
    state[ADAPTIVE] = int(adaptive)
    return Pool(*lists.empty(room_tokens, 3), np.zeros((ROWS, width), np.int8), state,
                np.array([0.0, -STEP * capacity_tokens]))  # fmt: skip


def slot(node: int, row: int, width: int) -> int:
    """Where a node's count stands in a row of the sketch."""
    h = ((node + 1) * 2_654_435_769) & 0xFFFFFFFF
    h = h ^ (h >> 15)
    return ((h * SEEDS[row]) >> 20) & (width - 1)


def frequency(p: Any, node: int) -> int:
    """The sketch's count of a node: the lowest of its four."""
    lowest = np.int64(MOST)
    for row in range(ROWS):
        lowest = min(lowest, np.int64(p.counts[row, slot(node, row, p.counts.shape[1])]))
    return lowest


def age(p: Any) -> None:
    """Halve every counter."""
    odd = np.int64(0)
    for row in range(ROWS):
        for k in range(p.counts.shape[1]):
            odd += p.counts[row, k] & 1
            p.counts[row, k] >>= 1
    p.state[ADDED] = (p.state[ADDED] - (odd >> 2)) >> 1


def count_use(p: Any, node: int) -> None:
    """One use in the sketch, once counting has begun (COUNT_FROM is then below 0)."""
    if p.state[COUNT_FROM] >= 0:
        return
    added = False
    for row in range(ROWS):
        k = slot(node, row, p.counts.shape[1])
        if p.counts[row, k] < MOST:
            p.counts[row, k] += 1
            added = True
    if added:
        p.state[ADDED] += 1
        if p.state[ADDED] >= p.state[SAMPLE]:
            age(p)


def demote(p: Any) -> None:
    """Protected hands its oldest back to probation while it is over its share."""
    while p.tokens[PROTECTED] > p.state[PROTECTED_MOST]:
        node = oldest(p, np.int64(PROTECTED))
        take(p, node)
        put(p, np.int64(PROBATION), node)


def sample(p: Any) -> None:
    """At the end of a sample of requests: how far, and which way, the window should move."""
    done = p.state[HITS] + p.state[MISSES]
    if p.state[COUNT_FROM] >= 0:
        p.climb[0] = 0.0
    elif done < p.state[SAMPLE]:
        return
    else:
        rate = p.state[HITS] / done
        change = rate - p.climb[0]
        amount = p.climb[1] if change >= 0 else -p.climb[1]
        restart = STEP * p.state[CAPACITY] * (1.0 if amount >= 0 else -1.0)
        p.climb[1] = restart if abs(change) >= RESTART else STEP_DECAY * amount
        p.climb[0] = rate
        p.state[ADJUST] = np.int64(amount)
    p.state[HITS] = 0
    p.state[MISSES] = 0


def widen(p: Any) -> None:
    """Grow the window at the cost of protected, and fill it from the old end of probation, then protected."""
    quota = min(p.state[ADJUST], p.state[PROTECTED_MOST])
    p.state[PROTECTED_MOST] -= quota
    p.state[WINDOW_MOST] += quota
    demote(p)
    for _ in range(TRANSFERS):
        node = oldest(p, np.int64(PROBATION))
        if node < 0 or quota < p.links[node].room:
            node = oldest(p, np.int64(PROTECTED))
        if node < 0 or quota < p.links[node].room:
            break
        quota -= p.links[node].room
        take(p, node)
        put(p, np.int64(WINDOW), node)
    p.state[PROTECTED_MOST] += quota
    p.state[WINDOW_MOST] -= quota
    p.state[ADJUST] = quota


def narrow(p: Any) -> None:
    """Shrink the window in favour of protected; its oldest go to the recent end of probation."""
    quota = min(-p.state[ADJUST], max(p.state[WINDOW_MOST] - 1, 0))
    p.state[PROTECTED_MOST] += quota
    p.state[WINDOW_MOST] -= quota
    for _ in range(TRANSFERS):
        node = oldest(p, np.int64(WINDOW))
        if node < 0 or quota < p.links[node].room:
            break
        quota -= p.links[node].room
        take(p, node)
        put(p, np.int64(PROBATION), node)
    p.state[PROTECTED_MOST] -= quota
    p.state[WINDOW_MOST] += quota
    p.state[ADJUST] = -quota


def overflow(p: Any) -> None:
    """What is over the window's share moves to the recent end of probation; the first of it is the candidate."""
    p.state[CANDIDATE] = -1
    while p.tokens[WINDOW] > p.state[WINDOW_MOST]:
        node = oldest(p, np.int64(WINDOW))
        take(p, node)
        put(p, np.int64(PROBATION), node)
        if p.state[CANDIDATE] < 0:
            p.state[CANDIDATE] = node
    p.state[STAGE] = FROM_PROBATION


def begin(p: Any, request: int) -> None:
    """Once per request: the one before is finished, the window moves, and victims start anew."""
    if p.state[REQUEST] == request:
        return
    if p.state[STAGE] == NEW:
        overflow(p)
    p.state[REQUEST] = request
    p.state[STAGE] = NEW
    if p.state[ADAPTIVE] == 0:
        return
    sample(p)
    if p.state[ADJUST] > 0 and p.state[PROTECTED_MOST] > 0:
        widen(p)
    elif p.state[ADJUST] < 0 and p.state[WINDOW_MOST] > 1:
        narrow(p)


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident: most recent of the window."""
    begin(p, request)
    put(p, np.int64(WINDOW), node)
    if p.state[COUNT_FROM] >= 0 and p.tokens[WINDOW] + p.tokens[PROBATION] + p.tokens[PROTECTED] >= p.state[COUNT_FROM]:
        p.state[COUNT_FROM] = -1
    count_use(p, node)
    p.state[MISSES] += 1


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again: most recent of its segment, and out of probation into protected."""
    begin(p, request)
    count_use(p, node)
    p.state[HITS] += 1
    if p.links[node].where == PROBATION and p.links[node].room <= p.state[PROTECTED_MOST]:
        take(p, node)
        put(p, np.int64(PROTECTED), node)
        demote(p)
    else:
        unlink(p, node)
        link(p, np.int64(p.links[node].where), node)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted or expires."""
    if p.state[CANDIDATE] == node:
        p.state[CANDIDATE] = following(p, node)
    take(p, node)


def cover(p: Any, own: Any, node: int) -> None:
    """Nothing: the lists hold all resident nodes."""


def uncover(p: Any, own: Any, node: int) -> None:
    """Nothing: the lists hold all resident nodes."""


def following(p: Any, node: int) -> int:
    """The next newer node of the same list; -1 at its end."""
    newer = np.int64(p.links[node].newer)
    return newer if newer < nodes_of(p) else np.int64(-1)


def leaf_from(p: Any, node: int, nodes: Any, request: int) -> int:
    """The first leaf from a node on towards the recent end of its list; -1 = none."""
    while node >= 0 and (nodes[node].children > 0 or nodes[node].pinned == request):
        node = following(p, node)
    return node


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The loser between the candidate and the oldest of probation; -1 = no leaf can go."""
    if p.state[STAGE] == NEW:
        overflow(p)
    candidate = leaf_from(p, np.int64(p.state[CANDIDATE]), nodes, request)
    if candidate < 0 and p.state[STAGE] == FROM_PROBATION:
        candidate = oldest_leaf(p, np.int64(WINDOW), nodes, request)
        p.state[STAGE] = FROM_WINDOW
    p.state[CANDIDATE] = candidate
    resident = oldest_leaf(p, np.int64(PROBATION), nodes, request)
    if candidate < 0 and resident < 0:
        resident = oldest_leaf(p, np.int64(PROTECTED), nodes, request)
        return resident if resident >= 0 else oldest_leaf(p, np.int64(WINDOW), nodes, request)
    if candidate < 0:
        return resident
    p.state[CANDIDATE] = following(p, candidate)
    if candidate == resident:
        p.state[CANDIDATE] = -1
    elif resident >= 0 and frequency(p, candidate) > frequency(p, resident):
        return resident
    return candidate
