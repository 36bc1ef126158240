"""Runs of blocks as a radix tree holds them, for the SGLang policies.

A request's new blocks form one radix node (a *run*). A later request that stops inside a run splits it there, and the
part it did not match is stamped as used, as SGLang's match does. Eviction frees a leaf run whole.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Runs(NamedTuple):
    """Per node: `head` (a run starts here), `after` (next block of its run, -1 = none), `there` (resident), `parent`.
    `leaf` per request. `last` [4]: last request looked at; node and request last inserted; next node of the run being
    evicted (-1 = none). `page` [1] tokens."""

    head: NDArray[np.bool_]
    after: NDArray[np.int32]
    there: NDArray[np.bool_]
    parent: NDArray[np.int32]
    leaf: NDArray[np.int32]
    last: NDArray[np.int64]
    page: NDArray[np.int64]


def no_runs(parent: NDArray[np.int32], leaf: NDArray[np.int32], block_tokens: int) -> Runs:
    """Nothing resident."""
    nodes = parent.size
    return Runs(np.ones(nodes, np.bool_), np.full(nodes, -1, np.int32), np.zeros(nodes, np.bool_), parent, leaf,
                np.array([-1, -1, -1, -1]), np.array([block_tokens]))  # fmt: skip


def split(own: Any, request: int) -> int:
    """Once per request: cut the run in which its match ends. The last block of the part behind the cut, -1 = no cut."""
    if request < 0 or own.last[0] == request:
        return np.int64(-1)
    own.last[0] = request
    node = np.int64(own.leaf[request])
    while node >= 0 and not own.there[node]:
        node = np.int64(own.parent[node])
    rest = np.int64(own.after[node]) if node >= 0 else np.int64(-1)
    if rest >= 0:
        own.head[rest] = True
        own.after[node] = -1
        while own.after[rest] >= 0:
            rest = np.int64(own.after[rest])
    return rest


def grow(own: Any, node: int, request: int) -> None:
    """A block becomes resident: it starts a run unless the block above it is inserted by the same request."""
    below = own.last[1]
    own.there[node] = True
    own.head[node] = True
    own.after[node] = -1
    if below >= 0 and own.last[2] == request and own.parent[below] == node:
        own.head[below] = False
        own.after[node] = below
    own.last[1] = node
    own.last[2] = request


def shrink(own: Any, node: int, evicted: bool) -> None:
    """A block goes; the rest of an evicted run follows."""
    own.there[node] = False
    above = own.parent[node]
    if above >= 0 and own.after[above] == node:
        own.after[above] = -1
    own.last[3] = above if evicted and not own.head[node] else -1
    if own.last[1] == node:
        own.last[1] = -1


def unfinished(p: Any, own: Any) -> bool:
    """Whether a run is only partly evicted."""
    return own.last[3] >= 0


def readable(p: Any, own: Any, matched: int, total: int) -> int:
    """At most the prompt less one token, in whole pages."""
    return min(matched, (total - 1) // own.page[0] * own.page[0])
