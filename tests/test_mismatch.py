"""SAECache-style fitted on one mix and run on another: what is handed over, what every row obeys, what is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit import log
from kit.analysis import mismatch, published
from kit.policies import named
from kit.prefix import load_paths
from kit.replay import optimal, replay
from kit.sample import sample_week


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return mismatch.workload_mismatch(mismatch.made_up_weeks(1, 2_500), mismatch.made_up_weeks(2, 2_500))


def test_every_week_runs_every_fit(rows: list[dict]) -> None:
    ways = [mismatch.LRU, mismatch.ONLINE, *(f"frozen, fitted on {name}" for name in mismatch.MIXES)]
    assert [(row["log"], row["way"]) for row in rows] == [(name, way) for name in mismatch.MIXES for way in ways]
    assert [row["own"] for row in rows if row["own"]] == [True] * 3
    for name in mismatch.MIXES:
        assert len({row["budget_tokens"] for row in rows if row["log"] == name}) == 1


def test_what_is_frozen_is_what_was_learned(rows: list[dict]) -> None:
    """One fit, the same parameters wherever it runs; every learner off; nothing of it at its default by chance."""
    for name in mismatch.MIXES:
        handed = [row["parameters"] for row in rows if row["way"] == f"frozen, fitted on {name}"]
        assert handed[0] == handed[1] == handed[2]
        assert handed[0]["weight_system"] != named("saecache").parameters["weight_system"]
    off = mismatch.frozen({"gamma": 2.0})
    assert off == {"gamma": 2.0, "fixed_types": 1, "fixed_queues": 1, "fixed_timing": 1, "fixed_decay": 1,
                   "fixed_predictor": 1}  # fmt: skip


def test_nothing_passes_the_optimum(rows: list[dict]) -> None:
    weeks = mismatch.made_up_weeks(1, 2_500)
    for row in rows:
        assert row["hit_tokens"] <= optimal(weeks[row["log"]], row["budget_tokens"]).hit_tokens


def test_the_difference_is_to_learning_as_it_goes(rows: list[dict]) -> None:
    online = {row["log"]: row["hit_token_ratio"] for row in rows if row["way"] == mismatch.ONLINE}
    for row in rows:
        if row["way"] == mismatch.ONLINE:
            assert row["against_online"] is None
            continue
        found = row["against_online"]
        assert found["low"] <= found["value"] <= found["high"]
        assert found["value"] == pytest.approx(row["hit_token_ratio"] - online[row["log"]], abs=1e-9)


def test_the_sentence_counts_the_losses() -> None:
    # foreign fits: one loses (interval below zero), one does not; the own fit does not lose
    def row(own: bool, value: float, high: float) -> dict:
        return {"log": "a", "way": "frozen, fitted on b", "own": own,
                "against_online": {"value": value, "low": value - 0.01, "high": high}}  # fmt: skip

    said = mismatch.what_travels([row(False, -0.02, -0.005), row(False, 0.01, 0.02), row(True, 0.0, 0.01)])
    assert "Fitted on another mix it keeps less than while it learns in 1 of 2 runs (worst: −2.00" in said
    assert "another week of the same mix it keeps less than while it learns in 0 of 1" in said


def test_single_calls_are_where_a_foreign_fit_costs_most(rows: list[dict]) -> None:
    """What chat or agents taught is worth less on single calls than what another week of single calls taught."""
    at = {row["way"]: row["hit_token_ratio"] for row in rows if row["log"] == "mostly single calls"}
    own = at.pop("frozen, fitted on mostly single calls")
    assert all(own > ratio for way, ratio in at.items() if way.startswith("frozen"))


def test_a_week_as_paths_is_the_week_loaded(tmp_path: Path) -> None:
    week = sample_week(requests=1_000, mixture=(30, 30, 40), scan=False)
    week.write_parquet(tmp_path / "week.parquet")
    loaded, made = load_paths(log.load([tmp_path / "week.parquet"])), mismatch.paths_of(week)
    for name in ("tokens", "leaf", "ts_us", "input_tokens", "node_type", "parent"):
        assert (getattr(loaded, name) == getattr(made, name)).all(), name
    both = [replay(paths, "saecache", capacity_tokens=40_000) for paths in (loaded, made)]
    assert (both[0].by_block == both[1].by_block).all() and both[0].learned == both[1].learned


def test_the_mixes_stand_side_by_side() -> None:
    found = mismatch.compared(mismatch.made_up_weeks(1, 1_000))
    table = published.side_by_side({"nothing to compare": [], **found}).frame
    assert table.height == 3 * (1 + 6) and table["log"].unique(maintain_order=True).to_list() == list(mismatch.MIXES)
