"""LFU that forgets on eviction: lowest count first, then the oldest use, then the deeper block.

Source: SGLang `lfu` (hit_count, last_access); libCacheSim LFU. A count lives only while its node is resident. State:
one list per count, oldest use first, and the non-empty counts linked in order, so every step is O(1). An ancestor is
used whenever its descendant is and was inserted no later, so its (count, use) is never smaller: closed without help.
Leaves out: sampling and logarithmic counters (Redis), admission (TinyLFU).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TITLE = "LFU (forgets on eviction)"
PARAMETERS: dict[str, float] = {}
INLINE = True


class Pool(NamedTuple):
    """Per node: `newer`, `older`, `uses` (0 = not resident). Per count: `first` (oldest), `last`, `above`, `below`."""

    newer: NDArray[np.int32]
    older: NDArray[np.int32]
    uses: NDArray[np.int32]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    above: NDArray[np.int32]
    below: NDArray[np.int32]


def pool(nodes: int, most_uses: int) -> Pool:
    """Empty lists for `nodes` nodes, none used more than `most_uses` times. Count 0 stands for 'below the lowest'."""
    counts = most_uses + 2
    return Pool(
        np.full(nodes, -1, np.int32), np.full(nodes, -1, np.int32), np.zeros(nodes, np.int32),
        np.full(counts, -1, np.int32), np.full(counts, -1, np.int32), np.full(counts, -1, np.int32),
        np.full(counts, -1, np.int32),
    )  # fmt: skip


def append(p: Any, node: int, count: int, after: int) -> None:
    """Put a node at the recent end of `count`; `after` is the nearest non-empty count at or below (0 = none)."""
    tail = p.last[count]
    if tail < 0:
        if after != count:
            above = p.above[after]
            p.above[after] = count
            p.below[count] = after
            p.above[count] = above
            if above >= 0:
                p.below[above] = count
        p.first[count] = node
    else:
        p.newer[tail] = node
    p.older[node] = tail
    p.newer[node] = -1
    p.last[count] = node
    p.uses[node] = count


def remove(p: Any, node: int) -> None:
    """Take a node out of its count's list (the count stays linked, even if empty, until `close`)."""
    count = p.uses[node]
    newer, older = p.newer[node], p.older[node]
    if older >= 0:
        p.newer[older] = newer
    else:
        p.first[count] = newer
    if newer >= 0:
        p.older[newer] = older
    else:
        p.last[count] = older


def close(p: Any, count: int) -> None:
    """Unlink a count whose list is empty."""
    if p.first[count] < 0:
        above, below = p.above[count], p.below[count]
        p.above[below] = above
        if above >= 0:
            p.below[above] = below


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident with count 1."""
    append(p, node, 1, 1 if p.first[1] >= 0 else 0)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again: count + 1, most recent there."""
    count = p.uses[node]
    remove(p, node)
    append(p, node, count + 1, count + 1 if p.first[count + 1] >= 0 else count)
    close(p, count)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted or expires; its count is forgotten."""
    count = p.uses[node]
    remove(p, node)
    close(p, count)
    p.uses[node] = 0


def cover(p: Any, own: Any, node: int) -> None:
    """Nothing: counts alone keep parents after their children."""


def uncover(p: Any, own: Any, node: int) -> None:
    """Nothing: counts alone keep parents after their children."""


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The least used, then oldest node not pinned by this request; -1 = none."""
    count = p.above[0]
    while count >= 0:
        node = p.first[count]
        while node >= 0 and nodes[node].pinned == request:
            node = p.newer[node]
        if node >= 0:
            return node
        count = p.above[count]
    return -1
