"""Public traces: Mooncake and its extension, Dynamo, Qwen-Bailian, packed runs, Azure, BurstGPT."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit.log import LogError, load
from tests.conftest import shared_data
from tests.format_rows import column, lines, load_text, tokens


def nodes(log: object) -> list[tuple[object, ...]]:
    return log.con.sql("SELECT parent_id, tokens, token_type FROM node ORDER BY node_id").fetchall()  # type: ignore[attr-defined]


def test_mooncake_last_block_has_its_real_length(tmp_path: Path) -> None:
    # 1,300 = 512 + 512 + 276 and 1,500 = 512 + 512 + 476: two shared blocks and two tails.
    records = [
        {"timestamp": 27482, "input_length": 1300, "output_length": 52, "hash_ids": [46, 47, 48]},
        {"timestamp": 30535, "input_length": 1500, "output_length": 26, "hash_ids": [46, 47, 49]},
        {"timestamp": 30536, "input_length": 1500, "output_length": 26, "hash_ids": [46, 47]},
        {"timestamp": 30537, "input_length": 1500, "output_length": 26, "hash_ids": [46]},
    ]
    log = load_text(tmp_path, lines(records))
    assert [row[:2] for row in nodes(log)] == [(None, 512), (0, 512), (1, 276), (1, 476)]
    assert log.facts.rejected == {"hash_ids does not have one id per 512 tokens of input_length": 1}
    assert log.facts.block_tokens == 512


def test_aiperf_delays_become_the_earliest_start(tmp_path: Path) -> None:
    records = [
        {"session_id": "abc", "timestamp": 1000, "input_length": 300, "output_length": 40, "hash_ids": [1]},
        {"session_id": "abc", "delay": 2000, "input_length": 900, "output_length": 20, "hash_ids": [1, 2]},
        {"session_id": "abc", "delay": 500, "input_length": 900, "output_length": 20, "hash_ids": [1, 2]},
    ]
    log = load_text(tmp_path, lines(records))
    assert column(log, "epoch_ms(ts)") == [1000, 3000, 3500]
    assert any("delay" in text for text in log.facts.derived)


def test_dynamo_hashes_use_all_64_bits(tmp_path: Path) -> None:
    def event(name: str, received: int, hashes: list[int]) -> dict[str, object]:
        replay = {"trace_block_size": 64, "input_length": 130, "input_sequence_hashes": hashes}
        request = {
            "request_id": name,
            "model": "m",
            "output_tokens": 8,
            "request_received_ms": received,
            "replay": replay,
        }
        return {
            "schema": "dynamo.request.trace.v1",
            "event_type": "request_end",
            "event_time_unix_ms": received + 9000,
            "agent_context": {"session_id": "th-1"},
            "request": request,
        }

    tool = {"schema": "dynamo.request.trace.v1", "event_type": "tool_end", "event_time_unix_ms": 1772407800500}
    big = 2**64 - 2
    records = [event("late", 1772407802000, [big, 12]), event("early", 1772407801000, [big, 11, 5]), tool]
    log = load_text(tmp_path, lines(records))
    assert column(log, "source_id") == ["early", "late"] and log.facts.block_tokens == 64
    # ceil(130 / 64) = 3 hashes with a tail of 2, or floor = 2 hashes and no tail.
    assert [row[:2] for row in nodes(log)] == [(None, 64), (0, 64), (1, 2), (0, 64)]


def test_bailian_blocks_are_chained_and_sessions_follow_parents(tmp_path: Path) -> None:
    def turn(chat: int, parent: int, at: float, ids: list[int]) -> dict[str, object]:
        return {
            "chat_id": chat,
            "parent_chat_id": parent,
            "timestamp": at,
            "input_length": 16 * len(ids),
            "output_length": 1,
            "type": "text",
            "turn": 1,
            "hash_ids": ids,
        }

    log = load_text(tmp_path, lines([turn(1, -1, 0.5, [7, 8]), turn(2, 1, 60, [7, 8, 8]), turn(9, 5, 61, [8, 7])]))
    assert column(log, "session_id") == ["1", "1", "5"] and column(log, "epoch_ms(ts)") == [500, 60_000, 61_000]
    # The id 8 at another place is another prefix: 7, 7-8, 7-8-8, 8, 8-7.
    assert [row[0] for row in nodes(log)] == [None, 0, 1, None, 3]


def run_record(session: str, runs: list[list[int]], tokens_in: int, **other: object) -> dict[str, object]:
    return {
        "session": session,
        "agent": "main",
        "model": "m",
        "input_tokens": tokens_in,
        "output_tokens": 1,
        "block": 64,
        "hash_runs": runs,
        **other,
    }


def test_runs_are_cut_only_where_requests_part(tmp_path: Path) -> None:
    # Session a: ids 1..10 split at 5 by the second request, at 8 by the third. Session b has its own ids.
    records = [
        run_record("a", [[1, 10]], 650, t=0.0),
        run_record("a", [[1, 4], [20, 21]], 400, t=9.0),
        run_record("a", [[1, 7]], 448, t=19.5),
        run_record("b", [[1, 10]], 640, t=1.0),
    ]
    log = load_text(tmp_path, lines(records))
    assert log.facts.clock == "session" and not log.facts.has_clock and log.facts.identity == "blocks"
    found = sorted(row[1] for row in nodes(log))
    assert found == sorted([4 * 64, 3 * 64, 3 * 64, 2 * 64, 10 * 64])
    assert sorted(column(log, "epoch_ms(ts) - min(epoch_ms(ts)) OVER (PARTITION BY session_id)")) == [
        0,
        0,
        9000,
        19_500,
    ]


def test_runs_with_typed_segments(tmp_path: Path) -> None:
    # 5 blocks of 16: system 40 tokens covers the first byte of blocks 0, 1, 2; user the rest.
    record = {
        "session": "t",
        "turn": 1,
        "input_tokens": 85,
        "output_tokens": 2,
        "next": "tool",
        "block": 16,
        "hash_runs": [[1, 5]],
        "segments": [["system", 40], ["user", 45]],
    }
    log = load_text(tmp_path, lines([record, {**record, "turn": 2, "next": "user"}]))
    assert nodes(log) == [(None, 48, "system"), (0, 32, "user")]
    assert column(log, "trigger") == ["person", "tool"] and log.facts.clock == "none"


@pytest.mark.parametrize("name", ["coding_blocks64.jsonl", "taubench_gpt4o_airline.jsonl"])
def test_packed_traces_hold_every_block_once(name: str) -> None:
    source = shared_data(name)
    log = load(source)
    records = [json.loads(line) for line in source.read_text().splitlines()]
    distinct: dict[object, set[int]] = {}
    for record in records:
        scope = (record["session"], record["model"]) if "t" in record else ""
        own = distinct.setdefault(scope, set())
        for first, last in record["hash_runs"]:
            own.update(range(first, last + 1))
    block = records[0]["block"]
    total = log.con.sql("SELECT sum(tokens)::BIGINT FROM node").fetchall()[0][0]
    assert total == block * sum(len(own) for own in distinct.values())
    assert (log.facts.requests, log.facts.block_tokens, log.facts.rejected) == (len(records), block, {})
    assert log.facts.sessions == len({record["session"] for record in records})


def test_tau_bench_types_and_coding_sessions() -> None:
    log = load(shared_data("taubench_gpt4o_airline.jsonl"))
    assert (log.facts.requests, log.facts.sessions) == (2454, 200)
    assert {row[2] for row in nodes(log)} == {"system", "user", "assistant", "tool_call", "tool_result"}
    assert any(text.startswith("when anything happened") for text in log.facts.cannot_tell)


def test_azure_says_what_it_cannot_tell() -> None:
    log = load(shared_data("azure_llm_2023_conv.csv"))
    assert (log.facts.requests, log.facts.identity, log.facts.naive_timestamps) == (19_366, None, 19_366)
    assert any(text.startswith("which prefixes repeat") for text in log.facts.cannot_tell)
    assert log.con.sql("SELECT count(*) FROM node").fetchall() == [(0,)]


def test_burstgpt_new_and_old_columns(tmp_path: Path) -> None:
    new = (
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,17,3.2,ChatGPT,472,18,490,Conversation log\n45,,2.1,GPT-4,1087,230,1317,API log\n"
        "50,17,1,ChatGPT,500,0,500,Conversation log\n"
    )
    log = load_text(tmp_path, new)
    assert tokens(log) == [(472, None, None, None, None, 18), (1087, None, None, None, None, 230)]
    assert log.facts.rejected == {"failed call": 1} and column(log, "session_type") == ["chat", "single"]
    assert column(log, "epoch_ms(ts_end)") == [8200, 47_100]
    old = (
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n"
    )
    assert load_text(tmp_path, old).facts.sessions == 0


def test_rates_are_no_log() -> None:
    with pytest.raises(LogError, match="not a log layout the kit knows"):
        load(shared_data("servegen_rates.csv"))
