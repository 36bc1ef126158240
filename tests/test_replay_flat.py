"""The loop for flat keys: the same figures as the general loop, on random traces under every setting, and by hand."""

from __future__ import annotations

from dataclasses import replace as but

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.policies import REGISTRY, named
from kit.prefix import Paths, flat_forest, make_paths
from kit.replay import Setting, Tally, flat, lost_reads, replay
from tests.test_replay import conserves

LISTED = ("lru", "lfu", "fifo", "fifo_flat", "sieve", "s3fifo", "arc", "twoq", "w_tinylfu", "gdsf", "vllm_lru")


def same(a: Tally, b: Tally) -> None:
    """Every figure of two runs, to the last token."""
    for name in ("by_block", "by_hour", "eviction_age_tokens", "reuse_span_tokens", "hit_depth_requests"):
        assert (getattr(a, name) == getattr(b, name)).all(), name
    assert a.resident_token_seconds == pytest.approx(b.resident_token_seconds)


@st.composite
def traces(draw: st.DrawFn) -> Paths:
    """Flat keys of uneven sizes, unrounded prompts, uneven gaps; some requests have nothing cacheable."""
    keys = np.array(draw(st.lists(st.integers(0, 7), min_size=1, max_size=40)), np.uint64)
    sizes = np.array(draw(st.lists(st.integers(1, 9), min_size=8, max_size=8)))
    gaps = draw(st.lists(st.integers(0, 5), min_size=keys.size, max_size=keys.size))
    more = draw(st.lists(st.integers(0, 3), min_size=keys.size, max_size=keys.size))
    block = draw(st.sampled_from([1, 2, 4]))
    leaf, parent, tokens, *_ = flat_forest(keys, sizes[keys.astype(np.int64)])
    leaf = np.where(np.array(draw(st.lists(st.booleans(), min_size=keys.size, max_size=keys.size))), leaf, -1)
    paths = make_paths(parent, tokens, leaf, np.cumsum(gaps) * 1_000_000, block_tokens=block,
                       partial_tail=draw(st.sampled_from(["drop", "keep"])))  # fmt: skip
    return but(paths, input_tokens=paths.input_tokens + np.array(more), tags=_tags(keys.size))


def _tags(requests: int) -> dict[str, np.ndarray]:
    return {"priority": np.arange(requests) % 3 * 30, "retention_seconds": np.full(requests, -1.0)}


SETTINGS = st.builds(
    Setting,
    ttl_seconds=st.sampled_from([None, None, 3.0, 8.0]),
    loss=st.sampled_from([0.0, 0.3]),
    visible_after_seconds=st.sampled_from([0.0, 2.0]),
    minimum_tokens=st.sampled_from([0, 4]),
    newcomer_may_be_victim=st.booleans(),
    refresh_on_read=st.booleans(),
)


@pytest.mark.parametrize("policy", LISTED)
@given(paths=traces(), setting=SETTINGS, capacity=st.integers(4, 40))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_both_loops_say_the_same(policy: str, paths: Paths, setting: Setting, capacity: int) -> None:
    fast = replay(paths, policy, capacity_tokens=capacity, setting=setting)
    conserves(fast)
    same(fast, replay(paths, policy, capacity_tokens=capacity, setting=setting, compiled=False))


@pytest.mark.parametrize("policy", sorted(set(REGISTRY) - set(LISTED)))
def test_every_policy_says_the_same_on_a_long_trace(policy: str) -> None:
    rng = np.random.default_rng(5)
    keys = (rng.zipf(1.3, 400) % 40).astype(np.uint64)
    leaf, parent, tokens, *_ = flat_forest(keys, rng.integers(1, 30, 40)[keys.astype(np.int64)])
    paths = make_paths(parent, tokens, leaf, np.cumsum(rng.integers(0, 40, 400)) * 1_000_000)
    paths = but(paths, tags={**paths.tags, **_tags(400), **{name: np.zeros(400, np.int64) for name in
                                                           named(policy).tags if name not in _tags(400)}})  # fmt: skip
    for setting in (Setting(), Setting(ttl_seconds=300.0, loss=0.1, visible_after_seconds=5.0)):
        fast = replay(paths, policy, capacity_tokens=120, setting=setting)
        same(fast, replay(paths, policy, capacity_tokens=120, setting=setting, compiled=False))


def test_only_single_pieces_suit() -> None:
    # one key of one piece suits; a path of two blocks does not, nor a key that is freed in two units
    key = make_paths(np.array([-1]), np.array([4]), np.array([0, 0]), np.array([0, 1]))
    path = make_paths(np.array([-1, 0]), np.array([4, 4]), np.array([1, 1]), np.array([0, 1]))
    segment = make_paths(np.array([-1]), np.array([4]), np.array([0, 0]), np.array([0, 1]), block_tokens=2,
                         unit_tokens=2)  # fmt: skip
    assert [flat.suits(paths) for paths in (key, path, segment)] == [True, False, False]


def test_by_hand() -> None:
    # A(3) cold, B(2) cold, A hit, C(3): 8 > 6, the oldest (B) goes: 2 tokens never read; B again: evicted, and A goes
    # hits 1, hit tokens 3; cold 3 + 2 + 3 = 8, evicted 2; input 3 + 2 + 3 + 3 + 2 = 13 = 3 + 8 + 2
    codes = np.array([0, 1, 0, 2, 1], np.uint64)
    leaf, parent, tokens, *_ = flat_forest(codes, np.array([3, 2, 3, 3, 2]))
    total = replay(make_paths(parent, tokens, leaf, np.arange(5)), "lru", capacity_tokens=6).total()
    found = tuple(total[name] for name in ("hits", "hit_tokens", "missed_cold", "missed_evicted", "evictions",
                                           "evicted_unused_tokens", "input_tokens"))  # fmt: skip
    assert found == (1, 3, 8, 2, 2, 2, 13)


def test_a_lifetime_from_creation_by_hand() -> None:
    # A (5 tokens) at 0, 60, 120, 180 s with a TTL of 100 s. Sliding: 60, 120 and 180 hit (gaps of 60 s).
    # From creation: 60 hits, 120 is 120 s after the writing: expired, written again; 180 is 60 s after that: hits.
    leaf, parent, tokens, *_ = flat_forest(np.zeros(4, np.uint64), np.full(4, 5))
    paths = make_paths(parent, tokens, leaf, np.arange(4) * 60_000_000)
    for refresh, hits, expired in ((True, 3, 0), (False, 2, 5)):
        setting = Setting(ttl_seconds=100.0, refresh_on_read=refresh)
        for compiled in (True, False):
            total = replay(paths, "lru", capacity_tokens=5, setting=setting, compiled=compiled).total()
            assert (total["hits"], total["missed_expired"]) == (hits, expired)


def test_a_read_pins_its_key_whatever_it_refreshes() -> None:
    # mooncake_store at 10: ten keys of 1 token fill it; reading A finds 0.1 above the mark: 0.15 of 10 = 2 go,
    # B and C, for A is being read although the read does not renew it: A hits twice, 2 evictions.
    leaf, parent, tokens, *_ = flat_forest(np.array([*range(10), 0, 0], np.uint64), np.ones(12, np.int64))
    setting = Setting(ttl_seconds=100.0, refresh_on_read=False)
    for compiled in (True, False):
        total = replay(make_paths(parent, tokens, leaf, np.arange(12)), "mooncake_store", capacity_tokens=10,
                       setting=setting, compiled=compiled).total()  # fmt: skip
        assert (total["hits"], total["evictions"]) == (2, 2)


def test_a_lifetime_from_creation_needs_flat_keys() -> None:
    path = make_paths(np.array([-1, 0]), np.array([4, 4]), np.array([1, 1]), np.array([0, 1]))
    with pytest.raises(ValueError, match="it needs flat keys"):
        replay(path, "lru", capacity_tokens=8, setting=Setting(ttl_seconds=9.0, refresh_on_read=False))


def test_a_lost_read_is_the_same_draw_in_both_loops() -> None:
    codes = np.zeros(50, np.uint64)
    leaf, parent, tokens, *_ = flat_forest(codes, np.full(50, 10))
    paths = make_paths(parent, tokens, leaf, np.arange(50) * 1_000_000)
    lost = int(lost_reads(paths, 0.5)[1:].sum())  # the first is cold, lost or not
    assert replay(paths, "lru", capacity_tokens=10, setting=Setting(loss=0.5)).total()["missed_lost"] == 10 * lost
