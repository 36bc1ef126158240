"""Doubly linked lists of nodes with their room in tokens: what the queue policies are made of.

A node stands in at most one list. `where` says to which list it belongs (its room counts there), which is not the same
as being linked: queues that hold leaves only unlink a node while it has resident children. Ghosts (evicted nodes whose
key is remembered) are nodes too, so a ghost list is one more list. A policy's own `Pool` repeats the five fields and
adds what it needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Links = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8], NDArray[np.int64], NDArray[np.int64]]

NOWHERE = -1
UNLINKED = -1


def empty(room_tokens: NDArray[np.int64], lists: int) -> Links:
    """(newer, older, where, tokens, room) of `lists` empty lists over the nodes. Index nodes + k stands for both ends
    of list k: its `newer` is the oldest node, its `older` the most recent one."""
    nodes = room_tokens.size
    links = np.full(nodes + lists, UNLINKED, np.int32)
    links[nodes:] = np.arange(nodes, nodes + lists)
    return links, links.copy(), np.full(nodes, NOWHERE, np.int8), np.zeros(lists, np.int64), room_tokens


def link(p: Any, which: int, node: int) -> None:
    """Link a node at the recent end of a list."""
    end = p.where.size + which
    recent = p.older[end]
    p.newer[recent] = node
    p.older[node] = recent
    p.newer[node] = end
    p.older[end] = node


def link_oldest(p: Any, which: int, node: int) -> None:
    """Link a node at the old end of a list."""
    end = p.where.size + which
    oldest = p.newer[end]
    p.older[oldest] = node
    p.newer[node] = oldest
    p.older[node] = end
    p.newer[end] = node


def unlink(p: Any, node: int) -> None:
    """Unlink a node; nothing happens where it is not linked."""
    newer, older = p.newer[node], p.older[node]
    if newer != UNLINKED:
        p.newer[older] = newer
        p.older[newer] = older
        p.newer[node] = UNLINKED


def join(p: Any, which: int, node: int) -> None:
    """Count a node's room in a list."""
    p.where[node] = which
    p.tokens[which] += p.room[node]


def part(p: Any, node: int) -> None:
    """Take a node's room out of the list it belongs to."""
    p.tokens[p.where[node]] -= p.room[node]
    p.where[node] = NOWHERE


def put(p: Any, which: int, node: int) -> None:
    """A node joins a list at its recent end."""
    join(p, which, node)
    link(p, which, node)


def take(p: Any, node: int) -> None:
    """A node leaves its list."""
    unlink(p, node)
    part(p, node)


def oldest(p: Any, which: int) -> int:
    """The node at the old end of a list; -1 where it is empty."""
    node = p.newer[p.where.size + which]
    return np.int64(node) if node < p.where.size else np.int64(-1)


def oldest_leaf(p: Any, which: int, nodes: Any, request: int) -> int:
    """The oldest node of a recency list without resident children and not pinned by this request; -1 = none.

    Pinned nodes met on the way move to the recent end in their order, as their use would move them anyway.
    """
    end = p.where.size + which
    last = p.older[end]
    node = np.int64(p.newer[end])
    while node != end:
        following = np.int64(p.newer[node])
        if nodes[node].pinned == request:
            unlink(p, node)
            link(p, which, node)
        elif nodes[node].children == 0:
            return node
        if node == last:
            break
        node = following
    return np.int64(-1)


def head_leaf(p: Any, which: int, nodes: Any, request: int) -> int:
    """The oldest node of a queue of leaves not pinned by this request (a path pins at most one leaf); -1 = none."""
    size = p.where.size
    node = np.int64(p.newer[size + which])
    if node < size and nodes[node].pinned == request:
        node = np.int64(p.newer[node])
    return node if node < size else np.int64(-1)
