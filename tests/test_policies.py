"""Policies beyond the first eight: hand-worked traces, an independent plain statement of each, and public counts."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.policies import REGISTRY, Policy, lecar, lhd, marconi, redis_lfu, redis_lru, tlru, workload_aware
from kit.prefix import Paths, build_forest, flat_forest, make_paths
from kit.replay import FIELDS, Setting, build, lost_reads, optimal, replay, search
from kit.replay.fleet import select
from tests.plain_policies import RULES, hosted
from tests.test_replay import FIRST, SECOND, SETTINGS, conserves, figures, flat, nested, weeks

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
    # window 1, probation 1, protected 2, counted from the start: C and A are refused as candidates; out: D B F
    ("w_tinylfu", "A B C D A E E F E C B A", 4, {"count_from_share": 0.0, "adaptive": 0.0}, (5, 3)),
    # at C: A 3 uses in 4 requests, B 1 in 3 -> B; at D: A 3 in 5, C 1 in 1 -> A; out: B A
    ("hyperbolic", "A B A A C D", 2, {}, (2, 2)),
    # one minute apart would decay; one second apart the count stays: as LRU-K's trace
    ("lfu_halving", "A A B C A B", 2, {}, (2, 2)),
    # five or fewer keys are all looked at: the longest idle goes, as LRU: 1 hit, out: B C
    ("redis_lru", "A B C A D B", 3, {}, (1, 2)),
    # recency alone where nobody has a priority, a type or a turn of its own
    ("workload_aware", "A B C A D B", 3, {}, (1, 2)),
    ("tlru", "A B C A D B", 3, {}, (1, 2)),
    ("marconi", "A B C A D B", 3, {"alpha": 0.0}, (1, 2)),
    # the last token is computed again: a key of one token never hits, the evictions stay
    ("vllm_lru", "A B C A D B", 3, {}, (0, 2)),
    # 1 token is short of a chunk of 256
    ("lmcache_lru", "A B C A D B", 3, {}, (0, 2)),
    # A, used three times, is warm; B C D stay in the coldest list: C pushes out B, D pushes out C; A hits at the end
    ("dynamo_multilru", "A A A B C D A", 2, {}, (3, 2)),
]


@pytest.mark.parametrize(("policy", "trace", "capacity", "parameters", "wanted"), WORKED)
def test_worked_examples(
    policy: str, trace: str, capacity: int, parameters: dict[str, float], wanted: tuple[int, int]
) -> None:
    tally = replay(flat(trace), policy, capacity_tokens=capacity, parameters=parameters, compiled=False)
    assert figures(tally, "hits", "evictions") == wanted


def test_vllm_withholds_a_block_and_counts_a_partial_one() -> None:
    # blocks of 2, capacity 8 = 4 blocks. a1-a5: 4 tokens cached (and one slot for the fifth). The exact prompt a1-a4
    # hits 2 of 4, since its last token must be computed. b shares a1 a2: hits 2.
    first = nested_tokens([[1, 2, 3, 4, 5], [1, 2, 3, 4], [1, 2, 13, 14, 15]])
    tally = replay(first, "vllm_lru", capacity_tokens=8, compiled=False)
    assert figures(tally, "hit_tokens", "hits") == (2 + 2, 2)
    assert figures(replay(first, "lru", capacity_tokens=8, compiled=False), "hit_tokens") == (4 + 2,)
    # with slots for partial blocks, 7 tokens of c take all four: a3 a4, b13 b14 and the shared a1 a2 go
    kept = nested_tokens([[1, 2, 3, 4], [1, 2, 13, 14], [21, 22, 23, 24, 25, 26, 27]], partial_tail="keep")
    assert figures(replay(kept, "vllm_lru", capacity_tokens=8, compiled=False), "evictions") == (3,)


def nested_tokens(prompts: list[list[int]], block: int = 2, partial_tail: str = "drop") -> Paths:
    """Prompts of one-token nodes, cut to blocks."""
    offsets = np.concatenate([[0], np.cumsum([len(prompt) for prompt in prompts])])
    keys = np.array([token for prompt in prompts for token in prompt], np.uint64)
    leaf, parent, tokens, *_ = build_forest(offsets, keys, np.ones(keys.size, np.int64))
    return make_paths(parent, tokens, leaf, np.arange(len(prompts)) * SECOND, block_tokens=block,
                      partial_tail=partial_tail)  # fmt: skip


def test_sglang_frees_whole_leaf_nodes() -> None:
    # capacity 8: 1234 | 1256 splits it after 2 and hits 2 | 789 needs 1: the leaf node 34 goes whole (2 evictions,
    # where blocks would lose one) | 123 hits 2 of 3, since its last token is computed; 3 comes back, 8 tokens are held
    requests = ["1234", "1256", "789", "123"]
    tally = replay(nested(requests), "sglang_lru", capacity_tokens=8, compiled=False)
    assert figures(tally, "hit_tokens", "evictions") == (4, 2)
    assert figures(replay(nested(requests), "lru", capacity_tokens=8, compiled=False), "evictions") == (1,)


def test_sglang_keeps_what_was_used_twice() -> None:
    # ab is used twice, cd once and later: lru drops ab's node, slru and lfu drop cd's
    requests = ["ab", "abx", "cd", "ef", "abx"]
    hits = {name: figures(replay(nested(requests), name, capacity_tokens=5, compiled=False), "hit_tokens")[0]
            for name in ("sglang_lru", "sglang_slru", "sglang_lfu")}  # fmt: skip
    # abx: 2 of ab; then ef needs 2 more than 5: lru drops x, then ab; the others drop x, then cd: ab hits again
    assert hits == {"sglang_lru": 2, "sglang_slru": 4, "sglang_lfu": 4}


def test_tensorrt_priorities_run_out() -> None:
    # milliseconds 0 1 2 3: sys (80, kept 100 ms), u1, cot (5), u2 (35). At 50 cot goes, at 60 u1; at 150 sys has fallen
    # back behind u2, so u2 goes, and at 151 sys.
    keys = ["sys", "u1", "cot", "u2", "v", "w", "x", "y"]
    paths = replace(flat(" ".join(keys)), ts_us=np.array([0, 1, 2, 3, 50, 60, 150, 151]) * 1000)
    priority = np.array([80, 35, 5, 35, 90, 90, 90, 90])
    kept = np.array([0.1, -1, -1, -1, -1, -1, -1, -1])
    for until, left in ((5, {"sys", "u1", "u2"}), (6, {"sys", "u2"}), (7, {"sys"}), (8, set())):
        for key in ("sys", "u1", "cot", "u2"):
            tags = {"priority": np.append(priority[:until], 35), "retention_seconds": np.append(kept[:until], -1)}
            asked = flat(" ".join([*keys[:until], key]))
            asked = replace(asked, ts_us=np.append(paths.ts_us[:until], paths.ts_us[until - 1]), tags=tags)
            hits = figures(replay(asked, "tensorrt_priority", capacity_tokens=4, compiled=False), "hits")[0]
            assert (hits == 1) == (key in left), (until, key)


def test_a_policy_says_what_the_log_lacks() -> None:
    with pytest.raises(ValueError, match="policy 'tensorrt_priority' needs 'priority' of every request"):
        replay(flat("A"), "tensorrt_priority", capacity_tokens=1)
    assert "priority" in REGISTRY["tensorrt_priority"].needs
    assert any("session_type" in need for need in REGISTRY["workload_aware"].needs)


def test_mooncake_evicts_in_batches_above_its_watermark() -> None:
    # 30 keys at capacity 30: the 28th finds 27 held = 0.9, not above; the 29th finds 28 held = .933: target .05 + .033
    # = .083 of 28 -> 3 go; the 30th finds 26 held: nothing
    trace = flat(" ".join(f"k{i}" for i in range(30)))
    assert figures(replay(trace, "mooncake_store", capacity_tokens=30, compiled=False), "evictions") == (3,)
    # a read lends 10 seconds: A, read once, outlives B and C, which were put later
    tally = replay(flat("A A B C D A"), "mooncake_store", capacity_tokens=3, parameters={"high_watermark": 1.0},
                   compiled=False)  # fmt: skip
    assert figures(tally, "hits") == (2,)


def test_redis_counters() -> None:
    # p(5) = 1, p(6) = 1 / 11, p(10) = 1 / 51: 105 uses on average from 5 to 10 (5 n^2 - 4 n)
    assert sum(max(0, c - 5) * 10 + 1 for c in range(5, 10)) == 105
    pool = redis_lfu.pool(3, np.zeros(1, np.int64))
    pool.counter[0], pool.minute[0] = 10, 0
    assert redis_lfu.decayed(pool, 0, 7 * 60_000_000) == 3  # ten less seven idle minutes
    for node, idle in ((0, 250), (1, 250), (2, 252)):
        redis_lru.pool_in(pool, node, idle)
    assert [int(pool.pooled[k]) for k in (2, 1, 0)] == [2, 0, 1]  # the most idle, then the one pooled earlier


def test_lecar_regret() -> None:
    # N = 100, ten requests: discount^10 = 0.005^0.1 = .5887; exp(-.45 x .5887) = .7673; .3836 / (.3836 + .5) = .4342
    assert lecar.regretted(0.5, 10, 0.45, 0.005 ** (1 / 100)) == pytest.approx(0.4342, abs=5e-5)


def test_lhd_densities() -> None:
    # hits 4 2 0, ends 0 1 3 at ages 0 1 2: from age 1: 2 hits / (3 + 6) lifetimes; from age 0: 6 / (3 + 6 + 10)
    out = np.zeros((1, 3))
    lhd.densities(np.array([[4.0, 2.0, 0.0]]), np.array([[0.0, 1.0, 3.0]]), out)
    assert out[0].round(4).tolist() == [0.3158, 0.2222, 0.0]


def test_chance_to_return() -> None:
    # mean 120 s idle 60 s: e^-.5 (1 - e^-2.5) = .557; mean 600 s idle 300 s: e^-.5 (1 - e^-.5) = .239
    assert workload_aware.returns(60, 120, 300) == pytest.approx(0.557, abs=5e-4)
    assert workload_aware.returns(300, 600, 300) == pytest.approx(0.239, abs=5e-4)


@pytest.mark.parametrize(("tokens", "safe"), [(200, True), (300, True), (400, False)])
def test_what_the_next_turn_would_not_miss(tokens: int, safe: bool) -> None:
    # longest 1,000, threshold 400, next prompt 100: 700 must stay
    own = tlru.own(np.array([1000]), np.array([tokens]), np.zeros(1, np.int32), 400, 100)
    tlru.on_enter(own, 0, 0, 0)
    assert (tlru.key(own, 0) == -1.0) == safe


def test_sglang_evicts_the_lowest_priority_first() -> None:
    # keys of two tokens, room for two keys; the last token of a prompt is computed again, so a hit is one token.
    # A is urgent (5), B C D are not: C pushes out B and D pushes out C although A is the oldest; A still hits.
    # Asked for by a plain request, A keeps its priority; E (no priority: 0) goes before B (1)
    leaf, parent, tokens, *_ = flat_forest(np.frombuffer(b"ABCDAEBF", np.uint8).astype(np.uint64), np.full(8, 2))
    paths = make_paths(parent, tokens, leaf, np.arange(8) * 1_000_000)
    priority = np.array([5, 0, 0, 0, 0, -1, 1, 0])
    hits = []
    for until in range(1, 9):
        asked = select(replace(paths, tags={"priority": priority}), np.arange(until))
        hits.append(replay(asked, "sglang_priority", capacity_tokens=4, compiled=False).total()["hits"])
    assert hits == [0, 0, 0, 0, 1, 1, 1, 1]
    with pytest.raises(ValueError, match="policy 'sglang_priority' needs 'priority' of every request"):
        replay(flat("A"), "sglang_priority", capacity_tokens=1)


def test_marconi_weighs_work_against_recency() -> None:
    # work 10 40 20, idle 1 4 2 s -> 1/idle scaled: 1, 0, 1/3; work scaled: 0, 1, 1/3
    # alpha 0: the second goes; alpha 1: sums 1, 1, 2/3: the third goes
    fresh = [marconi.scaled(x, 0.25, 1.0) for x in (1.0, 0.25, 0.5)]
    work = [marconi.scaled(x, 10.0, 40.0) for x in (10.0, 40.0, 20.0)]
    for alpha, victim in ((0.0, 1), (1.0, 2)):
        utility = [alpha * w + f for w, f in zip(work, fresh, strict=True)]
        assert utility.index(min(utility)) == victim
    paths = nested(["ab", "c"])
    beyond = marconi.efficiency(paths.path_tokens, paths.parent, 4096.0) - 6 * 4096
    assert beyond.tolist() == [0 + 1, 1 + 2, 0 + 1]  # tokens up to the parent + up to the block


def test_marconi_searches_its_alpha_on_the_requests_after_the_first_eviction() -> None:
    # room for 12 tokens: long L (10), one-token a b c ...; the fourth request is the first to evict (10 + 1 + 1 + 1),
    # three come before it, so the next 15 are searched and alpha holds from request 18 on.
    # In the window L comes back after four shorts each time: recency (alpha 0) has thrown it out, work keeps it.
    names = "Labc" + "Ldefg" * 3 + "Lhijk" * 2
    sizes = np.array([10 if name == "L" else 1 for name in names])
    leaf, parent, tokens, *_ = flat_forest(np.array([ord(name) for name in names], np.uint64), sizes)
    paths = make_paths(parent, tokens, leaf, np.arange(sizes.size) * 1_000_000)
    rule = REGISTRY["marconi"]
    assert search.requests_before_eviction(paths, rule, 12, Setting(), {}, False) == 3
    found = search.searched(paths, rule, 12, Setting(), {}, False)
    hits = {}
    for alpha in (0.0, found["alpha"]):
        chosen = {"alpha": alpha, "start": 18.0}
        hits[alpha] = replay(paths, "marconi", capacity_tokens=12, compiled=False, parameters=chosen).total()["hits"]
    assert found["start"] == 18.0 and found["alpha"] > 0 and hits[found["alpha"]] > hits[0.0]
    own = replay(paths, "marconi", capacity_tokens=12, compiled=False)
    assert own.total()["hits"] == hits[found["alpha"]]  # nobody gives alpha: it is searched
    short = search.searched(paths, rule, 40, Setting(), {}, False)
    assert short == {"alpha": 0.0}  # nothing is ever evicted, nothing to search


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


@pytest.mark.parametrize("policy", list(RULES))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_policy_equals_its_plain_statement(policy: str, data: st.DataObject) -> None:
    paths, requests = data.draw(tagged_weeks(st.integers(1, 4)))
    setting: Setting = data.draw(SETTINGS)
    capacity = data.draw(st.integers(1, 16))
    fixed = {"alpha": 1.0} if policy == "marconi" else None  # its search has a test of its own
    tally = replay(paths, policy, capacity_tokens=capacity, setting=setting, parameters=fixed, compiled=False)
    conserves(tally)
    plain = hosted(RULES[policy], paths, capacity, setting)
    lost = lost_reads(paths, setting.loss, setting.seed)
    for i, path in enumerate(requests):
        plain.request(i, int(paths.ts_us[i]), path, int(paths.input_tokens[i]), bool(lost[i]))
    got = tally.total()
    names = [name for name in FIELDS if name != "evicted_unused_tokens"]
    assert {name: got[name] for name in names} == {name: plain.totals[name] for name in names}


def test_an_edited_policy_never_runs_old_code() -> None:
    text = "LEVEL = {level}\ndef key(own, node):\n    return LEVEL * {factor}\n"

    def named_by(level: int, factor: float) -> str:
        module = ModuleType("mine")
        exec(text.format(level=level, factor=factor), vars(module))
        return build.fingerprint(Policy("mine", "Mine", "", module))

    assert named_by(1, 2.0) == named_by(1, 2.0)
    assert len({named_by(1, 2.0), named_by(1, 3.0), named_by(2, 2.0)}) == 3  # an edited literal, an edited constant


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(week=tagged_weeks(st.just(1)), capacity=st.integers(1, 12))
def test_no_policy_beats_the_optimum(week: tuple, capacity: int) -> None:
    best = optimal(week[0], capacity).hit_tokens
    for policy in RULES:
        hits = replay(week[0], policy, capacity_tokens=capacity, compiled=False).total()["hit_tokens"]
        assert hits <= best, policy


@pytest.mark.parametrize("policy", list(RULES))
@settings(max_examples=15, deadline=None)
@given(week=tagged_weeks(st.integers(1, 4)), capacity=st.integers(1, 16))
def test_compiled_is_the_same(policy: str, week: tuple, capacity: int) -> None:
    fast = replay(week[0], policy, capacity_tokens=capacity)
    slow = replay(week[0], policy, capacity_tokens=capacity, compiled=False)
    assert (fast.by_block == slow.by_block).all()


def test_every_policy_is_tested() -> None:
    elsewhere = {"saecache", "lpc_turns", "prefix_biased_depth", "prefix_biased_fanout"}
    assert set(RULES) | set(FIRST) | elsewhere == set(REGISTRY)
