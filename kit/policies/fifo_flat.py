"""FIFO over a flat map: insertion order, a root may go before its children.

Source: simulators that keep blocks in one queue without a tree (root inserted first, evicted first). Such a simulator
counts the leading run of resident blocks, then walks the path block by block, root first, and pins nothing: a request
may evict a block it has just hit. A block whose ancestor is gone is stranded: resident, worth nothing until that is
back. No engine evicts like this; it is here to compare with such simulators. Leaves out: nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TITLE = "FIFO (flat map)"
PARAMETERS: dict[str, float] = {}
INLINE = True
ROOT_FIRST = True


class Pool(NamedTuple):
    """Doubly linked list over nodes; the last index is the sentinel (its `newer` is the first inserted node)."""

    newer: NDArray[np.int32]
    older: NDArray[np.int32]


def pool(nodes: int) -> Pool:
    """An empty queue for `nodes` nodes."""
    return Pool(np.full(nodes + 1, nodes, np.int32), np.full(nodes + 1, nodes, np.int32))


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident: the youngest."""
    end = p.newer.size - 1
    youngest = p.older[end]
    p.newer[youngest] = node
    p.older[node] = youngest
    p.newer[node] = end
    p.older[end] = node


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """Nothing: use does not move a node."""


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted or expires."""
    newer, older = p.newer[node], p.older[node]
    p.newer[older] = newer
    p.older[newer] = older


def cover(p: Any, own: Any, node: int) -> None:
    """Nothing: this policy does not look at the tree."""


def uncover(p: Any, own: Any, node: int) -> None:
    """Nothing: this policy does not look at the tree."""


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The first inserted node; -1 = none."""
    end = p.newer.size - 1
    return p.newer[end] if p.newer[end] != end else -1
