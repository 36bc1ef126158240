"""ARC: two recency lists (used once, used again), a ghost list of each, and a target that moves with the ghosts hit.

Source: ARC (FAST 2003) as libCacheSim 0.3.5 has it, sizes in tokens. A ghost of the once-list raises the target by
max(1, again-ghosts / once-ghosts), one of the again-list lowers it likewise; either returns into the again-list. The
victim is the oldest once-used node while their tokens exceed the target (or equal it and an again-ghost was asked for),
else the oldest of the others. Nested paths: the first without resident children; a request's ghosts count before it
evicts. Leaves out: pinning beyond the request itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies import lists
from kit.policies.lists import free, join, oldest, oldest_leaf, part, put, soon, take

__all__ = ["cover", "enter", "free", "leave", "pool", "soon", "touch", "uncover", "victim"]

TITLE = "ARC"
PARAMETERS: dict[str, float] = {}
OVERLAPS = True
ONCE, AGAIN, ONCE_GHOST, AGAIN_GHOST, BACK = range(5)


class Pool(NamedTuple):
    """The four lists (BACK: a ghost asked for again, about to enter). `target` [1] tokens of the once-list. `asked`
    [4]: last request looked at, whether it asked for an again-ghost, tokens of it seen nowhere, whether the victim's
    key is dropped instead of becoming a ghost. `capacity` [1] tokens; `leaf` of each request."""

    links: Any
    tokens: NDArray[np.int64]
    target: NDArray[np.float64]
    asked: NDArray[np.int64]
    capacity: NDArray[np.int64]
    leaf: NDArray[np.int32]


def pool(nodes: int, room_tokens: NDArray[np.int64], leaf: NDArray[np.int32], capacity_tokens: int) -> Pool:
    """Empty lists, target 0."""
    return Pool(*lists.empty(room_tokens, 5), np.zeros(1), np.array([-1, 0, 0, 0]), np.array([capacity_tokens]), leaf)


def adapt(p: Any, node: int) -> bool:
    """A ghost is asked for: the target moves and the node is on its way back. True for an again-ghost."""
    once, again = float(p.tokens[ONCE_GHOST]), float(p.tokens[AGAIN_GHOST])
    is_again = p.links[node].where == AGAIN_GHOST
    if is_again:
        p.target[0] = max(p.target[0] - max(once / again, 1.0), 0.0)
    else:
        p.target[0] = min(p.target[0] + max(again / once, 1.0), float(p.capacity[0]))
    take(p, node)
    join(p, np.int64(BACK), node)
    return is_again


def look(p: Any, nodes: Any, request: int) -> None:
    """What this request asks for beyond the resident, before anything is evicted for it."""
    if p.asked[0] == request:
        return
    p.asked[0] = request
    p.asked[1] = 0
    p.asked[2] = 0
    node = np.int64(p.leaf[request]) if request >= 0 else np.int64(-1)
    while node >= 0:
        if p.links[node].where >= ONCE_GHOST:
            if adapt(p, node):
                p.asked[1] = 1
        elif p.links[node].where < 0:
            p.asked[2] += p.links[node].room
        node = np.int64(nodes[node].parent)


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident: in the again-list if it was a ghost."""
    if p.links[node].where < 0:
        put(p, np.int64(ONCE), node)
        return
    if p.links[node].where != BACK:
        adapt(p, node)
    part(p, node)
    put(p, np.int64(AGAIN), node)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again: most recent of the again-list."""
    take(p, node)
    put(p, np.int64(AGAIN), node)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted (its key becomes a ghost, unless the victim's rule dropped it) or expires."""
    ghost = np.int64(p.links[node].where) + 2
    take(p, node)
    if evicted and p.asked[3] == 0:
        put(p, ghost, node)
    p.asked[3] = 0


def cover(p: Any, own: Any, node: int) -> None:
    """Nothing: the lists hold all resident nodes."""


def uncover(p: Any, own: Any, node: int) -> None:
    """Nothing: the lists hold all resident nodes."""


def trim(p: Any, fresh: int) -> None:
    """Before a victim for `fresh` tokens never seen: drop the oldest ghost of the list that is over its bound."""
    once = p.tokens[ONCE] + p.tokens[ONCE_GHOST]
    if once + fresh > p.capacity[0]:
        if p.tokens[ONCE_GHOST] > 0:
            take(p, oldest(p, np.int64(ONCE_GHOST)))
        else:
            p.asked[3] = 1
    elif once + p.tokens[AGAIN] + p.tokens[AGAIN_GHOST] >= 2 * p.capacity[0] and p.tokens[AGAIN_GHOST] > 0:
        take(p, oldest(p, np.int64(AGAIN_GHOST)))


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The node to evict next, the ghosts trimmed on the way; -1 = none."""
    look(p, nodes, request)
    p.asked[3] = 0
    if p.asked[2] > 0 or request < 0:
        trim(p, p.asked[2])
    over = p.tokens[ONCE] > p.target[0] or (p.asked[1] == 1 and p.tokens[ONCE] == p.target[0])
    first = np.int64(ONCE) if p.asked[3] == 1 or over else np.int64(AGAIN)
    node = oldest_leaf(p, first, nodes, request)
    if node < 0:
        node = oldest_leaf(p, ONCE + AGAIN - first, nodes, request)
    return node
