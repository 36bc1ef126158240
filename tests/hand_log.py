"""Small logs written by hand: the DuckDB tables of a log from plain Python lists, for tests above `kit.log`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import duckdb
import polars as pl

REQUEST = {
    "request_id": pl.Int64,
    "ts": pl.Float64,
    "ts_end": pl.Float64,
    "session_id": pl.String,
    "chain_id": pl.String,
    "session_type": pl.String,
    "trigger": pl.String,
    "turn": pl.Int32,
    "prefix_key": pl.String,
    "prefix_tokens": pl.Int64,
    "input_tokens": pl.Int64,
    "output_tokens": pl.Int64,
}
NODE = {"node_id": pl.Int64, "parent_id": pl.Int64, "tokens": pl.Int64, "depth": pl.Int32, "token_type": pl.String}
START = "TIMESTAMPTZ '2026-03-02 00:00:00+00'"


def hand_log(
    requests: Iterable[Mapping[str, Any]],
    paths: Iterable[list[tuple[str, int] | tuple[str, int, str]]] | None = None,
    identity: str | None = "flat",
    block_tokens: int | None = None,
    has_clock: bool = True,
    start: str = START,
    clock: str | None = None,
) -> SimpleNamespace:
    """A log from rows (`ts`, `ts_end` in seconds after Monday 2 March 2026, 00:00 UTC) already in time order.

    `paths` holds for each request its blocks as (name, tokens[, type]) from the root; a block is the same block only
    under the same parent. Without `paths` a flat log is made from `prefix_key` and `prefix_tokens`.
    """
    con = duckdb.connect()
    con.execute("SET TimeZone='UTC'")
    rows = [{"request_id": i, "input_tokens": 0, **row} for i, row in enumerate(requests)]
    frame = pl.DataFrame(rows, schema=REQUEST)
    con.register("frame", frame)
    con.execute(
        f"""CREATE TABLE request AS SELECT * REPLACE (
        {start} + to_microseconds((ts * 1e6)::BIGINT) AS ts,
        {start} + to_microseconds((ts_end * 1e6)::BIGINT) AS ts_end) FROM frame ORDER BY request_id"""
    )
    if paths is None:
        flat = [(row.get("prefix_key"), row.get("prefix_tokens") or 0) for row in rows]
        paths = [[pair] if pair[0] is not None else [] for pair in flat]
    _write_nodes(con, list(paths))
    facts = SimpleNamespace(
        identity=identity,
        block_tokens=block_tokens,
        has_clock=has_clock,
        clock=clock or ("common" if has_clock else "session"),
        has_sessions=frame["session_id"].null_count() < frame.height,
        requests=frame.height,
    )
    return SimpleNamespace(con=con, facts=facts)


def _write_nodes(con: duckdb.DuckDBPyConnection, paths: list[list[Any]]) -> None:
    numbers: dict[tuple[int | None, str], int] = {}
    nodes: list[tuple[int, int | None, int, int, str | None]] = []
    leaves: list[tuple[int, int]] = []
    for request, path in enumerate(paths):
        parent: int | None = None
        for depth, block in enumerate(path):
            name = (parent, str(block[0]))
            if name not in numbers:
                numbers[name] = len(nodes)
                nodes.append((len(nodes), parent, block[1], depth, block[2] if len(block) > 2 else None))
            parent = numbers[name]
        if parent is not None:
            leaves.append((request, parent))
    con.register("nodes", pl.DataFrame(nodes, schema=NODE, orient="row"))
    con.register("leaves", pl.DataFrame(leaves, schema={"request_id": pl.Int64, "node_id": pl.Int64}, orient="row"))
    con.execute("CREATE TABLE node AS SELECT * FROM nodes ORDER BY node_id")
    con.execute("CREATE TABLE request_node AS SELECT * FROM leaves ORDER BY request_id")
