"""The kit's own table: one row per request, columns named as in the request table.

Identity, one of: `path_keys` (+ `path_tokens`, `path_types`) for a path of blocks or segments, `parent_request_id`
for a
chain, `prefix_key` + `prefix_tokens` for flat keys. Tokens are inclusive: input = uncached + read + write + write_long.
"""

from __future__ import annotations

from typing import Any

from kit.formats.base import Field, Format, Peek

NAMES: dict[str, tuple[str, tuple[str, ...]]] = {
    "ts": ("time", ("ts", "timestamp", "time", "start_time", "ts_start", "started_at")),
    "ts_end": ("time", ("ts_end", "end_time", "ended_at")),
    "start_s": ("seconds", ("start_s",)),
    "duration_s": ("decimal", ("duration_s", "duration_seconds")),
    "session_id": ("text", ("session_id",)),
    "chain_id": ("text", ("chain_id",)),
    "session_type": ("text", ("session_type",)),
    "trigger": ("text", ("trigger",)),
    "provider": ("text", ("provider",)),
    "model": ("text", ("model",)),
    "cache_scope": ("text", ("cache_scope",)),
    "replica": ("text", ("replica",)),
    "owner": ("text", ("owner",)),
    "priority": ("text", ("priority",)),
    "retention_seconds": ("text", ("retention_seconds",)),
    "prefix_key": ("text", ("prefix_key",)),
    "prefix_tokens": ("count", ("prefix_tokens",)),
    "input_tokens": ("count", ("input_tokens", "prompt_tokens", "tokens")),
    "uncached_tokens": ("count", ("uncached_tokens",)),
    "read_tokens": ("count", ("read_tokens", "cached_tokens", "hit_tokens")),
    "write_tokens": ("count", ("write_tokens",)),
    "write_long_tokens": ("count", ("write_long_tokens",)),
    "output_tokens": ("count", ("output_tokens", "completion_tokens")),
    "request_id": ("text", ("request_id",)),
    "parent_request_id": ("text", ("parent_request_id",)),
    "path_keys": ("keys", ("path_keys",)),
    "path_tokens": ("counts", ("path_tokens",)),
    "path_types": ("texts", ("path_types",)),
    "block_tokens": ("count", ("block_tokens",)),
    "attempt": ("count", ("attempt",)),
    "preempted": ("flag", ("preempted", "resumed")),
}
FIELDS = tuple(Field(name, kind, paths) for name, (kind, paths) in NAMES.items())
CLASSES = ("uncached_tokens", "read_tokens", "write_tokens", "write_long_tokens")
SPLIT = " + ".join(f"coalesce({name}, 0)" for name in CLASSES)
GIVEN = f"coalesce(input_tokens, CASE WHEN uncached_tokens IS NOT NULL THEN {SPLIT} END, prefix_tokens)"


def recognise(peek: Peek) -> float:
    """Any table with a size (input or prefix tokens) and one more of our columns; our own identity columns decide.

    Under our own names of time and size (or identity) it is our table however many other columns stand beside them.
    """
    if not (peek.has("input_tokens") or peek.has("prompt_tokens") or peek.has("prefix_tokens") or peek.has("tokens")):
        return 0.0
    known = {path for item in FIELDS for path in item.paths}
    share = len(known & set(peek.columns)) / max(len(peek.columns), 1)
    identity = any(peek.has(name) for name in ("path_keys", "prefix_key", "parent_request_id"))
    if not any(peek.has(name) for name in ("usage", "message", "messages", "request")):
        if peek.has("ts") and identity and share > 0.5:
            return 0.95
        if share >= 0.3:
            return min(0.2 + 0.5 * share, 0.7)
    return 0.2 if peek.has("ts") and (identity or peek.has("input_tokens")) else 0.0


LOST = (
    "(priority IS NOT NULL AND NOT coalesce(count_of(priority) <= 100, false)) OR "
    "(retention_seconds IS NOT NULL AND NOT coalesce(decimal_of(retention_seconds) >= 0, false))"
)
"""True where a hint of a request cannot be used: it counts as none, and the rows are counted."""


def say_lost_hints(con: Any) -> list[str]:
    """Say how many rows have a priority or a retention that no policy can use."""
    lost = con.sql("SELECT count(*) FROM staged WHERE is_request AND reason IS NULL AND lost").fetchall()[0][0]
    what = "a priority that is no whole number from 0 to 100, or retention_seconds below 0"
    return [f"priority: {lost:,} rows have {what}; it counts as none"] if lost else []


FORMAT = Format(
    name="canonical",
    title="The kit's own table",
    containers=("csv", "jsonl", "json", "parquet"),
    recognise=recognise,
    fields=FIELDS,
    columns={
        "ts": "coalesce(ts, start_s)",
        "ts_end": "ts_end",
        "lasted": "lasting(duration_s * 1000000)",
        "session_id": "session_id",
        "chain_id": "chain_id",
        "session_type": "session_type",
        "trigger": "CASE WHEN trigger IS NULL THEN NULL WHEN lower(trigger) IN ('person', 'user', 'human') THEN "
        "'person' "
        "WHEN lower(trigger) IN ('tool', 'tool_result') THEN 'tool' ELSE 'other' END",
        "provider": "provider",
        "model": "model",
        "cache_scope": "cache_scope",
        "replica": "replica",
        "owner": "owner",
        "priority": "CASE WHEN count_of(priority) <= 100 THEN count_of(priority) END",
        "retention_seconds": "CASE WHEN decimal_of(retention_seconds) >= 0 THEN decimal_of(retention_seconds) END",
        "prefix_key": "prefix_key",
        "prefix_tokens": "prefix_tokens",
        "input_tokens": GIVEN,
        "uncached_tokens": "coalesce(uncached_tokens, CASE WHEN read_tokens IS NOT NULL OR write_tokens IS NOT NULL "
        "OR write_long_tokens IS NOT NULL THEN input_tokens - (" + SPLIT + ") END)",
        "read_tokens": "read_tokens",
        "write_tokens": "write_tokens",
        "write_long_tokens": "write_long_tokens",
        "output_tokens": "output_tokens",
        "source_id": "request_id",
        "parent_source_id": "parent_request_id",
        "path_keys": "path_keys",
        "path_tokens": "path_tokens",
        "path_types": "path_types",
        "block_tokens": "block_tokens",
        "resumed": "coalesce(preempted, false) OR coalesce(attempt, 1) > 1",
        "lost": LOST,
    },
    checks=(
        ("input_tokens IS NULL AND prefix_tokens IS NULL AND uncached_tokens IS NULL", "input_tokens is missing"),
        ("prefix_key IS NOT NULL AND prefix_tokens IS NULL", "prefix_key without prefix_tokens"),
        (f"prefix_tokens > {GIVEN}", "prefix_tokens is more than input_tokens"),
        ("uncached_tokens IS NULL AND " + SPLIT + " > input_tokens", "token classes are more than input_tokens"),
        ("uncached_tokens IS NOT NULL AND input_tokens IS NOT NULL AND " + SPLIT + " <> input_tokens",
         "token classes do not add up to input_tokens"),
        ("path_tokens IS NOT NULL AND len(path_tokens) <> len(path_keys)", "path_tokens is not as long as path_keys"),
        ("path_types IS NOT NULL AND len(path_types) <> len(path_keys)", "path_types is not as long as path_keys"),
        (f"list_sum(path_tokens) > {GIVEN}", "path_tokens add up to more than input_tokens"),
        ("path_keys IS NOT NULL AND path_tokens IS NULL AND block_tokens IS NULL", "path_keys without path_tokens"),
        ("path_keys IS NOT NULL AND path_tokens IS NULL AND block_tokens = 0", "block_tokens is 0"),
        (f"path_tokens IS NULL AND (len(path_keys) - 1) * block_tokens >= {GIVEN}",
         "path_keys are blocks of more than input_tokens"),
    ),
    after=say_lost_hints,
    sets=(),
    identity_rule="one row is one request; rows that repeat a request_id count once, as do later attempts",
    token_rule="inclusive: input_tokens = uncached + read + write + write_long",
    units={"ts": "ISO time, or epoch told apart by size", "start_s": "seconds from 0", "duration_s": "seconds"},
    source="this kit",
)  # fmt: skip
