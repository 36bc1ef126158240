"""What breaks a prefix, on paths worked by hand, and on the coding sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kit.log import LogError, load, read_mapping, residency
from kit.log.breaks import prefix_breaks
from tests.conftest import shared_case, shared_data
from tests.format_rows import lines, load_text


def request(session: str | None, at: int, path: list[tuple[str, int, str]]) -> dict[str, Any]:
    keys, sizes, types = zip(*path, strict=True)
    return {"ts": at, "session_id": session, "path_keys": keys, "path_tokens": sizes, "path_types": types,
            "input_tokens": sum(sizes)}  # fmt: skip


SYSTEM, CLOCK = ("s", 100, "system"), "tools"


def test_a_clock_in_the_prompt_is_always_new_content(tmp_path: Path) -> None:
    # Every turn: system 100, a clock of 10 that changes, then the talk. Common part 100; lost: 10 + 30, then 10 + 50.
    turns = [
        request("a", 1, [SYSTEM, ("10:00", 10, CLOCK), ("t1", 30, "user")]),
        request("a", 2, [SYSTEM, ("10:01", 10, CLOCK), ("t2", 50, "user")]),
        request("a", 3, [SYSTEM, ("10:02", 10, CLOCK), ("t3", 70, "user")]),
    ]
    found = prefix_breaks(load_text(tmp_path, lines(turns)))
    assert found is not None and (found["basis"], found["pairs"], found["extended"], found["broken"]) == (
        "chain",
        2,
        0,
        2,
    )
    assert found["lost_tokens"] == 40 + 60
    assert found["by_type"] == [
        {"token_type": "tools", "content": "new", "breaks": 2, "lost_tokens": 100, "median_position_tokens": 100.0}
    ]
    assert found["worst"] == [
        {
            "position_tokens": 100,
            "token_type": "tools",
            "breaks": 2,
            "different": 2,
            "lost_tokens": 100,
            "content": "new",
        }
    ]


def test_going_back_and_forth_is_the_same_content_again(tmp_path: Path) -> None:
    # x, y, x, y: the first switch to y is new, the later switches meet content seen before. Each loses 20 behind 100.
    x, y = [SYSTEM, ("x", 20, "user")], [SYSTEM, ("y", 20, "user")]
    turns = [request("a", at, path) for at, path in enumerate([x, y, x, y, [*y, ("z", 5, "assistant")]])]
    found = prefix_breaks(load_text(tmp_path, lines(turns)))
    assert found is not None and (found["broken"], found["extended"]) == (3, 1)
    assert [(row["content"], row["breaks"], row["lost_tokens"]) for row in found["by_type"]] == [
        ("again", 2, 40),
        ("new", 1, 20),
    ]


def contents(tmp_path: Path, turns: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    found = prefix_breaks(load_text(tmp_path, lines(turns)))
    assert found is not None
    return [tuple(row[name] for name in ("token_type", "content", "breaks", "lost_tokens")) for row in found["by_type"]]


USER = ("q", 40, "user")


def test_a_cleared_tool_output_is_told_from_changed_content(tmp_path: Path) -> None:
    # An output of 500 read once, then left out: the talk goes on behind q with 560 tokens, longer than what was lost.
    # Another type stands there (thinking), and no piece of type tool_result and 500 tokens is left: removed.
    cleared = [
        request("a", 1, [SYSTEM, USER, ("out", 500, "tool_result")]),
        request("a", 2, [SYSTEM, USER, ("t", 60, "thinking"), ("next", 501, "tool_result")]),
    ]
    assert contents(tmp_path, cleared) == [("tool_result", "removed", 1, 500)]


def test_an_inserted_piece_and_an_edit_are_changed_content(tmp_path: Path) -> None:
    # 30 tokens of tools in front of the same question of 40: what stood there is still there, so nothing was removed.
    inserted = [request("a", 1, [SYSTEM, USER]), request("a", 2, [SYSTEM, ("new", 30, "tools"), ("q2", 40, "user")])]
    assert contents(tmp_path, inserted) == [("tools", "new", 1, 40)]
    # A question of 40 becomes one of 20: exactly half is not less than half, and the type is the same.
    edited = [request("a", 1, [SYSTEM, USER]), request("a", 2, [SYSTEM, ("q2", 20, "user")])]
    assert contents(tmp_path, edited) == [("user", "new", 1, 40)]


def test_a_history_summed_up_is_removed_unless_it_comes_again(tmp_path: Path) -> None:
    # 40 + 300 become a summary of 50: 50 < 340 / 2.
    long = [SYSTEM, USER, ("a", 300, "assistant")]
    summed = [SYSTEM, ("sum", 50, "user")]
    turns = [request("a", 1, long), request("a", 2, summed)]
    assert contents(tmp_path, turns) == [("user", "removed", 1, 340)]
    # The long history is sent once more: a side call in between took nothing out. Going back meets it again (lost: 50).
    assert contents(tmp_path, [*turns, request("a", 3, long)]) == [("user", "new", 1, 340), ("user", "again", 1, 50)]


def test_only_places_that_break_twice_are_named(tmp_path: Path) -> None:
    # One break behind system (100); two behind s2 (200).
    other = ("s2", 200, "system")
    turns = [
        request("a", 1, [SYSTEM, ("x", 20, "user")]),
        request("a", 2, [SYSTEM, ("y", 20, "user")]),
        *(request("b", at, [other, (f"c{at}", 9, "tools")]) for at in (3, 4, 5)),
    ]
    found = prefix_breaks(load_text(tmp_path, lines(turns)))
    assert found is not None and found["broken"] == 3
    assert [(row["position_tokens"], row["breaks"], row["lost_tokens"]) for row in found["worst"]] == [(200, 2, 18)]


def test_a_shorter_prompt_is_a_cut(tmp_path: Path) -> None:
    turns = [request("a", 1, [SYSTEM, ("x", 20, "user")]), request("a", 2, [SYSTEM])]
    assert [row[1:] for row in contents(tmp_path, turns)] == [("cut", 1, 20)]


def test_without_chains_it_cannot_be_told(tmp_path: Path) -> None:
    turns = [request(None, at, [SYSTEM, (f"x{at}", 20, "user")]) for at in (1, 2, 3)]
    found = prefix_breaks(load_text(tmp_path, lines(turns)))
    assert found == {
        **dict.fromkeys(("basis", "pairs", "extended", "broken", "lost_tokens")),
        "by_type": [],
        "worst": [],
    }


def test_a_log_without_identity_has_no_breaks(tmp_path: Path) -> None:
    assert prefix_breaks(load_text(tmp_path, "ts,input_tokens\n1,10\n")) is None


def test_coding_sessions_lose_most_in_front() -> None:
    found = prefix_breaks(load(shared_data("coding_blocks64.jsonl")))
    assert found is not None and found["pairs"] == found["extended"] + found["broken"] == 31_879 - 512
    assert found["lost_tokens"] == sum(row["lost_tokens"] for row in found["by_type"])
    front = sum(row["lost_tokens"] for row in found["by_type"] if row["token_type"] in ("tools", "system"))
    assert front / found["lost_tokens"] > 0.7


# KV events --------------------------------------------------------------------------------------------------------


def test_a_match_stops_at_the_first_missing_block() -> None:
    case = shared_case("03-no-hit-past-a-gap")
    found = residency(case / "input.jsonl")
    assert found["lookups"] == json.loads((case / "expected.json").read_text())
    assert (found["stored"], found["removed"], found["restored"], found["cleared"]) == (6, 2, 2, 1)


def test_kv_events_are_no_request_log(tmp_path: Path) -> None:
    events = [
        {"seq": 1, "ts": 10.0, "dp": 0, "type": "BlockStored", "block_hashes": [2**53 + 1, 77], "block_size": 16},
        {"seq": 3, "ts": 14.5, "dp": 0, "type": "BlockRemoved", "block_hashes": [77]},
        {"seq": 9, "ts": 15.0, "dp": 1, "type": "BlockStored", "block_hashes": [77], "block_size": 16},
    ]
    source = tmp_path / "events.jsonl"
    source.write_text(lines(events))
    with pytest.raises(LogError, match="KV events say what a cache held"):
        load(source)
    found = residency(source)
    # 77 of rank 0 stayed 4.5 s; rank 1 has its own cache; one sequence number (2) is missing.
    assert (found["resident"], found["median_stay_seconds"], found["missed_events"], found["restored"]) == (
        2,
        4.5,
        1,
        0,
    )
    (tmp_path / "other.csv").write_text("ts,input_tokens\n1,1\n")
    with pytest.raises(LogError, match="not as KV events"):
        residency(tmp_path / "other.csv")


# Mapping files ----------------------------------------------------------------------------------------------------


def test_mapping_files(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text('ts = "when"\ninput_tokens = "length"\n')
    (tmp_path / "m.json").write_text('{"ts": "when", "input_tokens": "length"}')
    assert (
        read_mapping(tmp_path / "m.toml")
        == read_mapping(tmp_path / "m.json")
        == {"ts": "when", "input_tokens": "length"}
    )
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "list.json").write_text('{"ts": ["when"]}')
    for name, says in (
        ("bad.json", "no mapping file"),
        ("list.json", "a table of text"),
        ("none.toml", "no mapping file"),
    ):
        with pytest.raises(LogError, match=says):
            read_mapping(tmp_path / name)
