"""The published systems side by side: the laws every row obeys, what they learn, and the exhibit of a broken tree."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kit import log, prefix
from kit.analysis import published
from kit.policies import saecache
from kit.policies import saecache_rules as rules
from kit.prefix import TOKEN_TYPES, Paths
from kit.replay import Setting, build, optimal, replay
from kit.sample import GAPS, answers, sample_week
from tests.conftest import PROJECT
from tests.test_replay import conserves

WEEK = PROJECT / "data" / "sample_week.parquet"
FEW = 200  # replicates: the laws below hold for any number


@lru_cache(maxsize=1)
def week_paths() -> Paths:
    return prefix.load_paths(log.load([WEEK]))


@pytest.fixture(scope="module")
def week_rows() -> list[dict]:
    return published.compare_published(week_paths(), replicates=FEW)


@pytest.fixture(scope="module")
def single_rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    file: Path = tmp_path_factory.mktemp("mix") / "single.parquet"
    sample_week(requests=3_000, mixture=(0, 0, 1), scan=False).write_parquet(file)
    return published.compare_published(prefix.load_paths(log.load([file])), replicates=FEW)


def at(rows: list[dict], system: str) -> dict[int, float]:
    return {row["budget_tokens"]: row["hit_token_ratio"] for row in rows if row["system"] == system}


# --- the comparison


def test_budgets_double_around_the_knee() -> None:
    budgets = published.budgets_around_the_knee(week_paths(), 5)
    assert len(budgets) == 5 and all(abs(b / a - 2) < 1e-3 for a, b in itertools.pairwise(budgets))
    with pytest.raises(ValueError, match="budgets must be 1 or more, got 0"):
        published.budgets_around_the_knee(week_paths(), 0)
    with pytest.raises(ValueError, match="at least one number of tokens"):
        published.compare_published(week_paths(), [])


def test_every_system_stands_at_every_budget(week_rows: list[dict]) -> None:
    budgets = {row["budget_tokens"] for row in week_rows}
    assert len(budgets) == 5
    for who in published.SYSTEMS:
        assert set(at(week_rows, who.title)) == budgets
    assert sum(row["group"] == "bound" for row in week_rows) == 5


def test_ablations_stand_at_the_middle(week_rows: list[dict]) -> None:
    middle = sorted({row["budget_tokens"] for row in week_rows})[2]
    varied = [row for row in week_rows if row["group"] == "ablation"]
    assert {row["budget_tokens"] for row in varied} == {middle}
    assert [row["group"] for row in varied].count("ablation") == 4
    for name in ("fixed_types 1", "fixed_queues 1", "fixed_timing 1", "fixed_decay 1"):
        assert any(name in row["note"] for row in varied), name


@pytest.mark.parametrize("which", ["week_rows", "single_rows"])
def test_the_interval_holds_the_point_and_the_optimum_is_above_all(
    which: str, request: pytest.FixtureRequest
) -> None:
    rows = request.getfixturevalue(which)
    best = {row["budget_tokens"]: row["hit_tokens"] for row in rows if row["group"] == "bound"}
    lru = at(rows, "LRU")
    for row in rows:
        assert row["hit_tokens"] <= best[row["budget_tokens"]]
        found = row["against_lru"]
        assert (found is None) == (row["group"] in ("base", "bound"))
        if found:
            assert found["low"] <= found["value"] <= found["high"]
            assert found["value"] == pytest.approx(row["hit_token_ratio"] - lru[row["budget_tokens"]], abs=1e-9)


def test_every_cell_conserves_with_both_evictions_and_expiry() -> None:
    paths = week_paths()
    for who in (*published.SYSTEMS, *published.VARIANTS):
        tally = replay(paths, who.policy, capacity_tokens=60_000, setting=Setting(ttl_seconds=300),
                       parameters=dict(who.parameters))  # fmt: skip
        conserves(tally)
        total = tally.total()
        assert total["missed_evicted"] > 0 and total["missed_expired"] > 0
        assert total["hit_tokens"] <= optimal(paths, 60_000, 300).hit_tokens


def test_tables_hold_every_row(week_rows: list[dict]) -> None:
    """No system and no budget is left out, in the notebook's table as in the written one."""
    table = published.as_table(week_rows).frame
    assert table.width == 6 and table.height == len({row["system"] for row in week_rows})
    assert "SAECache-style ran with predictor 2, eta 0.1, update_evict" in published.as_table(week_rows).caption
    filled = sum(cell != "" for line in table.rows() for cell in line[1:])
    assert filled == len(week_rows) == published.as_markdown(week_rows).count("%")
    both = published.side_by_side({"one": week_rows, "two": week_rows}).frame
    assert both.height == 2 * (1 + 6) and both["system"][:7].to_list() == [
        "budget, tokens", "LRU", "LFU", "segmented LRU (SGLang)", "LPC by turn count", published.MAIN,
        "optimum (upper bound)"]  # fmt: skip


def test_single_calls_have_nothing_to_predict_and_lfu_keeps_more(single_rows: list[dict]) -> None:
    """One call a session: "oracle" and "never" expect no second turn and are one policy; what is left to reuse
    are shared prompts, which counting keeps better."""
    ways = [at(single_rows, f"SAECache-style, {way}") for way in ("prior by type", "oracle", "never")]
    assert ways[1] == ways[2]
    lfu = at(single_rows, "LFU")
    assert sum(lfu[budget] > ratio for budget, ratio in ways[0].items()) >= 3
    assert "LRU, LFU or segmented LRU keeps more than it does at" in published.where_it_loses(single_rows)


def row(system: str, value: float, low: float, high: float, budget: int = 100) -> dict:
    found = {"value": value, "low": low, "high": high}
    return {"system": system, "policy": "saecache", "group": "system", "budget_tokens": budget, "hit_tokens": 50,
            "hit_token_ratio": 0.5 + value, "against_lru": found, "note": ""}  # fmt: skip


def test_verdicts_come_from_the_interval() -> None:
    # interval above zero, below zero, across it, and a difference of a thousandth of a point
    cases = ((0.02, 0.01, 0.03), (-0.02, -0.03, -0.01), (0.01, -0.01, 0.03), (0.00001, 0.000005, 0.00002))
    assert [published.verdict_of(row("x", *case)) for case in cases] == ["more", "less", "cannot tell", "as much"]
    assert published.difference(row("x", -0.0061, -0.0083, -0.0039)) == "−0.61 [−0.83, −0.39]"


def test_the_sentence_names_the_loss() -> None:
    # 3 budgets: one won, one lost by 2 points, one even; LFU is ahead of it (.50) at the lost one (.48) only
    own = [row(published.MAIN, 0.02, 0.01, 0.03, 100), row(published.MAIN, -0.02, -0.03, -0.01, 200),
           row(published.MAIN, 0.0, -0.01, 0.01, 400)]  # fmt: skip
    lru = [{**row("LRU", 0, 0, 0, budget), "policy": "lru", "group": "base", "against_lru": None}
           for budget in (100, 200, 400)]  # fmt: skip
    bound = [{**row("optimum", 0.2, 0, 0, budget), "policy": "MIN", "group": "bound"} for budget in (100, 200, 400)]
    said = published.where_it_loses([*lru, *own, *bound])
    assert "more than LRU at 1 of 3 budgets, less at 1, and as much or not to be told apart at 1" in said
    assert "loses most at 200 tokens (−2.00 [−3.00, −1.00] points" in said
    assert "keeps more than it does at 1 of 3" in said


def test_h2o_has_a_memory_share_and_no_hit_ratio() -> None:
    # 10 % heavy + 10 % recent = 20 %; 70 % + 70 % cannot keep more than all of it
    assert published.h2o_note()["resident_memory_fraction"] == pytest.approx(0.2)
    assert published.h2o_note(0.7, 0.7)["resident_memory_fraction"] == 1.0
    assert published.h2o_note()["hit_token_ratio"] is None
    with pytest.raises(ValueError, match="heavy_ratio is a share"):
        published.h2o_note(heavy_ratio=1.5)


# --- what SAECache-style learns on the seeded week


def learned_on(paths: Paths, capacity: int, monkeypatch: pytest.MonkeyPatch, **parameters: float) -> saecache.Pool:
    """The pool as a replay leaves it."""
    kept: list[saecache.Pool] = []
    make: Callable = build.state

    def keep(*args: object, **named: object) -> tuple:
        state = make(*args, **named)
        kept.append(state[0])
        return state

    monkeypatch.setattr(build, "state", keep)
    replay(paths, "saecache", capacity_tokens=capacity, parameters=parameters or None)
    return kept[0]


def pauses(kind: str, clock: str) -> np.ndarray:
    """Gaps in seconds inside the week's sessions of a kind, in time order; from the `clock` of the call before."""
    week = pl.read_parquet(WEEK).sort("ts").with_columns(before=pl.col(clock).shift(1).over("session_id"))
    later = week.filter(pl.col("session_type") == kind, pl.col("before").is_not_null()).sort("ts")
    return ((later["ts"] - later["before"]).dt.total_microseconds() * 1e-6).to_numpy()


def test_the_chat_law_converges_to_the_laws_the_week_was_drawn_from(monkeypatch: pytest.MonkeyPatch) -> None:
    # Answers: end of the answer to the next call is log-normal (4.4, 1.2). The fit of the last 200 gaps errs by
    # 1.2 / sqrt(200) = .085 (mu) and .06 (sigma); three of those are the tolerance.
    truth = answers(pl.read_parquet(WEEK)).gaps[("chat", "person")]
    assert truth == GAPS[("chat", "person")]
    pool = learned_on(week_paths(), 65_000, monkeypatch)
    pool.core.learned[rules.MU, rules.CHAT], pool.core.learned[rules.SIGMA, rules.CHAT] = 0.0, 3.0
    for seconds in pauses("chat", "ts_end"):
        rules.note_gap(pool, rules.CHAT, float(seconds))
    assert pool.core.learned[rules.MU, rules.CHAT] == pytest.approx(truth.mu, abs=0.26)
    assert pool.core.learned[rules.SIGMA, rules.CHAT] == pytest.approx(truth.sigma, abs=0.2)


@pytest.mark.parametrize(("kind", "queue"), [("chat", rules.CHAT), ("agent", rules.AGENT)])
def test_both_laws_converge_in_a_replay(kind: str, queue: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # the replay sees start to start; the truth is counted over the week's rows, gaps of .1 s to 1 h as it takes them
    logs = np.log([gap for gap in pauses(kind, "ts") if 0.1 <= gap <= 3600])
    pool = learned_on(week_paths(), 65_000, monkeypatch)
    assert pool.core.learned[rules.GAPS_SEEN, queue] == logs.size
    assert pool.core.learned[rules.MU, queue] == pytest.approx(logs.mean(), abs=0.3)
    assert pool.core.learned[rules.SIGMA, queue] == pytest.approx(logs.std(), abs=0.3)


def test_type_reuse_is_counted_as_the_week_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a tier that never evicts, hits over uses of a token type are the share of its pieces seen before."""
    pieces = pl.read_parquet(WEEK).select("path_keys", "path_types").explode(["path_keys", "path_types"])
    pieces = pieces.with_columns(seen=~pl.col("path_keys").is_first_distinct())
    known = dict(pieces.group_by("path_types").agg(pl.col("seen").mean()).iter_rows())
    pool = learned_on(week_paths(), int(week_paths().room_tokens.sum()), monkeypatch)
    rules.gather(pool)
    for name, share in known.items():
        kind = TOKEN_TYPES.index(name)
        measured = pool.core.learned[rules.TYPE_HITS, kind] / pool.core.learned[rules.TYPE_USES, kind]
        assert measured == pytest.approx(share, abs=1e-12), name
    assert known["system"] > 0.9


def test_type_weights_order_the_types_as_their_reuse_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Types that come back (system, tools) end above tool results, which the week reads once in a while only."""
    reuse = answers(pl.read_parquet(WEEK)).reuse_by_type
    pool = learned_on(week_paths(), 65_000, monkeypatch)
    weight = {name: pool.core.learned[rules.WEIGHT, TOKEN_TYPES.index(name)] for name in reuse}
    assert reuse["system"] > reuse["tool_result"] and weight["system"] > weight["tool_result"]
    assert all(0.1 <= value <= 5.0 for value in weight.values())


def test_lanes_hold_the_resident_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only leaves can be chosen, so the lanes must hold every resident node nothing rests on, and no other."""
    pool = learned_on(week_paths(), 500_000, monkeypatch)
    resident = np.flatnonzero(pool.spots.there)
    above = week_paths().parent[resident]
    leaves = np.setdiff1d(resident, above[above >= 0])
    held = [pool.heap[lane["start"] : lane["start"] + lane["leaves"]] for lane in pool.core.lanes]
    assert leaves.size > 10 and sorted(np.concatenate(held)) == leaves.tolist()


# --- an exhibit: a radix tree with the defects of a widely copied teaching version, each against the right answer


class BrokenTree:
    """Prefix tree as it is often taught: nodes match whole or not at all, no split, eviction among the root's children.

    Kept here only to show what goes wrong; `clock` counts instead of reading the time.
    """

    def __init__(self, most_blocks: int) -> None:
        self.root: dict = {"tokens": [], "below": {}, "used": 0}
        self.most_blocks, self.blocks, self.clock = most_blocks, 0, 0

    def _stamp(self, node: dict) -> None:
        self.clock += 1
        node["used"] = self.clock

    def match(self, tokens: list[int]) -> int:
        here, done = self.root, 0
        while done < len(tokens) and tokens[done] in here["below"]:
            here = here["below"][tokens[done]]
            self._stamp(here)
            if tokens[done : done + len(here["tokens"])] != here["tokens"]:
                break
            done += len(here["tokens"])
        return done

    def insert(self, tokens: list[int]) -> None:
        if self.blocks >= self.most_blocks:
            self._evict()
        here, done = self.root, 0
        while done < len(tokens):
            if tokens[done] not in here["below"]:
                here["below"][tokens[done]] = {"tokens": tokens[done:], "below": {}, "used": 0}
                self._stamp(here["below"][tokens[done]])
                self.blocks += 1
                return
            here = here["below"][tokens[done]]
            self._stamp(here)
            done += len(here["tokens"])

    def _evict(self) -> None:
        leaves = {first: node for first, node in self.root["below"].items() if not node["below"]}
        if leaves:
            del self.root["below"][min(leaves, key=lambda first: leaves[first]["used"])]
            self.blocks -= 1


def right_match(stored: list[list[int]], query: list[int]) -> int:
    """Tokens of the longest common prefix with anything stored: what a radix tree has to answer."""
    return max(sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, query, strict=False)))
               for one in stored)  # fmt: skip


def broken(*stored: list[int], most_blocks: int = 100) -> BrokenTree:
    tree = BrokenTree(most_blocks)
    for tokens in stored:
        tree.insert(tokens)
    return tree


@pytest.mark.parametrize("query", [[1, 2, 9], [1, 2, 3]])
def test_exhibit_partly_equal_nodes_do_not_count(query: list[int]) -> None:
    # stored 1 2 3 4: the query shares 2 (or 3) tokens, the tree says 0
    assert right_match([[1, 2, 3, 4]], query) == len(query) - (query[-1] == 9)
    assert broken([1, 2, 3, 4]).match(query) == 0


def test_exhibit_false_hits() -> None:
    # 1 2 9 9 7 8 is filed as 7 8 under 1 2 3 4, so 1 2 3 4 7 8, never seen, "hits" 6 (right: 4) and the real one 0
    stored = [[1, 2, 3, 4], [1, 2, 9, 9, 7, 8]]
    tree = broken(*stored)
    assert (tree.match([1, 2, 3, 4, 7, 8]), right_match(stored, [1, 2, 3, 4, 7, 8])) == (6, 4)
    assert (tree.match(stored[1]), right_match(stored, stored[1])) == (0, 6)


def test_exhibit_what_diverges_is_never_stored() -> None:
    # no split: 1 9 after 1 2 3 4 is dropped without a word, 1 2 (a prefix of the node) cannot be found
    stored = [[1, 2, 3, 4], [1, 9], [1, 2]]
    tree = broken(*stored)
    assert tree.blocks == 1
    assert [tree.match(one) for one in stored] == [4, 0, 0]
    assert [right_match(stored, one) for one in stored] == [4, 2, 2]


def test_exhibit_only_children_of_the_root_are_evicted() -> None:
    # one chain under one root child: nothing is evictable, and a limit of 2 holds 5
    tree = broken(*([list(range(1, n + 1)) for n in range(1, 6)]), most_blocks=2)
    assert tree.blocks == 5


def test_exhibit_a_resident_key_costs_a_victim() -> None:
    # 1 and 2 fill the tree; inserting 2 again needs no room, yet 1 is evicted
    tree = broken([1], [2], [2], most_blocks=2)
    assert (tree.blocks, tree.match([1]), tree.match([2])) == (1, 0, 1)


def test_exhibit_a_block_has_any_length() -> None:
    assert broken(list(range(100_000))).blocks == 1


def test_exhibit_a_failed_match_refreshes() -> None:
    # 1 2 3 is older than 4 5 6; the miss 1 9 9 makes it the younger one, so 4 5 6 goes
    tree = broken([1, 2, 3], [4, 5, 6], most_blocks=2)
    assert tree.match([1, 9, 9]) == 0
    tree.insert([7])
    assert (tree.match([1, 2, 3]), tree.match([4, 5, 6])) == (3, 0)


def test_exhibit_the_forest_gives_the_right_answers() -> None:
    """The kit's own forest on the sequences that go wrong above, token by token: every answer is the right one."""
    stored = [[1, 2, 3, 4], [1, 2, 9, 9, 7, 8], [1, 9], [1, 2], [1, 2, 3, 4, 7, 8]]
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in stored])])
    keys = np.array([token for one in stored for token in one], np.uint64)
    leaf, parent, tokens, _, _ = prefix.build_forest(offsets, keys, np.ones(keys.size, np.int64))
    paths = prefix.make_paths(parent, tokens, leaf, np.arange(len(stored)) * 1_000_000)
    for n in range(1, len(stored)):
        hits = [_hits(paths, count) for count in (n, n + 1)]
        assert hits[1] - hits[0] == right_match(stored[:n], stored[n])


def _hits(paths: Paths, count: int) -> int:
    """Hit tokens of the first requests in a tier without limit."""
    first = {name: getattr(paths, name)[:count] for name in ("leaf", "ts_us", "input_tokens", "block", "rate", "hour",
                                                             "warm")}  # fmt: skip
    return replay(replace(paths, **first), "lru", capacity_tokens=1_000).total()["hit_tokens"]
