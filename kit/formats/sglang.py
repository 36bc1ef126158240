"""SGLang: per-request metrics files, and request dumps converted to JSON lines where they were made.

`request_parameters` is JSON text with the prompt as text or token ids; the hour in a metrics file's name is local
time and
is not used. Cached tokens are in the prompt. Pickled dumps are refused: opening one runs code.
"""

from __future__ import annotations

import json
from typing import Any

from kit.formats.base import Field, Format, Peek
from kit.formats.prompts import Prompt, prompt_of


def meta(name: str) -> tuple[str, str]:
    """A count at the top (metrics file) or in `meta_info` (dump)."""
    return name, f"meta_info/{name}"


def recognise(peek: Peek) -> float:
    """Request parameters or input ids beside cached-token counts."""
    if peek.has("request_parameters", "prompt_tokens"):
        return 0.95
    return 0.9 if peek.any_record(lambda r: "rid" in r and ("input_ids" in r or "meta_info" in r)) else 0.0


def read_prompt(record: dict[str, Any]) -> Prompt | None:
    """Token ids where they are, else text or messages."""
    given = record.get("request_parameters", record)
    body = json.loads(given) if isinstance(given, str) else given
    if isinstance(ids := body.get("input_ids"), list) and ids and isinstance(ids[0], int):
        return Prompt(ids=tuple(ids), model=str(body.get("model") or ""))
    if isinstance(text := body.get("text"), str):
        return Prompt(parts=(("", text),), model=str(body.get("model") or ""))
    return prompt_of(body)


FORMAT = Format(
    name="sglang",
    title="SGLang request metrics or converted request dump",
    containers=("jsonl", "json"),
    recognise=recognise,
    fields=(
        Field("rid", "text", ("id", "rid", "meta_info/id")),
        Field("ts", "time", ("created_time", "received_time", "timestamp", "ts")),
        Field("ts_end", "time", ("finished_time",)),
        Field("latency", "decimal", meta("e2e_latency")),
        Field("model", "text", ("model",)),
        Field("prompt_tokens", "count", meta("prompt_tokens"), required=True),
        Field("completion_tokens", "count", meta("completion_tokens")),
        Field("cached_tokens", "count", meta("cached_tokens")),
    ),
    columns={
        "ts": "ts",
        "ts_end": "ts_end",
        "lasted": "lasting(latency * 1000000)",
        "model": "model",
        "input_tokens": "prompt_tokens",
        "uncached_tokens": "prompt_tokens - cached_tokens",
        "read_tokens": "cached_tokens",
        "output_tokens": "completion_tokens",
        "source_id": "rid",
        "path_keys": "NULL::UBIGINT[]",
    },
    checks=(("cached_tokens > prompt_tokens", "cached_tokens is more than prompt_tokens"),),
    prompt=read_prompt,
    identity_rule="one rid is one request",
    token_rule="inclusive: cached_tokens is a part of prompt_tokens",
    units={"created_time": "epoch seconds", "e2e_latency": "seconds"},
    source="sgl-project/sglang request_metrics_exporter, tokenizer_manager",
)
