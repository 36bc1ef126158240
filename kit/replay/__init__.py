"""Replay a log against eviction policies.

`kit.replay.loop` holds the rules, `kit.replay.bounds` what no policy can beat, `kit.replay.build` how a policy is
compiled into the loop.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kit.policies import REGISTRY, USUAL, Policy, named
from kit.prefix import Ints, Paths, first_seen_rank, scatter
from kit.replay import build, flat, loop, overlap
from kit.replay.bounds import Bound, default_capacity, knee, lru_curve, microseconds, optimal
from kit.replay.loop import FIELDS

__all__ = [
    "CAUSES", "FIELDS", "Bound", "Setting", "Tally", "ceiling", "default_capacity", "knee", "lru_curve", "optimal",
    "pessimistic", "replay", "replay_grid",
]  # fmt: skip

CAUSES = tuple(name.removeprefix("missed_") for name in FIELDS if name.startswith("missed_"))
AT = {name: index for index, name in enumerate(FIELDS)}


@dataclass(frozen=True)
class Setting:
    """What the provider or engine does: one named assumption.

    `ttl_seconds` None = no expiry, counted from the start of the last request that wrote or read the entry, or only of
    the one that wrote it (`refresh_on_read` False: cache objects with a lifetime; flat keys only); `loss` the
    share of reads the provider drops (0 to 1), drawn once per (key, time) and the same for every policy;
    `visible_after_seconds` until a write can be read; `minimum_tokens` the shortest prefix it caches;
    `newcomer_may_be_victim` inserts before it evicts; `hold_until_end` keeps what a request uses from eviction until
    its `ts_end` (see `kit.replay.overlap`; without a lifetime only), instead of taking requests one after the other.
    """

    name: str = "neutral"
    ttl_seconds: float | None = None
    loss: float = 0.0
    visible_after_seconds: float = 0.0
    minimum_tokens: int = 0
    newcomer_may_be_victim: bool = False
    seed: int = 1
    refresh_on_read: bool = True
    hold_until_end: bool = False

    def __post_init__(self) -> None:
        if self.ttl_seconds is not None and not self.ttl_seconds > 0:
            raise ValueError(f"ttl_seconds must be above 0 or None (no expiry), got {self.ttl_seconds}")
        if not 0.0 <= self.loss <= 1.0:
            raise ValueError(f"loss is a share of reads between 0 and 1, got {self.loss}")
        if self.visible_after_seconds < 0 or self.minimum_tokens < 0:
            raise ValueError("visible_after_seconds and minimum_tokens must not be negative")
        if self.hold_until_end and (self.ttl_seconds is not None or self.newcomer_may_be_victim):
            raise ValueError("hold_until_end is what an engine of your own does: it needs ttl_seconds=None and "
                             "newcomer_may_be_victim=False")  # fmt: skip


def pessimistic(setting: Setting) -> Setting:
    """The same setting with a TTL 20 % shorter, 5 % of reads lost and writes readable after 5 seconds."""
    ttl = None if setting.ttl_seconds is None else setting.ttl_seconds * 0.8
    return replace(setting, name="pessimistic", ttl_seconds=ttl, loss=0.05, visible_after_seconds=5.0)


@dataclass(frozen=True)
class Tally:
    """What one policy did at one capacity, in integers.

    `by_block` int64[2 (before the warm window, in it), rates, bootstrap blocks, FIELDS]; `by_hour` int64[hours, rates,
    FIELDS]; `resident_token_seconds` tokens held x seconds; `eviction_age_tokens` int64[bins] tokens evicted by seconds
    since their last use (bin k: 2^(k-1) to 2^k - 1, bin 0 under one second), `reuse_span_tokens` the same for tokens
    that were matched and read; `hit_depth_requests` int64[11] hit requests by tenth of the prompt that hit (the last:
    all of it); `learned` what a learning policy had learned by the end, named as the parameters that start another
    replay from there; `most_held_tokens` the most that running requests held at once (over several replicas: their
    peaks added up), `crowded_requests` those that found no room beside that (both 0 unless requests hold until their
    end). For every cell: hit + write + uncached = input tokens, and hit + the seven missed_* = input tokens.
    """

    policy: str
    capacity_tokens: int
    setting: Setting
    by_block: Ints
    by_hour: Ints
    resident_token_seconds: float
    eviction_age_tokens: Ints
    reuse_span_tokens: Ints
    hit_depth_requests: Ints
    learned: Mapping[str, float] = field(default_factory=dict)
    most_held_tokens: int = 0
    crowded_requests: int = 0

    def blocks(self, field: str, window: str = "cold") -> Ints:
        """One field per price group and bootstrap block, int64[rates, blocks]; window `cold` (all) or `warm`."""
        cells = self.by_block[..., AT[field]]
        return cells.sum(axis=0) if _is_cold(window) else cells[1]

    def total(self, window: str = "cold") -> dict[str, int]:
        """Every field summed; window `cold` (all requests) or `warm`."""
        cells = self.by_block.sum(axis=0) if _is_cold(window) else self.by_block[1]
        return {name: int(value) for name, value in zip(FIELDS, cells.sum(axis=(0, 1)), strict=True)}

    def hit_token_ratio(self, window: str = "cold") -> float | None:
        """Hit tokens / all input tokens; None where the window is empty."""
        total = self.total(window)
        return total["hit_tokens"] / total["input_tokens"] if total["input_tokens"] else None


def _is_cold(window: str) -> bool:
    if window not in ("cold", "warm"):
        raise ValueError(f"window must be 'cold' (all requests) or 'warm', got {window!r}")
    return window == "cold"


def lost_reads(paths: Paths, loss: float, seed: int = 1) -> NDArray[np.bool_]:
    """Whether the provider drops the entry behind each request: a draw keyed by (key, time, seed); bool[requests].

    The key is the prefix by first appearance, so neither labels nor the way blocks are grouped change the draw.
    """
    if loss <= 0:
        return np.zeros(paths.requests, np.bool_)
    x = paths.ts_us.astype(np.uint64) ^ (first_seen_rank(paths.leaf).astype(np.uint64) << np.uint64(40))
    x += np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    return scatter(x) / 2.0**64 < loss


def _run(paths: Paths, policy: Policy, capacity_tokens: int, setting: Setting, parameters: dict[str, float] | None,
         compiled: bool) -> Tally:  # fmt: skip
    longest = int(paths.path_tokens.max(initial=0))
    fitting = policy.segments and longest <= capacity_tokens and not setting.hold_until_end
    if paths.has_segments and not (policy.segments == "always" or fitting):
        paths = paths.by_unit
    module = overlap if setting.hold_until_end else flat if compiled and flat.suits(paths) else loop
    if module is flat:
        policy = build.fitted(policy)
    lost = lost_reads(paths, setting.loss, setting.seed)
    week = (overlap if module is overlap else loop).requests(paths, lost)
    pool, own = build.state(policy, paths, capacity_tokens, parameters)
    tier = module.tier(paths)
    by_block = np.zeros((2, paths.n_rates, paths.n_blocks, len(FIELDS)), np.int64)
    by_hour = np.zeros((paths.n_hours, paths.n_rates, len(FIELDS)), np.int64)
    resident = np.zeros(1)
    run = build.compiled(policy, module) if compiled else build.plain(policy, module)
    run(week, tier, pool, own, capacity_tokens, microseconds(setting.ttl_seconds),
        round(setting.visible_after_seconds * 1e6), setting.minimum_tokens,
        setting.newcomer_may_be_victim or getattr(policy.module, "INSERT_FIRST", False), setting.refresh_on_read,
        by_block, by_hour, resident)  # fmt: skip
    learned: dict[str, float] = getattr(policy.module, "learned_parameters", lambda _: {})(pool)
    held = tier.room[1:].tolist() if module is overlap else (0, 0)
    return Tally(policy.name, capacity_tokens, setting, by_block, by_hour, float(resident[0]), tier.ages[0],
                 tier.ages[1], tier.depths, learned, *held)  # fmt: skip


def replay(
    paths: Paths,
    policy: str | Policy = "lru",
    *,
    capacity_tokens: int,
    setting: Setting | None = None,
    parameters: dict[str, float] | None = None,
    compiled: bool = True,
) -> Tally:
    """One policy at one capacity over the whole log; see `kit.replay.loop` for the order of steps.

    `policy` is a name of `kit.policies.REGISTRY` or a `Policy` of your own; `parameters` override its defaults;
    `compiled=False` runs the plain reference (slow). Raises ValueError for an unknown policy or parameter and for a
    capacity below one block.
    """
    if capacity_tokens < paths.block_tokens:
        raise ValueError(f"capacity_tokens must be at least one block ({paths.block_tokens}), got {capacity_tokens}")
    chosen = named(policy) if isinstance(policy, str) else policy
    rules = setting or Setting()
    if not rules.refresh_on_read and (paths.parent >= 0).any():
        raise ValueError("a lifetime that reads do not refresh is that of whole cache objects: it needs flat keys, "
                         "these paths have parents; set refresh_on_read=True")  # fmt: skip
    if rules.hold_until_end and not chosen.overlaps:
        able = ", ".join(name for name, one in REGISTRY.items() if one.overlaps)
        raise ValueError(f"policy {chosen.name!r} cannot be replayed with hold_until_end, it keeps leaves by place "
                         f"in a queue; these can: {able}")  # fmt: skip
    if getattr(chosen.module, "SEARCHED", None) not in (None, *(parameters or {})):
        from kit.replay import search

        parameters = search.searched(paths, chosen, int(capacity_tokens), rules, parameters or {}, compiled)
    return _run(paths, chosen, int(capacity_tokens), rules, parameters, compiled)


def ceiling(paths: Paths, setting: Setting | None = None) -> Tally:
    """An infinite tier under a setting: what rounding, minimum and TTL alone leave to win."""
    room = max(int(paths.room_tokens.sum()), paths.block_tokens)
    return replace(replay(paths, "lru", capacity_tokens=room, setting=setting), policy="infinite")


def replay_grid(
    paths: Paths,
    policies: Iterable[str | Policy] = USUAL,
    capacities: Iterable[int] = (),
    settings: Iterable[Setting] = (Setting(),),
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
) -> list[Tally]:
    """Every policy at every capacity under every setting, in parallel threads; order: settings, capacities, policies.

    `progress(done, all)` is called after each cell. An interrupt cancels what has not started and nothing is returned.
    """
    chosen = [named(policy) if isinstance(policy, str) else policy for policy in policies]
    cells = [(policy, capacity, setting) for setting in settings for capacity in capacities for policy in chosen]
    pool = ThreadPoolExecutor(workers or min(len(cells) or 1, os.cpu_count() or 1))
    try:
        running = {
            pool.submit(replay, paths, policy, capacity_tokens=capacity, setting=setting): index
            for index, (policy, capacity, setting) in enumerate(cells)
        }
        for done, _ in enumerate(as_completed(running), 1):
            if progress:
                progress(done, len(cells))
        return [future.result() for future, _ in sorted(running.items(), key=lambda item: item[1])]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
