"""Codex CLI rollouts: JSON lines per session with cumulative token counters and repeated events.

A request is a step of the running totals; an event with equal totals repeats the one before. Forked and sub-agent files
begin with their parent's events, which are left out. Cached tokens are in the input, reasoning in the output.
Newer clients also write `token_usage_record` lines. What their counts mean is not published, so they are not read: they
are counted and said beside `token_count` events, and a file with nothing else is refused.
"""

from __future__ import annotations

from typing import Any

from kit.formats.base import Field, Format, LogError, Peek

INFO = "payload/info"
SPAWNED_BY = "payload/source/subagent/thread_spawn/parent_thread_id"
COUNTS = ("input", "cached", "output")
RECORD = "token_usage_record"
KINDS = ("session_meta", "turn_context", "event_msg", "response_item", RECORD)
ONLY_RECORDS = (
    f"only {RECORD} lines, whose counts have no published meaning; give a rollout with token_count events, or the "
    "session as a usage table (ts_start, session_id, trigger, input_tokens, cached_input_tokens, output_tokens)"
)


def recognise(peek: Peek) -> float:
    """Lines of timestamp, type and payload of the rollout's kinds."""
    if not peek.has("timestamp", "type", "payload"):
        return 0.0
    return 0.95 if peek.any_record(lambda record: record["type"] in KINDS) else 0.0


def steps_of_totals(con: Any) -> list[str]:
    """Turn running totals into requests: context from the lines above, steps of the totals, no repeated events."""
    records, counted = con.sql(
        "SELECT count(*) FILTER (newer), count(*) FILTER (is_request AND reason IS NULL) FROM staged"
    ).fetchall()[0]
    if records and not counted:
        raise LogError(ONLY_RECORDS)
    con.execute(
        "CREATE OR REPLACE TEMP TABLE event AS SELECT rowid AS r, filename, rn, is_request, ts AS at, "
        "coalesce(first(own_session) OVER file, parse_filename(filename, true)) AS session, "
        "first(forked_from) OVER file AS fork, last_value(own_model IGNORE NULLS) OVER past AS model, "
        "last_value(fed_by IGNORE NULLS) OVER past AS fed_by, "
        "last_value(CASE WHEN fed_by IS NOT NULL THEN ts END IGNORE NULLS) OVER past AS fed_at, "
        "total_input, total_cached, total_output, last_input, last_cached, last_output FROM staged WHERE reason "
        "IS NULL "
        "WINDOW file AS (PARTITION BY filename ORDER BY own_session IS NULL, rn), "
        "past AS (PARTITION BY filename ORDER BY rn ROWS UNBOUNDED PRECEDING)"
    )
    con.execute(
        "CREATE OR REPLACE TEMP TABLE step AS SELECT * EXCLUDE (was_input, was_cached, was_output), "
        "total_input IS NOT NULL AND (total_input, total_cached, total_output) IS NOT DISTINCT FROM "
        "(was_input, was_cached, was_output) AS repeated, "
        "EXISTS (FROM event p WHERE p.is_request AND p.session = e.fork AND p.filename <> e.filename AND "
        "(p.total_input, p.total_cached, p.total_output) = (e.total_input, e.total_cached, e.total_output)) AS "
        "replayed, "
        + ", ".join(
            "CASE WHEN total_input IS NULL OR total_input < was_input OR (was_input IS NULL AND last_input IS "
            "NOT NULL) "
            f"THEN last_{name} ELSE total_{name} - coalesce(was_{name}, 0) END AS step_{name}" for name in COUNTS
        )
        + f" FROM (SELECT *, {', '.join(f'lag(total_{name}) OVER file AS was_{name}' for name in COUNTS)} FROM event "
        "WHERE is_request WINDOW file AS (PARTITION BY filename ORDER BY rn)) e"
    )
    dropped = con.sql("SELECT count(*) FILTER (repeated OR replayed) FROM step").fetchall()[0][0]
    con.execute(
        "UPDATE staged SET is_request = NOT (s.repeated OR s.replayed), session_id = s.session, model = s.model, "
        "ts = coalesce(s.fed_at, s.at), ts_end = s.at, input_tokens = step_input, read_tokens = step_cached, "
        "uncached_tokens = step_input - step_cached, output_tokens = step_output, trigger = coalesce(s.fed_by, "
        "'other'), "
        "reason = CASE WHEN step_input IS NULL THEN 'token counts are missing' "
        "WHEN step_cached > step_input THEN 'cached_input_tokens is more than input_tokens' END "
        "FROM step s WHERE staged.rowid = s.r"
    )
    left_out = [f"request: {dropped:,} repeated or replayed token events are left out"] if dropped else []
    return left_out + ([f"request: {records:,} {RECORD} lines are not read, token_count events are"] if records else [])


def counter(kind: str) -> tuple[Field, ...]:
    """The three counters of the running totals or of the last request."""
    place = f"{INFO}/{'total' if kind == 'total' else 'last'}_token_usage"
    names = {"input": "input_tokens", "cached": "cached_input_tokens", "output": "output_tokens"}
    return tuple(Field(f"{kind}_{short}", "count", (f"{place}/{name}",)) for short, name in names.items())


FORMAT = Format(
    name="codex_rollout",
    title="Codex CLI rollouts",
    containers=("jsonl",),
    recognise=recognise,
    fields=(
        Field("timestamp", "time", ("timestamp",)),
        Field("type", "text", ("type",)),
        Field("kind", "text", ("payload/type",)),
        Field("role", "text", ("payload/role",)),
        Field("own_session", "text", ("payload/id",)),
        Field("forked_from", "text", ("payload/forked_from_id", SPAWNED_BY)),
        Field("model", "text", ("payload/model",)),
        *counter("total"),
        *counter("last"),
    ),
    columns={
        "ts": "timestamp",
        "session_id": "NULL",
        "provider": "'openai'",
        "model": "NULL",
        "trigger": "NULL",
        "input_tokens": "coalesce(last_input, total_input)",
        "uncached_tokens": "NULL",
        "read_tokens": "NULL",
        "output_tokens": "NULL",
        "ts_end": "NULL",
        "own_session": "CASE WHEN type = 'session_meta' THEN own_session END",
        "forked_from": "CASE WHEN type = 'session_meta' THEN forked_from END",
        "newer": f"coalesce(type = '{RECORD}' OR kind = '{RECORD}', false)",
        "own_model": "CASE WHEN type = 'turn_context' THEN model END",
        "fed_by": "CASE WHEN type = 'response_item' AND kind = 'message' AND role = 'user' THEN 'person' "
        "WHEN type = 'response_item' AND kind IN ('function_call_output', 'custom_tool_call_output') THEN 'tool' END",
        **{f"{kind}_{name}": f"{kind}_{name}" for kind in ("total", "last") for name in COUNTS},
    },
    keep="type = 'event_msg' AND kind = 'token_count' AND (total_input IS NOT NULL OR last_input IS NOT NULL)",
    checks=(("timestamp IS NULL", "timestamp is missing"),),
    after=steps_of_totals,
    identity_rule="one step of the running totals is one request; equal totals repeat, forks replay their parent",
    token_rule="inclusive: cached_input_tokens is a part of input_tokens, reasoning a part of output_tokens",
    units={"timestamp": "ISO time of the event"},
    source="openai/codex protocol, ccusage adapter for Codex",
)
