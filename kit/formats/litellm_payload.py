"""LiteLLM standard logging payload: JSON lines from storage buckets and callbacks, times in epoch seconds.

`trace_id` groups retries and fallbacks of one call, so it is no session. Usage sits in `metadata.usage_object` or, in
other versions, in `response.usage`.
"""

from __future__ import annotations

from kit.formats.base import Field, Format, Peek
from kit.formats.litellm_spend import ASIDE, CHECKS, COLUMNS, LONG, READ, WRITE
from kit.formats.prompts import prompt_of


def recognise(peek: Peek) -> float:
    """Start time and trace id in the payload's spelling, no table id."""
    return 0.95 if peek.has("id", "trace_id", "startTime", "prompt_tokens") else 0.0


FORMAT = Format(
    name="litellm_payload",
    title="LiteLLM standard logging payload",
    containers=("jsonl", "json"),
    recognise=recognise,
    fields=(
        Field("request_id", "text", ("id",)),
        Field("started", "time", ("startTime",), required=True),
        Field("ended", "time", ("endTime",)),
        Field("session_id", "text", ("metadata/session_id", "metadata/requester_metadata/session_id")),
        Field("provider", "text", ("custom_llm_provider",)),
        Field("model", "text", ("model",)),
        Field("owner", "text", ("metadata/user_api_key_team_id", "metadata/user_api_key_alias", "end_user")),
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
    identity_rule="one id is one request; trace_id groups its retries and is no session",
    token_rule="inclusive for every provider: cached and written tokens are parts of prompt_tokens",
    units={"startTime": "epoch seconds"},
    source="litellm/types/utils.py StandardLoggingPayload",
)
