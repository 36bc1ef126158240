"""Several replicas, a tier each: requests as the log says they were served, or routed by a rule.

Routing by session or by root keeps a prefix on one replica; round robin and random spread its copies, so every replica
pays for the same prefix. The difference is what cache-aware routing wins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kit.policies import Policy
from kit.prefix import Paths, first_seen_rank, path_sums, root_of, scatter
from kit.replay import Setting, Tally, replay

ROUTES = ("logged", "session", "root", "round_robin", "random")


def _spread(codes: NDArray[np.int64], replicas: int, seed: int) -> NDArray[np.int32]:
    """Codes to replicas by a 64-bit mix of their rank of first appearance (labels do not matter)."""
    x = first_seen_rank(codes).astype(np.uint64) + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    return (scatter(x) % np.uint64(replicas)).astype(np.int32)


def route(paths: Paths, replicas: int, by: str = "session", seed: int = 1) -> NDArray[np.int32]:
    """Replica of each request, int32[requests] in 0..replicas-1.

    `by`: `session` (sticky) and `root` (hash of the prefix's first node) keep a prefix together; `round_robin` and
    `random` do not; `logged` is the log's own `replica` column (tag), whatever `replicas` says. ValueError names the
    rules, and what the log lacks.
    """
    if by not in ROUTES:
        raise ValueError(f"unknown route {by!r}; known: {', '.join(ROUTES)}")
    if by in ("logged", "session"):
        tag = "replica" if by == "logged" else "session"
        if tag not in paths.tags:
            raise ValueError(f"routing by {by!r} needs the column {tag!r}, which this log does not have; "
                             "take by='root', or name the column with --map")  # fmt: skip
        codes = np.asarray(paths.tags[tag], np.int64)
        return first_seen_rank(codes).astype(np.int32) if by == "logged" else _spread(codes, replicas, seed)
    if replicas < 1:
        raise ValueError(f"replicas must be at least 1, got {replicas}")
    if by == "root":
        roots = np.where(paths.leaf >= 0, root_of(paths.parent)[np.maximum(paths.leaf, 0)], -1)
        return _spread(roots.astype(np.int64), replicas, seed)
    if by == "round_robin":
        return (np.arange(paths.requests) % replicas).astype(np.int32)
    return np.random.default_rng(seed).integers(0, replicas, paths.requests).astype(np.int32)


@njit(cache=True, nogil=True)
def mark_ancestors(parent: Any, used: Any) -> None:
    """Mark every ancestor of a marked node, in place (parents come before children)."""
    for node in range(parent.size - 1, -1, -1):
        if used[node] and parent[node] >= 0:
            used[parent[node]] = True


def select(paths: Paths, keep: NDArray[np.bool_]) -> Paths:
    """The kept requests, with only the nodes they touch; blocks, hours and the warm window as in the whole log."""
    used = np.zeros(paths.parent.size, np.bool_)
    used[paths.leaf[keep & (paths.leaf >= 0)]] = True
    mark_ancestors(paths.parent, used)
    new_id = np.cumsum(used) - 1
    parent = np.where(paths.parent[used] >= 0, new_id[np.maximum(paths.parent[used], 0)], -1).astype(np.int32)
    leaf = np.where(paths.leaf[keep] >= 0, new_id[np.maximum(paths.leaf[keep], 0)], -1).astype(np.int32)
    columns = ("ts_us", "input_tokens", "block", "rate", "hour", "warm")
    per_request = {name: getattr(paths, name)[keep] for name in columns}
    per_node = {name: getattr(paths, name)[used] for name in ("depth", "tokens", "room_tokens", "unit_tokens")}
    kinds = paths.node_type[used] if paths.node_type.size else paths.node_type
    tags = {name: np.asarray(tag)[keep] for name, tag in paths.tags.items()}
    return replace(paths, parent=parent, leaf=leaf, path_tokens=path_sums(parent, per_node["tokens"]), tags=tags,
                   node_type=kinds, **per_request, **per_node)  # fmt: skip


def replay_fleet(
    paths: Paths,
    assignment: NDArray[np.int32],
    policy: str | Policy = "lru",
    *,
    capacity_tokens: int,
    setting: Setting | None = None,
) -> Tally:
    """The log over several replicas with `capacity_tokens` each, added up into one Tally.

    `assignment` is the replica of each request (`route`). Loss draws are per replica, keyed as in one tier.
    """
    parts = [
        replay(select(paths, assignment == replica), policy, capacity_tokens=capacity_tokens, setting=setting)
        for replica in np.unique(assignment)
    ]
    return replace(
        parts[0], by_block=sum((p.by_block for p in parts[1:]), parts[0].by_block),
        by_hour=sum((p.by_hour for p in parts[1:]), parts[0].by_hour),
        resident_token_seconds=sum(p.resident_token_seconds for p in parts),
        eviction_age_tokens=sum((p.eviction_age_tokens for p in parts[1:]), parts[0].eviction_age_tokens),
        hit_depth_requests=sum((p.hit_depth_requests for p in parts[1:]), parts[0].hit_depth_requests),
    )  # fmt: skip
