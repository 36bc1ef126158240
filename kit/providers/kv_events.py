"""vLLM's KV events: what an engine really stored and evicted, as the truth beside a replay's evictions.

Source: vllm/distributed/kv_events.py (BlockStored, BlockRemoved, AllBlocksCleared). Engines publish them as msgpack
over a socket; this reads the JSON lines a small subscriber writes: one event a line with `type`, `ts` (epoch seconds),
`block_hashes`, `parent_block_hash`, `block_size`, and `seq`, `dp`, `medium` where they are known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

STORED, REMOVED, CLEARED = "BlockStored", "BlockRemoved", "AllBlocksCleared"
EVENTS = """
SELECT type, ts, coalesce(dp, 0) AS dp, coalesce(medium, '') AS medium, seq, block_size, parent_block_hash, block_hashes
FROM read_json($files, format = 'newline_delimited', columns = {
  type: 'VARCHAR', ts: 'DOUBLE', dp: 'INTEGER', medium: 'VARCHAR', seq: 'BIGINT', block_size: 'INTEGER',
  parent_block_hash: 'VARCHAR', block_hashes: 'VARCHAR[]'})
ORDER BY dp, seq NULLS LAST, ts
"""
Block = tuple[int, str, str]


class KvEventError(ValueError):
    """Files that are not KV events: one line that says what was found and what is accepted."""


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

    def store(self, block: Block, parent: Block | None, ts: float, size: int) -> None:
        if block in self.held:
            return
        self.count["stored"] += 1
        self.count["stored_again"] += block in self.ever
        self.ever.add(block)
        self.held[block] = (ts, self.count["stored"])
        self.parent[block] = parent
        if parent is not None:
            self.children[parent] += 1
        self.tokens += size
        self.peak = max(self.peak, self.tokens)

    def drop(self, block: Block, size: int) -> tuple[float, int] | None:
        found = self.held.pop(block, None)
        if found is not None:
            self.tokens -= size
            parent = self.parent.pop(block)
            if parent is not None:
                self.children[parent] -= 1
        return found

    def remove(self, block: Block, ts: float, size: int) -> None:
        found = self.drop(block, size)
        if found is None:
            return
        self.count["removed"] += 1
        self.count["removed_with_children"] += self.children[block] > 0
        self.lifetimes.append(ts - found[0])
        self.order.append(found[1])

    def clear(self, dp: int, size: int) -> None:
        for block in [block for block in self.held if block[0] == dp]:
            self.drop(block, size)
            self.count["cleared"] += 1


def kv_events(files: str | Path | Sequence[str | Path]) -> dict[str, Any]:
    """What an engine stored and evicted, from KV events as JSON lines (gz and zst too).

    Keys: events, rejected (lines that are no event), sequence_gaps (missing seq numbers), replicas, block_tokens,
    stored, stored_again (blocks that had been evicted before: hits that a larger cache would have had) and its share,
    removed, removed_with_children (evicted while a block behind them stayed: not leaf first), cleared, peak_tokens
    (most held at once: the budget really used), lifetime_seconds (p10, p50, p90 of evicted blocks), order_correlation
    (rank correlation of storing and eviction order: 1 = first in, first out). Raises KvEventError when no line is one.
    """
    rows = _read([str(file) for file in ([files] if isinstance(files, str | Path) else files)])
    known = [row for row in rows if row[0] in (STORED, REMOVED, CLEARED) and row[1] is not None]
    if not known:
        accepted = f"JSON lines with type {STORED}, {REMOVED} or {CLEARED}"
        raise KvEventError(f"no KV event among {len(rows)} lines; accepted: {accepted}")
    sizes = sorted({row[5] for row in known if row[0] == STORED and row[5]})
    if len(sizes) > 1:
        raise KvEventError(f"block sizes {sizes} are mixed; give one file per cache group")
    engine, size = _Engine(), sizes[0] if sizes else 0
    for kind, ts, dp, medium, _, _, above, hashes in known:
        _apply(engine, kind, ts, (dp, medium), above, hashes or [], size)
    return {
        "events": len(known),
        "rejected": len(rows) - len(known),
        "sequence_gaps": _gaps(known),
        "replicas": len({row[2] for row in known}),
        "block_tokens": size or None,
        **engine.count,
        "stored_again_share": engine.count["stored_again"] / engine.count["stored"] if engine.count["stored"] else None,
        "peak_tokens": engine.peak,
        "lifetime_seconds": _quantiles(engine.lifetimes),
        "order_correlation": _rank_correlation(engine.order),
    }


def _read(files: list[str]) -> list[tuple[Any, ...]]:
    try:
        with duckdb.connect() as con:
            return con.execute(EVENTS, {"files": files}).fetchall()
    except duckdb.Error as error:
        raise KvEventError(f"{', '.join(files)}: not KV events as JSON lines ({str(error).splitlines()[0]})") from None


def _apply(
    engine: _Engine, kind: str, ts: float, where: tuple[int, str], above: Any, hashes: list[str], size: int
) -> None:
    if kind == CLEARED:
        engine.clear(where[0], size)
        return
    parent = (*where, above) if above is not None else None
    for name in hashes:
        block = (*where, name)
        if kind == STORED:
            engine.store(block, parent, ts, size)
            parent = block
        else:
            engine.remove(block, ts, size)


def _gaps(rows: list[tuple[Any, ...]]) -> int:
    """Sequence numbers missing between the first and the last, over all replicas."""
    by_replica: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        if row[4] is not None:
            by_replica[row[2]].append(row[4])
    return sum(max(seen) - min(seen) + 1 - len(set(seen)) for seen in by_replica.values())


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
