"""Around the verdict: what room is worth, what to set where, what would change the answer, and parts of the week."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kit import decide, intervals
from kit.analysis import whatif
from kit.analysis.parameters import Parameters
from kit.analysis.run import read_log, run_steps
from kit.decide import SYSTEMS, Sensitivity, Variation, settings_for
from kit.intervals import Interval, Standing
from kit.policies import REGISTRY
from kit.sample.example import worked_example
from tests.test_decide import BETTER_LFU, QUIET, contrast, worse


def test_room_is_worth_what_doubling_saves() -> None:
    # Doubling 440,000 tokens saves 0.002 on each of 70,000 requests a week: 608.33 a month, 1,382.58 per million.
    # At 131,072 bytes a token, 440,000 tokens are 53.71 GiB: 11.33 a month per GiB.
    double = contrast("lru", capacity_tokens=880_000)
    short = replace(QUIET, lru_double_hit_tokens=320_000, doubling=double, kv_bytes_per_token=131_072.0)
    found = decide.decide(short)
    assert found.rule == 4
    assert found.room is not None
    assert found.room.saving.value == pytest.approx(608.33, abs=0.01)
    assert found.room.per_million_tokens == pytest.approx(1_382.58, abs=0.01)
    assert found.room.per_gib == pytest.approx(608.33 / (440_000 * 131_072 / 2**30), abs=0.01)
    assert found.sentence.endswith("(rule 4); doubling saves $608 a month (95% interval $304 to $913).")
    harsh = replace(
        short, assumption="pessimistic", doubling=contrast("lru", low=-0.002, high=0.0, capacity_tokens=880_000)
    )
    smaller = decide.decide(short, pessimistic=harsh).room
    assert smaller is not None and smaller.saving.assumption == "pessimistic"
    assert decide.decide(replace(short, observed_seconds=3_600.0)).room is None


def test_a_policy_that_wins_on_some_days_only_is_refused() -> None:
    lost_late = contrast("lfu_decay", chosen_on=-0.004, checked_on=0.001)
    found = decide.decide(replace(QUIET, online=(lost_late,)))
    assert (found.rule, found.policy) == (11, "lru")
    assert "but it does not win on the last two days" in found.trail[6]["measured"]
    both = contrast("lfu_decay", chosen_on=-0.004, checked_on=-0.001)
    assert decide.decide(replace(QUIET, online=(both,))).rule == 6


def test_days_are_summed_and_parted_by_hand() -> None:
    # 50 hours that start at 22:00: 2 hours of the first day, 24 of the second, 24 of the third.
    by_hour = np.ones((50, 1, 2), dtype=np.int64)
    assert intervals.by_day(by_hour, 22)[:, 0, 0].tolist() == [2, 24, 24]
    # Seven days: A costs 1 a request on the first five and 3 on the last two, B costs 2 throughout.
    cost, requests = [10] * 5 + [30] * 2, [10] * 7
    held = intervals.held_out(cost, requests, [20] * 7, requests)
    assert (held.chosen_on, held.checked_on) == (-1.0, 1.0)
    assert intervals.held_out(cost[:6], requests[:6], [20] * 6, requests[:6]).checked_on is None


def test_regret_is_the_standing_of_the_recommended_policy() -> None:
    standing = (Standing("lru", 0.1, 0.002), Standing("lfu_decay", 0.9, 0.0001))
    found = decide.decide(replace(QUIET, online=BETTER_LFU, standings=standing))
    assert (found.policy, found.regret) == ("lfu_decay", 0.0001)
    assert decide.decide(QUIET).regret is None


def test_every_policy_has_a_setting_or_the_nearest_one_everywhere() -> None:
    for policy in (*REGISTRY, "saecache"):
        rows = settings_for(policy)
        assert [row["system"] for row in rows] == [system.name for system in SYSTEMS]
        for row in rows:
            assert row["available"] != row["setting"].startswith("not available there")
    known = {policy for system in SYSTEMS for policy in (*system.settings, *system.nearest)}
    assert known - set(REGISTRY) <= {"saecache"}
    by_system = {row["system"]: row for row in settings_for("lfu_decay")}
    assert by_system["Redis"]["available"]
    assert by_system["SGLang"]["setting"] == (
        "not available there, nearest is --radix-eviction-policy slru, which protects what was hit twice"
    )
    assert by_system["vLLM"]["setting"] == "not available there: the GPU tier evicts by LRU only"


def test_nearest_flip_in_words() -> None:
    base = decide.decide(replace(QUIET, online=BETTER_LFU))
    room = decide.decide(replace(QUIET, lru_double_hit_tokens=320_000))
    same = decide.decide(replace(QUIET, online=BETTER_LFU, capacity_tokens=600_000))
    found = Sensitivity(
        [
            (Variation("budget", "at 2x the budget", 2.0), room),
            (Variation("budget", "at 1.3x the budget", 1.3), room),
            (Variation("budget", "at 1.2x the budget", 1.2), same),
        ],
        base,
    )
    assert (
        found.nearest
        == "At 1.3x the budget, rule 4 fires instead of rule 6: keep LRU and buy capacity beyond the budget."
    )
    assert [row["flips"] for row in found.as_dict()["map"]] == [True, True, False]
    calm = Sensitivity([(Variation("budget", "at 1.2x the budget", 1.2), same)], base)
    assert calm.as_dict()["nearest"] == "Nothing that was tried changes the answer."


def test_which_row_keeps_lru_is_no_flip_but_buying_room_is() -> None:
    kept = decide.decide(QUIET)
    saturated = decide.decide(replace(QUIET, lru_hit_tokens=390_000))
    room = decide.decide(replace(QUIET, lru_double_hit_tokens=320_000))
    found = Sensitivity(
        [(Variation("TTL", "without a TTL"), saturated), (Variation("TTL", "with an hour"), room)], kept
    )
    assert [row["flips"] for row in found.as_dict()["map"]] == [False, True]


def test_a_thin_log_varies_its_provisional_verdict() -> None:
    thin = replace(QUIET, days=1)
    base = decide.decide(thin)
    other = decide.decide(replace(thin, online=BETTER_LFU))
    found = Sensitivity([(Variation("budget", "at 2x the budget", 2.0), other)], base).as_dict()
    assert found["base"] == {"rule": 11, "policy": "lru"}
    assert found["map"][0]["policy"] == "lfu_decay" and found["map"][0]["flips"]


def test_what_if_on_a_whole_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.parquet"
    worked_example("seed").write_parquet(path)
    parameters = Parameters(
        capacity_tokens=440_000, policies="lru,lfu_decay,length", replicates=200, waive_row_0=True, ttl_seconds=86_400.0
    )
    log = read_log(str(path), parameters, None)
    found = run_steps(log, parameters, None)["decision"]["sensitivity"]
    log.con.close()
    assert found["base"] == {"rule": 6, "policy": "lfu_decay"} and found["note"] is None
    tried = {row["dimension"] for row in found["map"]}
    assert tried == {"provider", "warm-up", "budget", "TTL"}
    assert all(row["policy"] == "lfu_decay" for row in found["map"] if row["dimension"] == "budget")
    monkeypatch.setattr(whatif, "MOST_TOUCHES", 10)
    log = read_log(str(path), parameters, None)
    large = run_steps(log, parameters, None)["decision"]["sensitivity"]
    log.con.close()
    assert "too large to replay again" in large["note"]
    assert {row["dimension"] for row in large["map"]} == {"provider", "warm-up"}


def test_worse_is_never_better() -> None:
    assert worse("gdsf").better is False
    assert contrast("gdsf").better is True
    assert contrast("gdsf", interval=None).better is None
    assert contrast("gdsf", interval=Interval(-1.0, -2.0, 0.0)).better is False
