"""The published systems: each update rule by hand, learning toward the truth, and the laws of every replay."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.policies import describe, lpc_turns, named, next_turn, saecache
from kit.policies import saecache_rules as rules
from kit.prefix import TOKEN_TYPES, Paths, build_forest, make_paths
from kit.replay import Setting, optimal, replay
from kit.replay.build import state
from tests.test_replay import conserves

SECOND = 1_000_000
SYSTEM, THINKING = TOKEN_TYPES.index("system"), TOKEN_TYPES.index("thinking")


def typed(
    paths: list[list[tuple[int, int]]], sessions: list[int], agent: list[bool], gap_seconds: float = 1.0
) -> Paths:
    """Paths of (key, token type) pairs of 10 tokens each."""
    offsets = np.concatenate([[0], np.cumsum([len(path) for path in paths])])
    keys = np.array([key for path in paths for key, _ in path], np.uint64)
    kinds = np.array([kind for path in paths for _, kind in path])
    leaf, parent, tokens, _, first = build_forest(offsets, keys, np.full(keys.size, 10))
    made = make_paths(parent, tokens, leaf, (np.arange(len(paths)) * gap_seconds * SECOND).astype(np.int64),
                      sessions=np.array(sessions))  # fmt: skip
    tags = {"session": np.array(sessions), "session_type": np.where(agent, 3, 2)}
    return replace(made, tags=tags, node_type=kinds[first].astype(np.int32))


def empty_pool(kinds: list[int], **parameters: float) -> saecache.Pool:
    """A pool over single nodes of the given token types, one request each."""
    paths = typed([[(k, kind)] for k, kind in enumerate(kinds)], list(range(len(kinds))), [False] * len(kinds))
    pool, _ = state(named("saecache"), paths, 10**9, parameters)
    return pool


def test_survival_over_idle_falls_so_the_order_in_a_class_is_lru() -> None:
    for mu, sigma in ((4.15, 0.97), (2.28, 1.34)):
        falls = [rules.survival(idle, mu, sigma) / idle for idle in (0.1, 1, 5, 30, 120, 600, 3600)]
        assert all(a > b for a, b in itertools.pairwise(falls))


def test_scores_of_six_blocks_in_the_published_order() -> None:
    # chat 60 s, agent 60 s, system (weight 5) 300 s in chat, thinking (weight .1) 10 s in chat, structural 1/8 and 7/8:
    # S(300; 4.15, .97) x 5 / 300 = .00091 < S(60; 2.28, 1.34) / 60 = .00147 < (1 - 7/8) / 60 = .0021 < chat 60
    # .0087 < thinking .0097 < (1 - 1/8) / 60 = .0146
    chat, agent = (4.15, 0.97), (2.28, 1.34)
    order = sorted([
        (rules.survival(300, *chat) * 5 / 300, "system 300"), (rules.survival(60, *agent) / 60, "agent 60"),
        ((1 - 7 / 8) / 60, "structural 7/8"), (rules.survival(60, *chat) / 60, "chat 60"),
        (rules.survival(10, *chat) * 0.1 / 10, "thinking 10"), ((1 - 1 / 8) / 60, "structural 1/8"),
    ])  # fmt: skip
    assert [name for _, name in order] == ["system 300", "agent 60", "structural 7/8", "chat 60", "thinking 10",
                                           "structural 1/8"]  # fmt: skip
    assert order[0][0] == pytest.approx(0.00091, abs=5e-6)


def test_type_weights_step_toward_one_plus_five_regret_plus_two_hits() -> None:
    # system: 1,000 uses, 100 regrets, 923 hits: target 1 + .5 + 1.846 = 3.346; one step of .1 from 1: 1.2346
    p = empty_pool([SYSTEM, THINKING])
    p.core.learned[rules.TYPE_USES, SYSTEM] = 1000
    p.core.learned[rules.TYPE_REGRET, SYSTEM] = 100
    p.core.learned[rules.TYPE_HITS, SYSTEM] = 923
    rules.learn(p)
    assert p.core.learned[rules.WEIGHT, SYSTEM] == pytest.approx(1.2346)
    assert p.core.learned[rules.TYPE_USES, SYSTEM] == pytest.approx(990)


def test_queue_weights_follow_what_a_token_yields() -> None:
    # yields 1 : 0 : 0 at temperature 1: shares e / (e + 2) x 3 = 1.728 and 3 / (e + 2) = .636; one step of .1 from 1
    p = empty_pool([SYSTEM])
    p.core.learned[rules.QUEUE_HITS, rules.CHAT] = p.core.learned[rules.QUEUE_ROOM, rules.CHAT] = 50
    rules.learn(p)
    assert p.core.learned[rules.ALPHA, rules.CHAT] == pytest.approx(0.9 + 0.1 * 3 * math.e / (math.e + 2))
    assert p.core.learned[rules.ALPHA, rules.AGENT] == pytest.approx(0.9 + 0.1 * 3 / (math.e + 2))


def test_gamma_takes_the_exponent_that_fits_the_hits() -> None:
    p = empty_pool([SYSTEM])
    for place in range(rules.BINS):
        x = (place + 0.5) / rules.BINS
        p.core.learned[rules.BIN_USES, place] = 100
        p.core.learned[rules.BIN_HITS, place] = 100 * (1 - x**2)
    rules.learn_gamma(p)
    assert p.core.learned[rules.GAMMA, 0] == 2.0


def test_what_is_counted_and_learned_from_four_requests() -> None:
    # a (session 0), b (session 1), a, a; room for one node of 10 tokens. a enters, goes for b, b for a (a regret:
    # evicted before), a hits. Uses 3 entries + 1 hit = 4, hits 1, regrets 1, all in the first tenth of the prompt. The
    # first turns are expected to be the last (no session went on yet): 20 tokens evict-first; then session 0 is chat:
    # 20 tokens placed, 10 of them hit. Weight: target 1 + 5 / 4 + 2 / 4 = 2.75, one step of .1 from 1: 1.175
    p, _ = state(named("saecache"), typed([[(1, SYSTEM)], [(2, SYSTEM)], [(1, SYSTEM)], [(1, SYSTEM)]], [0, 1, 0, 0],
                                          [False] * 4), 10)  # fmt: skip
    free = [SimpleNamespace(pinned=-9)] * 2
    for request, (node, goes) in enumerate(((0, -1), (1, 0), (0, 1), (0, -1))):
        if goes >= 0:
            assert saecache.victim(p, None, free, request) == goes
        saecache.arrive(p, request, node, 0, request * SECOND)
    rules.gather(p)
    learned = p.core.learned
    counted = [learned[row, SYSTEM] for row in (rules.TYPE_USES, rules.TYPE_HITS, rules.TYPE_REGRET)]
    assert counted == [4, 1, 1] and learned[rules.BIN_USES, 0] == 4 and learned[rules.BIN_HITS, 0] == 1
    assert learned[rules.QUEUE_ROOM, :4].tolist() == [20, 0, 20, 0]
    assert learned[rules.QUEUE_HITS, :4].tolist() == [0, 0, 10, 0]
    rules.learn(p)
    assert learned[rules.WEIGHT, SYSTEM] == pytest.approx(1.175)


def test_mu_and_sigma_step_toward_the_last_gaps() -> None:
    # twenty gaps, ten of e^2 and ten of e^4 seconds: mean 3, deviation 1; one step of .1 from 4.15 and .97
    p = empty_pool([SYSTEM])
    for k in range(20):
        rules.note_gap(p, rules.CHAT, math.exp(2 if k % 2 else 4))
    assert p.core.learned[rules.MU, rules.CHAT] == pytest.approx(4.15 + 0.1 * (3 - 4.15))
    assert p.core.learned[rules.SIGMA, rules.CHAT] == pytest.approx(0.97 + 0.1 * (1 - 0.97))
    rules.note_gap(p, rules.CHAT, 3601.0)  # over an hour: not a gap
    assert p.core.learned[rules.GAPS_SEEN, rules.CHAT] == 20


def test_gaps_move_mu_and_sigma_to_the_truth() -> None:
    # 20,000 log-normal gaps (3.0, 0.5): after 1,000 steps of .1 the fit of the last 200 gaps is what is left
    p = empty_pool([SYSTEM])
    for gap in np.exp(np.random.default_rng(1).normal(3.0, 0.5, 20_000)):
        rules.note_gap(p, rules.CHAT, float(gap))
    assert p.core.learned[rules.MU, rules.CHAT] == pytest.approx(3.0, abs=0.1)
    assert p.core.learned[rules.SIGMA, rules.CHAT] == pytest.approx(0.5, abs=0.1)


def test_an_ablation_learns_nothing() -> None:
    p = empty_pool([SYSTEM], fixed_types=1, fixed_queues=1, fixed_timing=1, fixed_decay=1)
    before = p.core.learned[: rules.TYPE_HITS].copy(), p.core.learned[rules.GAMMA].copy()
    p.core.learned[rules.TYPE_USES] = 10
    rules.learn(p)
    rules.note_gap(p, rules.CHAT, 5.0)
    assert (p.core.learned[: rules.TYPE_HITS] == before[0]).all() and (p.core.learned[rules.GAMMA] == before[1]).all()


def test_thinking_goes_before_the_prompt_it_belongs_to() -> None:
    # session 0 twice (so it is chat): system s, thinking t under it; then a stranger needs 10 tokens: t goes, s stays
    paths = typed([[(1, SYSTEM), (2, THINKING)], [(1, SYSTEM), (2, THINKING)], [(9, SYSTEM)], [(1, SYSTEM)]],
                  [0, 0, 1, 0], [False] * 4)  # fmt: skip
    tally = replay(paths, "saecache", capacity_tokens=20)
    assert tally.total()["hit_tokens"] == 20 + 10


def mixed_week(seed: int = 3, requests: int = 3000) -> Paths:
    """Chat and agent sessions over shared roots, with typed nodes."""
    rng = np.random.default_rng(seed)
    session = rng.integers(0, 400, requests)
    turn = np.zeros(400, int)
    paths = []
    for who in session:
        turn[who] += 1
        body = [(1000 + who * 50 + k, 3 + k % 5) for k in range(min(turn[who], 12))]
        paths.append([(int(who) % 7, SYSTEM), *body])
    return typed(paths, session.tolist(), (session % 2 == 0).tolist(), 20.0)


@pytest.mark.parametrize("policy", ["saecache", "lpc_turns", "prefix_biased_depth", "prefix_biased_fanout"])
def test_they_conserve_and_stay_under_the_optimum(policy: str) -> None:
    paths = mixed_week()
    for capacity in (300, 1500, 6000):
        tally = replay(paths, policy, capacity_tokens=capacity, setting=Setting(ttl_seconds=3600))
        conserves(tally)
        assert tally.total()["hit_tokens"] <= optimal(paths, capacity, 3600).hit_tokens


@pytest.mark.parametrize("policy", ["saecache", "lpc_turns", "prefix_biased_fanout"])
def test_compiled_equals_uncompiled(policy: str) -> None:
    paths = mixed_week(requests=400)
    fast = replay(paths, policy, capacity_tokens=900)
    slow = replay(paths, policy, capacity_tokens=900, compiled=False)
    assert (fast.by_block == slow.by_block).all()


def test_predictors_span_from_never_to_oracle() -> None:
    paths = mixed_week()
    ratios = {way: replay(paths, "saecache", capacity_tokens=3000, parameters={"predictor": way}).hit_token_ratio()
              for way in (0.0, 1.0, 2.0, 3.0, 4.0)}  # fmt: skip
    assert all(ratio is not None and 0 < ratio < 1 for ratio in ratios.values())


def worst_leaf(p: saecache.Pool, nodes: Any, request: int) -> int:
    """The lowest (score, shallow last, newest last) among all resident leaves that the request does not pin."""
    best: tuple[float, int, int] | None = None
    for node in range(p.spots.size):
        spot = p.spots[node]
        if not spot.there or spot.children or nodes[node].pinned == request:
            continue
        used = int(spot.order) >> 32
        idle = (int(p.asks[request].ts_us) - int(p.asks[used].ts_us)) * 1e-6
        value = rules.queue_of(int(spot.lane)) != rules.EVICT_FIRST, saecache.score(p, int(spot.lane), idle)
        found = (*value, -(0x7FFFFFFF - (int(spot.order) & 0xFFFFFFFF)), used, node)
        best = min(best, found) if best else found
    return best[-1] if best else -1


CHOSEN: list[tuple[int, int]] = []


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The policy's own choice, noted beside the right one."""
    expected = worst_leaf(p, nodes, request)
    CHOSEN.append((saecache.victim(p, own, nodes, request), expected))
    return CHOSEN[-1][0]


@pytest.mark.parametrize("ways", [{}, {"predictor": 0.0}, {"predictor": 4.0, "update_evictions": 20.0}])
def test_the_victim_is_the_lowest_of_all_leaves(ways: dict[str, float]) -> None:
    """Heads of lanes stand for all leaves: no eviction differs from the one that looks at every leaf."""
    CHOSEN.clear()
    watched = SimpleNamespace(**{**vars(saecache), "victim": victim, "__name__": "watched"})
    replay(mixed_week(requests=300), describe(watched, "watched"), capacity_tokens=900, compiled=False,
           setting=Setting(ttl_seconds=3000), parameters=ways)  # fmt: skip
    assert len(CHOSEN) > 100 and all(found == expected for found, expected in CHOSEN)


def asked_at(seconds: list[int], sessions: list[int], tokens: int = 1000) -> Paths:
    """Requests of one node of its own each, at the given seconds of the first day."""
    count = len(seconds)
    made = make_paths(np.full(count, -1, np.int32), np.full(count, tokens), np.arange(count, dtype=np.int32),
                      np.array(seconds) * SECOND, sessions=np.array(sessions))  # fmt: skip
    return replace(made, tags={"session": np.array(sessions)})


def test_the_regression_steps_toward_the_outcome() -> None:
    # first turn at midnight, 1,000 tokens, nobody on the root before: features 1, ln 1 = 0, ln 1 = 0, sin 0 = 0,
    # cos 0 = 1, model 0. Weights 0 give 1/2; it went on, so each moves by .05 x (1 - 1/2) x feature = .025 x feature
    p, _ = state(named("saecache"), asked_at([0, 60], [0, 0]), 10**6, {"predictor": 4})
    saecache.route(p, 0, 0)
    assert not p.core.learned[next_turn.ODDS].any()
    saecache.route(p, 1, 60 * SECOND)
    moved = p.core.learned[next_turn.ODDS]
    assert moved[[next_turn.BIAS, next_turn.COSINE, next_turn.MODEL]] == pytest.approx([0.025] * 3)
    assert not moved[[next_turn.LENGTH, next_turn.REUSE, next_turn.SINE]].any()
    # the same again: odds .075, probability 1 / (1 + e^-.075) = .51874, step .05 x .48126 = .024063
    p.known[0].judged = False
    next_turn.judge(p, 0, 1.0, 0.05)
    assert moved[next_turn.BIAS] == pytest.approx(0.025 + 0.05 * (1 - 1 / (1 + math.exp(-0.075))))


def test_the_regression_is_asked_before_it_learns_and_waits_an_hour() -> None:
    # session 0 asks once; 3,600 s later nothing is known yet, one more and it did not go on: weights fall by .025
    p, _ = state(named("saecache"), asked_at([0, 3600, 3601], [0, 1, 2]), 10**6, {"predictor": 4})
    saecache.route(p, 0, 0)
    saecache.route(p, 1, 3600 * SECOND)
    assert not p.core.learned[next_turn.ODDS].any()
    assert saecache.route(p, 2, 3601 * SECOND) == rules.EVICT_FIRST  # now it expects no second turn
    assert p.core.learned[next_turn.ODDS, next_turn.BIAS] == pytest.approx(-0.025)


def test_the_regression_learns_long_prompts_that_go_on() -> None:
    # sessions of 8,000 tokens ask twice, those of 100 once: after 1,000 sessions it tells them apart
    rng = np.random.default_rng(5)
    long = rng.random(1000) < 0.5
    seconds, sessions, tokens = [], [], []
    for who, goes_on in enumerate(long):
        for turn in range(1 + goes_on):
            seconds.append(100 * who + 10 * turn)
            sessions.append(who)
            tokens.append(8000 if goes_on else 100)
    made = asked_at(seconds, sessions)
    paths = make_paths(made.parent, np.array(tokens), made.leaf, made.ts_us, sessions=np.array(sessions))
    p, _ = state(named("saecache"), replace(paths, tags=made.tags), 10**9, {"predictor": 4})
    expected = []
    for request, second in enumerate(seconds):
        first = p.known[sessions[request]].turns == 0
        queue = saecache.route(p, request, second * SECOND)
        if first and sessions[request] >= 500:
            expected.append((queue == rules.CHAT) == long[sessions[request]])
    assert np.mean(expected) > 0.99


def test_what_is_learned_here_runs_frozen_there() -> None:
    """With every learner off nothing moves from what was handed over."""
    paths = mixed_week()
    learned = dict(replay(paths, "saecache", capacity_tokens=900, parameters={"update_evictions": 50}).learned)
    assert learned != {name: saecache.PARAMETERS[name] for name in learned}
    off = {name: 1.0 for name in saecache.PARAMETERS if name.startswith("fixed_")}
    again = replay(mixed_week(seed=4), "saecache", capacity_tokens=900, parameters={**learned, **off})
    assert again.learned == pytest.approx(learned)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([1, 9, -1]), st.integers(0, 7)), max_size=60))
def test_lanes_give_up_their_oldest_leaf(steps: list[tuple[int, int]]) -> None:
    """Lanes 1 and 9 (system prompts, evict-first and chat) against a dict: enter, move to the other, or go (-1)."""
    p = empty_pool([SYSTEM] * 8)
    there: dict[int, tuple[int, int]] = {}
    for request, (lane, node) in enumerate(steps):
        if lane < 0:
            if there.pop(node, None):
                saecache.give_up(p, node)
            continue
        if node in there:
            saecache.drop_leaf(p, node)
        p.spots[node].lane, p.spots[node].order = lane, saecache.order_of(request, 0)
        saecache.add_leaf(p, node)
        there[node] = (lane, request)
        live = p.core.live[saecache.FIRST : saecache.FIRST + p.core.live[saecache.COUNT]].tolist()
        assert sorted(live) == sorted({lane for lane, _ in there.values()})
        for which in live:
            oldest = min((used, name) for name, (lane, used) in there.items() if lane == which)[1]
            assert p.heap[p.core.lanes[which].start] == oldest
            assert p.core.lanes[which].leaves == sum(lane == which for lane, _ in there.values())


def test_lpc_by_hand() -> None:
    # .9 after 120 s idle is .9 e^-1.2 = .2711, .4 after 10 s is .3619: the first goes
    assert 0.9 * math.exp(-0.01 * 120) == pytest.approx(0.2711, abs=5e-5)
    assert 0.4 * math.exp(-0.01 * 10) == pytest.approx(0.3619, abs=5e-5)


def test_lpc_counts_which_turns_go_on() -> None:
    # two sessions ask once, one of them again: of the first turns seen (1 + 2 prior) two went on (1 + 1)
    paths = typed([[(1, SYSTEM)], [(2, SYSTEM)], [(1, SYSTEM)]], [0, 1, 0], [False] * 3)
    pool, _ = state(named("lpc_turns"), paths, 100)
    for request, node in enumerate((0, 1, 0)):
        lpc_turns.arrive(pool, request, request * SECOND)
        assert node >= 0
    assert pool.rate[0].tolist() == [2.0, 4.0] and pool.rate[1].tolist() == [1.0, 3.0]
