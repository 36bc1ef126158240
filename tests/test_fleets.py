"""Fleets, samples, seeds and the life of cached tokens inside an analysis: what results and report say about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kit.analysis.cache_life import age_step
from kit.analysis.fleets import sentence
from kit.analysis.parameters import ParameterError, Parameters
from kit.analysis.run import only_replay, read_log, run_steps
from kit.log import load
from kit.prefix import load_paths
from kit.report import render

HEAD = "ts,session_id,prefix_key,prefix_tokens,input_tokens,replica,priority,retention_seconds"


def log_file(folder: Path, requests: int = 400, replicas: int = 2, with_replica: bool = True) -> Path:
    """Forty sessions that take turns, ten turns each on a key of their own; replicas by turns; every third urgent."""
    rows = []
    for n in range(requests):
        name = f"r{n // 40 % replicas}" if with_replica else ""
        rows.append(f"{10 * n},s{n % 40},k{n % 40},1000,1200,{name},{'90' if n % 3 == 0 else ''},30")
    path = folder / "fleet.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


def results_of(path: Path, **values: Any) -> dict[str, Any]:
    asked = {"what_if": False, "replicates": 100, "policies": "lru,lfu", "capacity_tokens": 50_000, **values}
    parameters = Parameters(**asked)
    return run_steps(read_log([str(path)], parameters, None), parameters, None)


def test_the_logged_fleet_stands_beside_the_routed_ones(tmp_path: Path) -> None:
    # every key is asked ten times; as logged it alternates between two replicas and misses once on each: 8 of 10 hit.
    # Sticky by session or by root it misses once: 9 of 10. All 40 keys of 1,000 tokens fit every replica.
    results = results_of(log_file(tmp_path))
    fleet = results["fleet"]
    share = {row["routing"]: row["hits"] / row["requests"] for row in fleet["rows"]}
    assert (fleet["replicas"], fleet["basis"], fleet["base"]) == (2, "logged", "logged")
    assert (share["logged"], share["session"], share["root"], share["one_cache"]) == (0.8, 0.9, 0.9, 0.9)
    assert (fleet["capacity_tokens"], fleet["total_capacity_tokens"]) == (50_000, 100_000)
    sticky = next(row for row in fleet["rows"] if row["routing"] == "session")
    assert sticky["interval"]["hit_token_ratio"]["value"] == pytest.approx(0.1 * 1000 / 1200)
    assert fleet["sentence"].startswith("Over 2 replicas, requests routed by session find 75.0% of input tokens cached")
    assert "the log names 2 replicas" in " ".join(results["settings"]["assumptions"])
    page = render(results)
    assert "2 replicas, by how requests are routed" in page and "One cache shared by all, as large" in page


def test_without_a_replica_column_nothing_is_assumed_unless_asked(tmp_path: Path) -> None:
    path = log_file(tmp_path, with_replica=False)
    alone = results_of(path)
    assert alone["fleet"] is None
    assert "one cache for the whole log is assumed" in " ".join(alone["settings"]["assumptions"])
    asked = results_of(path, replicas=3)["fleet"]
    assert (asked["basis"], asked["base"], asked["replicas"]) == ("given", "random", 3)
    assert asked["left_out"] == [{"routing": "logged", "reason": "the log does not name a replica for every request"}]
    with pytest.raises(ParameterError, match="replicas must be at most 1,024, got 5,000"):
        Parameters(replicas=5000)


def test_more_replicas_than_can_be_replayed_cost_only_the_fleet(tmp_path: Path) -> None:
    """1,100 requests, each on a pod of its own; the report stands and says why it has no fleet."""
    path = tmp_path / "pods.csv"
    rows = [f"{10 * n},s{n % 40},k{n % 40},1000,1200,pod{n},,30" for n in range(1_100)]
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    results = results_of(path)
    assert results["fleet"] is None
    assert "the log names 1,100 replicas, more than the 1,024" in " ".join(results["settings"]["assumptions"])
    asked = Parameters(policies="lru")
    with pytest.raises(ParameterError, match="the log names 1,100 replicas and at most 1,024"):
        only_replay([str(path)], asked, None, routes=["session"])
    assert results_of(path, replicas=3)["fleet"]["replicas"] == 3


def test_no_aware_route_is_said() -> None:
    row = {"routing": "random", "title": "Random", "hit_token_ratio": 0.5, "interval": None}
    assert sentence([row], 2, "random") == "Over 2 replicas no cache-aware route can be compared on this log."


def test_every_figure_of_a_sample_is_labelled_and_its_error_printed(tmp_path: Path) -> None:
    results = results_of(log_file(tmp_path), sample=0.5)
    sample, page = results["settings"]["sample"], render(results)
    assert (sample["rate"], sample["what"]) == (0.5, "sessions")
    assert sample["requests"] < sample["requests_of_log"] == 400
    assert {(row["policy"], row["sample_rate"]) for row in results["replay"]} == {("lru", None), ("lfu", 0.5)}
    errors = {row["capacity_tokens"]: row["hit_token_ratio"] for row in sample["lru_errors"]}
    assert set(errors) == {25_000, 50_000, 100_000}
    assert all(row["sample_lru_error"] == errors[row["capacity_tokens"]] for row in results["replay"])
    exact = results_of(log_file(tmp_path))
    told = {name: [r["hit_tokens"] for r in one["replay"] if r["policy"] == "lru"] for name, one in
            (("sample", results), ("exact", exact))}  # fmt: skip
    assert told["sample"] == told["exact"] and results["bounds"]["ceiling"] == exact["bounds"]["ceiling"]
    # counts stand for the whole log: 400 requests of 1,200 tokens
    assert {row["input_tokens"] for row in results["replay"] if row["window"] == "cold"} == {480_000}
    assert page.count("estimated from 50% of sessions") >= 4 and "What the sample gets wrong" in page
    assert results["parameters"]["sample"] == 0.5


def test_auto_keeps_a_small_log_whole_and_says_so(tmp_path: Path) -> None:
    results = results_of(log_file(tmp_path), sample="auto")
    assert results["settings"]["sample"] is None
    said = "sample auto: the whole log: its 400 block touches are within 10,000,000"
    assert said in results["settings"]["assumptions"]


def test_policies_that_draw_say_their_spread_over_seeds(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    rows = [f"{n},s{n % 9},k{k},100,100,,," for n, k in enumerate(rng.zipf(1.3, 3000) % 300)]
    path = tmp_path / "zipf.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    results = results_of(path, policies="lru,redis_lru", capacity_tokens=4_000)
    spreads = {(r["policy"], r["capacity_label"], r["assumption"], r["window"]): r for r in results["replay"]}
    own = spreads["redis_lru", "actual", "neutral", "cold"]
    assert own["seed_spread"]["low"] <= own["hit_token_ratio"] <= own["seed_spread"]["high"]
    assert own["seed_spread"]["low"] < own["seed_spread"]["high"]
    assert sum(row["seed_spread"] is not None for row in results["replay"]) == 1
    assert "over seeds" in render(results)


def test_priorities_of_the_log_reach_the_policy(tmp_path: Path) -> None:
    log = load([str(log_file(tmp_path))])
    paths = load_paths(log)
    assert paths.tags["priority"][:4].tolist() == [90, -1, -1, 90] and set(paths.tags["retention_seconds"]) == {30.0}
    results = results_of(log_file(tmp_path), policies="lru,tensorrt_priority")
    assert {row["policy"] for row in results["replay"]} == {"lru", "tensorrt_priority"}
    bare = tmp_path / "bare.csv"
    bare.write_text("ts,prefix_key,prefix_tokens,input_tokens,priority\n1,a,1000,1000,high\n2,a,1000,1000,high\n")
    left = results_of(bare, policies="lru,tensorrt_priority")
    assert {row["policy"] for row in left["replay"]} == {"lru"}  # words are no priorities: nothing is guessed
    assert "tensorrt_priority is left out: it needs priority" in " ".join(left["settings"]["assumptions"])
    assert left["parameters"]["policies"] == "lru,tensorrt_priority"
    with pytest.raises(ValueError, match="tensorrt_priority is left out"):
        results_of(bare, policies="tensorrt_priority")


def test_a_budget_in_gib_is_said_in_tokens_and_gib(tmp_path: Path) -> None:
    # mistral-7b takes 131,072 bytes a token: 8,192 tokens in one GiB, twice as many in fp8
    results = results_of(log_file(tmp_path), capacity_tokens=None, capacity_gib=1.0, kv_shape="mistral-7b")
    settings = results["settings"]
    assert (settings["capacity_tokens"], settings["capacity_gib"]) == (8192, 1.0)
    assert settings["kv_bytes_per_token"] == 131_072
    assert "1 GiB at 131,072 bytes of key-value memory per token (mistral-7b, bf16)" in settings["capacity_origin"]
    assert "8,192 tokens (1.00 GiB)" in render(results)
    asked = {"capacity_tokens": None, "capacity_gib": 1.0, "kv_shape": "mistral-7b", "kv_number": "fp8"}
    assert results_of(log_file(tmp_path), **asked)["settings"]["capacity_tokens"] == 16_384
    with pytest.raises(ParameterError, match="no key-value shape for model 'nosuch'; give kv_bytes_per_token"):
        Parameters(kv_shape="nosuch")
    with pytest.raises(ParameterError, match="give kv_shape or kv_bytes_per_token, not both"):
        Parameters(kv_shape="mistral-7b", kv_bytes_per_token=1.0)


def test_a_share_that_cannot_hold_the_longest_prefix_is_said(tmp_path: Path) -> None:
    # keys of 1,000 tokens: half of a budget of 1,800 is 900, too little; the least share is 1,000 / 1,800 = 0.56
    path = log_file(tmp_path)
    reason = results_of(path, capacity_tokens=1_800, sample=0.5)["settings"]["sample"]["reason"]
    assert "the same share of 1,800 tokens cannot hold the longest prefix, 1,000" in reason
    assert reason.endswith("take 0.56 or more")
    assert results_of(path, capacity_tokens=2_000, sample=0.5)["settings"]["sample"]["reason"] == "given by the user"


def test_the_life_of_cached_tokens_adds_up(tmp_path: Path) -> None:
    results = results_of(log_file(tmp_path), capacity_tokens=20_000)
    assert [row["policy"] for row in results["cache_life"]] == ["lru", "lfu"]
    lru = results["cache_life"][0]
    # forty keys in turn through room for twenty: LRU never hits, all that leaves leaves unread, 200 s after its use
    assert lru["evicted_tokens"] == lru["evicted_unused_tokens"]
    assert sum(row["tokens"] for row in lru["eviction_age"]) == lru["evicted_tokens"]
    assert lru["written_tokens"] == 400_000 and lru["evicted_tokens"] == 380_000
    assert lru["evicted_unused_share"] == 0.95
    assert lru["median_eviction_age"] == {"from_seconds": 128, "to_seconds": 256}
    assert sum(row["requests"] for row in lru["hit_depth"]) == 0
    assert (lru["reuse_span"], lru["median_reuse_span"]) == ([], None)
    # with room for all forty every key is found 400 s after its last use: 9 of 10 requests, 1,000 tokens each
    wide = results_of(log_file(tmp_path), capacity_tokens=50_000)["cache_life"][0]
    assert wide["reuse_span"] == [{"from_seconds": 256, "to_seconds": 512, "tokens": 360_000}]
    assert wide["median_reuse_span"] == {"from_seconds": 256, "to_seconds": 512}
    steps = [tuple(age_step(at).values()) for at in (0, 1, 4)]
    assert steps == [(0, 1), (1, 2), (8, 16)]
    hours = results["hours"]
    assert sum(row["requests"] for row in hours) == 400 and hours[0]["hour"] == "1970-01-01T00:00:00Z"


def test_headroom_is_told_at_every_budget(tmp_path: Path) -> None:
    # forty keys in turn through room for twenty: LRU hits nothing; the optimum keeps what it can, the ceiling all but
    # the first use of each key: 360 of 400 requests
    results = results_of(log_file(tmp_path), capacity_tokens=20_000)
    ceiling = results["bounds"]["ceiling"]["hit_token_ratio"]
    assert ceiling == 0.75  # 360 x 1,000 of 400 x 1,200
    for row, bound in zip(results["bounds"]["gaps"], results["bounds"]["optimal"], strict=True):
        ratio = {
            one["policy"]: one["hit_token_ratio"] for one in results["replay"]
            if (one["capacity_tokens"], one["assumption"], one["window"]) == (row["capacity_tokens"], "neutral", "cold")
        }  # fmt: skip
        assert row["policy_gap"] == pytest.approx(bound["hit_token_ratio"] - ratio["lru"])
        assert row["best_policy_gap"] == pytest.approx(bound["hit_token_ratio"] - max(ratio.values()))
        assert row["room_gap"] == pytest.approx(ceiling - bound["hit_token_ratio"]) and row["room_gap"] >= 0
    assert results["bounds"]["gaps"][-1]["room_gap"] == 0  # double the budget holds all forty
    assert "Headroom at every budget" in render(results)
