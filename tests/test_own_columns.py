"""Columns read beside a log: estimated token types, and attention by block for the heavy-hitter policy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kit import log
from kit.analysis import own_columns
from kit.prefix import TOKEN_TYPES, load_paths
from kit.replay import replay
from tests.conftest import shared_data

TOLD = ("ts_start", "ts_last", "session_id", "agent_id", "model", "trigger", "parent_request_id", "input_tokens",
        "cache_write_5m_tokens", "cache_write_1h_tokens", "cache_write_tokens", "cache_read_tokens", "output_tokens",
        "new_chars_text", "new_chars_tool_result", "out_chars_text", "out_chars_thinking",
        "out_chars_tool_use")  # fmt: skip


def usage_table(folder: Path) -> Path:
    """Two calls of one agent. The second adds 100 tokens: of 400 characters 40 are thinking, 20 text, 140 tool calls
    (put out by the first call) and 200 tool results."""
    start = "2026-02-09T10:00:0"
    rows = [
        ("a", f"{start}0Z", f"{start}1Z", "s", "main", "m", "user", "", 500, 0, 0, 0, 0, 9, 80, 0, 20, 40, 140),
        ("b", f"{start}5Z", f"{start}6Z", "s", "main", "m", "tool_result", "a", 600, 0, 0, 0, 0, 9, 0, 200, 5, 5, 5),
    ]
    file = folder / "usage.csv"
    pl.DataFrame(rows, schema=["request_id", *TOLD], orient="row").write_csv(file)
    return file


def test_tokens_are_split_by_characters(tmp_path: Path) -> None:
    # 100 tokens x 40, 20, 140, 200 of 400: thinking 10, text 5, tool call 35, tool result 50; the first prompt, whose
    # system prompt nobody counted, stays whole
    file = usage_table(tmp_path)
    paths = own_columns.typed_by_characters(log.load([file]), file)
    found = [(TOKEN_TYPES[kind], tokens) for kind, tokens in zip(paths.node_type, paths.tokens.tolist(), strict=True)]
    assert found == [("other", 500), ("thinking", 10), ("assistant", 5), ("tool_call", 35), ("tool_result", 50)]
    assert paths.parent.tolist() == [-1, 0, 1, 2, 3] and paths.leaf.tolist() == [0, 4]


def test_the_split_adds_up() -> None:
    """On the public week every path keeps its tokens, whatever the rounding, and the estimate is called one."""
    file = shared_data("claude_agents_week.csv")
    week = log.load([file])
    plain, typed = load_paths(week), own_columns.typed_by_characters(week, file)
    used = plain.leaf >= 0
    assert (plain.path_tokens[plain.leaf[used]] == typed.path_tokens[typed.leaf[used]]).all()
    assert (typed.tokens > 0).all() and typed.node_type.size == typed.parent.size > plain.parent.size
    assert "ESTIMATED" in own_columns.ESTIMATED


def test_blocks_take_the_type_of_the_request_that_brought_them(tmp_path: Path) -> None:
    # blocks of 4 tokens. The first request brings 1 to 5: 8 tokens of tools (1, 2), 4 of system (3), then its text
    # (4, 5); the second tool results (6, 7), the third a mixture (8)
    def row(second: float, tokens: int, last: int, types: list[str]) -> dict[str, object]:
        return {"session": "w1", "agent": "main", "t": second, "model": "m", "input_tokens": tokens, "output_tokens": 1,
                "tool_tokens": 8, "system_tokens": 4, "input_types": types, "output_types": ["text"], "stop": "end",
                "api_time": 1.0, "think_time": 0.0, "block": 4, "n_blocks": last, "hash_runs": [[1, last]]}  # fmt: skip

    rows = [row(0, 20, 5, ["text"]), row(9, 28, 7, ["tool_result"]), row(18, 32, 8, ["text", "tool_result"])]
    file = tmp_path / "coding.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in rows))
    paths = own_columns.typed_by_request(log.load([file]), file, block_tokens=4)
    order = np.argsort(paths.depth)
    assert [TOKEN_TYPES[kind] for kind in paths.node_type[order]] == [
        "tools", "tools", "system", "user", "user", "tool_result", "tool_result", "other"]  # fmt: skip


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    file = usage_table(tmp_path)
    week = log.load([file])
    with pytest.raises(ValueError, match="no column 'path_attention'; it has request_id, ts_start"):
        own_columns.own_columns(week, file, {"path_attention": "DOUBLE[]"})
    with pytest.raises(ValueError, match=r"cannot read this kind of file; accepted: \.csv, \.jsonl, \.parquet"):
        own_columns.own_columns(week, tmp_path / "x.xlsx", {})
    other = tmp_path / "other.csv"
    pl.DataFrame({"request_id": ["zz"], "seen": [1]}).write_csv(other)
    with pytest.raises(ValueError, match="none of its 1 values of 'request_id' is a request of this log"):
        own_columns.own_columns(week, other, {"seen": "BIGINT"})


def attention_log(folder: Path, drawn: list[list[float]]) -> Path:
    """s a, s b, s c, s a: blocks of 10 tokens."""
    paths = [["s", "a"], ["s", "b"], ["s", "c"], ["s", "a"]]
    file = folder / "attention.parquet"
    pl.DataFrame({
        "request_id": [f"r{k}" for k in range(4)], "ts": [f"2026-01-01T00:00:0{k}Z" for k in range(4)],
        "input_tokens": [20] * 4, "path_keys": paths, "path_tokens": [[10, 10]] * 4, "path_attention": drawn,
    }).write_parquet(file)  # fmt: skip
    return file


def test_the_block_that_drew_least_goes_first(tmp_path: Path) -> None:
    # room for s and two more. s c needs room: a has drawn 5, b 1, so b goes (LRU: a, the older) and a hits at the end
    file = attention_log(tmp_path, [[3, 5], [3, 1], [3, 2], [3, 5]])
    paths = own_columns.with_attention(log.load([file]), file)
    assert [one.tolist() for one in paths.tags["attention"]] == [[3, 5], [3, 1], [3, 2], [3, 5]]
    assert replay(paths, own_columns.HEAVY_HITTERS, capacity_tokens=30).total()["hit_tokens"] == 10 + 10 + 20
    assert replay(paths, "lru", capacity_tokens=30).total()["hit_tokens"] == 10 + 10 + 10
    slow = replay(paths, own_columns.HEAVY_HITTERS, capacity_tokens=30, compiled=False)
    assert (slow.by_block == replay(paths, own_columns.HEAVY_HITTERS, capacity_tokens=30).by_block).all()


def test_attention_adds_up_while_resident_and_is_forgotten_after(tmp_path: Path) -> None:
    # s: 3 + 3 + 3 + 3 = 12; b is evicted by c (1 < 5), then c (2) is what is left beside a: 5 + 5
    file = attention_log(tmp_path, [[3, 5], [3, 1], [3, 2], [3, 5]])
    paths = own_columns.with_attention(log.load([file]), file)
    policy = own_columns.HEAVY_HITTERS.module
    own = policy.own(paths.parent.size, paths.depth, paths.tags["attention"])
    for request, leaf in enumerate(paths.leaf.tolist()):
        touched = policy.on_touch if request in (1, 2, 3) else policy.on_enter
        touched(own, 0, request, 0)
        (policy.on_touch if request == 3 else policy.on_enter)(own, leaf, request, 0)
    assert own.score.tolist() == [12, 10, 1, 2]
    policy.on_enter(own, 1, 3, 0)
    assert own.score[1] == 5


def test_attention_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    file = attention_log(tmp_path, [[3, 5], [3], [3, 2], [3, 5]])
    with pytest.raises(ValueError, match="path_attention of request 1 has 1 values for a path of 2 pieces"):
        own_columns.with_attention(log.load([file]), file)
    file = attention_log(tmp_path, [[3, 5], [3, 1], [3, -2], [3, 5]])
    with pytest.raises(ValueError, match="path_attention of request 2 has a missing or negative value"):
        own_columns.with_attention(log.load([file]), file)


def test_without_attention_the_policy_says_so(tmp_path: Path) -> None:
    file = attention_log(tmp_path, [[3, 5], [3, 1], [3, 2], [3, 5]])
    with pytest.raises(ValueError, match="needs 'attention' of every request"):
        replay(load_paths(log.load([file])), own_columns.HEAVY_HITTERS, capacity_tokens=30)
    assert "attention" in own_columns.HEAVY_HITTERS.needs and own_columns.HEAVY_HITTERS.source != "not stated"
