"""LFU that forgets on eviction: lowest count first, then the oldest use, then the deeper block.

Source: SGLang `lfu` (hit_count, last_access); libCacheSim LFU. A count lives only while its node is resident. State:
one list per count, oldest use first, and the non-empty counts linked in order, so every step is O(1). An ancestor is
used whenever its descendant is and was inserted no later, so its (count, use) is never smaller: closed without help.
Leaves out: sampling and logarithmic counters (Redis), admission (TinyLFU).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kit.policies.ahead import fetch
from kit.policies.pins import pinned

TITLE = "LFU (forgets on eviction)"
PARAMETERS: dict[str, float] = {}
OVERLAPS = True
INLINE = True
LINK = np.dtype([("newer", np.int32), ("older", np.int32), ("uses", np.int32), ("spare", np.int32)])
COUNT = np.dtype([("oldest", np.int32), ("last", np.int32), ("above", np.int32), ("below", np.int32)])


class Pool(NamedTuple):
    """`links` LINK per node (`uses` 0 = not resident), `counts` COUNT per count: its `oldest` and `last` node and the
    next non-empty counts `above` and `below`."""

    links: Any
    counts: Any


def pool(nodes: int, most_uses: int) -> Pool:
    """Empty lists for `nodes` nodes, none used more than `most_uses` times. Count 0 stands for 'below the lowest'."""
    links, counts = np.recarray(nodes, dtype=LINK), np.recarray(most_uses + 2, dtype=COUNT)
    for name in ("newer", "older"):
        links[name] = -1
    links["uses"] = 0
    for name in ("oldest", "last", "above", "below"):
        counts[name] = -1
    return Pool(links, counts)


def soon(p: Any, own: Any, nodes: Any, node: int, close: int) -> None:
    """`node` will be asked for soon, `close` sooner: have their links and those of the neighbours at hand."""
    fetch(p.links, node)
    here = p.links[close]
    fetch(p.links, np.int64(max(here.newer, 0)))
    fetch(p.links, np.int64(max(here.older, 0)))


def append(p: Any, node: int, count: int, after: int) -> None:
    """Put a node at the recent end of `count`; `after` is the nearest non-empty count at or below (0 = none)."""
    tail = p.counts[count].last
    if tail < 0:
        if after != count:
            above = p.counts[after].above
            p.counts[after].above = count
            p.counts[count].below = after
            p.counts[count].above = above
            if above >= 0:
                p.counts[above].below = count
        p.counts[count].oldest = node
    else:
        p.links[tail].newer = node
    p.links[node].older = tail
    p.links[node].newer = -1
    p.counts[count].last = node
    p.links[node].uses = count


def remove(p: Any, node: int) -> None:
    """Take a node out of its count's list (the count stays linked, even if empty, until `close`)."""
    count = p.links[node].uses
    newer, older = p.links[node].newer, p.links[node].older
    if older >= 0:
        p.links[older].newer = newer
    else:
        p.counts[count].oldest = newer
    if newer >= 0:
        p.links[newer].older = older
    else:
        p.counts[count].last = older


def close(p: Any, count: int) -> None:
    """Unlink a count whose list is empty."""
    if p.counts[count].oldest < 0:
        above, below = p.counts[count].above, p.counts[count].below
        p.counts[below].above = above
        if above >= 0:
            p.counts[above].below = below


def renew(p: Any, node: int) -> None:
    """Most recent at its own count."""
    count = p.links[node].uses
    remove(p, node)
    append(p, node, count, count)


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident with count 1."""
    append(p, node, 1, 1 if p.counts[1].oldest >= 0 else 0)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again: count + 1, most recent there."""
    count = p.links[node].uses
    remove(p, node)
    append(p, node, count + 1, count + 1 if p.counts[count + 1].oldest >= 0 else count)
    close(p, count)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted or expires; its count is forgotten."""
    count = p.links[node].uses
    remove(p, node)
    close(p, count)
    p.links[node].uses = 0


def free(p: Any, own: Any, node: int, end_us: int) -> None:
    """The last running request that uses a node has ended: most recent at its count."""
    renew(p, node)


def cover(p: Any, own: Any, node: int) -> None:
    """Nothing: counts alone keep parents after their children."""


def uncover(p: Any, own: Any, node: int) -> None:
    """Nothing: counts alone keep parents after their children."""


def least_used(p: Any, nodes: Any, request: int) -> int:
    """The least used, then oldest node that is not pinned; -1 = none. Pinned ones move to the recent end of their
    count, as their use, or its end, would anyway."""
    count = np.int64(p.counts[0].above)
    while count >= 0:
        node, last = np.int64(p.counts[count].oldest), np.int64(p.counts[count].last)
        while node >= 0 and pinned(nodes, node, request):
            following = np.int64(p.links[node].newer) if node != last else np.int64(-1)
            renew(p, node)
            node = following
        if node >= 0:
            return node
        count = np.int64(p.counts[count].above)
    return np.int64(-1)


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The least used, then oldest node that is not pinned; -1 = none."""
    return least_used(p, nodes, request)
