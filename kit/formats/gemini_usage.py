"""Gemini answers with `usageMetadata` (REST spelling) or `usage_metadata` (SDK dumps).

The prompt count includes cached content; tool-use prompts and thoughts are counted beside it. A count that is absent
is 0.
"""

from __future__ import annotations

from kit.formats.base import Field, Format, Peek


def both(rest: str, sdk: str) -> tuple[str, str]:
    """The two spellings of one count."""
    return f"usageMetadata/{rest}", f"usage_metadata/{sdk}"


def recognise(peek: Peek) -> float:
    """The usage object's own name."""
    return 0.95 if peek.has("usageMetadata") or peek.has("usage_metadata") else 0.0


INPUT = "prompt + coalesce(tool_use, 0)"
FORMAT = Format(
    name="gemini_usage",
    title="Gemini answers with usage",
    containers=("jsonl", "json"),
    recognise=recognise,
    fields=(
        Field("ts", "time", ("timestamp", "ts", "createTime", "create_time")),
        Field("id", "text", ("responseId", "response_id", "id")),
        Field("session", "text", ("session_id", "conversation_id")),
        Field("model", "text", ("modelVersion", "model_version", "model")),
        Field("prompt", "count", both("promptTokenCount", "prompt_token_count"), required=True),
        Field("cached", "count", both("cachedContentTokenCount", "cached_content_token_count")),
        Field("tool_use", "count", both("toolUsePromptTokenCount", "tool_use_prompt_token_count")),
        Field("candidates", "count", (*both("candidatesTokenCount", "candidates_token_count"),
                                      *both("responseTokenCount", "response_token_count"))),
        Field("thoughts", "count", both("thoughtsTokenCount", "thoughts_token_count")),
        Field("total", "count", both("totalTokenCount", "total_token_count")),
    ),
    columns={
        "ts": "ts",
        "session_id": "session",
        "provider": "'google'",
        "model": "model",
        "input_tokens": INPUT,
        "uncached_tokens": f"{INPUT} - coalesce(cached, 0)",
        "read_tokens": "coalesce(cached, 0)",
        "output_tokens": "coalesce(candidates, 0) + coalesce(thoughts, 0)",
        "source_id": "id",
    },
    checks=(("cached > prompt", "cachedContentTokenCount is more than promptTokenCount"),),
    identity_rule="one response id is one request",
    token_rule="inclusive: cached content is a part of the prompt; thoughts are output beside the candidates",
    units={"ts": "ISO time, or epoch told apart by size"},
    source="googleapis/python-genai types",
)  # fmt: skip
