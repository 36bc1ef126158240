"""Helicone request export (JSON lines, JSON or CSV): prompt tokens beside cache reads and writes, sessions in
properties.

Where the total counts cache tokens beside the prompt the row is additive, where it does not they are parts of the
prompt;
rows without a total follow the provider (Anthropic additive, others inclusive).
"""

from __future__ import annotations

from kit.formats.base import Field, Format, Peek

CACHE = "coalesce(cached, 0) + coalesce(written, 0)"
ADDITIVE = (
    f"CASE WHEN {CACHE} = 0 THEN true WHEN total = prompt + coalesce(completion, 0) + {CACHE} THEN true "
    "WHEN total = prompt + coalesce(completion, 0) THEN false ELSE coalesce(upper(provider) = 'ANTHROPIC', false) END"
)
NO_ENTRY = "'00000000-0000-0000-0000-000000000000'"


def recognise(peek: Peek) -> float:
    """The export's own names of id and time."""
    return 0.95 if peek.has("request_id", "request_created_at", "prompt_tokens") else 0.0


FORMAT = Format(
    name="helicone",
    title="Helicone request export",
    containers=("jsonl", "json", "csv"),
    recognise=recognise,
    fields=(
        Field("request_id", "text", ("request_id",)),
        Field("created", "time", ("request_created_at",), required=True),
        Field("ended", "time", ("response_created_at",)),
        Field("delay", "decimal", ("delay_ms",)),
        Field("status", "count", ("response_status",)),
        Field("model", "text", ("request_model", "response_model", "model_override")),
        Field("provider", "text", ("provider",)),
        Field("session", "text", ("request_properties/Helicone-Session-Id",)),
        Field("caller", "text", ("request_user_id",)),
        Field("cache_entry", "text", ("cache_reference_id",)),
        Field("prompt", "count", ("prompt_tokens",), required=True),
        Field("cached", "count", ("prompt_cache_read_tokens",)),
        Field("written", "count", ("prompt_cache_write_tokens",)),
        Field("completion", "count", ("completion_tokens",)),
        Field("total", "count", ("total_tokens",)),
    ),
    columns={
        "ts": "created",
        "ts_end": "coalesce(ended, created + lasting(delay * 1000))",
        "session_id": "session",
        "provider": "lower(provider)",
        "model": "model",
        "owner": "caller",
        "input_tokens": f"CASE WHEN {ADDITIVE} THEN prompt + {CACHE} ELSE prompt END",
        "uncached_tokens": f"CASE WHEN {ADDITIVE} THEN prompt ELSE prompt - ({CACHE}) END",
        "read_tokens": "cached",
        "write_tokens": "written",
        "output_tokens": "completion",
        "source_id": "request_id",
    },
    checks=((f"NOT ({ADDITIVE}) AND {CACHE} > prompt", "cached tokens are more than prompt_tokens"),),
    aside=(
        (f"cache_entry IS NOT NULL AND cache_entry <> {NO_ENTRY}", "answered by the gateway's own cache"),
        ("prompt IS NULL AND coalesce(status, 0) <> 200", "failed call"),
    ),
    identity_rule="one request_id is one request; answers of Helicone's own cache and failed calls are set aside",
    token_rule="additive where total_tokens counts cache tokens beside prompt_tokens, else inclusive",
    units={"request_created_at": "time, UTC where no zone is given", "delay_ms": "milliseconds"},
    source="Helicone HeliconeRequest interface",
)
