"""How an engine really evicts, from vLLM's KV events: the truth to hold a replay's budget and policy against.

`kit.log.residency` counts what was stored and removed; this follows the order. Source of the events:
vllm/distributed/kv_events.py (BlockStored, BlockRemoved, AllBlocksCleared), written as JSON lines by a subscriber.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from kit.formats.kv_events import CLEARED, REMOVED, STORED, kind_of
from kit.log import LogError, hashing, look

Block = tuple[int, str, str]


class _Engine:
    """The blocks every replica and medium holds, event by event."""

    def __init__(self) -> None:
        self.held: dict[Block, tuple[float, int]] = {}
        self.parent: dict[Block, Block | None] = {}
        self.children: dict[Block, int] = defaultdict(int)
        self.ever: set[Block] = set()
        self.lifetimes: list[float] = []
        self.order: list[int] = []
        self.count = dict.fromkeys(("stored", "stored_again", "removed", "removed_with_children", "cleared"), 0)
        self.tokens, self.peak, self.block_tokens = 0, 0, 0

    def store(self, block: Block, parent: Block | None, ts: float) -> None:
        if block in self.held:
            return
        self.count["stored"] += 1
        self.count["stored_again"] += block in self.ever
        self.ever.add(block)
        self.held[block] = (ts, self.count["stored"])
        self.parent[block] = parent
        if parent is not None:
            self.children[parent] += 1
        self.tokens += self.block_tokens
        self.peak = max(self.peak, self.tokens)

    def drop(self, block: Block) -> tuple[float, int] | None:
        found = self.held.pop(block, None)
        if found is not None:
            self.tokens -= self.block_tokens
            parent = self.parent.pop(block)
            if parent is not None:
                self.children[parent] -= 1
        return found

    def remove(self, block: Block, ts: float) -> None:
        found = self.drop(block)
        if found is None:
            return
        self.count["removed"] += 1
        self.count["removed_with_children"] += self.children[block] > 0
        self.lifetimes.append(ts - found[0])
        self.order.append(found[1])

    def clear(self, rank: int) -> None:
        for block in [block for block in self.held if block[0] == rank]:
            self.drop(block)
            self.count["cleared"] += 1


def evictions(sources: Any) -> dict[str, Any]:
    """What the order of KV events says about a cache (a file, folder or glob of JSON lines).

    Keys: block_tokens, stored, stored_again (blocks that had been evicted before: hits that a larger cache would have
    had) and its share, removed, removed_with_children (evicted while a block behind them stayed: not leaf first),
    cleared (blocks), peak_tokens (most held at once by all replicas: the budget really used), lifetime_seconds (p10,
    p50, p90 of evicted blocks), order_correlation (rank correlation of storing and eviction order: 1 = first in, first
    out). Raises LogError for other files and for mixed block sizes.
    """
    form, _, peeks, _, _ = look(sources)
    if form.name != "vllm_kv_events":
        raise LogError(f"{peeks[0].path.name}: recognised as {form.name}, not as KV events; use load")
    engine = _Engine()
    for one in peeks:
        for _, event, _ in hashing.records(one):
            if isinstance(event, dict) and event.get("ts") is not None:
                _apply(engine, event, one.path.name)
    count = engine.count
    return {
        "block_tokens": engine.block_tokens or None,
        **count,
        "stored_again_share": count["stored_again"] / count["stored"] if count["stored"] else None,
        "peak_tokens": engine.peak,
        "lifetime_seconds": _quantiles(engine.lifetimes),
        "order_correlation": _rank_correlation(engine.order),
    }


def _apply(engine: _Engine, event: dict[str, Any], name: str) -> None:
    rank, medium, ts = int(event.get("dp") or 0), str(event.get("medium") or ""), float(event["ts"])
    if kind_of(event) == CLEARED:
        engine.clear(rank)
        return
    size = event.get("block_size") or engine.block_tokens
    if engine.block_tokens and size != engine.block_tokens:
        sizes = f"{engine.block_tokens} and {size}"
        raise LogError(f"{name}: block sizes {sizes} are mixed; give one file per cache group")
    engine.block_tokens = size
    above = event.get("parent_block_hash")
    parent = (rank, medium, str(above)) if above is not None else None
    for key in event.get("block_hashes") or []:
        block = (rank, medium, str(key))
        if kind_of(event) == STORED:
            engine.store(block, parent, ts)
            parent = block
        elif kind_of(event) == REMOVED:
            engine.remove(block, ts)


def _quantiles(values: list[float]) -> dict[str, float] | None:
    if not values:
        return None
    return {f"p{level}": float(np.quantile(values, level / 100)) for level in (10, 50, 90)}


def _rank_correlation(order: list[int]) -> float | None:
    """Spearman correlation of when blocks were stored with when they were evicted; None for under three of them."""
    if len(order) < 3:
        return None
    rank = np.argsort(np.argsort(order))
    return float(np.corrcoef(rank, np.arange(len(order)))[0, 1])
