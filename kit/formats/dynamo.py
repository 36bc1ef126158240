"""Dynamo request traces (`dynamo.request.trace.v1`): one `request_end` event per request with 64-bit sequence hashes.

Events are written when a request ends, so rows are put in order of arrival. Hashes use all 64 bits.
"""

from __future__ import annotations

from kit.formats.base import Field, Format, Peek


def recognise(peek: Peek) -> float:
    """The schema name, or a request with replay hashes."""
    named = peek.any_record(lambda record: str(record["schema"]).startswith("dynamo.request.trace"))
    return 0.99 if named else 0.9 if peek.any_record(lambda record: "replay" in record["request"]) else 0.0


FORMAT = Format(
    name="dynamo",
    title="Dynamo request trace",
    containers=("jsonl", "json"),
    recognise=recognise,
    fields=(
        Field("event_type", "text", ("event_type",)),
        Field("received", "ms", ("request/request_received_ms",), required=True),
        Field("total_time_ms", "decimal", ("request/total_time_ms",)),
        Field("ended", "ms", ("event_time_unix_ms",)),
        Field("session_id", "text", ("agent_context/session_id",)),
        Field("trajectory_id", "text", ("agent_context/trajectory_id",)),
        Field("request_id", "text", ("request/request_id",)),
        Field("model", "text", ("request/model",)),
        Field("input_length", "count", ("request/replay/input_length", "request/input_tokens"), required=True),
        Field("output_tokens", "count", ("request/output_tokens",)),
        Field("block", "count", ("request/replay/trace_block_size",)),
        Field("hashes", "ids", ("request/replay/input_sequence_hashes",)),
    ),
    columns={
        "ts": "received",
        "ts_end": "coalesce(received + lasting(total_time_ms * 1000), ended)",
        "session_id": "session_id",
        "chain_id": "session_id || '/' || coalesce(trajectory_id, 'main')",
        "model": "model",
        "input_tokens": "input_length",
        "output_tokens": "output_tokens",
        "source_id": "request_id",
        "path_keys": "hashes",
        "block_tokens": "block",
    },
    keep="coalesce(event_type, 'request_end') = 'request_end'",
    checks=(
        ("hashes IS NOT NULL AND coalesce(block, 0) = 0", "trace_block_size is missing"),
        ("len(hashes) NOT IN (input_length // block, (input_length + block - 1) // block)",
         "input_sequence_hashes does not have one hash per block of input_length"),
    ),
    identity_rule="one request_end event is one request (request_id)",
    token_rule="input_length is the whole prompt",
    units={"request_received_ms": "epoch milliseconds", "total_time_ms": "milliseconds"},
    source="ai-dynamo/dynamo request trace v1",
)  # fmt: skip
