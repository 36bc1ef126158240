"""The published systems: each update rule by hand, learning toward the truth, and the laws of every replay."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from kit.policies import lpc_turns, named, saecache
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
        falls = [saecache.survival(idle, mu, sigma) / idle for idle in (0.1, 1, 5, 30, 120, 600, 3600)]
        assert all(a > b for a, b in itertools.pairwise(falls))


def test_scores_of_six_blocks_in_the_published_order() -> None:
    # chat 60 s, agent 60 s, system (weight 5) 300 s in chat, thinking (weight .1) 10 s in chat, structural 1/8 and 7/8:
    # S(300; 4.15, .97) x 5 / 300 = .00091 < S(60; 2.28, 1.34) / 60 = .00147 < (1 - 7/8) / 60 = .0021 < chat 60
    # .0087 < thinking .0097 < (1 - 1/8) / 60 = .0146
    chat, agent = (4.15, 0.97), (2.28, 1.34)
    order = sorted([
        (saecache.survival(300, *chat) * 5 / 300, "system 300"), (saecache.survival(60, *agent) / 60, "agent 60"),
        ((1 - 7 / 8) / 60, "structural 7/8"), (saecache.survival(60, *chat) / 60, "chat 60"),
        (saecache.survival(10, *chat) * 0.1 / 10, "thinking 10"), ((1 - 1 / 8) / 60, "structural 1/8"),
    ])  # fmt: skip
    assert [name for _, name in order] == ["system 300", "agent 60", "structural 7/8", "chat 60", "thinking 10",
                                           "structural 1/8"]  # fmt: skip
    assert order[0][0] == pytest.approx(0.00091, abs=5e-6)


def test_type_weights_step_toward_one_plus_five_regret_plus_two_hits() -> None:
    # system: 1,000 uses, 100 regrets, 923 hits: target 1 + .5 + 1.846 = 3.346; one step of .1 from 1: 1.2346
    p = empty_pool([SYSTEM, THINKING])
    p.learned[saecache.TYPE_USES, SYSTEM] = 1000
    p.learned[saecache.TYPE_REGRET, SYSTEM] = 100
    p.learned[saecache.TYPE_HITS, SYSTEM] = 923
    saecache.learn(p)
    assert p.learned[saecache.WEIGHT, SYSTEM] == pytest.approx(1.2346)
    assert p.learned[saecache.TYPE_USES, SYSTEM] == pytest.approx(990)


def test_queue_weights_follow_what_a_token_yields() -> None:
    # yields 1 : 0 : 0 at temperature 1: shares e / (e + 2) x 3 = 1.728 and 3 / (e + 2) = .636; one step of .1 from 1
    p = empty_pool([SYSTEM])
    p.learned[saecache.QUEUE_HITS, saecache.CHAT] = p.learned[saecache.QUEUE_ROOM, saecache.CHAT] = 50
    saecache.learn(p)
    assert p.learned[saecache.ALPHA, saecache.CHAT] == pytest.approx(0.9 + 0.1 * 3 * math.e / (math.e + 2))
    assert p.learned[saecache.ALPHA, saecache.AGENT] == pytest.approx(0.9 + 0.1 * 3 / (math.e + 2))


def test_gamma_takes_the_exponent_that_fits_the_hits() -> None:
    p = empty_pool([SYSTEM])
    for place in range(saecache.BINS):
        x = (place + 0.5) / saecache.BINS
        p.learned[saecache.BIN_USES, place] = 100
        p.learned[saecache.BIN_HITS, place] = 100 * (1 - x**2)
    saecache.learn_gamma(p)
    assert p.learned[saecache.GAMMA, 0] == 2.0


def test_gaps_move_mu_and_sigma_to_the_truth() -> None:
    # 20,000 log-normal gaps (3.0, 0.5): after 1,000 steps of .1 the fit of the last 200 gaps is what is left
    p = empty_pool([SYSTEM])
    for gap in np.exp(np.random.default_rng(1).normal(3.0, 0.5, 20_000)):
        saecache.note_gap(p, saecache.CHAT, float(gap))
    assert p.learned[saecache.MU, saecache.CHAT] == pytest.approx(3.0, abs=0.1)
    assert p.learned[saecache.SIGMA, saecache.CHAT] == pytest.approx(0.5, abs=0.1)


def test_an_ablation_learns_nothing() -> None:
    p = empty_pool([SYSTEM], fixed_types=1, fixed_queues=1, fixed_timing=1, fixed_decay=1)
    before = p.learned[: saecache.TYPE_HITS].copy(), p.learned[saecache.GAMMA].copy()
    p.learned[saecache.TYPE_USES] = 10
    saecache.learn(p)
    saecache.note_gap(p, saecache.CHAT, 5.0)
    assert (p.learned[: saecache.TYPE_HITS] == before[0]).all() and (p.learned[saecache.GAMMA] == before[1]).all()


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
              for way in (0.0, 1.0, 2.0, 3.0)}  # fmt: skip
    assert all(ratio is not None and 0 < ratio < 1 for ratio in ratios.values())


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
