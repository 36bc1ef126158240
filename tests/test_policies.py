"""Policies beyond the first eight: hand-worked traces, an independent plain statement of each, and public counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.policies import REGISTRY
from kit.prefix import Paths
from kit.replay import FIELDS, Setting, lost_reads, replay
from tests.plain_policies import RULES, hosted
from tests.test_replay import FIRST, SETTINGS, conserves, figures, flat, weeks

# ---- worked examples: trace, capacity, parameters -> (hits, evictions); who leaves is in the comment --------------

WORKED = [
    # hand clears A's bit twice; out: B C D B
    ("sieve", "A B C A D A E B E F", 3, {}, (3, 4)),
    # small 1, main 3, ghost 3: B C D fall out of small, E and B follow; out: B C D
    ("s3fifo", "A B C D A A E B A F", 4, {"small_share": 0.25, "ghost_share": 0.75}, (3, 3)),
    # out: B C A D, the target ends at 0
    ("arc", "A B A C D B E A", 3, {}, (1, 4)),
    # queue 1, keys 2: A falls out, comes back into the recency list; out: A B C D
    ("twoq", "A B C D A E A F A B", 4, {}, (2, 4)),
    # A has two uses: B and C go first; out: B C
    ("lruk", "A A B C A B", 2, {}, (2, 2)),
]


@pytest.mark.parametrize(("policy", "trace", "capacity", "parameters", "wanted"), WORKED)
def test_worked_examples(
    policy: str, trace: str, capacity: int, parameters: dict[str, float], wanted: tuple[int, int]
) -> None:
    tally = replay(flat(trace), policy, capacity_tokens=capacity, parameters=parameters)
    assert figures(tally, "hits", "evictions") == wanted


@st.composite
def tagged_weeks(draw: st.DrawFn, sizes: st.SearchStrategy[int]) -> tuple[Paths, list[tuple[int, ...]]]:
    """Random weeks whose requests carry what some policies ask for."""
    paths, requests = draw(weeks(sizes))
    tags = {
        name: np.array(draw(st.lists(st.sampled_from(values), min_size=paths.requests, max_size=paths.requests)))
        for name, values in (("session_type", [0, 1]), ("turn", [1, 2, 9]), ("priority", [5, 35, 80]),
                             ("retention_seconds", [-1.0, 0.0, 30.0]))
    }  # fmt: skip
    return replace(paths, tags=tags), requests


COMPILED = False


@pytest.mark.parametrize("policy", list(RULES))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_policy_equals_its_plain_statement(policy: str, data: st.DataObject) -> None:
    paths, requests = data.draw(tagged_weeks(st.integers(1, 4)))
    setting: Setting = data.draw(SETTINGS)
    capacity = data.draw(st.integers(1, 16))
    tally = replay(paths, policy, capacity_tokens=capacity, setting=setting, compiled=COMPILED)
    conserves(tally)
    plain = hosted(RULES[policy], paths, capacity, setting)
    lost = lost_reads(paths, setting.loss, setting.seed)
    for i, path in enumerate(requests):
        plain.request(i, int(paths.ts_us[i]), path, int(paths.input_tokens[i]), bool(lost[i]))
    got = tally.total()
    names = [name for name in FIELDS if name != "evicted_unused_tokens"]
    assert {name: got[name] for name in names} == {name: plain.totals[name] for name in names}


@pytest.mark.parametrize("policy", list(RULES))
@settings(max_examples=15, deadline=None)
@given(week=tagged_weeks(st.integers(1, 4)), capacity=st.integers(1, 16))
def test_uncompiled_is_the_same(policy: str, week: tuple, capacity: int) -> None:
    fast = replay(week[0], policy, capacity_tokens=capacity)
    slow = replay(week[0], policy, capacity_tokens=capacity, compiled=False)
    assert (fast.by_block == slow.by_block).all()


def test_every_policy_is_tested() -> None:
    elsewhere = {"saecache", "lpc_turns", "prefix_biased_depth", "prefix_biased_fanout"}
    assert set(RULES) | set(FIRST) | elsewhere == set(REGISTRY)
