"""The arrays a replay reads: nodes cut to whole blocks, and the request side of a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kit.prefix.forest import Ints, depths, first_seen_rank, path_sums, root_of

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
BOOTSTRAP_BLOCKS = 200
TIME_STRETCHES = 50

TOKEN_TYPES = ("other", "system", "tools", "user", "assistant", "thinking", "tool_call", "tool_result")
SESSION_TYPES = ("other", "single", "chat", "agent")


@dataclass(frozen=True)
class Paths:
    """A log as arrays: one row per node, one row per request, in time order (ties in file order).

    Per node: `parent` (-1 = root), `depth` (root 0), `tokens` (worth of a hit), `room_tokens` (room taken in the
    tier), `unit_tokens` (what eviction frees at a time: the node, or one block of a segment), `path_tokens` (root to
    node, inclusive). Per request: `leaf` (deepest node, -1 = nothing cacheable),
    `ts_us` (start, microseconds), `input_tokens` (inclusive total), `block` (bootstrap block), `rate` (price group),
    `hour` (from the first full hour), `warm` (counts in the warm window), `tags` what some rules ask for (name ->
    one number per request: session_type as a code, turn, priority, retention_seconds and ts_end_us, -1 = not given),
    `node_type` the token type of each node as an index into TOKEN_TYPES (empty: the log has none). Units: tokens,
    microseconds.
    """

    parent: NDArray[np.int32]
    depth: NDArray[np.int32]
    tokens: Ints
    room_tokens: Ints
    unit_tokens: Ints
    path_tokens: Ints
    leaf: NDArray[np.int32]
    ts_us: Ints
    input_tokens: Ints
    block: NDArray[np.int32]
    n_blocks: int
    block_basis: str
    rate: NDArray[np.int32]
    n_rates: int
    hour: NDArray[np.int32]
    n_hours: int
    warm: NDArray[np.bool_]
    warm_basis: str
    block_tokens: int
    tags: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    node_type: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))

    @property
    def requests(self) -> int:
        """Number of requests."""
        return int(self.leaf.size)

    @property
    def equal_units(self) -> bool:
        """True when all room is freed in units of one size: only then is MIN an exact optimum."""
        return bool(self.unit_tokens.size == 0 or (self.unit_tokens == self.unit_tokens[0]).all())

    @property
    def has_segments(self) -> bool:
        """True when some node is a run of several units."""
        return bool((self.unit_tokens < self.room_tokens).any())

    @cached_property
    def by_unit(self) -> Paths:
        """The same paths with every segment written out, one node per unit."""
        return split_segments(self) if self.has_segments else self

    @property
    def longest_prefix_tokens(self) -> int:
        """Room of the longest cacheable prefix in the log, in tokens."""
        used = self.leaf[self.leaf >= 0]
        return int(path_sums(self.parent, self.room_tokens)[used].max()) if used.size else 0


@njit(cache=True, nogil=True)
def _keep(parent: Any, worth: Any) -> Any:
    """Drop nodes worth nothing: new id of the deepest kept node at or above each node, and the kept nodes' parents."""
    new_id = np.full(parent.size, -1, np.int32)
    new_parent = np.empty(parent.size, np.int32)
    kept = 0
    for node in range(parent.size):
        above = new_id[parent[node]] if parent[node] >= 0 else np.int32(-1)
        if worth[node] > 0:
            new_parent[kept] = above
            new_id[node] = kept
            kept += 1
        else:
            new_id[node] = above
    return new_id, new_parent[:kept].copy()


def round_to_blocks(
    parent: NDArray[np.int32], tokens: Ints, leaf: NDArray[np.int32], block_tokens: int, partial_tail: str = "drop"
) -> tuple[NDArray[np.int32], Ints, Ints, NDArray[np.int32]]:
    """Nodes cut to whole blocks: (parent, tokens, room_tokens, leaf).

    `partial_tail="drop"` (the kit's default) never caches a partial block. `"keep"` keeps each node at its real size
    and lets it take the room of the whole blocks it touches, as simulators that count a partial block as a slot do.
    """
    if block_tokens < 1:
        raise ValueError(f"block_tokens must be at least 1, got {block_tokens}; try block_tokens=16")
    ends = path_sums(parent, tokens)
    starts = ends - tokens
    if partial_tail == "keep":
        room = -(-ends // block_tokens) * block_tokens - -(-starts // block_tokens) * block_tokens
        worth = np.asarray(tokens, np.int64)
    elif partial_tail == "drop":
        room = worth = ends // block_tokens * block_tokens - starts // block_tokens * block_tokens
    else:
        raise ValueError(f"partial_tail must be 'drop' or 'keep', got {partial_tail!r}")
    new_id, new_parent = _keep(parent, room)
    kept = room > 0
    new_leaf = np.where(leaf >= 0, new_id[np.maximum(leaf, 0)], -1).astype(np.int32) if new_id.size else leaf
    return new_parent, worth[kept], room[kept], new_leaf


@njit(cache=True, nogil=True)
def _split(parent: Any, units: Any) -> Any:
    """(first unit of each node, parent of each unit, node of each unit)."""
    first = np.zeros(parent.size + 1, np.int64)
    for node in range(parent.size):
        first[node + 1] = first[node] + units[node]
    above = np.empty(first[-1], np.int32)
    node_of = np.empty(first[-1], np.int32)
    for node in range(parent.size):
        for unit in range(first[node], first[node + 1]):
            above[unit] = unit - 1
            node_of[unit] = node
        above[first[node]] = first[parent[node] + 1] - 1 if parent[node] >= 0 else -1
    return first, above, node_of


def split_segments(paths: Paths) -> Paths:
    """Paths with one node per unit of room; a replay over them is the block-by-block replay."""
    units = paths.room_tokens // paths.unit_tokens
    first, parent, node_of = _split(paths.parent, units)
    tokens = paths.unit_tokens[node_of]
    last = first[1:] - 1
    tokens[last] = paths.tokens - (units - 1) * paths.unit_tokens
    leaf = np.where(paths.leaf >= 0, last[np.maximum(paths.leaf, 0)], -1).astype(np.int32)
    room = paths.unit_tokens[node_of]
    kinds = paths.node_type[node_of] if paths.node_type.size else paths.node_type
    return replace(paths, parent=parent, depth=depths(parent), tokens=tokens, room_tokens=room, unit_tokens=room,
                   path_tokens=path_sums(parent, tokens), leaf=leaf, node_type=kinds)  # fmt: skip


def bootstrap_blocks(
    sessions: NDArray[np.int64] | None, roots: NDArray[np.int64] | None, requests: int
) -> tuple[NDArray[np.int32], int, str]:
    """(block of each request, number of blocks, what a block is) for the paired bootstrap.

    Sessions in order of first appearance are dealt into 200 blocks (each its own block below that). Without sessions
    the roots serve where there are 200 or more, else 50 consecutive stretches of the log.
    """
    if sessions is not None and requests:
        rank = first_seen_rank(sessions)
        blocks = min(BOOTSTRAP_BLOCKS, int(rank.max()) + 1)
        return (rank % blocks).astype(np.int32), blocks, f"{int(rank.max()) + 1:,} sessions dealt into {blocks} blocks"
    if roots is not None and requests:
        rank = first_seen_rank(roots)
        if (count := int(rank.max()) + 1) >= BOOTSTRAP_BLOCKS:
            dealt = (rank % BOOTSTRAP_BLOCKS).astype(np.int32)
            return dealt, BOOTSTRAP_BLOCKS, f"{count:,} roots dealt into {BOOTSTRAP_BLOCKS} blocks"
    blocks = max(1, min(TIME_STRETCHES, requests))
    stretch = np.arange(requests, dtype=np.int64) * blocks // max(requests, 1)
    return stretch.astype(np.int32), blocks, f"{blocks} consecutive stretches of the log (no sessions)"


def warm_window(ts_us: Ints) -> tuple[NDArray[np.bool_], str]:
    """Requests of the warm window: after the first 24 hours, or the second half where the log is under two days."""
    if ts_us.size and ts_us[-1] - ts_us[0] >= 2 * DAY_US:
        return ts_us >= ts_us[0] + DAY_US, "after the first 24 hours"
    return np.arange(ts_us.size) >= ts_us.size // 2, "the last 50 % of requests"


def make_paths(
    parent: NDArray[np.int32],
    tokens: Ints,
    leaf: NDArray[np.int32],
    ts_us: Ints,
    input_tokens: Ints | None = None,
    *,
    block_tokens: int = 1,
    partial_tail: str = "drop",
    sessions: NDArray[np.int64] | None = None,
    rate: NDArray[np.int32] | None = None,
    unit_tokens: int | None = None,
) -> Paths:
    """Paths from a forest (`parent`, `tokens`) and one `leaf` per request; see `Paths` for shapes and units.

    `input_tokens` defaults to the path's own tokens, `sessions` are integer codes (null sessions as their own code),
    `rate` the price group of each request (default: one group). `unit_tokens` makes nodes segments that eviction frees
    in units of that size, tail first (default: a node is freed as a whole).
    """
    parent, tokens = np.asarray(parent, np.int32), np.asarray(tokens, np.int64)
    leaf, ts_us = np.asarray(leaf, np.int32), np.asarray(ts_us, np.int64)
    if input_tokens is None:
        raw_sums = path_sums(parent, tokens)
        input_tokens = np.where(leaf >= 0, raw_sums[np.maximum(leaf, 0)], 0) if tokens.size else np.zeros_like(ts_us)
    parent, worth, room, leaf = round_to_blocks(parent, tokens, leaf, block_tokens, partial_tail)
    roots = np.where(leaf >= 0, root_of(parent)[np.maximum(leaf, 0)], -1) if parent.size else None
    block, n_blocks, block_basis = bootstrap_blocks(sessions, roots, ts_us.size)
    warm, warm_basis = warm_window(ts_us)
    hour = ((ts_us - (ts_us[0] // HOUR_US * HOUR_US if ts_us.size else 0)) // HOUR_US).astype(np.int32)
    unit = room if unit_tokens is None else np.minimum(room, unit_tokens)
    rate = np.zeros(ts_us.size, np.int32) if rate is None else np.asarray(rate, np.int32)
    return Paths(
        parent=parent, depth=depths(parent), tokens=worth, room_tokens=room, unit_tokens=unit,
        path_tokens=path_sums(parent, worth), leaf=leaf, ts_us=ts_us, input_tokens=np.asarray(input_tokens, np.int64),
        block=block, n_blocks=n_blocks, block_basis=block_basis, rate=rate,
        n_rates=int(rate.max()) + 1 if rate.size else 1, hour=hour, n_hours=int(hour.max()) + 1 if hour.size else 1,
        warm=warm, warm_basis=warm_basis, block_tokens=block_tokens,
    )  # fmt: skip
