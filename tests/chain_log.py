"""Small chain logs by hand, with what the provider reported: for tests of providers and billing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import duckdb
import polars as pl

START = datetime(2026, 2, 2, tzinfo=UTC)
COLUMNS = {
    "replica": pl.String, "cache_scope": pl.String, "turn": pl.Int32,
    "priority": pl.Int64, "retention_seconds": pl.Float64,
    "request_id": pl.Int64, "ts": pl.Datetime("us", "UTC"), "ts_end": pl.Datetime("us", "UTC"), "session_id": pl.String,
    "chain_id": pl.String, "session_type": pl.String, "trigger": pl.String, "provider": pl.String, "model": pl.String,
    "owner": pl.String, "input_tokens": pl.Int64, "prefix_tokens": pl.Int64, "uncached_tokens": pl.Int64,
    "read_tokens": pl.Int64, "write_tokens": pl.Int64, "write_long_tokens": pl.Int64, "output_tokens": pl.Int64,
}  # fmt: skip


def chain_log(
    turns: Sequence[dict[str, Any]],
    provider: str | None = "anthropic",
    model: str | None = "claude-sonnet-4-6",
    roots: dict[str, int] | None = None,
    **facts: Any,
) -> SimpleNamespace:
    """A log-like object from turns: dicts with `at` seconds, `chain`, `input_tokens` and any other request column.

    A prompt at least as long as the one before it in its chain grows it; a shorter one begins anew. `root` names a
    shared root whose length is in `roots`: a chain's first request stands on it.
    """
    nodes: list[tuple[int, int | None, int, int]] = []
    leaf_of: dict[str, tuple[int, int]] = {}
    root_of: dict[str, int] = {}
    rows, leaves = [], []

    def add(parent: int | None, tokens: int) -> int:
        nodes.append((len(nodes), parent, tokens, 0 if parent is None else nodes[parent][3] + 1))
        return len(nodes) - 1

    for number, turn in enumerate(sorted(turns, key=lambda turn: turn["at"])):
        chain, size, root = str(turn["chain"]), turn["input_tokens"], turn.get("root")
        above, start = leaf_of.get(chain, (None, 0))
        if start > size or above is None:
            above, start = None, 0
            if root is not None:
                root_of.setdefault(root, -1)
                if root_of[root] < 0:
                    root_of[root] = add(None, (roots or {})[root])
                above, start = root_of[root], (roots or {})[root]
        leaf = add(above, size - start) if size > start else above
        leaf_of[chain] = (leaf, size)
        leaves.append((number, leaf))
        began = START + timedelta(seconds=turn["at"])
        known = {name: value for name, value in turn.items() if name in COLUMNS}
        rows.append({
            "request_id": number, "ts": began, "session_id": chain, "chain_id": chain, "provider": provider,
            "model": model, "prefix_tokens": size, "ts_end": began + timedelta(seconds=turn.get("takes", 1)), **known,
        })  # fmt: skip
    con = duckdb.connect()
    con.execute("SET TimeZone='UTC'")
    node_columns = {"node_id": pl.Int64, "parent_id": pl.Int64, "tokens": pl.Int64, "depth": pl.Int32}
    tables = {
        "request": pl.DataFrame([{**dict.fromkeys(COLUMNS), **row} for row in rows], schema=COLUMNS),
        "node": pl.DataFrame(nodes, schema=node_columns, orient="row").with_columns(token_type=pl.lit(None, pl.String)),
        "request_node": pl.DataFrame(leaves, schema={"request_id": pl.Int64, "node_id": pl.Int64}, orient="row"),
    }
    for name, frame in tables.items():
        con.register("frame", frame)
        con.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
        con.unregister("frame")
    known_facts = {"has_clock": True, "identity": "chain", "block_tokens": None, "output_is_placeholder": False} | facts
    return SimpleNamespace(con=con, facts=SimpleNamespace(**known_facts))


def told(
    at: float, chain: str, read: int, short: int = 0, long: int = 0, uncached: int = 0, **more: Any
) -> dict[str, Any]:
    """One turn with its reported classes; the prompt is their sum."""
    return {
        "at": at, "chain": chain, "input_tokens": read + short + long + uncached, "uncached_tokens": uncached,
        "read_tokens": read, "write_tokens": short, "write_long_tokens": long, **more,
    }  # fmt: skip
