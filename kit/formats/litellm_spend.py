"""LiteLLM proxy table `LiteLLM_SpendLogs` (CSV export or JSON dump).

Cached tokens are not columns: they sit in `metadata.usage_object`, JSON inside a string (in some dumps twice). The
prompt
count includes them for every provider. `cache_hit` True is the proxy's own response cache: no model call. Where the
proxy stores prompts, `messages` (or `proxy_server_request`) is hashed while reading.
"""

from __future__ import annotations

from kit.formats.base import Field, Format, Peek
from kit.formats.prompts import prompt_of

USAGE = ("metadata/usage_object", "response/usage", "metadata/additional_usage_values")


def usage(*names: str) -> tuple[str, ...]:
    """Every place where a usage field may be, for each of its names."""
    return tuple(f"{place}/{name}" for name in names for place in USAGE)


READ = usage("cache_read_input_tokens", "prompt_tokens_details/cached_tokens")
WRITE = usage(
    "cache_creation_input_tokens",
    "prompt_tokens_details/cache_creation_tokens",
    "prompt_tokens_details/cache_write_tokens",
)
LONG = usage("cache_creation/ephemeral_1h_input_tokens", "cache_creation_token_details/ephemeral_1h_input_tokens")
COLUMNS = {
    "ts": "started",
    "ts_end": "ended",
    "session_id": "session_id",
    "provider": "provider",
    "model": "model",
    "owner": "owner",
    "input_tokens": "prompt_tokens",
    "uncached_tokens": "prompt_tokens - coalesce(cached, 0) - coalesce(written, 0)",
    "read_tokens": "cached",
    "write_tokens": "written - coalesce(written_long, 0)",
    "write_long_tokens": "CASE WHEN written IS NOT NULL THEN coalesce(written_long, 0) END",
    "output_tokens": "completion_tokens",
    "source_id": "request_id",
    "path_keys": "NULL::UBIGINT[]",
}
CHECKS = (
    ("coalesce(cached, 0) + coalesce(written, 0) > prompt_tokens", "cached tokens are more than prompt_tokens"),
    ("written_long > written", "1-hour writes are more than all writes"),
)
ASIDE = (
    ("response_cache", "answered by the gateway's own cache"),
    ("status = 'failure' AND coalesce(prompt_tokens, 0) = 0", "failed call"),
)


def recognise(peek: Peek) -> float:
    """The table's own spelling of its columns."""
    return 0.95 if peek.has("request_id", "startTime", "endTime", "prompt_tokens", "cache_hit") else 0.0


FORMAT = Format(
    name="litellm_spend",
    title="LiteLLM spend logs",
    containers=("csv", "jsonl", "json", "parquet"),
    recognise=recognise,
    fields=(
        Field("request_id", "text", ("request_id",)),
        Field("started", "time", ("startTime",), required=True),
        Field("ended", "time", ("endTime",)),
        Field("session_id", "text", ("session_id",)),
        Field("provider", "text", ("custom_llm_provider",)),
        Field("model", "text", ("model",)),
        Field("owner", "text", ("team_id", "user", "end_user")),
        Field("status", "text", ("status",)),
        Field("response_cache", "flag", ("cache_hit",)),
        Field("prompt_tokens", "count", ("prompt_tokens",), required=True),
        Field("completion_tokens", "count", ("completion_tokens",)),
        Field("cached", "count", READ),
        Field("written", "count", WRITE),
        Field("written_long", "count", LONG),
    ),
    columns=COLUMNS,
    checks=CHECKS,
    aside=ASIDE,
    prompt=prompt_of,
    identity_rule="one request_id is one request; answers of the proxy's own cache and failed calls are set aside",
    token_rule="inclusive for every provider: cached and written tokens are parts of prompt_tokens",
    units={"startTime": "time, UTC where no zone is given"},
    source="BerriAI/litellm schema.prisma",
)
