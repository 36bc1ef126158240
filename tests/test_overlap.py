"""Requests that hold their path until they have ended: by hand, against a plain tier with reference counts, as segments
and block by block, and the same figures as one request after the other where nothing overlaps."""

from __future__ import annotations

from dataclasses import replace as but

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.policies import REGISTRY
from kit.prefix import Paths, flat_forest, make_paths
from kit.replay import Setting, Tally, ceiling, optimal, replay
from kit.replay.fleet import replay_fleet, select
from kit.replay.miniature import Sample, anchored, sampled_grid
from tests.test_replay import conserves
from tests.test_replay_flat import same

HOLD = Setting(hold_until_end=True)
ABLE = sorted(name for name, policy in REGISTRY.items() if policy.overlaps)
COMPILED = ("arc", "gdsf", "lfu", "lru", "redis_lru", "saecache", "sglang_lru", "tensorrt_priority")
"""One of each structure: compiling all of them would take minutes."""
DRAWN = ("hyperbolic", "lhd", "marconi", "redis_lfu", "redis_lru")
"""These look at leaves in the order of an array, which holding and letting go stirs."""
SECOND = 1_000_000


def keyed(codes: str, sizes: dict[str, int], start: list[int], end: list[int]) -> Paths:
    """Flat keys by letter, starts and ends in seconds."""
    keys = np.array([ord(code) for code in codes], np.uint64)
    leaf, parent, tokens, *_ = flat_forest(keys, np.array([sizes[code] for code in codes]))
    return ended(make_paths(parent, tokens, leaf, np.array(start) * SECOND), np.array(end) * SECOND)


def ended(paths: Paths, end_us: np.ndarray) -> Paths:
    """The same paths with ends, and whatever a policy asks for."""
    n = paths.requests
    asked = {"priority": np.arange(n) % 3 * 30, "retention_seconds": np.arange(n) % 4 * 3 - 3.0}
    asked |= {"session": np.arange(n) % 3, "session_type": np.arange(n) % 4, "turn": np.arange(n) // 3}
    return but(paths, tags={**asked, "attention": np.zeros(n), "ts_end_us": end_us})


def figures(tally: Tally, *names: str) -> tuple[int, ...]:
    return tuple(tally.total()[name] for name in names)


@pytest.mark.parametrize("compiled", [True, False])
def test_what_runs_is_not_evicted(compiled: bool) -> None:
    # room 4, A B C of 2 tokens each. A runs from 0 to 10 s, B from 1 to 2 s, C comes at 3 s: one after the other A is
    # the oldest and goes, so A at 5 s misses. Held, B goes and A hits: 2 hit tokens. At most A and C run: 4 tokens.
    paths = keyed("ABCA", {"A": 2, "B": 2, "C": 2}, [0, 1, 3, 5], [10, 2, 4, 6])
    assert figures(replay(paths, "lru", capacity_tokens=4, compiled=compiled), "hit_tokens", "evictions") == (0, 2)
    held = replay(paths, "lru", capacity_tokens=4, setting=HOLD, compiled=compiled)
    assert figures(held, "hit_tokens", "evictions", "missed_cold") == (2, 1, 6)
    assert (held.most_held_tokens, held.crowded_requests) == (4, 0)


@pytest.mark.parametrize("compiled", [True, False])
def test_no_room_beside_what_runs(compiled: bool) -> None:
    # room 4: A (2) runs from 0 to 20 s; E (3) at 5 s and 6 s finds 2 of 4 held: not stored, crowded twice, the second
    # miss of 3 tokens is one for want of room; at 21 s A has ended and E is stored (again for want of room before);
    # at 22 s E hits 3. Writes: A 2 + E 3 = 5, uncached 3 + 3, input 2 + 4 x 3 = 14 = 3 + 5 + 6
    paths = keyed("AEEEE", {"A": 2, "E": 3}, [0, 5, 6, 21, 22], [20, 6, 7, 22, 23])
    held = replay(paths, "lru", capacity_tokens=4, setting=HOLD, compiled=compiled)
    names = ("hit_tokens", "write_tokens", "uncached_tokens", "missed_cold", "missed_oversize", "evictions")
    assert figures(held, *names) == (3, 5, 6, 5, 6, 1)
    assert (held.most_held_tokens, held.crowded_requests) == (3, 2)


@pytest.mark.parametrize("policy", ["lru", "vllm_lru", "sglang_lru", "lfu", "arc", "tensorrt_priority"])
def test_recency_counts_from_the_end(policy: str) -> None:
    # room 2, one token each: X runs from 0 to 10 s, Y from 1 to 2 s. Z at 11 s: by start X is the oldest, by end Y is.
    # So X hits at 13 s (its run is over at 12 s, so nothing is pinned) and Y does not.
    paths = keyed("XYZX", {"X": 2, "Y": 2, "Z": 2}, [0, 1, 11, 13], [10, 2, 12, 14])
    paths = but(paths, tags={**paths.tags, "priority": np.full(4, 35)}, input_tokens=np.full(4, 3))
    first = replay(paths, policy, capacity_tokens=4)
    assert figures(first, "hit_tokens") == (0,)
    assert figures(replay(paths, policy, capacity_tokens=4, setting=HOLD), "hit_tokens") == (2,)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("kept", "hit"), [(5.0, 2), (1.0, 0)])
def test_a_priority_lasts_from_the_end(kept: float, hit: int, compiled: bool) -> None:
    # room 4, 2 tokens each. X (priority 60 for 5 s) runs from 0 to 10 s, Y (50) comes at 11 s, Z (90) at 12 s. While X
    # runs nothing runs out: it has 60 until 15 s, so Y goes and X hits at 13 s. Kept for 1 s it is back at 35 from 11 s
    # on and goes, as it does one after the other (from 5 s on).
    paths = keyed("XYZX", {"X": 2, "Y": 2, "Z": 2}, [0, 11, 12, 13], [10, 11, 12, 13])
    tags = {"priority": np.array([60, 50, 90, 90]), "retention_seconds": np.array([kept, -1.0, -1.0, -1.0])}
    paths = but(paths, tags={**paths.tags, **tags})
    held = replay(paths, "tensorrt_priority", capacity_tokens=4, setting=HOLD, compiled=compiled)
    assert figures(held, "hit_tokens", "evictions") == (hit, 1 if hit else 2)
    assert figures(replay(paths, "tensorrt_priority", capacity_tokens=4), "hit_tokens") == (0,)


def test_shared_heads_stay_until_the_last_end() -> None:
    # blocks of 1 token, room 4. P = r-a-b from 0 to 10 s, Q = r-c from 1 to 20 s: all 4 held (r once). At 12 s S = s
    # comes: P has ended, r is still held by Q, so P's tail b goes and r, a, c stay: P at 13 s hits r and a, and its b
    # needs room: c is held, S has ended at 13 s: s goes. hits: Q 1 + P 2 = 3.
    parent, leaf = np.array([-1, 0, 1, 0, -1]), np.array([2, 3, 4, 2])
    paths = make_paths(parent, np.ones(5), leaf, np.array([0, 1, 12, 13]) * SECOND)
    paths = ended(paths, np.array([10, 20, 13, 15]) * SECOND)
    for policy in ("lru", "vllm_lru", "fifo", "lfu", "gdsf"):
        held = replay(paths, policy, capacity_tokens=4, setting=HOLD)
        assert figures(held, "hit_tokens", "evictions") == (3, 2), policy
        assert held.most_held_tokens == 4


class Counted:
    """Blocks with reference counts and a stamp, searched one by one: shares no code with the kit."""

    def __init__(self, paths: Paths, capacity: int, by_end: bool) -> None:
        self.up, self.size = paths.parent.tolist(), paths.room_tokens.tolist()
        self.capacity, self.by_end = capacity, by_end
        self.stamp: dict[int, tuple[int, int]] = {}
        self.refs = [0] * len(self.up)
        self.clock, self.running, self.most, self.crowded = 0, [], 0, 0

    def path(self, node: int) -> list[int]:
        found = []
        while node >= 0:
            found.append(node)
            node = self.up[node]
        return found

    def end_until(self, now: int) -> None:
        for one in sorted(one for one in self.running if one[0] <= now):
            self.running.remove(one)
            self.clock += 1
            for place, node in enumerate(self.path(one[2])):
                self.refs[node] -= 1
                if self.refs[node] == 0 and self.by_end:
                    self.stamp[node] = (self.clock, place)

    def ask(self, request: int, leaf: int, now: int, end: int) -> tuple[int, bool]:
        """(tokens hit, whether the path was stored)."""
        self.end_until(now)
        path = self.path(leaf)
        hit = 0
        for node in reversed(path):
            if node not in self.stamp:
                break
            hit += self.size[node]
        self.clock += 1
        held = sum(self.size[n] for n in self.stamp if self.refs[n] > 0)
        if held + sum(self.size[n] for n in path if self.refs[n] == 0) > self.capacity:
            self.crowded += sum(self.size[n] for n in path) <= self.capacity
            used = 0
            for place, node in enumerate(path):
                if node in self.stamp and all(n in self.stamp for n in self.path(node)):
                    self.stamp[node] = (self.clock, place)
                    used += 1
            return hit, False
        need = sum(self.size[n] for n in path if n not in self.stamp)
        while sum(self.size[n] for n in self.stamp) + need > self.capacity:
            parents = {self.up[n] for n in self.stamp}
            free = [n for n in self.stamp if n not in parents and not self.refs[n] and n not in path]
            del self.stamp[min(free, key=lambda n: self.stamp[n])]
        for place, node in enumerate(path):
            self.stamp[node] = (self.clock, place)
            self.refs[node] += 1
        self.running.append((max(end, now), request, leaf))
        self.most = max(self.most, sum(self.size[n] for n in self.stamp if self.refs[n] > 0))
        return hit, True


@st.composite
def overlapping(draw: st.DrawFn, largest: int = 3) -> Paths:
    """Paths in a small forest, uneven gaps and runs; some requests have no end, some end before they start."""
    nodes = draw(st.integers(1, 14))
    parent = np.array([draw(st.integers(-1, node - 1)) for node in range(nodes)])
    sizes = np.array(draw(st.lists(st.integers(1, largest), min_size=nodes, max_size=nodes)))
    leaf = np.array(draw(st.lists(st.integers(0, nodes - 1), min_size=1, max_size=40)))
    start = np.cumsum(draw(st.lists(st.integers(0, 3), min_size=leaf.size, max_size=leaf.size)))
    runs = np.array(draw(st.lists(st.integers(-2, 12), min_size=leaf.size, max_size=leaf.size)))
    paths = make_paths(parent, sizes, leaf, start * SECOND)
    return ended(paths, np.where(runs < 0, -1, start + runs) * SECOND)


@given(paths=overlapping(), capacity=st.integers(3, 30))
@settings(max_examples=300, deadline=None)
def test_lru_is_the_tier_with_reference_counts(paths: Paths, capacity: int) -> None:
    plain = Counted(paths, capacity, by_end=True)
    asked = zip(paths.leaf.tolist(), paths.ts_us.tolist(), paths.tags["ts_end_us"].tolist(), strict=True)
    hits = [plain.ask(request, *one)[0] for request, one in enumerate(asked)]
    for compiled in (True, False):
        held = replay(paths, "lru", capacity_tokens=capacity, setting=HOLD, compiled=compiled)
        conserves(held)
        assert figures(held, "hit_tokens") == (sum(hits),)
        assert (held.most_held_tokens, held.crowded_requests) == (plain.most, plain.crowded)


@pytest.mark.parametrize("policy", ABLE)
@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_able_policy(policy: str, data: st.DataObject) -> None:
    # compiled = plain; no more than an infinite tier holds; where nothing overlaps, as one request after the other
    paths, capacity = data.draw(overlapping(largest=1)), data.draw(st.integers(3, 20))
    held = replay(paths, policy, capacity_tokens=capacity, setting=HOLD, compiled=policy in COMPILED)
    conserves(held)
    plain = replay(paths, policy, capacity_tokens=capacity, setting=HOLD, compiled=False)
    same(held, plain)
    assert (held.most_held_tokens, held.crowded_requests) == (plain.most_held_tokens, plain.crowded_requests)
    assert held.most_held_tokens <= capacity
    lru = replay(paths, "lru", capacity_tokens=capacity, setting=HOLD)  # what is held is the same for every policy
    assert (held.most_held_tokens, held.crowded_requests) == (lru.most_held_tokens, lru.crowded_requests)
    assert figures(held, "hit_tokens") <= figures(ceiling(paths), "hit_tokens")
    assert figures(held, "hit_tokens")[0] <= optimal(paths, capacity).hit_tokens
    alone = ended(paths, paths.ts_us)
    if policy not in DRAWN:
        same(replay(alone, policy, capacity_tokens=capacity, setting=HOLD, compiled=False),
             replay(alone, policy, capacity_tokens=capacity, compiled=False))  # fmt: skip


@given(paths=overlapping(), capacity=st.integers(1, 12))
@settings(max_examples=100, deadline=None)
def test_segments_are_block_by_block(paths: Paths, capacity: int) -> None:
    segments = but(paths, unit_tokens=np.ones_like(paths.unit_tokens))
    whole = replay(segments, "lru", capacity_tokens=capacity, setting=HOLD)
    apart = replay(segments.by_unit, "lru", capacity_tokens=capacity, setting=HOLD)
    same(whole, apart)
    assert (whole.most_held_tokens, whole.crowded_requests) == (apart.most_held_tokens, apart.crowded_requests)


def test_replicas_add_their_peaks_up() -> None:
    # A (2 tokens) runs on the first replica, B (3) and then C (1) on the second: 2 + 3 held at most, room for all
    paths = keyed("ABC", {"A": 2, "B": 3, "C": 1}, [0, 1, 5], [10, 3, 6])
    both = replay_fleet(paths, np.array([0, 1, 1], np.int32), "lru", capacity_tokens=4, setting=HOLD)
    assert (both.most_held_tokens, both.crowded_requests) == (5, 0)


def test_a_sample_takes_what_is_held_from_the_whole_log() -> None:
    # room 4: A (1 token) runs from 0 s, B (3) from 1 s, both to 10 s: 4 held, so C (1) at 2 s is crowded out. A sample
    # of A and C has 2 of 5 tokens (factor 2.5) and, at half the budget, room for both: 2 held x 2.5 = 5, no more than
    # the budget of 4, none crowded.
    paths = keyed("ABC", {"A": 1, "B": 3, "C": 1}, [0, 1, 2], [10, 10, 12])
    sample = Sample(0.5, "sessions", "by hand", select(paths, np.array([True, False, True])), 2.5)
    lru, lfu = sampled_grid(sample, ["lru", "lfu"], [4], [HOLD])
    assert (lfu.most_held_tokens, lfu.crowded_requests) == (4, 0)
    exact = replay(paths, "lru", capacity_tokens=4, setting=HOLD)
    right = anchored(lfu, lru, exact)
    assert (right.most_held_tokens, right.crowded_requests) == (4, 1)


def test_what_cannot_be_asked_for() -> None:
    paths = keyed("AB", {"A": 2, "B": 2}, [0, 1], [5, 6])
    with pytest.raises(ValueError, match=r"'sieve' cannot be replayed with hold_until_end.*these can: lru, lfu"):
        replay(paths, "sieve", capacity_tokens=4, setting=HOLD)
    with pytest.raises(ValueError, match="needs ts_end, which this log does not have"):
        replay(but(paths, tags={}), "lru", capacity_tokens=4, setting=HOLD)
    for others in ({"ttl_seconds": 300.0}, {"newcomer_may_be_victim": True}):
        with pytest.raises(ValueError, match="needs ttl_seconds=None and newcomer_may_be_victim=False"):
            Setting(hold_until_end=True, **others)
