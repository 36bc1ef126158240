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


def test_a_shorter_prompt_is_a_cut_and_without_sessions_roots_are_compared(tmp_path: Path) -> None:
    turns = [
        request(None, 1, [SYSTEM, ("x", 20, "user")]),
        request(None, 2, [SYSTEM]),
        request(None, 3, [("o", 7, "user")]),
    ]
    found = prefix_breaks(load_text(tmp_path, lines(turns)))
    assert found is not None and (found["basis"], found["pairs"]) == ("root", 1)
    assert [(row["content"], row["lost_tokens"]) for row in found["by_type"]] == [("cut", 20)]


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
