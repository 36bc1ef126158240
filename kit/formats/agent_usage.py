"""Usage tables of coding agents: one row per model call with the provider's own token counts, no prompt text.

Three layouts. Anthropic agents: `input_tokens` is the uncached part only, with reads and 5-minute and 1-hour writes
beside
it (additive). OpenAI agents: `input_tokens` is the whole prompt and `cached_input_tokens` a part of it (inclusive).
pi sessions: additive with one kind of write. Where a row names the previous call of its message chain, that call's
prompt
is this call's prefix.
"""

from __future__ import annotations

from kit.formats.base import Field, Format, Peek

INCLUSIVE = "cached_input_tokens IS NOT NULL"
LONG = "coalesce(cache_write_1h_tokens, 0)"
SHORT = f"coalesce(cache_write_5m_tokens, cache_write_tokens - {LONG}, 0)"
CHAIN = "coalesce(nullif(agent_id, ''), CASE WHEN is_subagent THEN 'sub' END, 'main')"


def recognise(peek: Peek) -> float:
    """A start time, a session, a trigger and cache counts as separate columns."""
    if not peek.has("ts_start", "session_id", "trigger", "input_tokens"):
        return 0.0
    return 0.95 if peek.has("cache_read_tokens") or peek.has("cached_input_tokens") else 0.0


FORMAT = Format(
    name="agent_usage",
    title="Usage table of a coding agent (Claude, Codex or pi layout)",
    containers=("csv", "jsonl", "json", "parquet"),
    recognise=recognise,
    fields=(
        Field("request_id", "text", ("request_id",)),
        Field("ts_start", "time", ("ts_start",), required=True),
        Field("ts_last", "time", ("ts_last", "ts_end")),
        Field("session_id", "text", ("session_id",), required=True),
        Field("agent_id", "text", ("agent_id",)),
        Field("is_subagent", "flag", ("is_subagent",)),
        Field("provider", "text", ("provider",)),
        Field("model", "text", ("model",)),
        Field("client_version", "text", ("client_version",)),
        Field("workdir_id", "text", ("workdir_id",)),
        Field("trigger", "text", ("trigger",)),
        Field("parent_request_id", "text", ("parent_request_id",)),
        Field("input_tokens", "count", ("input_tokens",), required=True),
        Field("cached_input_tokens", "count", ("cached_input_tokens",)),
        Field("cache_read_tokens", "count", ("cache_read_tokens",)),
        Field("cache_write_tokens", "count", ("cache_write_tokens",)),
        Field("cache_write_5m_tokens", "count", ("cache_write_5m_tokens",)),
        Field("cache_write_1h_tokens", "count", ("cache_write_1h_tokens",)),
        Field("output_tokens", "count", ("output_tokens",)),
    ),
    columns={
        "ts": "ts_start",
        "ts_end": "ts_last",
        "session_id": "session_id",
        "chain_id": f"session_id || '/' || {CHAIN}",
        "trigger": "CASE WHEN trigger IN ('user', 'meta') THEN 'person' WHEN trigger = 'tool_result' THEN 'tool' "
        "ELSE 'other' END",
        "provider": f"coalesce(provider, CASE WHEN model LIKE 'claude%' THEN 'anthropic' WHEN {INCLUSIVE} THEN "
        "'openai' END)",
        "model": "model",
        "input_tokens": f"CASE WHEN {INCLUSIVE} THEN input_tokens "
        f"ELSE input_tokens + coalesce(cache_read_tokens, 0) + {SHORT} + {LONG} END",
        "uncached_tokens": f"CASE WHEN {INCLUSIVE} THEN input_tokens - cached_input_tokens ELSE input_tokens END",
        "read_tokens": "coalesce(cache_read_tokens, cached_input_tokens)",
        "write_tokens": f"CASE WHEN coalesce(cache_write_5m_tokens, cache_write_tokens) IS NOT NULL THEN {SHORT} END",
        "write_long_tokens": "cache_write_1h_tokens",
        "output_tokens": "output_tokens",
        "source_id": "request_id",
        "parent_source_id": "parent_request_id",
        "restart": "trigger = 'compact'",
        "root_scope": "concat_ws('|', coalesce(client_version, ''), coalesce(workdir_id, ''))",
    },
    checks=(
        ("cached_input_tokens > input_tokens", "cached_input_tokens is more than input_tokens"),
        (f"cache_write_tokens IS NOT NULL AND {SHORT} + {LONG} <> cache_write_tokens",
         "5-minute and 1-hour writes do not add up to cache_write_tokens"),
    ),
    identity_rule="one row is one request (one message id); rows that repeat a request_id count once",
    token_rule="additive where cache_read_tokens is given (input_tokens is the uncached part), inclusive where "
    "cached_input_tokens is given (a part of input_tokens); written tokens without a class are 5-minute writes",
    units={"ts_start": "ISO time of the call", "ts_last": "ISO time of the last streamed block"},
    source="public agent session archives reduced to counts",
)  # fmt: skip
