"""Mooncake traces: relative milliseconds, lengths, and chained ids of 512-token blocks.

The ids are hashes of the whole prefix up to their block, so equal ids mean equal prefixes. The last id covers a partial
block. A request has ceil(input / 512) ids (some writers leave the partial tail out: floor).
"""

from __future__ import annotations

from kit.formats.base import Field, Format, Peek

BLOCK = 512


def recognise(peek: Peek) -> float:
    """Lengths and block ids on every record, and no chat ids (those are another trace)."""
    return 0.9 if peek.has("timestamp", "input_length", "hash_ids") and not peek.has("chat_id") else 0.0


FORMAT = Format(
    name="mooncake",
    title="Mooncake trace",
    containers=("jsonl", "json"),
    recognise=recognise,
    fields=(
        Field("timestamp", "ms", ("timestamp",), required=True),
        Field("input_length", "count", ("input_length",), required=True),
        Field("output_length", "count", ("output_length",)),
        Field("hash_ids", "ids", ("hash_ids",), required=True),
    ),
    columns={
        "ts": "timestamp",
        "input_tokens": "input_length",
        "output_tokens": "output_length",
        "path_keys": "hash_ids",
        "block_tokens": f"{BLOCK}",
    },
    checks=(
        (f"len(hash_ids) NOT IN (input_length // {BLOCK}, (input_length + {BLOCK - 1}) // {BLOCK})",
         "hash_ids does not have one id per 512 tokens of input_length"),
    ),
    identity_rule="one line is one request; the trace has no ids, so equal lines are different requests",
    token_rule="input_length is the whole prompt; what a cache did is not in the trace",
    units={"timestamp": "milliseconds from 0", "hash_ids": "blocks of 512 tokens, chained, the last may be partial"},
    source="kvcache-ai/Mooncake, FAST25-release/README.md",
    identity="blocks",
    clock="relative",
)  # fmt: skip
