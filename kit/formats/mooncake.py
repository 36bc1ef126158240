"""Mooncake traces and their AIPerf extension: relative milliseconds, lengths, ids of 512-token blocks.

The ids are hashes of the whole prefix up to their block, so equal ids mean equal prefixes. The last id covers a partial
block: a request has ceil(input / 512) ids (some writers leave the partial tail out: floor). AIPerf adds `session_id`
and,
for later turns, `delay` (milliseconds after the previous answer) instead of a timestamp.
"""

from __future__ import annotations

from typing import Any

from kit.formats.base import Field, Format, Peek
from kit.formats.kinds import create_macros

BLOCK = 512


def recognise(peek: Peek) -> float:
    """Lengths with block ids or delays, and no chat ids (those are another trace)."""
    if peek.has("chat_id") or not peek.has("input_length"):
        return 0.0
    return 0.9 if peek.has("hash_ids") or peek.has("delay") or peek.has("timestamp", "output_length") else 0.0


def place_delays(con: Any) -> list[str]:
    """Give later turns the start of the turn before plus their delay: the earliest time they can have started."""
    late = con.sql("SELECT count(*) FROM staged WHERE ts IS NULL AND delay_ms IS NOT NULL").fetchall()[0][0]
    if not late:
        return []
    placing = (
        "UPDATE staged SET ts = first_ts + lasting(waited * 1000) FROM (SELECT rowid AS r, "
        "coalesce(first(ts ORDER BY rn) OVER turns, make_timestamp(0)::TIMESTAMPTZ) AS first_ts, "
        "sum(coalesce(delay_ms, 0)) OVER (turns ROWS UNBOUNDED PRECEDING) AS waited FROM staged "
        "WHERE session_id IS NOT NULL WINDOW turns AS (PARTITION BY session_id ORDER BY rn)) "
        "WHERE staged.rowid = r AND ts IS NULL"
    )
    for statement in (*create_macros(placing), placing):
        con.execute(statement)
    return ["ts: later turns have only a delay after the previous answer; answers are taken to need no time"]


FORMAT = Format(
    name="mooncake",
    title="Mooncake trace (and AIPerf's extension)",
    containers=("jsonl", "json"),
    recognise=recognise,
    fields=(
        Field("timestamp", "ms", ("timestamp",)),
        Field("delay", "decimal", ("delay",)),
        Field("session_id", "text", ("session_id",)),
        Field("input_length", "count", ("input_length",), required=True),
        Field("output_length", "count", ("output_length",)),
        Field("hash_ids", "ids", ("hash_ids",)),
    ),
    columns={
        "ts": "timestamp",
        "session_id": "session_id",
        "input_tokens": "input_length",
        "output_tokens": "output_length",
        "path_keys": "hash_ids",
        "block_tokens": f"CASE WHEN hash_ids IS NOT NULL THEN {BLOCK} END",
        "delay_ms": "CASE WHEN delay BETWEEN 0 AND 1e9 THEN delay END",
    },
    checks=(
        (f"len(hash_ids) NOT IN (input_length // {BLOCK}, (input_length + {BLOCK - 1}) // {BLOCK})",
         "hash_ids does not have one id per 512 tokens of input_length"),
        ("delay < 0", "delay is negative"),
    ),
    after=place_delays,
    sets=(),
    identity_rule="one line is one request; the trace has no ids, so equal lines are different requests",
    token_rule="input_length is the whole prompt; what a cache did is not in the trace",
    units={"timestamp": "milliseconds from 0", "delay": "milliseconds after the previous answer",
           "hash_ids": "blocks of 512 tokens, chained, the last may be partial"},
    source="kvcache-ai/Mooncake FAST25-release, ai-dynamo/aiperf dataset loader",
    clock="relative",
)  # fmt: skip
