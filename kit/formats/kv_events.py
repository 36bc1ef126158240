"""vLLM KV events as JSON lines: what a cache held and dropped. They hold no requests, so there is nothing to replay.

Residency can be read off: blocks stored, removed and stored again, how long they stayed, and for looked-up paths how
much was a hit. A match stops at the first missing block; resident blocks behind a gap are stranded.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any

from kit.formats.base import Field, Format, Peek

STORED, REMOVED, CLEARED = "BlockStored", "BlockRemoved", "AllBlocksCleared"


def kind_of(event: dict[str, Any]) -> str:
    """The event's kind, under either of its two names."""
    return str(event.get("type") or event.get("event") or "")


def recognise(peek: Peek) -> float:
    """Events of a block store."""
    return 0.97 if peek.any_record(lambda event: kind_of(event) in (STORED, REMOVED, CLEARED)) else 0.0


def residency(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What the events say: {stored, removed, restored, cleared, resident, median_stay_seconds, missed_events, lookups}.

    `restored` counts blocks stored again after a removal. `lookups` maps an id to {hit_tokens, stranded_blocks}.
    `missed_events` counts gaps in the sequence numbers. Each data-parallel rank has its own cache.
    """
    since: dict[tuple[Any, Any], float | None] = {}
    gone: set[tuple[Any, Any]] = set()
    stays: list[float] = []
    lookups: dict[str, dict[str, int]] = {}
    told = {"stored": 0, "removed": 0, "restored": 0, "cleared": 0, "missed_events": 0}
    sequence: dict[Any, int] = {}
    block = 0
    for event in events:
        rank, at = event.get("dp"), event.get("ts")
        if isinstance(number := event.get("seq"), int):
            told["missed_events"] += max(0, number - sequence.get(rank, number - 1) - 1)
            sequence[rank] = number
        block = event.get("block_size") or block
        keys = [(rank, key) for key in event.get("block_hashes", [])]
        if kind_of(event) == STORED:
            told["stored"] += len(keys)
            told["restored"] += len(gone.intersection(keys))
            since.update({key: at for key in keys})
            gone.difference_update(keys)
        elif kind_of(event) == REMOVED:
            told["removed"] += len(keys)
            stays += [at - began for key in keys if (began := since.pop(key, None)) is not None and at is not None]
            gone.update(keys)
        elif kind_of(event) == CLEARED:
            told["cleared"] += 1
            since = {key: began for key, began in since.items() if key[0] != rank}
        elif "blocks" in event:
            lookups[str(event.get("id"))] = _match([(rank, key) in since for key in event["blocks"]], block)
    return {**told, "resident": len(since), "median_stay_seconds": median(stays) if stays else None, "lookups": lookups}


def _match(resident: list[bool], block: int) -> dict[str, int]:
    """Tokens of the leading resident blocks, and the resident blocks behind the first gap."""
    hits = resident.index(False) if False in resident else len(resident)
    return {"hit_tokens": hits * block, "stranded_blocks": sum(resident[hits:])}


FORMAT = Format(
    name="vllm_kv_events",
    title="vLLM KV events (residency only)",
    containers=("jsonl",),
    recognise=recognise,
    fields=(Field("kind", "text", ("type", "event")),),
    columns={},
    keep="false",
    refuses="KV events say what a cache held, not which requests came; load the request log with token ids (vllm_log), "
    "or read these with kit.log.residency",
    identity_rule="no requests",
    token_rule="no usage",
    units={"ts": "epoch seconds"},
    source="vllm-project/vllm distributed/kv_events.py",
)
