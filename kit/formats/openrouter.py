"""OpenRouter activity export: one row per generation; times without a zone are UTC; cached tokens are in the prompt."""

from __future__ import annotations

from kit.formats.base import Field, Format, Peek


def recognise(peek: Peek) -> float:
    """Generation ids with prompt tokens."""
    return 0.95 if peek.has("generation_id", "created_at", "tokens_prompt") else 0.0


FORMAT = Format(
    name="openrouter",
    title="OpenRouter activity export",
    containers=("csv",),
    recognise=recognise,
    fields=(
        Field("generation_id", "text", ("generation_id",)),
        Field("created_at", "time", ("created_at",), required=True),
        Field("generation_time", "decimal", ("generation_time_ms",)),
        Field("model", "text", ("model_permaslug",)),
        Field("provider_name", "text", ("provider_name",)),
        Field("app_name", "text", ("app_name", "api_key_name", "user")),
        Field("prompt", "count", ("tokens_prompt",), required=True),
        Field("completion", "count", ("tokens_completion",)),
        Field("cached", "count", ("tokens_cached",)),
    ),
    columns={
        "ts": "created_at",
        "ts_end": "created_at + lasting(generation_time * 1000)",
        "provider": "lower(provider_name)",
        "model": "model",
        "owner": "app_name",
        "input_tokens": "prompt",
        "uncached_tokens": "prompt - cached",
        "read_tokens": "cached",
        "output_tokens": "completion",
        "source_id": "generation_id",
    },
    checks=(("cached > prompt", "tokens_cached is more than tokens_prompt"),),
    identity_rule="one generation_id is one request; overlapping exports count once",
    token_rule="inclusive: tokens_cached is a part of tokens_prompt",
    units={"created_at": "time, UTC where no zone is given", "generation_time_ms": "milliseconds"},
    source="OpenRouter activity export, per-request header",
)
