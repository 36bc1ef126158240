"""Claude Code transcripts: a folder of JSON lines, one line per content block, several lines per message.

One request is one message id: counts are the largest over its lines, its time the first line's. Side conversations copy
messages of the main one with the same id; the main one's copy stays. The prompt of a request extends that of the
message
its first line descends from. The system prompt and tools are not in the files.
"""

from __future__ import annotations

from typing import Any

from kit.formats.base import Field, Format, Peek

LONG = "coalesce(written_1h, 0)"
SHORT = f"coalesce(written_5m, written - {LONG})"
USED = "coalesce(uncached, 0) + coalesce(cached, 0) + coalesce(written, 0) > 0"


def recognise(peek: Peek) -> float:
    """Lines with a session and a typed message."""
    if not peek.has("sessionId", "uuid"):
        return 0.0
    return 0.95 if peek.any_record(lambda r: r["type"] in ("user", "assistant") and "message" in r) else 0.0


def one_row_per_message(con: Any) -> list[str]:
    """Merge the lines of a message, then name the message it extends and what triggered it."""
    lines = con.sql(
        "SELECT uuid, parent_uuid, is_request, source_id, tool_result FROM staged WHERE uuid IS NOT NULL"
    ).fetchall()
    before = con.sql("SELECT count(*) FROM staged WHERE is_request AND reason IS NULL").fetchall()[0][0]
    largest = ", ".join(f"max({name}) AS {name}" for name in ("uncached_tokens", "read_tokens", "write_tokens",
                                                              "write_long_tokens", "output_tokens", "input_tokens"))
    kept = ", ".join(f"arg_min({name}, place) AS {name}" for name in ("session_id", "model", "provider", "root_scope"))
    con.execute(
        "CREATE OR REPLACE TEMP TABLE message AS SELECT coalesce(source_id, uuid) AS id, min(place) AS place, "
        f"arg_min(r, place) AS r, min(ts) AS ts, max(ts) AS ts_end, {largest}, {kept} FROM (SELECT *, rowid AS r, "
        "{'side': coalesce(sidechain, false), 'rn': rn} AS place FROM staged WHERE is_request AND reason IS "
        "NULL) GROUP BY id"
    )
    con.execute(
        "UPDATE staged SET ts = m.ts, ts_end = m.ts_end, input_tokens = m.input_tokens, "
        "uncached_tokens = m.uncached_tokens, read_tokens = m.read_tokens, write_tokens = m.write_tokens, "
        "write_long_tokens = m.write_long_tokens, output_tokens = m.output_tokens "
        "FROM message m WHERE staged.rowid = m.r"
    )
    con.execute(
        "UPDATE staged SET is_request = false WHERE is_request AND reason IS NULL AND rowid NOT IN (SELECT r "
        "FROM message)"
    )
    _follow_parents(con, lines)
    merged = before - con.sql("SELECT count(*) FROM message").fetchall()[0][0]
    return [f"request: {merged:,} further lines of the same messages are merged"] if merged else []


def _follow_parents(con: Any, lines: list[tuple[Any, ...]]) -> None:
    """Set the parent message and the trigger of each request by walking up the uuids of its lines."""
    up = {uuid: parent for uuid, parent, *_ in lines}
    message_of = {uuid: source for uuid, _, is_request, source, _ in lines if is_request}
    result = {uuid for uuid, *_, tool_result in lines if tool_result}
    found: dict[str, tuple[str | None, str]] = {}
    for uuid, message in message_of.items():
        at, first, steps = up.get(uuid), None, 0
        while at is not None and at not in message_of and steps < 10_000:
            first = first or at
            at, steps = up.get(at), steps + 1
        if at is not None and message_of[at] == message:
            continue
        trigger = "other" if first is None else "tool" if first in result else "person"
        found.setdefault(message, (message_of[at] if at is not None else None, trigger))
    con.execute(
        "UPDATE staged SET parent_source_id = p, trigger = t FROM (SELECT unnest($ids::VARCHAR[]) AS id, "
        "unnest($parents::VARCHAR[]) AS p, unnest($triggers::VARCHAR[]) AS t) WHERE staged.source_id = id AND "
        "is_request",
        {"ids": list(found), "parents": [p for p, _ in found.values()], "triggers": [t for _, t in found.values()]},
    )


FORMAT = Format(
    name="claude_code",
    title="Claude Code transcripts",
    containers=("jsonl",),
    recognise=recognise,
    fields=(
        Field("type", "text", ("type",)),
        Field("uuid", "text", ("uuid",)),
        Field("parent_uuid", "text", ("parentUuid", "logicalParentUuid")),
        Field("timestamp", "time", ("timestamp",)),
        Field("session", "text", ("sessionId",)),
        Field("agent", "text", ("agentId",)),
        Field("sidechain", "flag", ("isSidechain",)),
        Field("failed", "flag", ("isApiErrorMessage",)),
        Field("version", "text", ("version",)),
        Field("cwd", "text", ("cwd",)),
        Field("message", "text", ("message/id",)),
        Field("model", "text", ("message/model",)),
        Field("content", "json", ("message/content",)),
        Field("uncached", "count", ("message/usage/input_tokens",)),
        Field("cached", "count", ("message/usage/cache_read_input_tokens",)),
        Field("written", "count", ("message/usage/cache_creation_input_tokens",)),
        Field("written_5m", "count", ("message/usage/cache_creation/ephemeral_5m_input_tokens",)),
        Field("written_1h", "count", ("message/usage/cache_creation/ephemeral_1h_input_tokens",)),
        Field("output", "count", ("message/usage/output_tokens",)),
    ),
    columns={
        "ts": "timestamp",
        "session_id": "session || CASE WHEN sidechain THEN '/' || coalesce(agent, parse_filename(filename, "
        "true)) ELSE '' END",
        "provider": "CASE WHEN model LIKE 'claude%' THEN 'anthropic' END",
        "model": "model",
        "input_tokens": f"uncached + coalesce(cached, 0) + coalesce({SHORT}, 0) + {LONG}",
        "uncached_tokens": "uncached",
        "read_tokens": "cached",
        "write_tokens": SHORT,
        "write_long_tokens": f"CASE WHEN coalesce(written, written_5m, written_1h) IS NOT NULL THEN {LONG} END",
        "output_tokens": "output",
        "source_id": "coalesce(message, uuid)",
        "root_scope": "concat_ws('|', coalesce(version, ''), coalesce(cwd, ''))",
        "uuid": "uuid",
        "parent_uuid": "parent_uuid",
        "sidechain": "sidechain",
        "tool_result": "list_contains(json_extract_string(TRY_CAST(content AS JSON), '$[*].type'), 'tool_result')",
    },
    keep=f"type = 'assistant' AND coalesce(model, '') <> '<synthetic>' AND NOT coalesce(failed, false) AND {USED}",
    checks=(("timestamp IS NULL", "timestamp is missing"), ("uncached IS NULL", "usage/input_tokens is missing")),
    after=one_row_per_message,
    identity_rule="one message id is one request: largest counts and first time of its lines, main conversation first",
    token_rule="additive: input_tokens is the uncached part; writes without a class are 5-minute writes",
    units={"timestamp": "ISO time of the first content block"},
    source="ccusage adapter for Claude Code",
)
