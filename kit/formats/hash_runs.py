"""Block traces packed as runs: `hash_runs` are inclusive pairs [first, last] of block ids, one object per request.

Two layouts. Coding sessions: `t` is seconds from the session's start and ids start again in every session. Benchmark
episodes: no time at all, ids are shared by all sessions, `segments` gives the type and length of every part of the
prompt.
Runs are never unpacked: ids that every request takes together stay one piece.
"""

from __future__ import annotations

from typing import Any

from kit.formats.base import Field, Format, Peek

LOCAL = "t IS NOT NULL"


def recognise(peek: Peek) -> float:
    """Runs of ids with their block size, in sessions."""
    return 0.95 if peek.has("session", "block", "hash_runs", "input_tokens") else 0.0


def who_asked(con: Any) -> list[str]:
    """The trigger of a turn where the log says after each turn who comes next: the first turn is a person's."""
    said = con.sql("SELECT count(*) FROM staged WHERE trigger IS NULL AND next_trigger <> 'other'").fetchall()[0][0]
    if not said:
        return []
    con.execute(
        "UPDATE staged SET trigger = before FROM (SELECT rowid AS r, coalesce(lag(next_trigger) OVER "
        "(PARTITION BY session_id ORDER BY rn), 'person') AS before FROM staged) WHERE staged.rowid = r"
    )
    return ["trigger: who the turn before said comes next; the first turn of a session is a person's"]


FORMAT = Format(
    name="hash_runs",
    title="Block trace packed as runs (coding sessions, benchmark episodes)",
    containers=("jsonl", "json"),
    recognise=recognise,
    fields=(
        Field("session", "text", ("session",), required=True),
        Field("agent", "text", ("agent",)),
        Field("t", "seconds", ("t",)),
        Field("api_time", "decimal", ("api_time",)),
        Field("model", "text", ("model",)),
        Field("input_tokens", "count", ("input_tokens",), required=True),
        Field("output_tokens", "count", ("output_tokens",)),
        Field("tool_tokens", "count", ("tool_tokens",)),
        Field("system_tokens", "count", ("system_tokens",)),
        Field("input_types", "json", ("input_types",)),
        Field("block", "count", ("block",), required=True),
        Field("hash_runs", "runs", ("hash_runs",), required=True),
        Field("next", "text", ("next",)),
        Field("segments", "segments", ("segments",)),
    ),
    columns={
        "ts": "t",
        "ts_end": "t + lasting(api_time * 1000000)",
        "session_id": "session",
        "chain_id": "session || '/' || coalesce(agent, 'main')",
        "trigger": "CASE WHEN contains(input_types, 'tool_result') THEN 'tool' WHEN input_types IS NOT NULL "
        "THEN 'person' END",
        "model": "model",
        "input_tokens": "input_tokens",
        "output_tokens": "output_tokens",
        "block_tokens": "block",
        "runs": "hash_runs",
        "next_trigger": "CASE next WHEN 'tool' THEN 'tool' WHEN 'user' THEN 'person' ELSE 'other' END",
        "key_scope": f"CASE WHEN {LOCAL} THEN session END",
        "piece_types": "coalesce(list_transform(segments, lambda s: s.kind), CASE WHEN tool_tokens IS NOT NULL "
        "THEN ['tools', 'system', 'messages'] END)",
        "piece_tokens": "coalesce(list_transform(segments, lambda s: s.tokens), CASE WHEN tool_tokens IS NOT NULL "
        "THEN [tool_tokens, coalesce(system_tokens, 0), input_tokens] END)",
    },
    checks=(
        ("block = 0", "block is 0"),
        ("list_sum(list_transform(hash_runs, lambda r: r[2] - r[1] + 1)) > input_tokens // block",
         "hash_runs hold more blocks than the prompt"),
        ("len(list_filter(hash_runs, lambda r: len(r) <> 2 OR r[2] < r[1])) > 0", "hash_runs has a pair that is none"),
    ),
    identity_rule="one line is one request; the trace has no request ids",
    token_rule="input_tokens is the whole prompt; what a cache did is not in the trace",
    units={"t": "seconds from the start of the session", "hash_runs": "blocks of `block` tokens, full blocks only",
           "api_time": "seconds"},
    source="callanjfox/kv-cache-tester and sierra-research/tau-bench, packed",
    clock="session",
    after=who_asked,
    sets=(),
)  # fmt: skip
