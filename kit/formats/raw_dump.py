"""Raw request dumps with messages: the most a log can tell. Prompts are hashed while reading and never stored.

One JSON object (or row of a table) per request: the request body at the top or under `request` or `body`, the answer
under `response`, a time and a session beside them. A table may have the usage counts as columns of its own.
"""

from __future__ import annotations

from kit.formats.base import Field, Format, Peek
from kit.formats.prompts import opened, prompt_of

WRAPS = ("", "response/", "response/body/", "response_body/")


def usage(*names: str) -> tuple[str, ...]:
    """A usage count wherever the answer may be, last as a column of its own."""
    return (*(f"{wrap}usage/{name}" for name in names for wrap in WRAPS), *names)


INCLUSIVE = "(prompt IS NOT NULL OR total IS NOT NULL OR details IS NOT NULL)"
GIVEN = "coalesce(prompt, given)"
WRITTEN = "coalesce(written, written_5m + coalesce(written_1h, 0))"
CACHE = f"coalesce(cached, 0) + coalesce({WRITTEN}, 0)"


def recognise(peek: Peek) -> float:
    """Messages (or contents, or an input list) in the record or in its request body, and no layout of its own."""

    if peek.has("prompt") and any(peek.has(name) for name in ("tokens", "input_tokens", "prefix_tokens")):
        return 0.0  # a key and its length, not a prompt and its answer
    if peek.container in ("csv", "parquet"):
        return 0.6 if peek.any_record(lambda record: prompt_of(opened(record)) is not None) else 0.0
    return 0.92 if peek.any_record(lambda record: prompt_of(record) is not None) else 0.0


FORMAT = Format(
    name="raw_dump",
    title="Raw request dump with messages",
    containers=("jsonl", "json", "csv", "parquet"),
    recognise=recognise,
    fields=(
        Field("ts", "time", ("ts", "timestamp", "time", "created_at", "start_time", "request_time", "created")),
        Field("ts_end", "time", ("ts_end", "end_time", "response_time")),
        Field("session", "text", ("session_id", "conversation_id", "sessionId", "request/metadata/session_id",
                                  "metadata/session_id", "request/metadata/user_id")),
        Field("provider", "text", ("provider",)),
        Field("model", "text", ("request/model", "body/model", "request_body/model", "model", "response/model")),
        Field("scope", "text", ("cache_scope", "workspace", "organization", "region")),
        Field("owner", "text", ("owner", "team", "app")),
        Field("id", "text", ("response/id", "request_id", "id")),
        Field("prompt", "count", usage("prompt_tokens")),
        Field("given", "count", usage("input_tokens")),
        Field("total", "count", usage("total_tokens")),
        Field("details", "json", tuple(f"{wrap}usage/{name}" for wrap in WRAPS for name in
                                       ("input_tokens_details", "prompt_tokens_details"))),
        Field("cached", "count", usage("cache_read_input_tokens", "prompt_tokens_details/cached_tokens",
                                       "input_tokens_details/cached_tokens")),
        Field("written", "count", usage("cache_creation_input_tokens")),
        Field("written_5m", "count", usage("cache_creation/ephemeral_5m_input_tokens")),
        Field("written_1h", "count", usage("cache_creation/ephemeral_1h_input_tokens")),
        Field("output", "count", usage("output_tokens", "completion_tokens")),
    ),
    columns={
        "ts": "ts",
        "ts_end": "ts_end",
        "session_id": "session",
        "provider": "coalesce(provider, CASE WHEN model LIKE 'claude%' THEN 'anthropic' END)",
        "model": "model",
        "cache_scope": "scope",
        "owner": "owner",
        "input_tokens": f"CASE WHEN {INCLUSIVE} THEN {GIVEN} ELSE {GIVEN} + {CACHE} END",
        "uncached_tokens": f"CASE WHEN {INCLUSIVE} THEN {GIVEN} - ({CACHE}) ELSE {GIVEN} END",
        "read_tokens": "cached",
        "write_tokens": f"{WRITTEN} - coalesce(written_1h, 0)",
        "write_long_tokens": "written_1h",
        "output_tokens": "output",
        "source_id": "id",
        "path_keys": "NULL::UBIGINT[]",
    },
    checks=((f"{INCLUSIVE} AND {CACHE} > {GIVEN}", "cached tokens are more than the prompt"),),
    prompt=prompt_of,
    identity_rule="one record is one request (response id, else request id)",
    token_rule="as the usage object in it says: Anthropic's is additive, OpenAI's inclusive; without one, lengths are "
    "estimated from the prompt",
    units={"ts": "ISO time, or epoch told apart by size"},
    source="providers' own request and response bodies",
)  # fmt: skip
