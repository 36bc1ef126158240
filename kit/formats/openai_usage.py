"""OpenAI answers with their usage object, Chat Completions or Responses: cached and written tokens are in the total.

Absent or null details mean that nothing was reported, which is not a measured 0. Reasoning tokens are in the output.
"""

from __future__ import annotations

from kit.formats.base import Field, Format, Peek

DETAILS = ("usage/prompt_tokens_details", "usage/input_tokens_details")


def recognise(peek: Peek) -> float:
    """A usage object with prompt tokens, or with input tokens in OpenAI's own shape."""
    if not peek.has("usage"):
        return 0.0
    if peek.any_record(lambda record: "prompt_tokens" in record["usage"]):
        return 0.9
    return 0.9 if peek.any_record(lambda record: {"input_tokens", "total_tokens"} <= set(record["usage"])) else 0.0


FORMAT = Format(
    name="openai_usage",
    title="OpenAI answers with usage",
    containers=("jsonl", "json"),
    recognise=recognise,
    fields=(
        Field("created", "time", ("created_at", "created", "timestamp", "ts")),
        Field("id", "text", ("id",)),
        Field("previous", "text", ("previous_response_id",)),
        Field("session", "text", ("conversation/id", "session_id", "conversation_id")),
        Field("provider", "text", ("provider",)),
        Field("model", "text", ("model",)),
        Field("prompt", "count", ("usage/prompt_tokens", "usage/input_tokens"), required=True),
        Field("completion", "count", ("usage/completion_tokens", "usage/output_tokens")),
        Field("cached", "count", (*(f"{place}/cached_tokens" for place in DETAILS), "usage/prompt_cache_hit_tokens")),
        Field("written", "count", tuple(f"{place}/cache_write_tokens" for place in DETAILS)),
    ),
    columns={
        "ts": "created",
        "session_id": "session",
        "provider": "coalesce(provider, 'openai')",
        "model": "model",
        "input_tokens": "prompt",
        "uncached_tokens": "prompt - coalesce(cached, 0) - coalesce(written, 0)",
        "read_tokens": "cached",
        "write_tokens": "written",
        "output_tokens": "completion",
        "source_id": "id",
        "parent_source_id": "previous",
    },
    checks=(("coalesce(cached, 0) + coalesce(written, 0) > prompt", "cached tokens are more than the prompt"),),
    identity_rule="one id is one request; previous_response_id names the request whose prompt this one extends",
    token_rule="inclusive: cached_tokens and cache_write_tokens are parts of the prompt tokens",
    units={"created": "epoch seconds"},
    source="openai-python types completion_usage and response_usage",
)
