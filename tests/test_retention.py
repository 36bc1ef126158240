"""Retention advice: exact against a replay, hand-worked gaps, keep-alive, dead writes, and when it cannot tell."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kit import log as logs
from kit.billing import bill, ttl_advice
from kit.billing.touches import previous_in_chain
from kit.numbers import money
from kit.prefix import load_paths
from kit.prices import parse_overlay, rate_table
from kit.providers import rule_for, rule_named
from kit.replay import Setting, ceiling
from tests.chain_log import chain_log
from tests.conftest import shared_data

CLAUDE = rule_for("anthropic", "claude-sonnet-4-6")
SONNET = parse_overlay(
    {"price": [{"input": 3.0, "read": 0.3, "write_short": 3.75, "write_long": 6.0, "output": 15.0}]}, "sonnet.toml"
)


def sessions_log(sessions, **facts):
    """A log from sessions: lists of (seconds, prompt tokens, trigger); each prompt grows the one before."""
    turns = [
        {"at": at, "chain": f"s{s}", "input_tokens": size, "trigger": who, "session_type": "chat" if s % 2 else "agent"}
        for s, own in enumerate(sessions) for at, size, who in own
    ]  # fmt: skip
    return chain_log(turns, **facts)


def random_sessions(count=120, seed=1):
    draw = random.Random(seed)
    sessions = []
    for _ in range(count):
        at, size = draw.uniform(0, 5 * 86400), 8_000
        turns = [(at, size, "person")]
        for _ in range(draw.randint(0, 30)):
            at += draw.lognormvariate(5.0, 1.4)
            size += draw.randint(200, 3_000)
            turns.append((at, size, draw.choice(["person", "tool"])))
        sessions.append(turns)
    return sessions


def test_every_choice_costs_what_a_replay_says():
    """Random sessions: short and long equal an infinite replay with that TTL, to rounding; none is plain input."""
    log = sessions_log(random_sessions())
    rates = rate_table(log, SONNET)
    paths = load_paths(log, rate=rates.rate_of_request)
    advice = ttl_advice(log, rates, paths, CLAUDE, minimum_tokens=0)
    for name, seconds in (("short", 300.0), ("long", 3600.0)):
        drawn = bill(ceiling(paths, Setting(ttl_seconds=seconds)), rates, "mirror", name)
        assert advice["costs"][name] == pytest.approx(drawn.cost, rel=1e-12)
    assert advice["costs"]["none"] == pytest.approx(int(paths.input_tokens.sum()) * 3 / 1e6, rel=1e-12)


def test_the_difference_is_the_exact_form_of_the_gap_rule():
    """C_short - C_long = (w5 - r) A - (w1 - w5)(B + new): A = tokens back within an hour, B = later."""
    log = sessions_log(random_sessions(seed=2))
    advice = ttl_advice(log, rate_table(log, SONNET), None, CLAUDE, minimum_tokens=0)
    tokens = advice["groups"][0]["tokens"]
    exact = (3.75 - 0.3) * tokens["within_long"] - (6.0 - 3.75) * (tokens["later"] + tokens["new"])
    assert advice["costs"]["short"] - advice["costs"]["long"] == pytest.approx(exact / 1e6, rel=1e-9)


def test_gaps_keep_alive_and_dead_writes_by_hand():
    """One chain at 0, 100 s, 1,000 s with prompts of 10,000, 12,000, 15,000 tokens at 3.00 / 0.30 / 3.75 / 6.00.

    short: write 10,000; read 10,000 + write 2,000; write 15,000  -> 27,000 x 3.75 + 10,000 x 0.30 = 104,250
    long:  write 10,000; read 10,000 + write 2,000; read 12,000 + write 3,000 -> 15,000 x 6 + 22,000 x 0.3 = 96,600
    none:  37,000 x 3 = 111,000
    keep-alive: the 900 s gap needs ceil(900 / 300) - 1 = 2 reads of 12,000 and saves 12,000 x 3.45, and after the chain
    has ended 2 reads of 15,000 are wasted: 104,250 - 41,400 + 7,200 + 9,000 = 79,050 (the 100 s gap needs none).
    dead at short: the first 10,000 were read at 100 s, the 2,000 lapsed, the 15,000 written at 1,000 s are never read:
    17,000 of 27,000 written; at long only the last 3,000 of 15,000 written.
    """
    log = sessions_log([[(0, 10_000, "person"), (100, 12_000, "tool"), (1_000, 15_000, "person")]])
    advice = ttl_advice(log, rate_table(log, SONNET), None, CLAUDE, minimum_tokens=0)
    costs = {name: round(money * 1e6, 6) for name, money in advice["costs"].items()}
    assert costs == {"none": 111_000, "short": 104_250, "long": 96_600, "keep_alive": 79_050}
    assert advice["groups"][0]["pings"] == 2
    assert advice["groups"][0]["tokens"] == {"within_short": 10_000, "within_long": 12_000, "later": 0, "new": 15_000}
    dead = advice["dead_writes"]
    assert (dead["short"]["tokens"], dead["short"]["share"]) == (17_000, pytest.approx(17 / 27))
    assert dead["short"]["cost"] == pytest.approx(17_000 * 3.75 / 1e6)
    assert (dead["long"]["tokens"], dead["long"]["share"]) == (3_000, 0.2)
    first = advice["first_read"]
    assert (first["within_short"], first["within_long"], first["never"]) == (10 / 15, 2 / 15, 3 / 15)
    assert first["median_seconds"] == 100


def test_groups_say_which_requests_want_which_retention():
    """Tool turns come back in seconds, people after half an hour: short for the one, long for the other.

    Whose return a keep-alive waits for is not known when it is sent, so there is none per trigger.
    """
    turns = []
    for s in range(60):
        at, size, own = s * 20_000, 20_000, []
        for n in range(12):
            own.append((at, size, "person" if n % 4 == 0 else "tool"))
            at += 1_800 if n % 4 == 3 else 10
            size += 500
        turns.append(own)
    log = sessions_log(turns)
    advice = ttl_advice(log, rate_table(log, SONNET), None, CLAUDE, minimum_tokens=0)
    choices = {(g["dimension"], g["group"]): g["choice"] for g in advice["groups"]}
    assert choices[("trigger", "person")] == "long" and choices[("trigger", "tool")] == "short"
    assert not any("keep_alive" in g["costs"] for g in advice["groups"] if g["dimension"] == "trigger")
    assert choices[("segment", "own")] == advice["choice"] == "long"
    assert {g["dimension"] for g in advice["groups"]} == {"all", "session_type", "trigger", "segment"}
    whole = advice["groups"][0]["tokens"]
    by_trigger = [g["tokens"] for g in advice["groups"] if g["dimension"] == "trigger"]
    assert {name: sum(part[name] for part in by_trigger) for name in whole} == whole


def test_the_sentence_names_the_choice_its_money_and_its_interval():
    log = sessions_log(random_sessions())
    advice = ttl_advice(log, rate_table(log, SONNET), None, CLAUDE, minimum_tokens=0)
    assert advice["choice"] == "long"
    saving = advice["saving"]
    assert saving["low"] <= saving["value"] <= saving["high"]
    assert saving["value"] == pytest.approx(advice["costs"]["short"] - advice["costs"]["long"])
    value, low, high = (money(saving[end], detail=True) for end in ("value", "low", "high"))
    assert advice["sentence"] == (
        f"Use the long retention (1h): on this log it costs {value} (95% interval {low} to {high}) "
        "less than the short retention (5m)."
    )


def test_two_choices_that_cost_the_same_are_too_close_to_call():
    """Single requests, nothing ever comes back, free writes: none and short cost the same."""
    log = sessions_log([[(s * 10.0, 5_000, "person")] for s in range(50)])
    free = parse_overlay({"price": [{"input": 3.0, "read": 0.3, "write_short": 3.0}]}, "free.toml")
    advice = ttl_advice(log, rate_table(log, free), None, CLAUDE, minimum_tokens=0)
    assert advice["choice"] == "too close to call" and "Too close to call" in advice["sentence"]


def test_a_prefix_under_the_minimum_is_never_cached():
    log = sessions_log([[(0, 4_000, "person"), (10, 5_000, "tool"), (20, 6_000, "tool")]])
    advice = ttl_advice(log, rate_table(log, SONNET), None, CLAUDE, minimum_tokens=4_500)
    assert advice["groups"][0]["tokens"] == {"within_short": 5_000, "within_long": 0, "later": 0, "new": 6_000}


@pytest.mark.parametrize(
    ("facts", "rule", "overlay", "says"),
    [
        ({"has_clock": False}, CLAUDE, SONNET, "no common clock"),
        ({"identity": None}, CLAUDE, SONNET, "no prefix identity"),
        ({}, rule_for(None, "house"), SONNET, "No provider with a published caching rule"),
        ({}, rule_named("xai"), SONNET, "publishes no retention"),
    ],
)
def test_what_cannot_be_told_is_said(facts, rule, overlay, says):
    log = sessions_log([[(0, 5_000, "person")]], **facts)
    advice = ttl_advice(log, rate_table(log, overlay), None, rule)
    assert advice["choice"] is None and says in advice["sentence"]


def test_without_prices_there_is_no_advice_in_money():
    log = sessions_log([[(0, 5_000, "person")]])
    assert "An engine of one's own has no bill" in ttl_advice(log, None, None, CLAUDE)["sentence"]
    strange = sessions_log([[(0, 5_000, "person")]], model="no-such-model")
    assert "No price is found" in ttl_advice(strange, rate_table(strange), None, CLAUDE)["sentence"]


def test_previous_in_chain():
    before, last = previous_in_chain(np.array([0, 1, 0, -1, 1, 0, -1]))
    assert before.tolist() == [-1, -1, 0, -1, 1, 2, -1]
    assert last.tolist() == [False, False, False, True, True, True, True]


def test_mooncake_at_sonnet_prices():
    """Full blocks of 512, own prices 3.00 / 0.30 / 3.75 / 6.00: the bill of 5 minutes, of one hour and of no cache."""
    log = logs.load(shared_data("mooncake_conversation.jsonl"))
    advice = ttl_advice(log, rate_table(log, SONNET), None, CLAUDE, minimum_tokens=0)
    assert {name: round(advice["costs"][name], 2) for name in ("none", "short", "long")} == {
        "none": 434.38, "short": 394.09, "long": 550.91,
    }  # fmt: skip
    assert round(advice["dead_writes"]["short"]["share"], 3) == 0.805
    assert round(advice["dead_writes"]["long"]["share"], 3) == 0.742
    assert advice["choice"] == "short"


def test_a_long_price_that_no_list_has_is_derived_from_the_rule_and_said():
    """GPT-5.6 lists no 12 hour write: 2.5 x input of 4.00 = 10.00 per million, from the rule."""
    log = sessions_log(random_sessions(20))
    log.con.execute("UPDATE request SET provider = 'openai', model = 'gpt-5.6-sol', ts = ts + INTERVAL 300 DAY")
    advice = ttl_advice(log, rate_table(log), None, rule_for("openai", "gpt-5.6-sol"), minimum_tokens=0)
    tokens = advice["groups"][0]["tokens"]
    read = tokens["within_short"] + tokens["within_long"]
    assert advice["costs"]["long"] * 1e6 == pytest.approx(0.4 * read + 10.0 * (tokens["later"] + tokens["new"]))
    assert any("2.5 x input is the provider's rule" in text for text in advice["assumptions"])


def test_the_sentence_says_what_the_log_does_already():
    log = sessions_log(random_sessions())
    log.con.execute("UPDATE request SET write_long_tokens = 3 * input_tokens, write_tokens = input_tokens")
    advice = ttl_advice(log, rate_table(log, SONNET), None, CLAUDE, minimum_tokens=0)
    assert advice["long_share_of_writes"] == 0.75
    assert advice["sentence"].endswith(
        "less than the short retention (5m). 75% of its reported writes have it already."
    )


def test_many_owners_are_the_twenty_largest_groups_and_the_rest_pooled():
    """30 owners, one session each: 19 of their own and one line for the other 11; tokens and requests add up."""
    log = sessions_log(random_sessions(30))
    log.con.execute("UPDATE request SET owner = session_id")
    advice = ttl_advice(log, rate_table(log, SONNET), None, CLAUDE, minimum_tokens=0, replicates=50)
    owners = [g for g in advice["groups"] if g["dimension"] == "owner"]
    assert len(owners) == 20 and owners[-1]["group"] == "all others"
    whole = advice["groups"][0]
    assert sum(g["requests"] for g in owners) == whole["requests"]
    for choice in ("none", "short", "long"):
        assert sum(g["costs"][choice] for g in owners) == pytest.approx(whole["costs"][choice], rel=1e-9)
