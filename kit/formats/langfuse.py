"""Langfuse observations: JSON lines, JSON or CSV exports in snake_case, API dumps in camelCase.

Only generations carry usage. `usage_details` is a free map; `input` is the uncached part by convention, but some
producers send the whole prompt, which the row's own total gives away.
"""

from __future__ import annotations

from kit.formats.base import Field, Format, Peek
from kit.formats.prompts import prompt_of
from kit.formats.spans import keep_leaves


def usage(*names: str) -> tuple[str, ...]:
    """The places of a usage count in both spellings."""
    return tuple(f"{place}/{name}" for name in names for place in ("usage_details", "usageDetails"))


WRITTEN = "coalesce(written, written_5m, 0) + coalesce(written_1h, 0)"
CACHE = f"coalesce(cached, 0) + {WRITTEN}"
INCLUSIVE = f"({CACHE} > 0 AND total = given + coalesce(output_tokens, 0))"


def recognise(peek: Peek) -> float:
    """Usage details of observations."""
    return 0.95 if (peek.has("usage_details") or peek.has("usageDetails")) and peek.has("type") else 0.0


FORMAT = Format(
    name="langfuse",
    title="Langfuse observations",
    containers=("jsonl", "json", "csv", "parquet"),
    recognise=recognise,
    fields=(
        Field("id", "text", ("id",)),
        Field("trace", "text", ("trace_id", "traceId")),
        Field("parent_span", "text", ("parent_observation_id", "parentObservationId")),
        Field("type", "text", ("type",)),
        Field("started", "time", ("start_time", "startTime")),
        Field("ended", "time", ("end_time", "endTime")),
        Field("session", "text", ("session_id", "sessionId")),
        Field("caller", "text", ("user_id", "userId")),
        Field("model", "text", ("provided_model_name", "providedModelName", "model")),
        Field("given", "count", usage("input", "prompt_tokens")),
        Field("output_tokens", "count", usage("output", "completion_tokens")),
        Field("total", "count", usage("total", "total_tokens")),
        Field("cached", "count", usage("input_cached_tokens", "cache_read_input_tokens", "input_cache_read")),
        Field("written", "count", usage("cache_creation_input_tokens", "input_cache_creation")),
        Field("written_5m", "count", usage("input_cache_creation_5m")),
        Field("written_1h", "count", usage("input_cache_creation_1h")),
    ),
    columns={
        "ts": "started",
        "ts_end": "ended",
        "session_id": "session",
        "model": "model",
        "owner": "caller",
        "input_tokens": f"CASE WHEN {INCLUSIVE} THEN given ELSE given + {CACHE} END",
        "uncached_tokens": f"CASE WHEN {INCLUSIVE} THEN given - ({CACHE}) ELSE given END",
        "read_tokens": "cached",
        "write_tokens": "coalesce(written, written_5m)",
        "write_long_tokens": "written_1h",
        "output_tokens": "output_tokens",
        "source_id": "id",
        "path_keys": "NULL::UBIGINT[]",
        "trace": "trace",
        "span": "id",
        "parent_span": "parent_span",
    },
    keep="type = 'GENERATION' AND given IS NOT NULL",
    checks=(
        ("started IS NULL", "start_time is missing"),
        (f"{INCLUSIVE} AND {CACHE} > given", "cached tokens are more than input"),
    ),
    after=keep_leaves,
    prompt=prompt_of,
    identity_rule="one generation without a generation below it is one request",
    token_rule="additive (input is the uncached part) unless the row's total equals input + output: then inclusive",
    units={"start_time": "ISO time"},
    source="langfuse/langfuse observation field groups",
)
