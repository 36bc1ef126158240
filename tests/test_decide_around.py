"""Around the verdict: what room is worth, what to set where, what would change the answer, and parts of the week."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kit import decide, intervals
from kit.analysis.parameters import Parameters
from kit.analysis.run import read_log, run_steps
from kit.decide import SYSTEMS, Sensitivity, Variation, settings_for
from kit.decide.read import cost_changes
from kit.intervals import Interval, Standing
from kit.policies import REGISTRY
from kit.prefix import make_paths
from kit.replay import miniature
from kit.sample.example import worked_example
from tests.test_decide import BETTER_LFU, QUIET, contrast, worse
from tests.test_decide_logs import decision, pairs, spread, uniform


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


def test_room_says_its_price_per_million_tokens_and_gib() -> None:
    double = contrast("lru", capacity_tokens=880_000)
    short = replace(QUIET, lru_double_hit_tokens=320_000, doubling=double, kv_bytes_per_token=131_072.0)
    bought = decide.decide(short).room
    assert bought is not None and bought.text() == (
        "Doubling the budget under LRU (440k tokens more) saves $608 a month (95% interval $304 to $913), which is "
        "$1,383 a month per million tokens of budget, $11 per GiB, before what the room costs."
    )


def test_what_to_watch_after_a_switch_by_hand() -> None:
    """LRU costs 0.0123 a request and finds 24 %; LFU costs 0.002 less (0.001 to 0.003) and finds 5 points more."""
    better = contrast("lfu_decay", base_value=0.0123, base_hit_ratio=0.24)
    found = decide.decide(replace(QUIET, online=(better,))).watch
    assert found is not None and found.text() == (
        "Watch cost per 1,000 requests: $12.30 with LRU, $10.30 expected (−$2.00, 95% interval −$3.00 to −$1.00). Turn "
        "back if it is above $12.30, or under 24.0% of input tokens are found cached, in the 2 weeks after the "
        "change, at the same mix of session types (python -m kit compare BEFORE AFTER says so)."
    )
    assert found.as_dict()["hit_token_ratio_expected"] == pytest.approx(0.29)
    engine = contrast(
        "lfu_decay", measure="hit_token_ratio", low=0.03, high=0.07, currency=None, base_value=0.24, base_hit_ratio=0.24
    )
    told = decide.decide(replace(QUIET, tier_mode="engine", online=(engine,))).watch
    assert told is not None and told.text().startswith(
        "Watch the share of input tokens found cached: 24.0% with LRU, 29.0% expected (+5.0 pt, 95% interval +3.0 pt "
        "to +7.0 pt). Turn back if under 24.0% of input tokens are found cached, in the 2 weeks"
    )
    assert decide.decide(QUIET).watch is None


def test_after_buying_room_the_doubled_budget_is_watched() -> None:
    double = contrast("lru", capacity_tokens=880_000, base_value=0.0123, base_hit_ratio=0.24)
    found = decide.decide(replace(QUIET, lru_double_hit_tokens=320_000, doubling=double))
    assert found.rule == 4 and found.watch is not None and found.watch.change.capacity_tokens == 880_000


def test_the_challenger_is_chosen_on_the_first_five_days() -> None:
    """GDSF gains more over all days, but LFU led on those a choice may be made from; both win on the last two."""
    gdsf = contrast("gdsf", low=-0.004, high=-0.002, chosen_on=-0.001, checked_on=-0.009)
    lfu = contrast("lfu", chosen_on=-0.002, checked_on=-0.002)
    assert decide.decide(replace(QUIET, online=(gdsf, lfu))).policy == "lfu"
    plain = [replace(one, chosen_on=None, checked_on=None) for one in (gdsf, lfu)]
    assert decide.decide(replace(QUIET, online=tuple(plain))).policy == "gdsf"


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
    assert found.firmness == (
        "LFU with decay is the best of the 2 policies to choose from in 90.0% of the redrawn logs; on average it is "
        "$0.10 per 1,000 requests behind the best of each"
    )
    hits = tuple(replace(one, measure="hit_token_ratio") for one in QUIET.online)
    told = decide.decide(replace(QUIET, online=hits, standings=standing)).firmness
    assert told == (
        "LRU is the best of the 2 policies to choose from in 10.0% of the redrawn logs; on average it is 0.20 "
        "points of input tokens found behind the best of each; LFU with decay is in 90.0%, but is not recommended: its "
        "interval against LRU includes zero"
    )
    assert decide.decide(QUIET).regret is None


def test_a_likelier_policy_is_named_with_what_it_fails() -> None:
    # It clears zero by 1 to 3 points of which row 9 asks 2 on average: a rise of 0.4 points is too little.
    standing = (Standing("lru", 0.04, 0.004, ("fifo",)), Standing("fifo", 0.04, 0.004, ("lru",)),
                Standing("gdsf", 0.96, 0.0))  # fmt: skip
    near = decide.decide(replace(QUIET, online=(contrast("gdsf", rise=0.004),), standings=standing)).firmness
    assert near is not None and near.startswith(
        "LRU is the best of the 3 policies to choose from in 4.0% of the redrawn logs (FIFO"
    )
    assert near.endswith("GDSF is in 96.0%, but is not recommended: it gains +0.4 pt of the +2.0 pt asked")
    # Enough, but an earlier row decides: LRU at 95 % of the ceiling.
    done = replace(QUIET, lru_hit_tokens=390_000, online=(contrast("gdsf"),), standings=standing)
    told = decide.decide(done).firmness
    assert told is not None and told.endswith("but is not recommended: rule 3 comes first")


def test_ties_with_lru_are_named_as_ties() -> None:
    # FIFO finds exactly what LRU finds: another policy is the nearest, and only where all tie is a tie named.
    fifo = contrast("fifo", low=0.0, high=0.0, rise=0.0, m_eq_proposed=900.0)
    found = decide.decide(replace(QUIET, online=(fifo, worse("gdsf")))).trail[9]
    assert (found["policy"], found["outcome"]) == ("gdsf", "does not fire")
    tied = decide.decide(replace(QUIET, online=(fifo,))).trail[9]
    assert "FIFO (leaves only) finds exactly what LRU finds" in tied["measured"]
    none = decide.decide(replace(QUIET, best_online="lru", best_online_hit_tokens=240_000)).trail[4]
    assert "none of the 3 policies to choose from finds more than LRU" in none["measured"]
    standing = (Standing("lru", 1.0, 0.0, ("fifo",)), Standing("fifo", 1.0, 0.0, ("lru",)))
    told = decide.decide(replace(QUIET, online=(fifo,), standings=standing)).firmness
    assert told == "all 2 policies to choose from find exactly the same, so none is the best"


def test_room_that_wins_nothing_is_said_as_that() -> None:
    double = contrast("lru", low=0.0, high=0.0, capacity_tokens=880_000)
    bought = decide.decide(replace(QUIET, doubling=double)).room
    assert bought is not None and bought.text() == (
        "Doubling the budget under LRU (440k tokens more) saves nothing: LRU finds the same."
    )


def test_small_costs_keep_their_digits() -> None:
    """Per 1,000 requests: cents where one of the amounts reaches ten, else four significant digits."""
    assert cost_changes((-0.0000070, 0.0, 0.0016), "USD") == ["−$0.01", "$0", "+$1.60"]
    assert cost_changes((-0.0000070, 0.0, 0.0000099), "USD") == ["−$0.007", "$0.00", "+$0.0099"]
    assert cost_changes((0.0004,), None) == ["0 token equivalents"]
    assert cost_changes((1.5,), None) == ["+1,500 token equivalents"]


def test_a_log_that_tells_nothing_says_that_no_rule_can_be_told() -> None:
    """Without prefix identity no later rule is known: no verdict is made up for them, here or provisionally."""
    blind = decide.decide(decide.Evidence(days=8, requests=20_000, rejected_share=0.0))
    assert blind.sentence.endswith("; no other rule can be told on this log.")
    assert blind.provisional is not None and blind.provisional["sentence"] == (
        "Keep LRU: no other rule can be told on this log (rule 11)."
    )


def test_every_policy_an_engine_has_by_name_can_be_set_there() -> None:
    """SGLang's own policies are what its option takes; a priority only counts with priority scheduling."""
    for policy in ("sglang_lru", "sglang_lfu", "sglang_slru", "sglang_priority"):
        [row] = [row for row in settings_for(policy) if row["system"] == "SGLang"]
        assert row["available"] and f"--radix-eviction-policy {policy.removeprefix('sglang_')}" in row["setting"]
    assert "--enable-priority-scheduling" in row["setting"] and "a priority in every request" in row["setting"]


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


def test_the_same_rule_with_another_policy_is_told_as_that() -> None:
    one, other = (decide.decide(replace(QUIET, online=(contrast(name),))) for name in ("gdsf", "lfu"))
    found = Sensitivity([(Variation("budget", "at 2x the budget", 2.0), other)], one)
    assert found.nearest is not None and found.nearest.startswith(
        "At 2x the budget, rule 9 names another policy: switch"
    )


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


def mapped(path: Path, **settings: Any) -> dict[str, Any]:
    """The sensitivity map of a log, row 0 waived."""
    parameters = Parameters(**{"replicates": 200, "waive_row_0": True, **settings})
    log = read_log(str(path), parameters, None)
    try:
        found: dict[str, Any] = run_steps(log, parameters, None)["decision"]["sensitivity"]
    finally:
        log.con.close()
    return found


def test_what_if_on_a_whole_log(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    worked_example("seed").write_parquet(path)
    found = mapped(path, capacity_tokens=440_000, policies="lru,lfu_decay,length", ttl_seconds=86_400.0)
    assert found["base"] == {"rule": 6, "policy": "lfu_decay"} and found["note"] is None
    tried = {row["dimension"] for row in found["map"]}
    assert tried == {"provider", "warm-up", "budget", "TTL", "block size"}
    budgets = [row["factor"] for row in found["map"] if row["dimension"] == "budget"]
    assert budgets == pytest.approx([0.5, 0.63, 0.794, 1.26, 1.587, 2], abs=0.001)
    assert all(row["policy"] == "lfu_decay" for row in found["map"] if row["dimension"] == "budget")


def test_every_flip_of_budget_and_ttl_is_what_a_full_analysis_says(tmp_path: Path) -> None:
    """200 equal keys at random: at 165 of them doubling lifts LRU by 21 %, near 156 by 25 % (rule 4), at 189 LRU is at
    the ceiling; half of the pairs come back after 400 s, so that a TTL of 250 s fires rule 2 where 500 s did not."""
    chosen = {"policies": "lru,lfu_decay,length,gdsf", "replicates": 400}
    uniform_week, in_pairs = spread(uniform(200, 6_000)), pairs(1_200, 2_400)
    for log, name, settings in (
        (uniform_week, "capacity_tokens", {"capacity_tokens": 165_000}),
        (in_pairs, "ttl_seconds", {"capacity_tokens": 5_000, "ttl_seconds": 500.0}),
    ):
        path = tmp_path / f"{name}.parquet"
        log.write_parquet(path)
        found = mapped(path, **chosen, **settings)
        dimension = {"capacity_tokens": "budget", "ttl_seconds": "TTL"}[name]
        rows = [row for row in found["map"] if row["dimension"] == dimension and row["factor"]]
        assert any(row["flips"] for row in rows)
        for row in rows:
            at = row["factor"] * settings[name]
            again = decision(log, tmp_path, **{**settings, name: at if name == "ttl_seconds" else round(at)})
            assert again["policy"] == row["policy"]
            if row["flips"]:
                assert again["rule"] == row["rule"], (row, again["sentence"])
        if dimension == "TTL":
            assert [(row["words"], row["rule"]) for row in rows if row["flips"]] == [("with a TTL of 4.2 min", 2)]


def test_the_nearest_flip_of_the_budget_is_narrowed_down(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    spread(uniform(200, 6_000)).write_parquet(path)
    found = mapped(path, capacity_tokens=165_000, policies="lru,lfu_decay")
    # 156 of 165 keys are 0.945 of the budget: rule 4 fires there and no longer at 157.
    flips = [row["factor"] for row in found["map"] if row["dimension"] == "budget" and row["flips"]]
    steady = [row["factor"] for row in found["map"] if row["dimension"] == "budget" and not row["flips"]]
    assert max(flips) <= 156.99 / 165 and max(flips) > 0.91
    assert min(factor for factor in steady if factor > max(flips)) / max(flips) < 1.04
    assert found["nearest"].startswith(f"At {max(flips):.2f}x the budget, rule 4 fires instead of rule 10")


def test_a_large_log_is_varied_on_a_sample_and_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.parquet"
    spread(uniform(4_000, 12_000)).write_parquet(path)
    settings = {"capacity_tokens": 3_300_000, "policies": "lru,lfu_decay", "key_cut": "full"}
    whole = mapped(path, **settings)
    assert whole["note"] is None
    # 12,000 requests of one key are 12,000 touches. At 9,000 a sample of 75 % is taken, which leaves the budget 2,475
    # entries; at 2,000 the 1,000 entries a budget must hold (30 %) would still be 3,600 touches.
    monkeypatch.setattr(miniature, "AGAIN_TOUCHES", 9_000)
    some = mapped(path, **settings)
    assert "the log has 12,000 block touches, so what is replayed between" in some["note"]
    assert "75.0% of its roots" in some["note"] and "LRU's share of tokens found is off by" in some["note"]
    assert [row["words"] for row in some["map"]] == [row["words"] for row in whole["map"]]
    monkeypatch.setattr(miniature, "AGAIN_TOUCHES", 1_500)
    few = mapped(path, **settings)
    assert "a sample of it would leave the budget under 1,000 entries, so only half and double" in few["note"]
    tried = [row["words"] for row in few["map"] if row["dimension"] == "budget"]
    assert tried == ["at 0.5x the budget", "at 2x the budget"]
    assert {row["dimension"] for row in few["map"]} == {"budget", "provider", "warm-up"}


def test_runs_of_blocks_are_one_touch_for_policies_that_take_them_whole() -> None:
    """Two prompts of 3 and 4 blocks that share 2: segments of 2, 1 and 2 blocks, five blocks; 2 + 2 segments are
    visited, 3 + 4 blocks."""
    paths = make_paths(
        np.array([-1, 0, 0]),
        np.array([32, 16, 32]),
        np.array([1, 2]),
        np.array([0, 1]),
        block_tokens=16,
        unit_tokens=16,
    )
    assert miniature.touches(paths) == 7
    assert miniature.touches(paths, ("lru",), 16) == 4
    assert miniature.touches(paths, ("lru", "lfu_decay"), 64) == 4
    # Decayed LFU takes runs whole only where every prompt fits; GDSF never does.
    assert miniature.touches(paths, ("lru", "lfu_decay"), 48) == 7
    assert miniature.touches(paths, ("lru", "gdsf"), 64) == 7


def test_worse_is_never_better() -> None:
    assert worse("gdsf").better is False
    assert contrast("gdsf").better is True
    assert contrast("gdsf", interval=None).better is None
    assert contrast("gdsf", interval=Interval(-1.0, -2.0, 0.0)).better is False
