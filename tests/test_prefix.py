"""Paths: hand-worked forests, rounding, and what never changes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.prefix import (
    bootstrap_blocks,
    build_forest,
    flat_forest,
    make_paths,
    path_sums,
    root_of,
    round_to_blocks,
    warm_window,
)

SECOND = 1_000_000


def test_equal_keys_under_the_same_parent_are_one_node() -> None:
    # paths a-b, a-c, b: the b under a and the root b are two nodes
    leaf, parent, tokens, depth, first = build_forest(
        np.array([0, 2, 4, 5]), np.array([1, 2, 1, 3, 2], np.uint64), np.array([10, 20, 10, 30, 5])
    )
    assert parent.tolist() == [-1, 0, 0, -1]
    assert leaf.tolist() == [1, 2, 3]
    assert tokens.tolist() == [10, 20, 30, 5]
    assert depth.tolist() == [0, 1, 1, 0]
    assert first.tolist() == [0, 1, 3, 4]


def test_an_empty_path_has_no_leaf() -> None:
    leaf, parent, *_ = build_forest(np.array([0, 0, 1]), np.array([7], np.uint64), np.array([3]))
    assert leaf.tolist() == [-1, 0] and parent.tolist() == [-1]


@given(st.lists(st.lists(st.integers(0, 4), max_size=5), min_size=1, max_size=30))
def test_the_forest_is_the_set_of_distinct_prefixes(paths: list[list[int]]) -> None:
    offsets = np.concatenate([[0], np.cumsum([len(path) for path in paths])])
    keys = np.array([key for path in paths for key in path], np.uint64)
    leaf, parent, tokens, depth, _ = build_forest(offsets, keys, np.ones(keys.size, np.int64))
    distinct = {tuple(path[: k + 1]) for path in paths for k in range(len(path))}
    assert parent.size == len(distinct)
    assert all(parent[node] < node for node in range(parent.size))
    for path, node in zip(paths, leaf, strict=True):
        assert (depth[node] + 1 if node >= 0 else 0) == len(path)
    assert (path_sums(parent, tokens) == depth + 1).all()


def test_a_flat_key_with_two_lengths_grows_by_the_difference() -> None:
    # key 2 is seen with 3 and then 7 tokens: one node of 3 and one of 4 behind it
    leaf, parent, tokens, *_ = flat_forest(np.array([1, 2, 2, 1], np.uint64), np.array([3, 3, 7, 3]))
    assert parent.tolist() == [-1, -1, 1]
    assert tokens.tolist() == [3, 3, 4]
    assert leaf.tolist() == [0, 1, 2, 0]


def test_rounding_counts_blocks_from_the_start_of_the_prefix() -> None:
    # block 16; a (20 tokens) ends in block 1, so a is worth 16; b (+20 = 40) ends at 32: worth 16; c (+2 = 42): nothing
    parent, worth, room, leaf = round_to_blocks(
        np.array([-1, 0, 1], np.int32), np.array([20, 20, 2]), np.array([0, 1, 2], np.int32), 16
    )
    assert worth.tolist() == room.tolist() == [16, 16]
    assert parent.tolist() == [-1, 0]
    assert leaf.tolist() == [0, 1, 1]


def test_a_kept_partial_tail_takes_a_whole_block_at_its_real_worth() -> None:
    parent, worth, room, leaf = round_to_blocks(
        np.array([-1, 0], np.int32), np.array([512, 100]), np.array([1], np.int32), 512, "keep"
    )
    assert worth.tolist() == [512, 100] and room.tolist() == [512, 512] and leaf.tolist() == [1]
    assert parent.tolist() == [-1, 0]


@given(st.integers(1, 64), st.lists(st.integers(0, 100), min_size=1, max_size=20))
def test_rounding_never_gives_more_than_the_prefix(block: int, sizes: list[int]) -> None:
    # one chain of nodes: the kept nodes add up to floor(total / block) blocks
    parent = np.arange(len(sizes), dtype=np.int32) - 1
    leaf = np.array([len(sizes) - 1], np.int32)
    _, worth, _, _ = round_to_blocks(parent, np.array(sizes), leaf, block)
    assert worth.sum() == sum(sizes) // block * block


def test_a_bad_block_size_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="block_tokens must be at least 1, got 0"):
        round_to_blocks(np.array([-1], np.int32), np.array([5]), np.array([0], np.int32), 0)


def test_roots() -> None:
    assert root_of(np.array([-1, 0, 1, -1, 3], np.int32)).tolist() == [0, 0, 0, 3, 3]


def test_sessions_are_dealt_by_first_appearance_so_labels_do_not_matter() -> None:
    sessions = np.array([7, 7, 3, 9, 3])
    renamed = np.array([100, 100, 5, 1, 5])
    block, count, basis = bootstrap_blocks(sessions, None, 5)
    assert block.tolist() == [0, 0, 1, 2, 1] and count == 3 and "3 sessions" in basis
    assert bootstrap_blocks(renamed, None, 5)[0].tolist() == block.tolist()


def test_without_sessions_few_roots_become_stretches_of_time() -> None:
    block, count, basis = bootstrap_blocks(None, np.zeros(100, np.int64), 100)
    assert count == 50 and block.tolist() == [i // 2 for i in range(100)] and "stretches" in basis


def test_many_roots_are_the_blocks_where_there_are_no_sessions() -> None:
    _, count, basis = bootstrap_blocks(None, np.arange(1000), 1000)
    assert count == 200 and "1,000 roots" in basis


def test_the_warm_window_starts_after_a_day_or_at_half_time() -> None:
    day = 86_400 * SECOND
    warm, basis = warm_window(np.array([0, day - 1, day, 3 * day]))
    assert warm.tolist() == [False, False, True, True] and "24 hours" in basis
    warm, basis = warm_window(np.array([0, 1, 2, 3, 4]))
    assert warm.tolist() == [False, False, True, True, True] and "50 %" in basis


def test_input_tokens_default_to_the_whole_path_before_rounding() -> None:
    paths = make_paths(np.array([-1, 0]), np.array([20, 5]), np.array([1, 0]), np.array([0, 1]), block_tokens=16)
    assert paths.input_tokens.tolist() == [25, 20]
    assert paths.path_tokens.tolist() == [16] and paths.longest_prefix_tokens == 16


START = """
import sys
from kit import log, prefix, replay
paths = prefix.load_paths(log.load([sys.argv[1]]))
assert replay.replay(paths, "lru", capacity_tokens=512).total()["hit_tokens"] == 512
print([name for name in ("polars", "pyarrow", "scipy.linalg") if name in sys.modules])
import numba, numpy
print(numba.njit(lambda a, b: numpy.dot(a, b))(numpy.ones((2, 2)), numpy.ones((2, 2)))[0, 0])
"""


def test_a_log_of_bare_blocks_is_replayed_without_polars_pyarrow_or_scipy(tmp_path: Path) -> None:
    lines = [{"timestamp": at, "input_length": 600, "output_length": 1, "hash_ids": [1, at + 2]} for at in range(2)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = subprocess.run(
        [sys.executable, "-c", START, str(tmp_path / "log.jsonl")], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:2] == ["[]", "2.0"]
