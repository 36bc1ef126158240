"""The forest: keys chained into nodes, and what is counted along the parents of a node."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kit.prefix import without_blas  # noqa: F401  before the first compiled function is loaded

Ints = NDArray[np.int64]


@njit(cache=True, nogil=True)
def _mix(parent: Any, key: Any) -> Any:
    """64-bit finaliser (splitmix64 constants) over a parent id and a key; both uint64."""
    x = key ^ (parent * np.uint64(0x9E3779B97F4A7C15))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def scatter(codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Codes spread evenly over 64 bits, by the finaliser of the forest: for seeded draws keyed by what they mix."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        codes = (codes ^ (codes >> np.uint64(shift))) * np.uint64(factor)
    return codes ^ (codes >> np.uint64(31))


@njit(cache=True, nogil=True)
def _grow(slots: Any, parent: Any, key_of: Any) -> Any:
    """Twice as many slots, every node in them placed again."""
    larger = np.full(slots.size * 2, -1, np.int32)
    mask = np.uint64(larger.size - 1)
    for old in range(slots.size):
        node = slots[old]
        if node < 0:
            continue
        at = _mix(np.uint64(parent[node] + 1), key_of[node]) & mask
        while larger[at] >= 0:
            at = (at + np.uint64(1)) & mask
        larger[at] = node
    return larger


@njit(cache=True, nogil=True)
def _forest(offsets: Any, keys: Any, tokens: Any) -> Any:
    """A node's first child is kept beside it, and only further children are looked up: most paths never branch."""
    touches = keys.size
    parent = np.empty(touches, np.int32)
    key_of = np.empty(touches, np.uint64)
    node_tokens = np.empty(touches, np.int64)
    depth = np.empty(touches, np.int32)
    first_touch = np.empty(touches, np.int64)
    leaf = np.full(offsets.size - 1, -1, np.int32)
    slots = np.full(1024, -1, np.int32)
    child = np.full(touches + 1, -1, np.int32)
    nodes = placed = 0
    for request in range(offsets.size - 1):
        above = np.int32(-1)
        for touch in range(offsets[request], offsets[request + 1]):
            node = child[above + 1]
            if node < 0:
                child[above + 1] = nodes
            elif key_of[node] != keys[touch]:
                if placed * 2 >= slots.size:
                    slots = _grow(slots, parent, key_of)
                mask = np.uint64(slots.size - 1)
                at = _mix(np.uint64(above + 1), keys[touch]) & mask
                while slots[at] >= 0 and (parent[slots[at]] != above or key_of[slots[at]] != keys[touch]):
                    at = (at + np.uint64(1)) & mask
                node = slots[at]
                if node < 0:
                    slots[at] = nodes
                    placed += 1
            if node < 0:
                node = np.int32(nodes)
                parent[nodes] = above
                key_of[nodes] = keys[touch]
                node_tokens[nodes] = tokens[touch]
                depth[nodes] = touch - offsets[request]
                first_touch[nodes] = touch
                nodes += 1
            above = node
        leaf[request] = above
    return leaf, parent[:nodes].copy(), node_tokens[:nodes].copy(), depth[:nodes].copy(), first_touch[:nodes].copy()


def build_forest(
    offsets: Ints, keys: NDArray[np.uint64], tokens: NDArray[Any]
) -> tuple[NDArray[np.int32], NDArray[np.int32], Ints, NDArray[np.int32], Ints]:
    """Chain the keys of every request into nodes: equal keys under the same parent are one node.

    `offsets` int64[n + 1] cuts `keys` uint64[m] and `tokens` [m] into one path per request, root first. Comes back:
    `leaf` int32[n] (-1 = empty path), `parent` int32[nodes] (-1 = root, always smaller than the node), `tokens`
    int64[nodes] (as first seen), `depth` int32[nodes], `first_touch` int64[nodes] (index into `keys`).
    """
    return _forest(np.asarray(offsets, np.int64), np.asarray(keys, np.uint64), np.asarray(tokens, np.int64))


def flat_forest(
    keys: NDArray[np.uint64], tokens: Ints
) -> tuple[NDArray[np.int32], NDArray[np.int32], Ints, NDArray[np.int32], Ints]:
    """Nodes for flat keys, one key and one length per request; the same return as `build_forest`.

    A key seen with several lengths becomes one node per step between its lengths, so that growing an entry reserves
    (and writes) only the growth, and a shorter use hits the part it needs.
    """
    keys, tokens = np.asarray(keys, np.uint64), np.asarray(tokens, np.int64)
    order = np.lexsort((tokens, keys))
    key, end = keys[order], tokens[order]
    another = np.ones(key.size, np.bool_)
    another[1:] = key[1:] != key[:-1]
    longer = another.copy()
    longer[1:] |= end[1:] != end[:-1]
    pair = np.empty(key.size, np.int64)
    pair[order] = np.cumsum(longer) - 1
    key, end, another = key[longer], end[longer], another[longer]
    step = np.where(another, end, np.diff(end, prepend=0))
    lowest = np.maximum.accumulate(np.where(another, np.arange(key.size), 0))[pair]
    counts = pair - lowest + 1
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    touched = np.arange(offsets[-1]) + np.repeat(lowest - offsets[:-1], counts)
    return build_forest(offsets, key[touched], step[touched])


@njit(cache=True, nogil=True)
def _path_sums(parent: Any, value: Any) -> Any:
    total = value.copy()
    for node in range(parent.size):
        if parent[node] >= 0:
            total[node] += total[parent[node]]
    return total


def path_sums(parent: NDArray[np.int32], value: Ints) -> Ints:
    """Sum of `value` from the root to each node, inclusive; int64[nodes]."""
    return _path_sums(parent, np.asarray(value, np.int64))


@njit(cache=True, nogil=True)
def depths(parent: Any) -> Any:
    """Depth of each node, the root 0 (parents come before children); int32[nodes]."""
    depth = np.zeros(parent.size, np.int32)
    for node in range(parent.size):
        if parent[node] >= 0:
            depth[node] = depth[parent[node]] + 1
    return depth


@njit(cache=True, nogil=True)
def _roots(parent: Any) -> Any:
    root = np.empty(parent.size, np.int32)
    for node in range(parent.size):
        root[node] = node if parent[node] < 0 else root[parent[node]]
    return root


def root_of(parent: NDArray[np.int32]) -> NDArray[np.int32]:
    """Root of each node; int32[nodes]."""
    return _roots(parent)


@njit(cache=True, nogil=True)
def _first_seen(codes: Any, lowest: Any, span: Any) -> Any:
    rank_of = np.full(span, -1, np.int64)
    rank = np.empty(codes.size, np.int64)
    seen = 0
    for at in range(codes.size):
        code = codes[at] - lowest
        if rank_of[code] < 0:
            rank_of[code] = seen
            seen += 1
        rank[at] = rank_of[code]
    return rank


def first_seen_rank(codes: NDArray[Any]) -> NDArray[np.int64]:
    """Rank of each integer code by first appearance, int64: permuting the labels changes nothing."""
    if codes.size == 0:
        return np.zeros(0, np.int64)
    codes = codes.astype(np.int64)
    if int(codes.max()) - int(codes.min()) > 8 * codes.size + 1024:
        codes = np.unique(codes, return_inverse=True)[1]
    return _first_seen(codes, codes.min(), int(codes.max()) - int(codes.min()) + 1)
