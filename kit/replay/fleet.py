"""Several replicas, a tier each: requests as the log says they were served, or routed by a rule.

Routing by session or by root keeps a prefix on one replica; round robin and random spread its copies, so every replica
pays for the same prefix. The difference is what cache-aware routing wins.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kit.policies import Policy
from kit.prefix import Paths, first_seen_rank, path_sums, root_of, scatter
from kit.replay import Setting, Tally, replay

ROUTES = ("logged", "session", "root", "round_robin", "random")
SUMMED = ("by_block", "by_hour", "resident_token_seconds", "eviction_age_tokens", "reuse_span_tokens",
          "hit_depth_requests", "most_held_tokens", "crowded_requests")  # fmt: skip


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
def _used_nodes(parent: Any, leaf: Any) -> Any:
    """Every node on a path to one of these leaves, once, in no order."""
    seen = np.zeros(parent.size, np.bool_)
    found = np.empty(parent.size, np.int32)
    count = 0
    for end in leaf:
        node = end
        while node >= 0 and not seen[node]:
            seen[node] = True
            found[count] = node
            count += 1
            node = parent[node]
    return found[:count].copy()


def select(paths: Paths, keep: NDArray[Any]) -> Paths:
    """The kept requests (a mask, or their rising numbers) with only the nodes they touch; blocks, hours and the warm
    window stay those of the whole log."""
    ends = paths.leaf[keep]
    nodes = np.sort(_used_nodes(paths.parent, ends))
    above = paths.parent[nodes]
    parent = np.where(above >= 0, np.searchsorted(nodes, above), -1).astype(np.int32)
    leaf = np.where(ends >= 0, np.searchsorted(nodes, ends), -1).astype(np.int32)
    columns = ("ts_us", "input_tokens", "block", "rate", "hour", "warm")
    per_request = {name: getattr(paths, name)[keep] for name in columns}
    per_node = {name: getattr(paths, name)[nodes] for name in ("depth", "tokens", "room_tokens", "unit_tokens")}
    kinds = paths.node_type[nodes] if paths.node_type.size else paths.node_type
    tags = {name: np.asarray(tag)[keep] for name, tag in paths.tags.items()}
    return replace(paths, parent=parent, leaf=leaf, path_tokens=path_sums(parent, per_node["tokens"]), tags=tags,
                   node_type=kinds, **per_request, **per_node)  # fmt: skip


def members(assignment: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    """The requests of each replica, rising, for the replicas that serve any."""
    order = np.argsort(assignment, kind="stable")
    return list(np.split(order, np.flatnonzero(np.diff(assignment[order])) + 1)) if order.size else []


def replay_fleet(
    paths: Paths,
    assignment: NDArray[np.int32],
    policy: str | Policy = "lru",
    *,
    capacity_tokens: int,
    setting: Setting | None = None,
) -> Tally:
    """The log over several replicas with `capacity_tokens` each, added up into one Tally.

    `assignment` is the replica of each request (`route`). Replicas run in parallel threads. Loss draws are per replica,
    keyed as in one tier. ValueError where the log has no request.
    """
    def one(requests: NDArray[np.int64]) -> Tally:
        return replay(select(paths, requests), policy, capacity_tokens=capacity_tokens, setting=setting)

    if not assignment.size:
        raise ValueError("the log has no request to route")
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        parts = list(pool.map(one, members(assignment)))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return replace(parts[0], **{name: sum(getattr(part, name) for part in parts) for name in SUMMED})


def replay_routes(
    paths: Paths,
    routes: Sequence[str],
    replicas: int,
    policies: Sequence[str],
    capacities: Sequence[int],
    settings: Sequence[Setting],
    progress: Callable[[int, int], None] | None = None,
) -> list[tuple[str, Tally]]:
    """(route, tally) of every setting x capacity x policy x route; `capacities` are what each replica may hold."""
    assigned = {name: route(paths, replicas, name, settings[0].seed if settings else 1) for name in routes}
    cells = [(setting, capacity, policy, name) for setting in settings for capacity in capacities
             for policy in policies for name in routes]  # fmt: skip
    found = []
    for done, (setting, capacity, policy, name) in enumerate(cells, 1):
        tally = replay_fleet(paths, assigned[name], policy, capacity_tokens=capacity, setting=setting)
        found.append((name, tally))
        if progress:
            progress(done, len(cells))
    return found
