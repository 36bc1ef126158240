"""Anthropic messages with their usage object: `input_tokens` is the uncached part, reads and writes come beside it.

The object itself has no time; a time must stand beside it.
"""

from __future__ import annotations

from kit.formats.base import Field, Format, Peek

LONG = "coalesce(written_1h, 0)"
SHORT = f"coalesce(written_5m, written - {LONG})"


def recognise(peek: Peek) -> float:
    """A usage object with Anthropic's cache counts."""
    names = {"cache_read_input_tokens", "cache_creation_input_tokens"}
    return 0.9 if peek.any_record(lambda record: bool(names & set(record["usage"]))) else 0.0


FORMAT = Format(
    name="anthropic_usage",
    title="Anthropic messages with usage",
    containers=("jsonl", "json"),
    recognise=recognise,
    fields=(
        Field("ts", "time", ("timestamp", "ts", "created_at", "time")),
        Field("id", "text", ("id",)),
        Field("session", "text", ("session_id", "conversation_id")),
        Field("model", "text", ("model",)),
        Field("uncached", "count", ("usage/input_tokens",), required=True),
        Field("cached", "count", ("usage/cache_read_input_tokens",)),
        Field("written", "count", ("usage/cache_creation_input_tokens",)),
        Field("written_5m", "count", ("usage/cache_creation/ephemeral_5m_input_tokens",)),
        Field("written_1h", "count", ("usage/cache_creation/ephemeral_1h_input_tokens",)),
        Field("output_tokens", "count", ("usage/output_tokens",)),
    ),
    columns={
        "ts": "ts",
        "session_id": "session",
        "provider": "'anthropic'",
        "model": "model",
        "input_tokens": f"uncached + coalesce(cached, 0) + coalesce({SHORT}, 0) + {LONG}",
        "uncached_tokens": "uncached",
        "read_tokens": "cached",
        "write_tokens": SHORT,
        "write_long_tokens": f"CASE WHEN coalesce(written, written_5m, written_1h) IS NOT NULL THEN {LONG} END",
        "output_tokens": "output_tokens",
        "source_id": "id",
    },
    checks=(
        ("written IS NOT NULL AND written_5m IS NOT NULL AND written_5m + coalesce(written_1h, 0) <> written",
         "5-minute and 1-hour writes do not add up to cache_creation_input_tokens"),
        ("written_1h > written", "1-hour writes are more than cache_creation_input_tokens"),
    ),
    identity_rule="one message id is one request",
    token_rule="additive: input_tokens is the uncached part; writes without a class are 5-minute writes",
    units={"ts": "ISO time, or epoch told apart by size"},
    source="anthropic-sdk-python types/usage.py",
)  # fmt: skip
