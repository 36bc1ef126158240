"""Providers and agents: usage objects, Bedrock, Claude Code, Codex, the three usage tables of shared data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kit.log import load
from tests.conftest import shared_data
from tests.format_rows import adds_up, column, lines, load_text, tokens


def test_openai_responses_chain(tmp_path: Path) -> None:
    def answer(name: str, before: str | None, total: int, at: int) -> dict[str, Any]:
        details = {"cached_tokens": 64, "cache_write_tokens": 32}
        usage = {"input_tokens": total, "input_tokens_details": details, "output_tokens": 5, "total_tokens": total + 5}
        return {"id": name, "created_at": at, "model": "gpt-x", "previous_response_id": before, "usage": usage}

    log = load_text(tmp_path, lines([answer("r1", None, 100, 1772407800), answer("r2", "r1", 160, 1772407900)]))
    assert log.facts.format == "openai_usage" and adds_up(log)
    assert tokens(log) == [(100, 4, 64, 32, None, 5), (160, 64, 64, 32, None, 5)]
    assert log.con.sql("SELECT parent_id, tokens FROM node ORDER BY node_id").fetchall() == [(None, 100), (0, 60)]


def test_anthropic_usage_is_additive_and_knows_two_lifetimes(tmp_path: Path) -> None:
    split = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 1253,
        "cache_read_input_tokens": 9000,
        "output_tokens": 31,
        "cache_creation": {"ephemeral_5m_input_tokens": 253, "ephemeral_1h_input_tokens": 1000},
    }
    plain = {"input_tokens": 5, "cache_creation_input_tokens": 40, "cache_read_input_tokens": 0, "output_tokens": 1}
    bare = {"input_tokens": 7, "cache_read_input_tokens": None, "output_tokens": 2}
    wrong = {**split, "cache_creation_input_tokens": 1000}
    usages = [split, plain, bare, wrong]
    records = [
        {"id": f"m{i}", "ts": 1772407800 + i, "model": "claude-x", "usage": usage} for i, usage in enumerate(usages)
    ]
    log = load_text(tmp_path, lines(records))
    assert log.facts.format == "anthropic_usage" and adds_up(log)
    assert tokens(log) == [
        (10258, 5, 9000, 253, 1000, 31),
        (45, 5, 0, 40, 0, 1),
        (7, 7, None, None, None, 2),
    ]
    assert log.facts.rejected == {"5-minute and 1-hour writes do not add up to cache_creation_input_tokens": 1}


@pytest.mark.parametrize("spelling", ["rest", "sdk"])
def test_gemini_thoughts_are_output_and_absent_is_zero(tmp_path: Path, spelling: str) -> None:
    rest = {
        "promptTokenCount": 1000,
        "cachedContentTokenCount": 900,
        "candidatesTokenCount": 80,
        "thoughtsTokenCount": 12,
        "toolUsePromptTokenCount": 50,
        "totalTokenCount": 1142,
    }
    sdk = {
        "prompt_token_count": 1000,
        "cached_content_token_count": 900,
        "candidates_token_count": 80,
        "thoughts_token_count": 12,
        "tool_use_prompt_token_count": 50,
        "total_token_count": 1142,
    }
    first = (
        {"responseId": "g", "usageMetadata": rest}
        if spelling == "rest"
        else {"response_id": "g", "usage_metadata": sdk}
    )
    second = {"responseId": "h", "timestamp": "2026-03-01T10:00:01Z", "usageMetadata": {"promptTokenCount": 10}}
    log = load_text(tmp_path, lines([{**first, "timestamp": "2026-03-01T10:00:00Z"}, second]))
    assert log.facts.format == "gemini_usage" and adds_up(log)
    assert tokens(log) == [(1050, 150, 900, None, None, 92), (10, 10, 0, None, None, 0)]


def invocation(name: str, body: Any) -> dict[str, Any]:
    return {
        "schemaType": "ModelInvocationLog",
        "timestamp": "2026-03-01T10:00:00Z",
        "region": "us-east-1",
        "requestId": name,
        "modelId": "arn:aws:bedrock:us-east-1:1:inference-profile/global.anthropic.claude-x",
        "input": {"inputTokenCount": 3, "cacheReadInputTokenCount": 1200, "cacheWriteInputTokenCount": 20},
        "output": {"outputBodyJson": body, "outputTokenCount": 9},
    }


def test_bedrock_splits_writes_by_the_body(tmp_path: Path) -> None:
    creation = {"cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 15}}
    records = [
        invocation("a", [{"type": "message_start", "message": {"usage": creation}}]),
        invocation("b", {"usage": creation}),
        invocation("c", None),
        invocation("a", None),
    ]
    log = load_text(tmp_path, lines(records))
    assert log.facts.format == "bedrock" and adds_up(log)
    assert tokens(log) == [(1223, 3, 1200, 5, 15, 9), (1223, 3, 1200, 5, 15, 9), (1223, 3, 1200, 20, 0, 9)]
    assert set(column(log, "model")) == {"global.anthropic.claude-x"} and log.facts.rejected == {
        "repeats a request id": 1
    }


# Claude Code -----------------------------------------------------------------------------------------------------


def said(kind: str, own: str, before: str | None, second: int, message: dict[str, Any], **other: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": own,
        "parentUuid": before,
        "timestamp": f"2026-03-01T10:00:{second:02}.000Z",
        "sessionId": "s1",
        "isSidechain": False,
        "version": "2.1",
        "cwd": "w",
        "message": {"role": kind, **message},
        **other,
    }


def answer(name: str, uncached: int, read: int, write: int, output: int) -> dict[str, Any]:
    usage = {
        "input_tokens": uncached,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": write},
        "output_tokens": output,
    }
    return {"id": name, "model": "claude-x", "usage": usage, "content": [{"type": "text", "text": "private words"}]}


def transcript() -> list[dict[str, Any]]:
    result = {"content": [{"type": "tool_result", "content": "private words"}]}
    return [
        said("user", "u1", None, 0, {"content": "private words"}),
        said("assistant", "a1", "u1", 2, answer("A", 4, 20_000, 1800, 3)),
        said("assistant", "a2", "a1", 4, answer("A", 4, 20_000, 1800, 90)),
        said("user", "u2", "a2", 5, result),
        said("assistant", "a3", "u2", 8, answer("B", 2, 21_804, 300, 7)),
        said("assistant", "x", "a3", 9, {**answer("E", 0, 0, 0, 0), "model": "<synthetic>"}),
        {"type": "summary", "summary": "private words", "leafUuid": "a3"},
    ]


def test_claude_code_follows_parents_and_triggers(tmp_path: Path) -> None:
    log = load_text(tmp_path, lines(transcript()))
    assert log.facts.format == "claude_code" and adds_up(log)
    assert tokens(log) == [(21_804, 4, 20_000, 0, 1800, 90), (22_106, 2, 21_804, 0, 300, 7)]
    assert column(log, "trigger") == ["person", "tool"] and column(log, "epoch_ms(ts_end) - epoch_ms(ts)") == [2000, 0]
    # The shared root is what the parentless first call read; then 1,804 of its own; then B's growth of 302.
    assert log.con.sql("SELECT parent_id, tokens FROM node ORDER BY node_id").fetchall() == [
        (None, 20_000),
        (0, 1804),
        (1, 302),
    ]


def test_no_words_of_a_conversation_reach_the_file(tmp_path: Path) -> None:
    source = tmp_path / "in" / "s1.jsonl"
    source.parent.mkdir()
    source.write_text(lines(transcript()))
    load(source, tmp_path / "log.duckdb").con.close()
    assert b"private words" not in (tmp_path / "log.duckdb").read_bytes()


# Usage tables of shared data -------------------------------------------------------------------------------------


def totals(name: str) -> tuple[Any, ...]:
    log = load(shared_data(name))
    assert log.facts.rejected == {} and adds_up(log)
    sums = log.con.sql("SELECT sum(read_tokens)::BIGINT, sum(input_tokens)::BIGINT FROM request").fetchall()[0]
    return (log.facts.requests, log.facts.sessions, *sums)


def test_six_weeks_of_agent_sessions() -> None:
    requests, sessions, read, given = totals("claude_agents_2026q1.csv")
    assert (requests, sessions) == (20_979, 273)
    assert round(read / given, 3) == 0.954


def test_codex_sessions_are_inclusive() -> None:
    requests, sessions, read, given = totals("codex_agents_2026q2.csv")
    assert (requests, sessions) == (326, 4) and read < given
    log = load(shared_data("codex_agents_2026q2.csv"))
    assert log.con.sql("SELECT count(*) FROM request WHERE read_tokens % 128 <> 0").fetchall() == [(0,)]
    assert set(column(log, "model")) == {"gpt-5.4", "gpt-5.5"}
    assert any("session-local reuse only" in text for text in log.facts.derived)


def test_pi_sessions_cost_what_their_client_says() -> None:
    source = shared_data("pi_sessions.csv")
    requests, sessions, _, _ = totals("pi_sessions.csv")
    assert (requests, sessions) == (910, 2)
    # Published prices per million tokens of the two models in the file: input, read, 5-minute write, output.
    prices = {"claude-sonnet-4-5": (3.0, 0.3, 3.75, 15.0), "claude-opus-4-5": (5.0, 0.5, 6.25, 25.0)}
    log = load(source)
    rows = log.con.sql(
        "SELECT model, uncached_tokens, read_tokens, write_tokens, output_tokens FROM request"
    ).fetchall()
    bill = sum(sum(p * n for p, n in zip(prices[model], counts, strict=True)) for model, *counts in rows) / 1e6
    said_cost = log.con.sql(f"SELECT sum(cost_usd::DOUBLE) FROM read_csv('{source}', all_varchar = true)").fetchall()[
        0
    ][0]
    assert bill == pytest.approx(said_cost, rel=1e-3)
