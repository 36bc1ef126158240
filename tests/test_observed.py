"""What the provider really did: edges and losses found in synthetic chains, by hand, and on the public weeks."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit import log as logs
from kit.prefix import load_paths
from kit.prices import parse_overlay, rate_table
from kit.providers import (
    duplicate_writes,
    losses,
    observed_setting,
    reconcile,
    returns,
    rule_for,
    survival,
    ttl_observed,
)
from kit.providers.simulate import _median_of_others, expected_losses, simulate
from kit.replay import Setting
from tests.chain_log import chain_log, told
from tests.conftest import shared_data

CLAUDE = rule_for("anthropic", "claude-sonnet-4-6")


def provider_week(ttl, write="short", loss=0.0, sessions=120, seed=1, fades=False):
    """Chains against a provider with one TTL from the start: reads all or nothing; `fades` makes survival soft."""
    draw, turns = random.Random(seed), []
    for s in range(sessions):
        at, held = draw.uniform(0, 1e5), 20_000
        turns.append(told(at, f"c{s}", 0, **{write: held}))
        for _ in range(25):
            gap = draw.lognormvariate(5.0, 1.6)
            at, new = at + gap, draw.randint(100, 2_000)
            alive = draw.random() < (1 / (1 + (gap / ttl) ** 1.0) if fades else float(gap <= ttl))
            alive &= draw.random() >= loss
            turns.append(told(at, f"c{s}", held if alive else 0, **{write: new + (0 if alive else held)}))
            held += new
    return turns


def test_returns_by_hand():
    """Three turns: 1,000 written long; 900 of them read 60 s later with 500 short; a shorter prompt is no return."""
    log = chain_log([
        told(0, "a", 0, long=1_000, takes=5),
        told(60, "a", 900, short=500, takes=2),
        told(90, "a", 0, short=700),
        told(95, "b", 0, short=9_000),
    ])  # fmt: skip
    [row] = returns(log).to_dicts()
    assert row == {"request_id": 1, "session": "a", "read_tokens": 900, "input_before": 1_000, "write_class": "long",
                   "start_to_start": 60.0, "end_to_start": 55.0, "held_before": 1_000}  # fmt: skip
    [line] = survival(log)
    assert (line["write_class"], line["idle_from_seconds"], line["n"], line["share"]) == ("long", 0, 1, 0.9)


def test_a_log_without_a_clock_or_without_reads_has_no_returns():
    turns = [told(0, "a", 0, short=10), told(5, "a", 10, short=10)]
    assert returns(chain_log(turns, has_clock=False)).height == 0
    silent = chain_log([{"at": n, "chain": "a", "input_tokens": 10 * n + 10} for n in range(3)])
    assert returns(silent).height == 0 and ttl_observed(silent) == [] and survival(silent) == []


@pytest.mark.parametrize(("ttl", "write"), [(300, "short"), (3600, "long")])
def test_the_edge_of_each_write_class_is_found_from_data_alone(ttl, write):
    [row] = ttl_observed(chain_log(provider_week(ttl, write, loss=0.03)))
    assert row["write_class"] == write and row["published_seconds"] == ttl
    assert row["low"] <= ttl <= row["high"] and abs(row["ttl_seconds"] - ttl) < 0.1 * ttl
    assert row["held_inside"] > 0.95 and row["held_beyond"] == 0


def test_a_soft_decay_is_a_curve_and_no_edge():
    log = chain_log(provider_week(300, fades=True))
    assert ttl_observed(log) == []
    shares = [row["share"] for row in survival(log)]
    assert shares == sorted(shares, reverse=True) and 0.1 < shares[2] < 0.9


def test_no_edge_without_enough_returns_on_both_sides():
    assert ttl_observed(chain_log(provider_week(1e9))) == []
    assert ttl_observed(chain_log([told(0, "a", 0, short=10), told(5, "a", 10, short=10)])) == []


def test_losses_inside_the_retention_feed_the_observed_setting():
    """3 % of reads are dropped: the fitted loss holds 0.03 in its interval, the fitted TTL is near 300 s."""
    log = chain_log(provider_week(300, loss=0.03))
    [row] = losses(log)
    assert row["low"] <= 0.03 <= row["high"] and abs(row["lost_requests"] - 0.03) < 0.01
    setting = observed_setting(log, Setting(ttl_seconds=300.0, minimum_tokens=1024))
    assert setting.name == "observed" and setting.minimum_tokens == 1024 and setting.loss == row["lost_tokens"]
    assert abs(setting.ttl_seconds - 300) < 30
    assert observed_setting(log, Setting(), "long") is None


def test_parallel_requests_write_the_same_prefix_twice():
    """b starts while a (10 s) still runs and reads nothing of the shared 5,000; c comes later and reads them."""
    turns = [
        told(0, "a", 0, short=5_600, root="system", takes=10),
        told(4, "b", 0, short=5_900, root="system", takes=10),
        told(60, "c", 5_000, short=800, root="system", takes=10),
    ]
    log = chain_log(turns, roots={"system": 5_000})
    twice = duplicate_writes(log, load_paths(log))
    assert twice == {"requests": 1, "tokens": 5_000, "share": 5_000 / 12_300}
    silent = chain_log([{"at": 0, "chain": "a", "input_tokens": 10}])
    assert duplicate_writes(silent, load_paths(silent)) == {"requests": None, "tokens": None, "share": None}


def test_simulation_by_hand():
    """TTL 300 s short, 3,600 s long, minimum 1,024. a: 2,000 written long; 400 s: read, 500 written short; 400 s later
    the short 500 are gone but the long 2,000 were read at 400 s and live. b is under the minimum."""
    log = chain_log([
        told(0, "a", 0, long=2_000),
        told(400, "a", 2_000, short=500),
        told(800, "a", 2_000, short=900),
        told(900, "b", 0, uncached=1_000),
        told(901, "b", 0, uncached=1_020),
    ])  # fmt: skip
    run = simulate(log, load_paths(log), (300, 3600), 1024)
    assert run.read.tolist() == [0, 2_000, 2_000, 0, 0]
    assert run.matched.tolist() == [0, 2_000, 2_500, 0, 0]


def test_a_shared_root_is_estimated_from_the_others_only():
    """Three chains start on one root and report 4,000, 5,000 and 9,000: each is given the median of the other two."""
    turns = [
        told(0, "a", 4_000, short=2_000, root="s"),
        told(10, "b", 5_000, short=2_000, root="s"),
        told(20, "c", 9_000, short=2_000, root="s"),
    ]
    log = chain_log(turns, roots={"s": 5_000})
    run = simulate(log, load_paths(log), (300, 3600), 0)
    assert run.read.tolist() == [0, 6_500, 4_500]
    assert run.starts.tolist() == [True] * 3


def test_a_slightly_shorter_prompt_continues_its_chain():
    """10,000 then 9,800 tokens: the client dropped 200; the read is capped at the shorter prompt."""
    log = chain_log([told(0, "a", 0, short=10_000), told(10, "a", 9_790, short=10), told(20, "a", 0, short=5_000)])
    run = simulate(log, load_paths(log), (300, 3600), 0)
    assert run.read.tolist() == [0, 9_800, 0]


def test_expected_losses_come_from_the_other_sessions():
    """Session a loses 500 of 1,000 simulated reads, b none: a is expected to lose 0 %, b 50 %."""
    log = chain_log([
        told(0, "a", 0, short=1_000), told(10, "a", 500, short=600),
        told(0.5, "b", 0, short=2_000), told(10.5, "b", 2_000, short=100),
    ])  # fmt: skip
    run = simulate(log, load_paths(log), (300, 3600), 0)
    assert run.read.tolist() == [0, 0, 1_000, 2_000]
    assert expected_losses(log, run).tolist() == [0, 0, 0, 1_000]


def test_reconciliation_names_what_remains_and_adds_up():
    turns = [
        told(0, "a", 0, short=20_000, takes=30),
        told(60, "a", 20_000, short=500),  # as simulated
        told(90, "a", 0, short=21_000),  # gone inside the retention
        told(120, "a", 8_000, short=14_000),  # only an earlier part matched
        told(1_000, "a", 22_000, short=300),  # held beyond the retention
        told(1_010, "a", 0, short=9_000),  # shorter prompt: as simulated, nothing was read
        told(1_020, "b", 6_000, short=9_000),  # shared root: nothing in the log explains it
        told(1_030, "a", 30_000, short=600),  # more than the log shows
    ]
    log = chain_log(turns)
    own = parse_overlay({"price": [{"input": 3.0, "read": 0.3, "write_short": 3.75, "write_long": 6.0}]}, "own.toml")
    made = reconcile(log, rate_table(log, own), rule=CLAUDE, minimum_tokens=0)
    causes = {row["cause"]: (row["requests"], row["read_tokens"]) for row in made["causes"]}
    assert causes == {
        "as simulated": (3, 0), "gone inside the retention": (1, 20_500), "only an earlier part matched": (1, 13_000),
        "still being written": (0, 0), "held beyond the retention": (1, -22_000), "shared root": (1, -6_000),
        "shorter prompt": (0, 0), "more than the log shows": (1, -21_000), "expected losses": (0, 0),
    }  # fmt: skip
    total = made["total"]
    gap = total["simulated"]["read_tokens"] - total["reported"]["read_tokens"]
    assert sum(read for _, read in causes.values()) == gap
    money = sum(row["cost"] for row in made["causes"])
    assert money == pytest.approx(total["simulated"]["cost"] - total["reported"]["cost"], abs=1e-12)
    assert money == pytest.approx(gap * (0.3 - 3.75) / 1e6, abs=1e-12)
    assert sum(row["requests"] for row in made["days"]) == total["requests"] == 8
    for row in [total, *made["days"]]:
        for side in ("simulated", "neutral", "reported"):
            assert row[side]["read_tokens"] + row[side]["new_tokens"] == row["input_tokens"]


def test_without_reported_reads_there_is_nothing_to_reconcile():
    log = chain_log([{"at": n, "chain": "a", "input_tokens": 10 * n + 10} for n in range(3)])
    assert reconcile(log)["total"] is None


SIX_WEEKS = {
    "short": [(8_687, 0.998), (627, 0.970), (134, 0.085), (142, 0.027), (27, 0.011)],
    "long": [(9_822, 0.996), (682, 0.959), (126, 0.887), (121, 0.921), (33, 0.065)],
}


def test_survival_and_edges_of_the_six_weeks():
    """5 minute writes lived 5 minutes, 1 hour writes an hour: still hit at 321 s and 3,614 s, start to start."""
    log = logs.load(shared_data("claude_agents_2026q1.csv"))
    table = survival(log)
    for write_class, expected in SIX_WEEKS.items():
        found = [(row["n"], round(row["share"], 3)) for row in table if row["write_class"] == write_class]
        assert found[:5] == expected
    short, long = ttl_observed(log)
    assert (short["write_class"], long["write_class"]) == ("short", "long")
    assert short["ttl_seconds"] == pytest.approx(321.2, abs=0.1) and 300 < short["low"] < short["high"] < 347
    assert short["end_to_start_seconds"] == pytest.approx(309.3, abs=0.1)
    assert long["ttl_seconds"] == pytest.approx(3614.0, abs=0.1) and long["low"] < 3600 < 3646 < long["high"]
    assert (short["published_seconds"], long["published_seconds"]) == (300, 3600)


@pytest.mark.parametrize(
    ("name", "requests"), [("claude_agents_week.csv", 5_964), ("claude_agents_2026q1.csv", 20_979)]
)
def test_simulated_against_reported_on_the_public_weeks(name, requests):
    """Reads within 2 %, writes + uncached within 10 %; 19 of 20 requests within 1 % of their prompt; causes add up."""
    log = logs.load(shared_data(name))
    made = reconcile(log, rate_table(log))
    total = made["total"]
    assert total["requests"] == requests
    assert abs(total["read_difference"]) < 0.02 and abs(total["new_difference"]) < 0.10
    assert abs(total["neutral_read_difference"]) < 0.02
    assert total["simulated"]["cost"] == pytest.approx(total["reported"]["cost"], rel=0.03)
    gap = total["simulated"]["read_tokens"] - total["reported"]["read_tokens"]
    assert sum(row["read_tokens"] for row in made["causes"]) == pytest.approx(gap, abs=len(made["causes"]))
    assert sum(row["requests"] for row in made["causes"][:-1]) == requests
    assert made["errors"]["within_1_percent"] > 0.95


def test_simulated_new_tokens_by_class_add_up_with_prompts_under_the_minimum_uncached():
    """2,000 short, then 1,500 long beside 2,000 read; 700 under the minimum of 1,024 are plain input."""
    turns = [told(0, "a", 0, short=2_000), told(9, "a", 2_000, long=1_500), told(10, "b", 0, uncached=700)]
    log = chain_log(turns)
    own = parse_overlay({"price": [{"input": 3.0, "read": 0.3, "write_short": 3.75, "write_long": 6.0}]}, "own.toml")
    made = reconcile(log, rate_table(log, own), rule=CLAUDE)["total"]["simulated"]
    assert [made[name] for name in ("read_tokens", "write_tokens", "write_long_tokens", "uncached_tokens")] == [
        2_000, 2_000, 1_500, 700,
    ]  # fmt: skip
    assert made["cost"] * 1e6 == pytest.approx(2_000 * 0.3 + 2_000 * 3.75 + 1_500 * 6 + 700 * 3)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12))
def test_the_median_of_the_others_leaves_out_exactly_its_own(values):
    """Against the plain definition, for every member and for somebody who is no member."""
    ordered = sorted(values)
    n, column = len(ordered), np.array(ordered, np.float64)
    for own in range(-1, n):
        others = ordered if own < 0 else ordered[:own] + ordered[own + 1 :]
        found = _median_of_others(column, np.array([0]), np.array([n]), np.array([own]))[0]
        assert found == (int(np.median(others)) if others else 0)
