"""Doubly linked lists of nodes with their room in tokens: what the queue policies are made of.

A node stands in at most one list. `where` says to which list it belongs (its room counts there), which is not the same
as being linked: queues that hold leaves only unlink a node while it has resident children. Ghosts (evicted nodes whose
key is remembered) are nodes too, so a ghost list is one more list. A policy's own `Pool` repeats the two fields `links`
and `tokens` and adds what it needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit.policies.ahead import fetch
from kit.policies.pins import pinned

NOWHERE = -1
GHOST, BACK = 2, 3
UNLINKED = -1
LINK = np.dtype(
    [("newer", np.int32), ("older", np.int32), ("room", np.int32), ("uses", np.int16), ("where", np.int8),
     ("visited", np.bool_)],
)  # fmt: skip
"""One node, 16 bytes side by side in memory: its neighbours, its room in tokens, its list, and two marks that a policy
may use as it likes."""


def empty(room_tokens: NDArray[np.int64], lists: int) -> tuple[Any, NDArray[np.int64]]:
    """(links, tokens) of `lists` empty lists over the nodes: a recarray of LINK and the room held by each list. Row
    nodes + k stands for both ends of list k: its `newer` is the oldest node, its `older` the most recent one."""
    nodes = room_tokens.size
    links = np.recarray(nodes + lists, dtype=LINK)
    links["newer"] = links["older"] = UNLINKED
    links["newer"][nodes:] = links["older"][nodes:] = np.arange(nodes, nodes + lists)
    links["room"][:nodes] = room_tokens
    links["where"] = NOWHERE
    links["uses"] = links["visited"] = links["room"][nodes:] = 0
    return links, np.zeros(lists, np.int64)


def soon(p: Any, own: Any, nodes: Any, node: int, close: int) -> None:
    """`node` will be asked for soon, `close` sooner: have their links and those of the neighbours at hand."""
    fetch(p.links, node)
    here = p.links[close]
    if here.newer >= 0:
        fetch(p.links, np.int64(here.newer))
        fetch(p.links, np.int64(here.older))


def nodes_of(p: Any) -> int:
    """The number of nodes, which is the row of the first list's ends."""
    return p.links.size - p.tokens.size


def link(p: Any, which: int, node: int) -> None:
    """Link a node at the recent end of a list."""
    both = nodes_of(p) + which
    recent = p.links[both].older
    p.links[recent].newer = node
    p.links[node].older = recent
    p.links[node].newer = both
    p.links[both].older = node


def link_oldest(p: Any, which: int, node: int) -> None:
    """Link a node at the old end of a list."""
    both = nodes_of(p) + which
    oldest = p.links[both].newer
    p.links[oldest].older = node
    p.links[node].newer = oldest
    p.links[node].older = both
    p.links[both].newer = node


def unlink(p: Any, node: int) -> None:
    """Unlink a node; nothing happens where it is not linked."""
    newer, older = p.links[node].newer, p.links[node].older
    if newer != UNLINKED:
        p.links[older].newer = newer
        p.links[newer].older = older
        p.links[node].newer = UNLINKED


def join(p: Any, which: int, node: int) -> None:
    """Count a node's room in a list."""
    p.links[node].where = which
    p.tokens[which] += p.links[node].room


def part(p: Any, node: int) -> None:
    """Take a node's room out of the list it belongs to."""
    p.tokens[p.links[node].where] -= p.links[node].room
    p.links[node].where = NOWHERE


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
    node = p.links[nodes_of(p) + which].newer
    return np.int64(node) if node < nodes_of(p) else np.int64(-1)


def oldest_leaf(p: Any, which: int, nodes: Any, request: int) -> int:
    """The oldest node of a recency list without resident children and not pinned; -1 = none.

    Pinned nodes met on the way move to the recent end in their order, as their use, or its end, would anyway.
    """
    both = nodes_of(p) + which
    last = p.links[both].older
    node = np.int64(p.links[both].newer)
    while node != both:
        following = np.int64(p.links[node].newer)
        if pinned(nodes, node, request):
            unlink(p, node)
            link(p, which, node)
        elif nodes[node].children == 0:
            return node
        if node == last:
            break
        node = following
    return np.int64(-1)


def free(p: Any, own: Any, node: int, end_us: int) -> None:
    """The last running request that uses a node has ended: the recent end of its list."""
    unlink(p, node)
    link(p, np.int64(p.links[node].where), node)


def head_leaf(p: Any, which: int, nodes: Any, request: int) -> int:
    """The oldest node of a queue of leaves not pinned by this request (a path pins at most one leaf); -1 = none."""
    size = nodes_of(p)
    node = np.int64(p.links[size + which].newer)
    if node < size and nodes[node].pinned == request:
        node = np.int64(p.links[node].newer)
    return node if node < size else np.int64(-1)


def welcome_back(p: Any, nodes: Any, request: int) -> None:
    """Keys on this request's path that are remembered (list GHOST) come back (list BACK: about to enter) before
    anything is evicted for it. The pool has `seen` [0], the last request looked at, and the `leaf` of each request."""
    if request < 0 or p.seen[0] == request:
        return
    p.seen[0] = request
    node = np.int64(p.leaf[request])
    while node >= 0:
        if p.links[node].where == GHOST:
            take(p, node)
            join(p, np.int64(BACK), node)
        node = np.int64(nodes[node].parent)


def remember(p: Any, node: int) -> None:
    """An evicted node's key joins the remembered ones unless it is larger than all of them may be (the pool's `limit`),
    and the oldest of them are forgotten."""
    if p.links[node].room <= p.limit[GHOST]:
        put(p, np.int64(GHOST), node)
        while p.tokens[GHOST] > p.limit[GHOST]:
            take(p, oldest(p, np.int64(GHOST)))
