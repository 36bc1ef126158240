"""Azure LLM inference traces (2023, 2024): arrival times and sizes only, no identity of any kind.

Times have seven fractional digits, none in some rows, no zone (UTC); files end in CRLF without a last newline.
"""

from __future__ import annotations

from kit.formats.base import Field, Format, Peek


def recognise(peek: Peek) -> float:
    """The three column names of the trace."""
    return 0.95 if peek.has("TIMESTAMP", "ContextTokens", "GeneratedTokens") else 0.0


FORMAT = Format(
    name="azure",
    title="Azure LLM inference trace",
    containers=("csv",),
    recognise=recognise,
    fields=(
        Field("timestamp", "time", ("TIMESTAMP",), required=True),
        Field("context", "count", ("ContextTokens",), required=True),
        Field("generated", "count", ("GeneratedTokens",)),
    ),
    columns={"ts": "timestamp", "input_tokens": "context", "output_tokens": "generated"},
    identity_rule="one row is one request; there are no ids, so equal rows are different requests",
    token_rule="ContextTokens is the whole prompt",
    units={"TIMESTAMP": "time without a zone, taken as UTC"},
    source="Azure/AzurePublicDataset",
)
