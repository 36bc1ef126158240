"""Fleets, samples and budgets in GiB: hand-worked, conserving, and honest about what is missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kit.prefix import Paths, flat_forest, make_paths
from kit.replay import AT, CAUSES, FIELDS, Setting, replay
from kit.replay.fleet import replay_fleet, route, select
from kit.replay.miniature import (
    _within,
    anchored,
    auto_rate,
    draw,
    lru_error,
    sample_paths,
    sampled_ceiling,
    sampled_grid,
    sampled_optimal,
    scaled_counts,
    touches,
)  # fmt: skip
from kit.replay.room import GIB, SHAPES, Shape, capacity_tokens, catalogue, token_bytes

SECOND = 1_000_000


def flat(keys: list[int], sessions: list[int] | None = None) -> Paths:
    codes = np.array(keys, np.uint64)
    leaf, parent, tokens, *_ = flat_forest(codes, np.ones(codes.size, np.int64))
    named = None if sessions is None else np.array(sessions)
    paths = make_paths(parent, tokens, leaf, np.arange(codes.size) * SECOND, sessions=named)
    return paths if named is None else replace(paths, tags={"session": named})


def test_round_robin_pays_for_the_same_prefix_on_every_replica() -> None:
    # one key, six requests, two replicas: one tier hits five times, two tiers miss once each
    paths = flat([7] * 6)
    whole = replay(paths, "lru", capacity_tokens=5).total()
    spread = replay_fleet(paths, route(paths, 2, "round_robin"), "lru", capacity_tokens=5).total()
    kept = replay_fleet(paths, route(paths, 2, "root"), "lru", capacity_tokens=5).total()
    assert (whole["hits"], spread["hits"], kept["hits"]) == (5, 4, 5)


def test_a_sticky_session_stays_on_one_replica() -> None:
    paths = flat([1, 2, 1, 2, 1, 2], [5, 6, 5, 6, 5, 6])
    by_session = route(paths, 4, "session")
    assert len(set(by_session[::2].tolist())) == len(set(by_session[1::2].tolist())) == 1


def test_a_fleet_conserves_requests_and_tokens() -> None:
    rng = np.random.default_rng(3)
    paths = flat(rng.integers(0, 40, 500).tolist(), rng.integers(0, 30, 500).tolist())
    for by in ("session", "root", "round_robin", "random"):
        total = replay_fleet(paths, route(paths, 3, by), "lru", capacity_tokens=6).total()
        assert total["requests"] == total["input_tokens"] == 500
        assert total["hit_tokens"] + total["write_tokens"] + total["uncached_tokens"] == 500


def test_one_replica_is_the_plain_replay() -> None:
    rng = np.random.default_rng(4)
    paths = flat(rng.integers(0, 40, 300).tolist())
    fleet = replay_fleet(paths, route(paths, 1, "random"), "lfu", capacity_tokens=9, setting=Setting(ttl_seconds=50))
    plain = replay(paths, "lfu", capacity_tokens=9, setting=Setting(ttl_seconds=50))
    assert (fleet.by_block == plain.by_block).all()


def test_the_logged_replica_is_used_as_it_stands() -> None:
    paths = replace(flat([1, 1, 1, 1]), tags={"replica": np.array([9, 4, 9, 4])})
    assert route(paths, 99, "logged").tolist() == [0, 1, 0, 1]


def test_what_a_log_lacks_is_said() -> None:
    with pytest.raises(ValueError, match="routing by 'session' needs the column 'session'"):
        route(flat([1, 2]), 2, "session")
    with pytest.raises(ValueError, match="unknown route 'nearest'; known: logged, session"):
        route(flat([1, 2]), 2, "nearest")


def test_select_keeps_the_ancestors_and_renumbers() -> None:
    # chain 0-1-2 and root 3; keeping the request at 2 keeps nodes 0 1 2
    paths = make_paths(np.array([-1, 0, 1, -1]), np.array([4, 5, 6, 7]), np.array([3, 2]), np.array([0, 1]))
    kept = select(paths, np.array([False, True]))
    assert kept.parent.tolist() == [-1, 0, 1] and kept.leaf.tolist() == [2] and kept.path_tokens.tolist() == [4, 9, 15]


def test_a_sample_keeps_whole_sessions_and_names_them() -> None:
    sessions = np.repeat(np.arange(400), 5)
    paths = flat((np.arange(2000) % 300).tolist(), sessions.tolist())
    small, what = sample_paths(paths, 0.5, seed=2)
    kept = small.tags["session"]
    assert what == "sessions" and all((kept == code).sum() == 5 for code in np.unique(kept))
    assert small.requests / paths.requests == pytest.approx(0.5, abs=0.1)  # 4 standard errors of 400 sessions


def test_a_sample_is_scaled_up_and_says_its_error_on_lru() -> None:
    rng = np.random.default_rng(5)
    paths = flat((rng.zipf(1.2, 60_000) % 20_000).tolist())
    half = draw(paths, 0.5)
    lru, lfu = sampled_grid(half, ["lru", "lfu"], [4000], [Setting()])
    exact = {name: replay(paths, name, capacity_tokens=4000).hit_token_ratio() or 0.0 for name in ("lru", "lfu")}
    error = lru_error(paths, half, 4000, Setting())
    # ratios are those of the sample, counts those of the whole log
    assert lru.hit_token_ratio() == pytest.approx(exact["lru"] + error, abs=1e-4)
    assert abs((lfu.hit_token_ratio() or 0.0) - exact["lfu"]) < 0.2
    total = lfu.total()
    assert (lfu.capacity_tokens, total["input_tokens"]) == (4000, pytest.approx(60_000, abs=50))
    assert total["hit_tokens"] + total["write_tokens"] + total["uncached_tokens"] == total["input_tokens"]
    assert total["hit_tokens"] + sum(total[f"missed_{cause}"] for cause in CAUSES) == total["input_tokens"]
    limit, best = sampled_ceiling(half, Setting()), sampled_optimal(half, 4000, None, 0)
    assert total["hit_tokens"] <= best.hit_tokens + 50 and best.hit_tokens <= limit.total()["hit_tokens"] + 50


def test_scaled_counts_still_add_up() -> None:
    # seven causes of one token each at 1.5: rounding each alone would give 14 of 10.5; the running sums give 10 or 11
    counts = np.zeros(len(FIELDS), np.int64)
    counts[[AT["input_tokens"], AT["write_tokens"]]] = 7
    causes = [AT[name] for name in FIELDS if name.startswith("missed_")]
    counts[causes] = 1
    scaled = scaled_counts(counts, 1.5)
    assert scaled[causes].min() >= 0
    assert scaled[causes].sum() == scaled[AT["write_tokens"]] == scaled[AT["input_tokens"]]
    rng = np.random.default_rng(1)
    for factor in (1.0, 1.37, 9.9):
        counts = rng.integers(0, 50, (2, 3, len(FIELDS)))
        counts[..., AT["hit_tokens"]] = 4
        counts[..., AT["uncached_tokens"]] = counts[..., causes].sum(axis=-1) - counts[..., AT["write_tokens"]]
        scaled = scaled_counts(counts, factor)
        missed = scaled[..., causes].sum(axis=-1)
        assert (scaled[..., AT["hit_tokens"]] + missed == scaled[..., AT["input_tokens"]]).all()


def test_auto_takes_the_whole_log_where_that_is_cheap_and_says_so() -> None:
    paths = flat([1, 2, 3] * 50)
    assert touches(paths) == 150
    assert auto_rate(paths, 10) == (1.0, "the whole log: its 150 block touches are within 10,000,000")


def test_auto_never_leaves_too_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    # 20,000 touches of which 5,000 may be replayed asks for a quarter; 1,000 entries in a budget of 2,000 ask for half
    monkeypatch.setattr("kit.replay.miniature.MOST_TOUCHES", 5_000)
    paths = flat((np.arange(20_000) % 7_000).tolist())
    assert auto_rate(paths, 8_000)[0] == 0.25 and auto_rate(paths, 2_000)[0] == 0.5 and auto_rate(paths, 500)[0] == 1.0


def test_bytes_per_token_by_hand() -> None:
    # 32 layers x 2 x 8 heads x 128 numbers x 2 bytes = 131,072 bytes: 8,192 tokens a GiB
    assert token_bytes("llama-3.1-8b") == 131_072
    assert capacity_tokens(1, token_bytes("llama-3.1-8b")) == GIB // 131_072 == 8192
    assert capacity_tokens(2, 1024) == 2 * 1024 * 1024
    # latent attention: 61 layers x 576 numbers x 2 bytes
    assert SHAPES["deepseek-v3"].bytes_per_token() == 61 * 576 * 2
    assert Shape(1, 1, 1).bytes_per_token("fp8") == 2
    with pytest.raises(ValueError, match="no key-value shape for model 'gpt-x'; give kv_bytes_per_token, or one of"):
        token_bytes("gpt-x")
    with pytest.raises(ValueError, match="unknown number type 'int3' of key-value memory; known: bf16"):
        token_bytes("llama-3.1-8b", "int3")
    assert {row["name"]: row["tokens_per_gib_fp8"] for row in catalogue()}["llama-3.1-8b"] == 16_384


def test_ages_at_eviction_and_depth_of_hits() -> None:
    # capacity 1, one second apart: A is evicted 1 s after its use (bin 1), B 1 s after; A A hits all of the prompt
    tally = replay(flat([1, 2, 3, 3]), "lru", capacity_tokens=1)
    assert tally.eviction_age_tokens[:3].tolist() == [0, 2, 0]
    assert tally.hit_depth_requests.tolist() == [0] * 10 + [1]
    assert tally.reuse_span_tokens[:3].tolist() == [0, 1, 0]


def test_the_time_a_hit_bridges() -> None:
    # A at 0 s, B at 1 s, A at 2 s (2 s after its use: bin 2 holds 2 to 3 s), A at 3 s (1 s: bin 1), B at 4 s (3 s: bin
    # 2); as blocks r-a of 2 tokens at 0, 5 and 6 s: both blocks 5 s (bin 3 holds 4 to 7), then both 1 s after
    tally = replay(flat([1, 2, 1, 1, 2]), "lru", capacity_tokens=2)
    assert tally.reuse_span_tokens[:4].tolist() == [0, 1, 2, 0]
    blocks = make_paths(np.array([-1, 0]), np.ones(2), np.array([1, 1, 1]), np.array([0, 5, 6]) * 1_000_000)
    for compiled in (True, False):
        tally = replay(blocks, "lru", capacity_tokens=2, compiled=compiled)
        assert tally.reuse_span_tokens[:4].tolist() == [0, 2, 0, 2]
    # in segments of one node: what a shorter room leaves of the run counts by its tokens (r-a of which r stays)
    run = make_paths(np.array([-1, -1]), np.array([2, 1]), np.array([0, 1, 0]), np.array([0, 1, 4]) * 1_000_000,
                     block_tokens=1, unit_tokens=1)  # fmt: skip
    tally = replay(run, "lru", capacity_tokens=2)
    assert (tally.total()["hit_tokens"], tally.reuse_span_tokens[:4].tolist()) == (1, [0, 0, 0, 1])


def test_routes_share_their_replicas_and_their_budgets() -> None:
    # sessions 5 and 6 take turns with their own key: sticky keeps both, turn about spreads each over both replicas
    from kit.replay.fleet import replay_routes

    paths = replace(flat([1, 1, 2, 2] * 3, [5, 5, 6, 6] * 3))
    found = dict(replay_routes(paths, ["session", "round_robin"], 2, ["lru"], [4], [Setting()]))
    assert found["session"].total()["hits"] == 10  # two keys, each missed once
    assert found["round_robin"].total()["hits"] == 8  # two keys on two replicas: four misses


def test_what_a_cell_cannot_have_the_others_take() -> None:
    # wanted 6 in all: -2 becomes 0, 5 is cut to 4, 3 stays: 7, so all shrink by 6/7 to 0, 3.43, 2.57: 0, 3, 3 in whole
    assert _within(np.array([-2, 5, 3]), np.array([9, 4, 9])).tolist() == [0, 3, 3]
    # wanted 12: 9 and 3 cut to 4 and 3: 7, the room of 2, 0 and 6 takes 5 of 8: 1.25, 4, 6.75: 1, 4, 7
    assert _within(np.array([0, 9, 3]), np.array([2, 4, 9])).tolist() == [1, 4, 7]
    assert _within(np.array([5, 5]), np.array([1, 2])).tolist() == [1, 2]  # no more than there is room for


def test_what_fits_is_known_from_the_whole_log() -> None:
    # a key of 30 tokens fits a budget of 40, not the sample's own of 20: the estimate has no uncached tokens, as LRU
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 400, 4_000)
    leaf, parent, tokens, *_ = flat_forest(keys.astype(np.uint64), np.where(keys % 50 == 0, 30, 1))
    paths = make_paths(parent, tokens, leaf, np.arange(4_000) * 1_000_000, sessions=keys)
    half = draw(paths, 0.5)
    lru, fifo = sampled_grid(half, ["lru", "fifo"], [40], [Setting()])
    exact = replay(paths, "lru", capacity_tokens=40)
    assert fifo.total()["uncached_tokens"] > 0
    total = anchored(fifo, lru, exact).total()
    assert (total["uncached_tokens"], total["missed_oversize"]) == (0, 0)


def test_a_replica_keeps_only_what_it_serves() -> None:
    paths = make_paths(np.array([-1, 0, 1, -1]), np.array([4, 5, 6, 7]), np.array([3, 2, 1]), np.array([0, 1, 2]))
    by_number = select(paths, np.array([1, 2]))
    by_mask = select(paths, np.array([False, True, True]))
    assert by_number.parent.tolist() == by_mask.parent.tolist() == [-1, 0, 1]
    assert by_number.leaf.tolist() == by_mask.leaf.tolist() == [2, 1]


def test_an_estimate_is_set_right_by_lru_and_still_adds_up() -> None:
    rng = np.random.default_rng(8)
    sessions = rng.integers(0, 3_000, 40_000)
    paths = flat(np.where(rng.random(40_000) < 0.4, rng.zipf(1.3, 40_000) % 500, 1_000 + sessions).tolist(),
                 sessions.tolist())  # fmt: skip
    fifth = draw(paths, 0.2)
    lru, sieve = sampled_grid(fifth, ["lru", "sieve"], [1_500], [Setting()])
    exact = {name: replay(paths, name, capacity_tokens=1_500) for name in ("lru", "sieve")}
    set_right = anchored(sieve, lru, exact["lru"])
    total, truth = set_right.total(), exact["sieve"].total()
    off = {name: abs((one.hit_token_ratio() or 0) - (exact["sieve"].hit_token_ratio() or 0))
           for name, one in (("raw", sieve), ("set right", set_right))}  # fmt: skip
    assert off["set right"] < off["raw"] / 2 and off["raw"] > 0.02  # shared keys do not shrink with the sample
    assert total["input_tokens"] == truth["input_tokens"] and total["requests"] == truth["requests"]
    for cells in (set_right.by_block, set_right.by_hour):
        assert cells.min() >= 0
        missed = sum(cells[..., AT[f"missed_{cause}"]] for cause in CAUSES)
        assert (cells[..., AT["hit_tokens"]] + missed == cells[..., AT["input_tokens"]]).all()
        classes = sum(cells[..., AT[name]] for name in ("hit_tokens", "write_tokens", "uncached_tokens"))
        assert (classes == cells[..., AT["input_tokens"]]).all()
    # both tables say the same but for the rounding of each cell (it was thousands of tokens, all of them cut at zero)
    apart = set_right.by_hour[..., :6].sum((0, 1)) - set_right.by_block[..., :6].sum((0, 1, 2))
    assert np.abs(apart).max() <= set_right.by_hour.shape[0] + set_right.by_block.shape[2]
    same = anchored(lru, lru, exact["lru"])
    assert (same.by_block == exact["lru"].by_block).all()  # LRU itself comes back exactly
