"""The resident leaves as a plain array to draw from, and a small seeded generator, for the policies that sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Sampled = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]


def no_leaves(nodes: int, seed: float) -> Sampled:
    """(leaves, at, size, random): none of `nodes` nodes is a leaf; `at` -1 = not in the array; `random` [1] state."""
    state = np.array([int(seed) * 2_654_435_761 % 2_147_483_646 + 1])
    return np.empty(nodes, np.int32), np.full(nodes, -1, np.int32), np.zeros(1, np.int64), state


def draw(p: Any, below: int) -> int:
    """The next number of the Lehmer generator (48271 mod 2^31 - 1), taken modulo `below`."""
    p.random[0] = p.random[0] * 48_271 % 2_147_483_647
    return p.random[0] % below


def add_leaf(p: Any, node: int) -> None:
    """A node becomes a resident leaf."""
    p.at[node] = p.size[0]
    p.leaves[p.size[0]] = node
    p.size[0] += 1


def drop_leaf(p: Any, node: int) -> None:
    """A node is a resident leaf no more (nothing happens where it was none); the last of the array takes its place."""
    here = p.at[node]
    if here < 0:
        return
    p.at[node] = -1
    p.size[0] -= 1
    moved = p.leaves[p.size[0]]
    if moved != node:
        p.leaves[here] = moved
        p.at[moved] = here


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted or expires."""
    drop_leaf(p, node)


def cover(p: Any, own: Any, node: int) -> None:
    """No leaf any more."""
    drop_leaf(p, node)


def uncover(p: Any, own: Any, node: int) -> None:
    """A leaf again."""
    add_leaf(p, node)
