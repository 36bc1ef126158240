"""Prefixes as paths: block rounding, the forest of nodes, and the arrays a replay reads.

One path model serves every log. A flat key is a path of one node, a block log a path of blocks, a transcript a path of
turn increments. A node can hit only while every ancestor of it is resident, so a path is stored as its deepest node and
the chain of parents (`parent[node] < node` always).

Rounding: a prefix is cached in whole blocks, counted from its start (vLLM and SGLang cache full blocks only), so a node
is worth the full blocks that end inside it: floor(end / block) - floor(start / block), in blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

if TYPE_CHECKING:
    from kit.log import Log

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
BOOTSTRAP_BLOCKS = 200
TIME_STRETCHES = 50

Ints = NDArray[np.int64]

TOKEN_TYPES = ("other", "system", "tools", "user", "assistant", "thinking", "tool_call", "tool_result")
SESSION_TYPES = ("other", "single", "chat", "agent")


@dataclass(frozen=True)
class Paths:
    """A log as arrays: one row per node, one row per request, in time order (ties in file order).

    Per node: `parent` (-1 = root), `depth` (root 0), `tokens` (worth of a hit), `room_tokens` (room taken in the
    tier), `unit_tokens` (what eviction frees at a time: the node, or one block of a segment), `path_tokens` (root to
    node, inclusive). Per request: `leaf` (deepest node, -1 = nothing cacheable),
    `ts_us` (start, microseconds), `input_tokens` (inclusive total), `block` (bootstrap block), `rate` (price group),
    `hour` (from the first full hour), `warm` (counts in the warm window), `tags` what some policies ask for (name ->
    one number per request: session_type as a code, turn, priority and retention_seconds, -1 = not given), `node_type`
    the token type of each node as an index into TOKEN_TYPES (empty: the log has none). Units: tokens, microseconds.
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
    pairs = pl.DataFrame({"key": np.asarray(keys, np.uint64), "tokens": np.asarray(tokens, np.int64)})
    pairs = pairs.with_row_index("r")
    steps = (
        pairs.select("key", "tokens")
        .unique()
        .sort("key", "tokens")
        .with_columns((pl.col("tokens") - pl.col("tokens").shift(1, fill_value=0).over("key")).alias("step"))
        .with_columns(pl.int_range(pl.len()).over("key").alias("level"))
    )
    paths = (
        pairs.join(steps.rename({"tokens": "end"}), on="key")
        .filter(pl.col("end") <= pl.col("tokens"))
        .sort("r", "level")
    )
    counts = np.bincount(paths["r"].to_numpy(), minlength=pairs.height)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return build_forest(offsets, paths["key"].to_numpy(), paths["step"].to_numpy())


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


def load_paths(
    log: Log,
    block_tokens: int | None = None,
    partial_tail: str = "drop",
    rate: NDArray[np.int32] | None = None,
) -> Paths:
    """Paths of a loaded log. `block_tokens` defaults to the log's own block size, else 1 (no rounding).

    Logs of blocks are evicted block by block; flat keys and turn increments as a whole.
    Raises ValueError where the log has no prefix identity: nothing can be replayed from lengths alone.
    """
    nodes = pl.DataFrame(log.con.sql("SELECT coalesce(parent_id, -1)::INTEGER AS parent, tokens::BIGINT AS tokens, "
                                     "token_type FROM node ORDER BY node_id"))  # fmt: skip
    if nodes.height == 0:
        raise ValueError("this log has no prefix identity (no prefix_key, blocks or parent_request_id): no replay")
    requests = pl.DataFrame(
        log.con.sql(
            "SELECT epoch_us(ts)::BIGINT AS ts_us, coalesce(input_tokens, prefix_tokens, 0)::BIGINT AS input_tokens, "
            "coalesce(node_id, -1)::INTEGER AS leaf, session_id, replica, session_type, turn, "
            "priority, retention_seconds, model FROM request "
            "LEFT JOIN request_node USING (request_id) "
            "ORDER BY request_id"
        )
    )
    sessions = None
    if requests["session_id"].null_count() < requests.height:
        coded = requests["session_id"].fill_null("").cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)
        absent = requests["session_id"].is_null().to_numpy()
        sessions = np.where(absent, coded.max() + 1 + np.arange(coded.size), coded)
    tags = {} if sessions is None else {"session": sessions}
    if requests["replica"].null_count() == 0 and requests.height:
        tags["replica"] = requests["replica"].cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)
    if requests["session_type"].null_count() < requests.height:
        tags["session_type"] = _codes(requests["session_type"], SESSION_TYPES).astype(np.int64)
    if requests["turn"].null_count() == 0 and requests.height:
        tags["turn"] = requests["turn"].to_numpy().astype(np.int64)
    for name, kind in (("priority", np.int64), ("retention_seconds", np.float64)):
        if requests[name].null_count() < requests.height:
            tags[name] = requests[name].fill_null(-1).to_numpy().astype(kind)
    if requests["model"].n_unique() > 1:
        tags["model"] = requests["model"].fill_null("").cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)
    block = block_tokens or log.facts.block_tokens or 1
    by_block = log.facts.identity == "blocks" and block > 1 and partial_tail == "drop"
    paths = make_paths(
        nodes["parent"].to_numpy(), nodes["tokens"].to_numpy(), requests["leaf"].to_numpy(),
        requests["ts_us"].to_numpy(), requests["input_tokens"].to_numpy(), block_tokens=block,
        partial_tail=partial_tail, sessions=sessions, rate=rate, unit_tokens=block if by_block else None,
    )  # fmt: skip
    kinds = np.zeros(0, np.int32)
    if nodes["token_type"].null_count() < nodes.height:
        ends = path_sums(nodes["parent"].to_numpy(), nodes["tokens"].to_numpy())
        whole = ends if partial_tail == "keep" else ends // block * block
        kept = whole > np.where(nodes["parent"].to_numpy() >= 0, whole[np.maximum(nodes["parent"].to_numpy(), 0)], 0)
        kinds = _codes(nodes["token_type"], TOKEN_TYPES)[kept]
    return replace(paths, tags=tags, node_type=kinds)


def _codes(labels: pl.Series, known: tuple[str, ...]) -> NDArray[np.int32]:
    """Index of each label among the known ones, 0 for any other."""
    table = {label: code for code, label in enumerate(known)}
    return labels.replace_strict(table, default=0, return_dtype=pl.Int32).fill_null(0).to_numpy().astype(np.int32)
