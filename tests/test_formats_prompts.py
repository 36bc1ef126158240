"""Prompts become keys: the same prefix gives the same keys, markers and wrappers do not matter, no word is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.formats.prompts import Prompt, hash_prompt, ids_in_text, parts_of, prompt_of
from kit.log import LogError, hash_log, load
from tests.format_rows import column, lines, load_text

SYSTEM = "Answer briefly and name your sources. " * 20


def body(*turns: str, marker_on: int | None = None, **other: Any) -> dict[str, Any]:
    """An Anthropic request body whose cache marker sits on one message."""
    messages = []
    for index, text in enumerate(turns):
        block: dict[str, Any] = {"type": "text", "text": text}
        if index == marker_on:
            block["cache_control"] = {"type": "ephemeral"}
        messages.append({"role": "user" if index % 2 == 0 else "assistant", "content": [block]})
    tools = [{"name": "get", "input_schema": {"type": "object"}}]
    return {"model": "claude-x", "tools": tools, "system": SYSTEM, "messages": messages, **other}


def keys(request: dict[str, Any], block: int = 16, salt: bytes = b"") -> list[int]:
    prompt = prompt_of(request)
    assert prompt is not None
    return hash_prompt(prompt, block, salt).keys


def test_a_longer_prompt_shares_its_full_blocks() -> None:
    short, long = keys(body("hello")), keys(body("hello", "hi", "go on, please, with a longer text"))
    assert short[:-1] == long[: len(short) - 1] and len(long) > len(short)


def test_markers_sampling_and_wrappers_change_nothing() -> None:
    plain = keys(body("a", "b", "c"))
    assert keys(body("a", "b", "c", marker_on=2)) == keys(body("a", "b", "c", temperature=0.3, stream=True)) == plain
    assert keys({"ts": 1, "request": body("a", "b", "c")}) == plain
    text_content = body("a", "b", "c")
    text_content["messages"] = [
        {"role": m["role"], "content": m["content"][0]["text"]} for m in text_content["messages"]
    ]
    assert keys(text_content) == plain


def test_model_salt_and_order_change_every_key() -> None:
    plain = keys(body("a"))
    for other in (
        keys({**body("a"), "model": "claude-y"}),
        keys(body("a"), salt=b"s"),
        keys({**body("a"), "system": "x" + SYSTEM}),
    ):
        assert not set(plain) & set(other)


def test_types_follow_the_parts() -> None:
    request = {
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "u"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "content": "r"},
        ]
    }
    assert [word for word, _ in parts_of(request)] == ["system", "user", "tool_call", "tool_result"]
    claude = {
        "messages": [
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "t"}, {"type": "tool_use", "id": "1"}]}
        ]
    }
    assert [word for word, _ in parts_of(claude)] == ["thinking", "tool_call"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2**31), min_size=1, max_size=80), st.integers(0, 80), st.integers(1, 20))
def test_equal_token_prefixes_have_equal_keys(ids: list[int], cut: int, block: int) -> None:
    other = [*ids[:cut], *(number + 1 for number in ids[cut:])]
    first, second = (hash_prompt(Prompt(ids=tuple(each)), block) for each in (ids, other))
    same = min(cut, len(ids)) // block
    assert first.keys[:same] == second.keys[:same]
    if cut < len(ids):
        assert not set(first.keys[same:]) & set(second.keys[same:])
    assert sum(first.tokens) == len(ids) and set(first.tokens[:-1]) <= {block}


def dump() -> list[dict[str, Any]]:
    usage = {"input_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 400, "output_tokens": 50}
    turns = [("secret words",), ("secret words", "hi", "more secret words")]
    return [
        {
            "ts": f"2026-03-01T10:00:0{i}Z",
            "session_id": "s1",
            "request": body(*texts),
            "response": {"id": f"m{i}", "usage": usage},
        }
        for i, texts in enumerate(turns)
    ]


def test_a_raw_dump_loads_with_types_and_without_words(tmp_path: Path) -> None:
    log = load_text(tmp_path, lines(dump()))
    assert (log.facts.format, log.facts.identity, log.facts.block_tokens) == ("raw_dump", "blocks", 64)
    assert column(log, "input_tokens") == [405, 405] and column(log, "read_tokens") == [400, 400]
    shared = log.con.sql("SELECT token_type, tokens FROM node WHERE depth = 0").fetchall()
    assert shared == [("tools", 64)]
    assert any("estimated at 4 bytes per token" in text for text in log.facts.derived)
    load(tmp_path / "example", tmp_path / "log.duckdb").con.close()
    assert b"secret words" not in (tmp_path / "log.duckdb").read_bytes()


def test_hashing_writes_a_log_without_words_or_names(tmp_path: Path) -> None:
    source = tmp_path / "dump.jsonl"
    source.write_text(lines(dump()))
    steps: list[tuple[int, int]] = []
    done = hash_log(source, tmp_path / "out.parquet", salt="s", progress=lambda a, b: steps.append((a, b)))
    assert (done["requests"], done["hashed"]) == (2, 2) and steps[-1][0] == steps[-1][1]
    raw = (tmp_path / "out.parquet").read_bytes()
    assert b"secret" not in raw and b"s1" not in raw.replace(b"claude", b"")
    again, direct = load(tmp_path / "out.parquet"), load(source)
    assert (
        again.con.sql("SELECT parent_id, tokens, token_type FROM node").fetchall()
        == direct.con.sql("SELECT parent_id, tokens, token_type FROM node").fetchall()
    )
    assert (again.facts.format, again.facts.sessions) == ("canonical", 1)


def test_hashing_is_salted(tmp_path: Path) -> None:
    source = tmp_path / "dump.jsonl"
    source.write_text(lines(dump()))
    found = []
    for index, salt in enumerate(("a", "a", "b", None)):
        hash_log(source, tmp_path / f"{index}.parquet", salt=salt)
        rows = load(tmp_path / f"{index}.parquet").con.sql("SELECT source_id FROM request").fetchall()
        found.append(rows)
    assert found[0] == found[1] and len({str(rows) for rows in found}) == 3


def test_a_log_without_prompts_cannot_be_hashed(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("ts,input_tokens\n1,10\n")
    with pytest.raises(LogError, match="nothing to hash"):
        hash_log(tmp_path / "log.csv", tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_a_hashed_log_never_replaces_its_dump_and_makes_its_folder(tmp_path: Path) -> None:
    source = tmp_path / "dump.jsonl"
    source.write_text(lines(dump()))
    before = source.read_bytes()
    for sources in (source, tmp_path):
        with pytest.raises(LogError, match="the dump itself"):
            hash_log(sources, source)
    assert source.read_bytes() == before
    hash_log(source, tmp_path / "new" / "folder" / "out.parquet")
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["out.parquet"]


# Engines' own logs ------------------------------------------------------------------------------------------------


def test_vllm_request_log(tmp_path: Path) -> None:
    ids = list(range(100))
    text = "".join(
        f"INFO 03-01 10:00:0{i} [logger.py:43] Received request cmpl-{i}: prompt: 'x', params: P(), "
        f"prompt_token_ids: {ids[:n]}, lora_request: None.\nINFO 03-01 10:00:0{i} [engine.py:1] Added request "
        f"cmpl-{i}.\n"
        for i, n in enumerate((64, 100))
    )
    log = load_text(tmp_path, text)
    assert log.facts.format == "vllm_log" and column(log, "input_tokens") == [64, 100]
    assert log.con.sql("SELECT parent_id, tokens FROM node").fetchall() == [(None, 64), (0, 36)]
    assert ids_in_text("nothing here") is None


@pytest.mark.parametrize(
    ("time", "hour"), [("2026-03-01 10:00:00,5", 10), ("2026-03-01T10:00:00+02:00", 8), ("2026-03-01T10:00:00Z", 10)]
)
def test_a_full_time_in_a_vllm_log_keeps_its_offset(time: str, hour: int, tmp_path: Path) -> None:
    text = f"INFO {time} [logger.py:43] Received request cmpl-1: prompt: 'x', prompt_token_ids: [1, 2], x: None.\n"
    log = load_text(tmp_path, text)
    assert (log.facts.start.year, log.facts.start.hour) == (2026, hour)


def test_sglang_metrics_with_ids_in_json_text(tmp_path: Path) -> None:
    import json

    def row(name: str, ids: list[int]) -> dict[str, Any]:
        given = json.dumps({"rid": name, "input_ids": ids, "sampling_params": {}})
        return {
            "request_parameters": given,
            "id": name,
            "prompt_tokens": len(ids),
            "completion_tokens": 6,
            "cached_tokens": 10,
            "e2e_latency": 1.5,
        }

    log = load_text(tmp_path, lines([row("a", list(range(64))), row("b", list(range(70)))]))
    assert log.facts.format == "sglang" and log.facts.clock == "none"
    assert column(log, "uncached_tokens") == [54, 60]
    assert log.con.sql("SELECT parent_id, tokens FROM node").fetchall() == [(None, 64), (0, 6)]


def test_prompts_stay_with_their_records_behind_damaged_lines(tmp_path: Path) -> None:
    first, second = (line.encode() for line in lines(dump()).splitlines())
    source = tmp_path / "dump.jsonl"
    source.write_bytes(b"\n".join([b"", first, b'{"ts":"\xff"}', b"{", second]))
    damaged = load(source)
    source.write_bytes(b"\n".join([first, second]))
    paths = "SELECT node_id FROM request_node ORDER BY request_id"
    assert damaged.facts.kept == 2 and damaged.facts.damaged == 2
    assert damaged.con.sql(paths).fetchall() == load(source).con.sql(paths).fetchall()
