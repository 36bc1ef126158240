"""BurstGPT: seconds from the first midnight, sizes, and a session id on conversation rows.

Older files have neither `Session ID` nor `Elapsed time`. A response of 0 tokens is a failed call.
"""

from __future__ import annotations

from kit.formats.base import Field, Format, Peek


def recognise(peek: Peek) -> float:
    """The column names of the trace, which contain spaces."""
    return 0.95 if peek.has("Timestamp", "Request tokens", "Response tokens") else 0.0


FORMAT = Format(
    name="burstgpt",
    title="BurstGPT trace",
    containers=("csv",),
    recognise=recognise,
    fields=(
        Field("timestamp", "seconds", ("Timestamp",), required=True),
        Field("session", "text", ("Session ID",)),
        Field("elapsed", "decimal", ("Elapsed time",)),
        Field("model", "text", ("Model",)),
        Field("request_tokens", "count", ("Request tokens",), required=True),
        Field("response_tokens", "count", ("Response tokens",)),
        Field("log_type", "text", ("Log Type",)),
    ),
    columns={
        "ts": "timestamp",
        "ts_end": "timestamp + lasting(elapsed * 1000000)",
        "session_id": "session",
        "session_type": "CASE log_type WHEN 'Conversation log' THEN 'chat' WHEN 'API log' THEN 'single' END",
        "trigger": "CASE log_type WHEN 'Conversation log' THEN 'person' END",
        "model": "model",
        "input_tokens": "request_tokens",
        "output_tokens": "response_tokens",
    },
    aside=(("response_tokens = 0", "failed call"),),
    identity_rule="one row is one request; there are no request ids",
    token_rule="Request tokens is the whole prompt",
    units={"Timestamp": "seconds from the first midnight of the trace (local zone)", "Elapsed time": "seconds"},
    source="HPMLL/BurstGPT README",
    clock="relative",
)
