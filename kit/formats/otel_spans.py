"""OpenTelemetry GenAI and OpenInference spans: OTLP JSON (one export per line or per file) or one span per line.

Usage is repeated on the agent spans above the model calls, so only calls without a call below them are requests.
Times in
nanoseconds are read as text (they do not fit a double). The old names of the conventions are read too.
"""

from __future__ import annotations

from typing import Any

from kit.formats.base import Field, Format, Peek
from kit.formats.spans import keep_leaves, settle_basis


def attribute(*names: str) -> tuple[str, ...]:
    """An attribute in a map, as a column of a span table, or nested as dots suggest."""
    return tuple(
        place for name in names
        for place in (f"attributes/{name}", f"attributes.{name}", "attributes/" + name.replace(".", "/"))
    )  # fmt: skip


ATTRIBUTES = (
    "'{' || array_to_string(list_transform(json_extract(span, '$.attributes[*]'), lambda a: "
    "(a -> '$.key')::VARCHAR || ':' || coalesce((a -> '$.value.stringValue')::VARCHAR, (a -> "
    "'$.value.intValue')::VARCHAR, "
    "(a -> '$.value.doubleValue')::VARCHAR, (a -> '$.value.boolValue')::VARCHAR, 'null')), ',') || '}'"
)
ROWS = (
    "SELECT rn, filename, text, CASE WHEN span IS NULL THEN whole "
    "WHEN json_type(span, '$.attributes') = 'ARRAY' THEN json_merge_patch(json_object("
    "'traceId', span -> '$.traceId', 'spanId', span -> '$.spanId', 'parentSpanId', span -> '$.parentSpanId', "
    "'startTimeUnixNano', span -> '$.startTimeUnixNano', 'endTimeUnixNano', span -> '$.endTimeUnixNano'), "
    f"json_object('attributes', TRY_CAST({ATTRIBUTES} AS JSON))) ELSE span END AS doc FROM ("
    "SELECT rn, filename, text, whole, unnest(CASE WHEN json_exists(whole, '$.resourceSpans') "
    "THEN json_extract(whole, '$.resourceSpans[*].scopeSpans[*].spans[*]') ELSE [NULL] END) AS span FROM ("
    "SELECT rn, filename, text, TRY_CAST(text AS JSON) AS whole FROM ({lines})))"
)
OPERATIONS = "('chat', 'text_completion', 'generate_content')"


def recognise(peek: Peek) -> float:
    """An OTLP export, or spans with GenAI or OpenInference attributes."""
    if peek.has("resourceSpans"):
        return 0.95
    if any(name.startswith(("attributes.gen_ai.", "attributes.llm.")) for name in peek.columns):
        return 0.9
    ours = ("gen_ai.", "llm.", "openinference.")
    return 0.9 if peek.any_record(lambda r: any(str(name).startswith(ours) for name in r["attributes"])) else 0.0


def follow(con: Any) -> list[str]:
    """Decide the token basis, then keep leaf calls and inherit sessions."""
    return settle_basis(con) + keep_leaves(con)


FORMAT = Format(
    name="otel_spans",
    title="OpenTelemetry GenAI or OpenInference spans",
    containers=("jsonl", "json", "csv", "parquet"),
    recognise=recognise,
    fields=(
        Field("trace", "text", ("traceId", "context.trace_id", "context/trace_id", "trace_id")),
        Field("span", "text", ("spanId", "context.span_id", "context/span_id", "span_id")),
        Field("parent_span", "text", ("parentSpanId", "parent_id", "parent_span_id")),
        Field("started", "time", ("startTimeUnixNano", "start_ns", "start_time")),
        Field("ended", "time", ("endTimeUnixNano", "end_ns", "end_time")),
        Field("operation", "text", attribute("gen_ai.operation.name")),
        Field("kind", "text", (*attribute("openinference.span.kind"), "span_kind")),
        Field("provider", "text", attribute("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")),
        Field("model", "text", attribute("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")),
        Field("session", "text", attribute("gen_ai.conversation.id", "session.id")),
        Field("caller", "text", attribute("user.id")),
        Field("given", "count", attribute(
            "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")),
        Field("output_tokens", "count", attribute(
            "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion")),
        Field("cached", "count", attribute(
            "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens",
            "llm.token_count.prompt_details.cache_read", "ai.usage.cachedInputTokens")),
        Field("written", "count", attribute(
            "gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens",
            "llm.token_count.prompt_details.cache_write")),
    ),
    columns={
        "ts": "started",
        "ts_end": "ended",
        "session_id": "session",
        "provider": "lower(provider)",
        "model": "model",
        "owner": "caller",
        "input_tokens": "given",
        "uncached_tokens": "given - coalesce(cached, 0) - coalesce(written, 0)",
        "read_tokens": "cached",
        "write_tokens": "written",
        "output_tokens": "output_tokens",
        "source_id": "coalesce(trace || '/', '') || span",
        "given": "given",
        "trace": "trace",
        "span": "span",
        "parent_span": "nullif(parent_span, '')",
    },
    keep=f"coalesce(upper(kind) = 'LLM', operation IN {OPERATIONS}, false)",
    checks=(("given IS NULL", "input token count is missing"), ("started IS NULL", "start time is missing")),
    rows=ROWS,
    after=follow,
    identity_rule="one model-call span without a model-call span below it is one request",
    token_rule="inclusive as the conventions ask; additive for a provider and model with a row that proves it",
    units={"startTimeUnixNano": "epoch nanoseconds", "start_time": "ISO time, or epoch told apart by size"},
    source="open-telemetry/semantic-conventions, Arize-ai/openinference spec",
)  # fmt: skip
