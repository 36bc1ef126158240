"""Gateways and tracing tools: LiteLLM, Langfuse, Helicone, OpenRouter, spans. Each example is made by hand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from kit.log import load
from tests.format_rows import adds_up, column, lines, load_text, tokens


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as CSV text."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


# LiteLLM ---------------------------------------------------------------------------------------------------------

USAGE = {
    "prompt_tokens": 9000,
    "completion_tokens": 40,
    "cache_read_input_tokens": 5000,
    "cache_creation_input_tokens": 3000,
}


def spend(name: str, **other: Any) -> dict[str, Any]:
    row = {
        "request_id": name,
        "call_type": "acompletion",
        "startTime": "2026-03-01 10:00:00.5",
        "endTime": "2026-03-01 10:00:04",
        "model": "claude-x",
        "custom_llm_provider": "anthropic",
        "prompt_tokens": 9000,
        "completion_tokens": 40,
        "metadata": json.dumps({"usage_object": USAGE}),
        "cache_hit": "None",
        "session_id": "s-1",
        "status": "success",
        "team_id": "search",
        "messages": "{}",
    }
    return {**row, **other}


def test_litellm_spend_logs_keep_cached_tokens_inside_metadata(tmp_path: Path) -> None:
    rows = [
        spend("a"),
        spend("b", metadata=json.dumps(json.dumps({"usage_object": USAGE})), startTime="2026-03-01 10:01:00"),
        spend("c", cache_hit="True"),
        spend("d", status="failure", prompt_tokens=0, completion_tokens=0, metadata="{}"),
        spend("a"),
    ]
    log = load_text(tmp_path, table(rows))
    assert log.facts.format == "litellm_spend" and adds_up(log)
    # 9,000 = 1,000 uncached + 5,000 read + 3,000 written; JSON inside JSON text reads the same.
    assert tokens(log) == [(9000, 1000, 5000, 3000, 0, 40)] * 2
    assert log.facts.rejected == {
        "answered by the gateway's own cache": 1,
        "failed call": 1,
        "repeats a request id": 1,
    }
    assert log.facts.damaged == 0 and log.facts.naive_timestamps == 2
    assert column(log, "owner") == ["search", "search"] and column(log, "provider") == ["anthropic"] * 2


def test_litellm_spend_refuses_more_cached_than_prompt(tmp_path: Path) -> None:
    log = load_text(tmp_path, table([spend("a"), spend("b", prompt_tokens=7999)]))
    assert log.facts.rejected == {"cached tokens are more than prompt_tokens": 1}


def payload(name: str, start: float, **other: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 2000, "completion_tokens": 30, "prompt_tokens_details": {"cached_tokens": 1536}}
    row = {
        "id": name,
        "trace_id": "t",
        "startTime": start,
        "endTime": start + 2.5,
        "model": "gpt-x",
        "status": "success",
        "custom_llm_provider": "openai",
        "prompt_tokens": 2000,
        "completion_tokens": 30,
        "cache_hit": False,
        "metadata": {"usage_object": usage},
    }
    return {**row, **other}


def test_litellm_payload_times_are_epoch_seconds(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "s" * 600}, {"role": "user", "content": "hello"}]
    log = load_text(tmp_path, lines([payload("a", 1772407800.125, messages=messages), payload("b", 1772407900.0)]))
    assert log.facts.format == "litellm_payload" and adds_up(log)
    assert tokens(log) == [(2000, 464, 1536, None, None, 30)] * 2
    assert str(column(log, "ts")[0]) == "2026-03-01 23:30:00.125000+00:00"
    # Only the first record kept its messages: 600 + a few bytes = two full blocks of 64 tokens and a rest.
    assert log.facts.identity == "blocks" and any("no prompt text is stored" in text for text in log.facts.derived)


# Langfuse --------------------------------------------------------------------------------------------------------


def observation(
    name: str, usage: dict[str, int], parent: str | None = None, kind: str = "GENERATION"
) -> dict[str, Any]:
    return {
        "id": name,
        "trace_id": "t",
        "type": kind,
        "parent_observation_id": parent,
        "start_time": "2026-03-01T10:00:00.1Z",
        "end_time": "2026-03-01T10:00:03Z",
        "provided_model_name": "claude-x",
        "usage_details": usage,
        "session_id": "s",
    }


def test_langfuse_basis_is_told_by_the_total(tmp_path: Path) -> None:
    records = [
        observation("additive", {"input": 86, "input_cached_tokens": 900, "output": 14, "total": 1000}),
        observation("inclusive", {"input": 986, "input_cached_tokens": 900, "output": 14, "total": 1000}),
        observation("split", {"input": 6, "input_cache_creation_5m": 50, "input_cache_creation_1h": 30, "output": 1}),
        observation("tool", {}, kind="SPAN"),
    ]
    log = load_text(tmp_path, lines(records))
    assert log.facts.format == "langfuse" and adds_up(log)
    assert tokens(log) == [(986, 86, 900, None, None, 14), (986, 86, 900, None, None, 14), (86, 6, None, 50, 30, 1)]


def test_langfuse_generations_above_others_repeat_them(tmp_path: Path) -> None:
    records = [observation("agent", {"input": 30}), observation("call", {"input": 30}, parent="agent")]
    log = load_text(tmp_path, json.dumps(records, indent=1))
    assert column(log, "source_id") == ["call"] and log.facts.damaged == 0


def test_langfuse_as_csv_and_in_camel_case(tmp_path: Path) -> None:
    usage = {"input": 86, "cache_read_input_tokens": 900, "output": 14, "total": 1000}
    row = {"id": "a", "traceId": "t", "type": "GENERATION", "startTime": "2026-03-01T10:00:00Z", "model": "m"}
    log = load_text(tmp_path, table([{**row, "usageDetails": json.dumps(usage)}]))
    assert tokens(log) == [(986, 86, 900, None, None, 14)]


# Helicone and OpenRouter -----------------------------------------------------------------------------------------


def helicone(name: str, **other: Any) -> dict[str, Any]:
    row = {
        "request_id": name,
        "request_created_at": "2026-03-01 10:00:00.123",
        "response_status": 200,
        "provider": "ANTHROPIC",
        "request_model": "claude-x",
        "request_properties": {"Helicone-Session-Id": "s-1"},
        "delay_ms": 4100,
        "prompt_tokens": 86,
        "prompt_cache_read_tokens": 900,
        "prompt_cache_write_tokens": 0,
        "completion_tokens": 14,
        "total_tokens": 1000,
    }
    return {**row, **other}


def test_helicone_additive_and_inclusive_rows(tmp_path: Path) -> None:
    openai = helicone("b", provider="OPENAI", prompt_tokens=986)
    failed = helicone("c", response_status=500, prompt_tokens=None, prompt_cache_read_tokens=None, total_tokens=None)
    stored = helicone("d", cache_reference_id="5c0e0000-0000-0000-0000-000000000001")
    log = load_text(tmp_path, lines([helicone("a"), openai, failed, stored]))
    assert log.facts.format == "helicone" and adds_up(log)
    assert tokens(log) == [(986, 86, 900, 0, None, 14)] * 2
    assert log.facts.rejected == {"answered by the gateway's own cache": 1, "failed call": 1}
    assert column(log, "session_id") == ["s-1", "s-1"]
    assert column(log, "epoch_us(ts_end) - epoch_us(ts)") == [4_100_000] * 2


def test_openrouter_overlapping_exports_count_once(tmp_path: Path) -> None:
    row = {
        "generation_id": "gen-1772407800-a",
        "created_at": "2026-03-01 23:30:00",
        "model_permaslug": "openai/gpt-x",
        "provider_name": "OpenAI",
        "app_name": "App",
        "tokens_prompt": 2048,
        "tokens_completion": 300,
        "tokens_cached": 1920,
        "generation_time_ms": 3400,
    }
    later = {**row, "generation_id": "gen-1772407900-b", "created_at": "2026-03-02T00:31:40+01:00"}
    (tmp_path / "one.csv").write_text(table([row]))
    (tmp_path / "two.csv").write_text(table([row, later]))
    log = load(tmp_path)
    assert tokens(log) == [(2048, 128, 1920, None, None, 300)] * 2 and adds_up(log)
    assert log.facts.rejected == {"repeats a request id": 1}
    assert [str(time) for time in column(log, "ts")] == ["2026-03-01 23:30:00+00:00", "2026-03-01 23:31:40+00:00"]


# Spans -----------------------------------------------------------------------------------------------------------


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def span(name: str, parent: str, start: str, **attributes: Any) -> dict[str, Any]:
    listed = [
        {
            "key": key.replace("__", "."),
            "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)},
        }
        for key, value in attributes.items()
    ]
    return {"traceId": "t", "spanId": name, "parentSpanId": parent, "startTimeUnixNano": start, "attributes": listed}


def call(name: str, start: int, given: int, cached: int, model: str = "gpt-x") -> dict[str, Any]:
    return span(
        name,
        "agent",
        str(start),
        gen_ai__operation__name="chat",
        gen_ai__provider__name="openai",
        gen_ai__response__model=model,
        gen_ai__usage__input_tokens=given,
        gen_ai__usage__cache_read__input_tokens=cached,
        gen_ai__usage__output_tokens=7,
    )


def test_otlp_export_nanoseconds_and_inherited_session(tmp_path: Path) -> None:
    agent = span(
        "agent",
        "",
        "1772407800000000001",
        gen_ai__operation__name="invoke_agent",
        gen_ai__conversation__id="conv-1",
        gen_ai__usage__input_tokens=2048,
    )
    log = load_text(tmp_path, lines([otlp(agent), otlp(call("a", 1772407800123456789, 2048, 1920))]))
    assert tokens(log) == [(2048, 128, 1920, None, None, 7)] and adds_up(log)
    assert column(log, "session_id") == ["conv-1"] and column(log, "epoch_us(ts)") == [1_772_407_800_123_456]


def test_spans_that_count_beside_the_input_prove_it(tmp_path: Path) -> None:
    # x: 5 + 900 > 5 proves additive for this model, so its other row is 10 + 4; y stays inclusive.
    spans = [
        call("a", 1772407800 * 10**9, 5, 900, "x"),
        call("b", 1772407801 * 10**9, 10, 4, "x"),
        call("c", 1772407802 * 10**9, 10, 4, "y"),
    ]
    log = load_text(tmp_path, lines([otlp(*spans)]))
    assert [row[:3] for row in tokens(log)] == [(905, 5, 900), (14, 10, 4), (10, 6, 4)] and adds_up(log)
    assert any(text.startswith("input_tokens: beside the cached tokens for x") for text in log.facts.derived)


def test_openinference_spans_flat_and_as_a_table(tmp_path: Path) -> None:
    attributes = {
        "openinference.span.kind": "LLM",
        "session.id": "conv-1",
        "llm.model_name": "gpt-x",
        "llm.token_count.prompt": 2048,
        "llm.token_count.prompt_details.cache_read": 1920,
        "llm.token_count.completion": 300,
    }
    own = {"context.span_id": "a", "start_time": "2026-03-01T10:00:00.123000+00:00"}
    want = [(2048, 128, 1920, None, None, 300)]
    assert tokens(load_text(tmp_path, lines([{**own, "attributes": attributes}]))) == want
    flat = {
        f"attributes.{name}": f"{value}.0" if isinstance(value, int) else value for name, value in attributes.items()
    }
    assert tokens(load_text(tmp_path, table([{**own, **flat}]))) == want
