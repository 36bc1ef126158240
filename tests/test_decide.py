"""The decision table: one piece of evidence per row that fires exactly that row, one just short of it, and the laws."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit import decide
from kit.decide import RULES, THRESHOLDS, Contrast, Evidence
from kit.decide.verdict import FIRES, NOT_CONSULTED, SKIPPED
from kit.intervals import Interval

OUTCOMES = {FIRES, "does not fire", "cannot tell", SKIPPED, NOT_CONSULTED}


def contrast(policy: str, low: float = -0.003, high: float = -0.001, rise: float = 0.05, **changes: Any) -> Contrast:
    """A policy against LRU: a request costs 0.001 to 0.003 dollars less, M_eq falls from 900 to 800, hits rise."""
    values: dict[str, Any] = {
        "interval": Interval((low + high) / 2, low, high, units=200),
        "currency": "USD",
        "capacity_tokens": 440_000,
        "hit_ratio_change": rise,
        "m_eq_now": 900.0,
        "m_eq_proposed": 800.0,
        "requests": 70_000,
        "input_tokens": 1_000_000,
    }
    return Contrast(policy, "lru", **{**values, **changes})


def worse(policy: str) -> Contrast:
    """A policy that nothing speaks for: the interval spans zero."""
    return contrast(policy, low=-0.001, high=0.001, rise=0.0, m_eq_proposed=900.0)


# Nothing fires but the last row: a full week, a ceiling of 40 %, LRU at 60 % of it (24 %), doubling lifts LRU by 20 %,
# hot keys that last (so row 10 is silent), and no policy better than LRU.
QUIET = Evidence(
    days=7,
    requests=70_000,
    reused_keys=500,
    rejected_share=0.0,
    tier_mode="absorb",
    capacity_tokens=440_000,
    observed_seconds=7 * 86_400.0,
    input_tokens=1_000_000,
    ceiling_hit_tokens=400_000,
    lru_hit_tokens=240_000,
    lru_double_hit_tokens=288_000,
    best_online="lfu_decay",
    best_online_hit_tokens=245_000,
    ttl_seconds=300.0,
    gaps_beyond_ttl_share=0.2,
    second_session_type_share=0.3,
    multi_turn_share=0.6,
    fewest_gaps=400,
    worst_gap_ks=0.05,
    log_normal_best=True,
    type_reuse_factor=40.0,
    saecache=worse("saecache"),
    top_key_request_share=0.6,
    day_overlap=0.7,
    scan_token_share=0.1,
    scan_usual_share=0.05,
    scan_lru_loss=0.01,
    flat_keys=True,
    spearman_length_count=0.1,
    longest_one_shot_share=0.2,
    longest_request_share=0.1,
    longest_system_keys=0,
    length_checks=tuple(worse("length") for _ in range(6)),
    online=(worse("lfu_decay"), worse("length"), worse("gdsf")),
)
BETTER_LFU = (contrast("lfu_decay"), worse("length"))
SPREAD = {"top_key_request_share": 0.2, "day_overlap": 0.2}
LONGEST = {
    "spearman_length_count": -0.6,
    "longest_one_shot_share": 0.9,
    "longest_request_share": 0.04,
    "length_checks": tuple(contrast("length") for _ in range(6)),
}
TYPED = {"tier_mode": "engine", "saecache": contrast("saecache", measure="hit_token_ratio", low=0.01, high=0.05)}

# rule -> (what makes it fire, what leaves it just short of firing).
CASES: dict[int, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    0: [
        ({"days": 6}, {"days": 7}),
        ({"requests": 4_999}, {"requests": 5_000}),
        ({"reused_keys": 99}, {"reused_keys": 100}),
        ({"rejected_share": 0.0101}, {"rejected_share": 0.01}),
        ({"missing_fields": ("ts",)}, {"missing_fields": ()}),
    ],
    1: [
        (
            {"ceiling_hit_tokens": 49_999, "lru_hit_tokens": 30_000},
            {"ceiling_hit_tokens": 50_000, "lru_hit_tokens": 30_000},
        )
    ],
    2: [({"gaps_beyond_ttl_share": 0.5}, {"gaps_beyond_ttl_share": 0.4999})],
    3: [({"lru_hit_tokens": 380_000}, {"lru_hit_tokens": 379_999})],
    4: [
        # 240,000 x 1.25 = 300,000; doubling gains 60,000, half is 30,000: the best policy must stay under 270,000.
        ({"lru_double_hit_tokens": 300_000}, {"lru_double_hit_tokens": 299_999}),
        (
            {"lru_double_hit_tokens": 300_000, "best_online_hit_tokens": 269_999},
            {"lru_double_hit_tokens": 300_000, "best_online_hit_tokens": 270_000},
        ),
    ],
    5: [
        (TYPED, {**TYPED, "saecache": contrast("saecache", measure="hit_token_ratio", low=-0.001, high=0.09)}),
        ({**TYPED, "second_session_type_share": 0.1}, {**TYPED, "second_session_type_share": 0.0999}),
        ({**TYPED, "multi_turn_share": 0.3}, {**TYPED, "multi_turn_share": 0.2999}),
        ({**TYPED, "fewest_gaps": 100}, {**TYPED, "fewest_gaps": 99}),
        ({**TYPED, "worst_gap_ks": 0.1}, {**TYPED, "worst_gap_ks": 0.1001}),
        ({**TYPED, "type_reuse_factor": 10.0}, {**TYPED, "type_reuse_factor": 9.99}),
        (TYPED, {**TYPED, "log_normal_best": False}),
        (TYPED, {**TYPED, "tier_mode": "absorb"}),
        (TYPED, {**TYPED, "saecache": replace(TYPED["saecache"], hit_ratio_change=0.0199)}),
    ],
    6: [
        ({"online": BETTER_LFU, "top_key_request_share": 0.5}, {"top_key_request_share": 0.5}),
        ({"online": (contrast("lfu_decay", rise=0.01),)}, {"online": (contrast("lfu_decay", m_eq_proposed=900.0),)}),
        ({"online": (contrast("lfu_decay", rise=0.0),)}, {"online": (contrast("lfu_decay", rise=-0.0001),)}),
        ({"online": BETTER_LFU, "day_overlap": 0.5}, {"online": (contrast("lfu_decay", high=0.0),)}),
    ],
    7: [
        (
            {**SPREAD, "online": BETTER_LFU, "scan_token_share": 0.3, "scan_lru_loss": 0.05},
            {**SPREAD, "online": (worse("lfu_decay"),), "scan_token_share": 0.3, "scan_lru_loss": 0.05},
        ),
    ],
    8: [
        (LONGEST, {**LONGEST, "spearman_length_count": -0.2999}),
        (LONGEST, {**LONGEST, "longest_one_shot_share": 0.7999}),
        (LONGEST, {**LONGEST, "longest_request_share": 0.0501}),
        (LONGEST, {**LONGEST, "longest_system_keys": 1}),
        (LONGEST, {**LONGEST, "flat_keys": False}),
        (LONGEST, {**LONGEST, "length_checks": (*LONGEST["length_checks"][:5], worse("length"))}),  # type: ignore[index]
    ],
    9: [
        ({"online": (contrast("gdsf", rise=0.02),)}, {"online": (contrast("gdsf", rise=0.0199),)}),
        ({"online": (contrast("gdsf"), worse("lfu_decay"))}, {"online": (contrast("gdsf", high=0.0),)}),
    ],
    10: [
        ({"top_key_request_share": 0.4999}, {"top_key_request_share": 0.5}),
        ({"day_overlap": 0.4999}, {"day_overlap": 0.5}),
    ],
    11: [({}, {"top_key_request_share": 0.1})],
}
PAIRS = [(rule, fires, silent) for rule, pairs in CASES.items() for fires, silent in pairs]


@pytest.mark.parametrize(("rule", "fires", "silent"), PAIRS)
def test_each_row_fires_alone_and_not_just_under(rule: int, fires: dict[str, Any], silent: dict[str, Any]) -> None:
    fired, short = decide.decide(replace(QUIET, **fires)), decide.decide(replace(QUIET, **silent))
    assert fired.rule == rule, fired.sentence
    assert short.rule != rule, short.sentence
    if rule in range(1, 10):
        # Nothing else would have fired but the general rows: 9 (replay alone), 10 (spread reuse), 11 (the default).
        others = [row["rule"] for row in fired.trail if (row["would_say"] or "").startswith("would fire")]
        assert set(others) <= {9, 10, 11}


def test_every_row_has_a_case_and_all_thresholds_are_used() -> None:
    assert sorted(CASES) == [rule.number for rule in RULES] == list(range(12))
    named = {condition.threshold for rule in RULES for condition in rule.conditions} - {None}
    assert named == set(THRESHOLDS)


def test_contract_of_the_trail() -> None:
    decision = decide.decide(replace(QUIET, online=BETTER_LFU))
    assert [row["rule"] for row in decision.trail] == list(range(12))
    for row in decision.trail:
        assert {"rule", "question", "measured", "threshold", "margin", "outcome"} <= set(row)
        assert row["outcome"] in OUTCOMES
        assert set(row["origin"]) == {"source", "judgement"}
        assert row["figure"]
    json.dumps(decision.as_dict(), allow_nan=False)


def test_sentence_of_a_switch_names_reason_money_and_rule() -> None:
    # 0.002 dollars a request x 70,000 requests in 7 days x 365/12/7 = 4.345238 -> 608.33; ends 304.17, 912.50.
    decision = decide.decide(replace(QUIET, online=BETTER_LFU))
    assert decision.sentence == (
        "Switch to LFU with decay at 440,000 tokens: the top 5% of keys carry 60.0% of requests and LFU with decay "
        "changes cost per 1,000 requests by −$2.00 against LRU (95% interval −$3.00 to −$1.00) (rule 6); "
        "this saves $608 a month (95% interval $304 to $913)."
    )
    assert decision.saving_per_month is not None
    assert decision.saving_per_month.value == pytest.approx(0.002 * 70_000 * (365 / 12) / 7)
    assert decision.accepted


def test_sentence_keeps_lru_with_its_number() -> None:
    decision = decide.decide(replace(QUIET, lru_hit_tokens=390_000))
    assert decision.sentence == (
        "Keep LRU at 440,000 tokens, since nothing is left to win: LRU reaches 97.5% of the ceiling (rule 3)."
    )
    assert not decision.accepted
    assert decision.saving_per_month is None


def test_row_0_says_what_is_missing_and_what_it_would_say_waived() -> None:
    thin = replace(QUIET, days=1, online=BETTER_LFU)
    decision = decide.decide(thin)
    assert (decision.rule, decision.policy) == (0, "lru")
    assert decision.provisional is not None
    assert (decision.provisional["rule"], decision.provisional["policy"]) == (6, "lfu_decay")
    assert decision.sentence == (
        "Keep LRU at 440,000 tokens and collect more log: the log touches 1 calendar day (UTC), under 7 (rule 0); "
        "with rule 0 waived, rule 6 would say LFU with decay."
    )
    waived = decide.decide(thin, waive_row_0=True)
    assert (waived.rule, waived.trail[0]["outcome"], waived.provisional) == (6, SKIPPED, None)
    assert waived.sentence == decision.provisional["sentence"]


def test_unmeasured_is_told_never_guessed() -> None:
    blind = decide.decide(Evidence())
    assert blind.rule == 0
    for name in ("calendar days", "requests", "reused keys", "rejected rows", "ceiling", "LRU replay at the budget"):
        assert name in blind.trail[0]["measured"]
    assert blind.provisional is not None and blind.provisional["rule"] == 11
    waived = decide.decide(Evidence(), waive_row_0=True)
    outcomes = {row["rule"]: row["outcome"] for row in waived.trail}
    # Row 2 is unknown too: without any measured reuse, no TTL does not say that nothing comes back late.
    assert [rule for rule, outcome in outcomes.items() if outcome == "cannot tell"] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_a_known_no_settles_a_row_that_is_otherwise_unknown() -> None:
    decision = decide.decide(replace(QUIET, tier_mode="mirror", saecache=None, type_reuse_factor=None))
    assert decision.trail[5]["outcome"] == "does not fire"
    engine = decide.decide(replace(QUIET, tier_mode="engine", saecache=None))
    assert engine.trail[5]["outcome"] == "cannot tell"


def test_flag_skips_rows_that_count() -> None:
    evidence = replace(QUIET, online=BETTER_LFU)
    decision = decide.decide(evidence, counters_trustworthy=False)
    assert decision.rule == 11
    assert [row["rule"] for row in decision.trail if row["outcome"] == SKIPPED] == [5, 6, 7, 9]
    assert decision.trail[6]["would_say"].startswith("would fire: Switch to LFU with decay")
    assert "counters are not trusted, which skips rule 6" in decision.sentence


def test_a_verdict_of_one_assumption_only_is_too_close_to_call() -> None:
    neutral = replace(QUIET, online=BETTER_LFU)
    harsh = replace(QUIET, assumption="pessimistic", online=(worse("lfu_decay"),))
    decision = decide.decide(neutral, pessimistic=harsh)
    assert (decision.rule, decision.policy, decision.accepted) == (11, "lru", False)
    assert decision.too_close_to_call == {
        "neutral": {"rule": 6, "policy": "lfu_decay", "title": "LFU with decay"},
        "pessimistic": {"rule": 11, "policy": "lru", "title": "LRU"},
    }
    assert "too close to call" in decision.sentence and "too close to call" in decision.trail[6]["measured"]
    assert [row["rule"] for row in decision.trail if row["outcome"] == FIRES] == [11]
    agreed = decide.decide(neutral, pessimistic=replace(neutral, assumption="pessimistic"))
    assert agreed.rule == 6 and agreed.too_close_to_call is None


def test_saving_is_the_smaller_of_both_assumptions() -> None:
    neutral = replace(QUIET, online=(contrast("lfu_decay", low=-0.006, high=-0.002),))
    harsh = replace(QUIET, assumption="pessimistic", online=BETTER_LFU)
    decision = decide.decide(neutral, pessimistic=harsh)
    assert decision.saving_per_month is not None
    assert decision.saving_per_month.assumption == "pessimistic"
    assert decision.saving_per_month.value == pytest.approx(0.002 * 70_000 * (365 / 12) / 7)


def test_no_saving_from_under_a_day_of_log() -> None:
    short = replace(QUIET, online=BETTER_LFU, observed_seconds=86_399.0)
    assert decide.decide(short).saving_per_month is None
    assert "a month" not in decide.decide(short).sentence


def test_engine_saves_prefill_tokens_not_money() -> None:
    # +3 points of 1,000,000 input tokens in 7 days = 30,000 a week = 130,357 a month.
    lfu = contrast(
        "lfu_decay", measure="hit_token_ratio", low=0.02, high=0.04, currency=None, m_eq_now=None, m_eq_proposed=None
    )
    decision = decide.decide(replace(QUIET, tier_mode="engine", online=(lfu,)))
    assert decision.rule == 6
    assert "changes hit tokens by +3.0 pt against LRU (95% interval +2.0 pt to +4.0 pt)" in decision.sentence
    assert decision.saving_per_month is not None
    assert decision.saving_per_month.currency is None
    assert decision.saving_per_month.unit == "prefill tokens"
    assert decision.saving_per_month.value == pytest.approx(30_000 * (365 / 12) / 7)


def test_near_misses_are_two_and_named() -> None:
    # LFU wins by row 6; Length meets every condition of row 8, which comes later; LRU misses row 3 by far.
    both = replace(QUIET, online=(contrast("lfu_decay"), contrast("length", low=-0.004, high=-0.002)), **LONGEST)  # type: ignore[arg-type]
    decision = decide.decide(both)
    assert decision.rule == 6
    assert [row["rule"] for row in decision.near_misses] == [8, 9]
    assert decision.near_misses[0]["text"] == (
        "Rule 8 (switch to Length (longest first)) would fire but comes after rule 6"
    )
    near = decide.decide(replace(QUIET, lru_hit_tokens=375_000, lru_double_hit_tokens=390_000))
    assert near.near_misses[0]["rule"] == 3
    assert near.near_misses[0]["text"] == (
        "Rule 3 (keep LRU) does not fire: LRU reaches 93.8% of the ceiling; it asks for at least 95%"
    )
    # A row as far from firing as its threshold is from nothing is no near miss: no reuse outlasts the lifetime.
    far = decide.decide(replace(QUIET, gaps_beyond_ttl_share=0.0, ceiling_hit_tokens=10_000_000))
    assert 2 not in [row["rule"] for row in far.near_misses]


@pytest.mark.parametrize("name", sorted(THRESHOLDS))
def test_changing_a_threshold_changes_its_row(name: str) -> None:
    """Each threshold moved past the measured value turns the row that was made to fire (or not to) around."""
    rules = [rule for rule in RULES if any(condition.threshold == name for condition in rule.conditions)]
    for rule in rules:
        condition = next(one for one in rule.conditions if one.threshold == name)
        fires = next(
            case for case, _ in CASES[rule.number] if decide.decide(replace(QUIET, **case)).rule == rule.number
        )
        evidence = replace(QUIET, **fires)
        row = decide.decide(evidence).trail[rule.number]
        value = row["values"][condition.measure]
        tighter = value + 1e-6 if condition.compare in (">=", ">") else value - 1e-6
        moved = decide.decide(evidence, thresholds={name: tighter})
        held = [other for other in rule.conditions if rule.any_of and other is not condition]
        if not held:
            assert moved.rule != rule.number, (name, rule.number)
        else:
            low, high, _ = decide.RANGES[condition.kind]
            looser = min(value + 1, high) if condition.compare == "<" else max(value - 1, low)
            assert decide.decide(evidence, thresholds={name: looser}).rule == rule.number


def test_unknown_threshold_is_refused_by_name() -> None:
    with pytest.raises(decide.ThresholdError, match="unknown threshold 'minimum_day'; known: minimum_days"):
        decide.decide(QUIET, thresholds={"minimum_day": 3})


shares = st.one_of(st.none(), st.floats(0, 1))
counts = st.one_of(st.none(), st.integers(0, 20_000))


@st.composite
def contrasts(draw: st.DrawFn, policy: str) -> Contrast:
    middle, half = draw(st.floats(-1, 1)), draw(st.floats(0, 1))
    measured = Interval(middle, middle - half, middle + half) if draw(st.booleans()) else None
    return contrast(
        policy,
        interval=measured,
        measure=draw(st.sampled_from(["cost_per_request", "hit_token_ratio"])),
        hit_ratio_change=draw(st.one_of(st.none(), st.floats(-1, 1))),
        m_eq_proposed=draw(st.one_of(st.none(), st.floats(1, 2000))),
    )


@st.composite
def evidences(draw: st.DrawFn) -> Evidence:
    return Evidence(
        days=draw(st.one_of(st.none(), st.integers(1, 14))),
        requests=draw(counts),
        reused_keys=draw(st.one_of(st.none(), st.integers(0, 1000))),
        rejected_share=draw(st.one_of(st.none(), st.floats(0, 0.02))),
        tier_mode=draw(st.sampled_from([None, "mirror", "absorb", "engine"])),
        capacity_tokens=draw(counts),
        observed_seconds=draw(st.floats(1, 1e6)),
        input_tokens=draw(counts),
        ceiling_hit_tokens=draw(counts),
        lru_hit_tokens=draw(counts),
        lru_double_hit_tokens=draw(counts),
        best_online=draw(st.sampled_from([None, "gdsf"])),
        best_online_hit_tokens=draw(counts),
        ttl_seconds=draw(st.sampled_from([None, 300.0])),
        gaps_beyond_ttl_share=draw(shares),
        second_session_type_share=draw(shares),
        multi_turn_share=draw(shares),
        fewest_gaps=draw(counts),
        worst_gap_ks=draw(shares),
        log_normal_best=draw(st.sampled_from([None, True, False])),
        type_reuse_factor=draw(st.one_of(st.none(), st.floats(1, 100))),
        saecache=draw(st.one_of(st.none(), contrasts("saecache"))),
        top_key_request_share=draw(shares),
        day_overlap=draw(shares),
        scan_token_share=draw(shares),
        scan_usual_share=draw(shares),
        scan_lru_loss=draw(shares),
        flat_keys=draw(st.sampled_from([None, True, False])),
        spearman_length_count=draw(st.one_of(st.none(), st.floats(-1, 1))),
        longest_one_shot_share=draw(shares),
        longest_request_share=draw(shares),
        longest_system_keys=draw(st.sampled_from([None, 0, 2])),
        length_checks=tuple(draw(st.lists(contrasts("length"), max_size=2))),
        online=tuple(draw(contrasts(name)) for name in draw(st.sets(st.sampled_from(["lfu_decay", "gdsf", "length"])))),
    )


@settings(max_examples=300, deadline=None)
@given(evidences(), st.one_of(st.none(), evidences()), st.booleans(), st.booleans())
def test_sentence_and_trail_agree(evidence: Evidence, harsh: Evidence | None, waive: bool, trusted: bool) -> None:
    other = None if harsh is None else replace(harsh, assumption="pessimistic")
    decision = decide.decide(evidence, waive_row_0=waive, counters_trustworthy=trusted, pessimistic=other)
    fired = [row for row in decision.trail if row["outcome"] == FIRES]
    assert len(fired) == 1
    row = fired[0]
    # The decision, the sentence and the trail name the same rule and policy.
    assert (row["rule"], row["policy"]) == (decision.rule, decision.policy)
    assert f"(rule {decision.rule})" in decision.sentence
    verb = "Keep LRU" if decision.policy == "lru" else f"Switch to {row['policy_title']}"
    assert decision.sentence.startswith(verb)
    assert row["because"] and row["because"] in decision.sentence
    assert decision.rule != 11 or row["because"] == row["measured"]
    assert decision.accepted == (decision.policy != "lru")
    assert decision.sentence == decide.sentence(
        decision.trail, evidence.capacity_tokens, decision.saving_per_month, decision.provisional
    )
    # Rows before it do not fire, rows after it are not consulted but for a verdict that is too close to call.
    assert all(later["outcome"] == NOT_CONSULTED for later in decision.trail[decision.rule + 1 :])
    if decision.too_close_to_call is None or decision.rule == 0:
        assert all(before["outcome"] != NOT_CONSULTED for before in decision.trail[: decision.rule])
    else:
        assert (decision.rule, decision.policy) == (11, "lru")
    assert (decision.provisional is not None) == (decision.rule == 0)
    # A row that fires holds by its own numbers.
    for condition in RULES[decision.rule].conditions if not RULES[decision.rule].any_of else ():
        value, limit = row["values"][condition.measure], row["limits"][condition.measure]
        if condition.kind not in ("is", "better") and value is not None:
            assert {">=": value >= limit, "<=": value <= limit, "<": value < limit, ">": value > limit}[
                condition.compare
            ]
    json.dumps(decision.as_dict(), allow_nan=False)


@settings(max_examples=100, deadline=None)
@given(evidences())
def test_order_of_policies_changes_nothing(evidence: Evidence) -> None:
    turned = replace(evidence, online=evidence.online[::-1], length_checks=evidence.length_checks[::-1])
    assert decide.decide(turned).as_dict()["sentence"] == decide.decide(evidence).as_dict()["sentence"]


def test_no_lifetime_is_no_zero_share() -> None:
    # Reuse is measured and nothing expires: not met, in words. Nothing measured: not found, so the row is unknown.
    measured = decide.decide(replace(QUIET, ttl_seconds=None, gaps_beyond_ttl_share=None)).trail[2]
    assert measured["measured"] == "no lifetime is set, so nothing expires"
    unknown = decide.decide(Evidence(ttl_seconds=None))
    assert unknown.trail[2]["would_say"] == "cannot tell: reuse gaps against the TTL: not found"
    assert "rules that cannot be told on this log: 1, 2, 3" in unknown.trail[0]["measured"]


def test_nothing_known_names_no_budget_and_no_system_keys() -> None:
    decision = decide.decide(Evidence())
    assert decision.sentence.startswith("Keep LRU and collect more log: ")
    assert decision.trail[11]["would_say"] == "would fire: Keep LRU"
    assert "system keys among the longest: not found" in decision.trail[8]["measured"]
