"""Columns of a log's own file that the request table does not carry: read beside it, in the order of the requests.

Such columns are characters by type (token types of agent sessions, *estimated*), content types per request (token
types of coding sessions, by request), and the attention each block drew (heavy hitters). The report has none of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
from numpy.typing import NDArray

from kit.log import Log
from kit.policies import describe, h2o_blocks
from kit.prefix import TOKEN_TYPES, Paths, depths, load_paths, path_sums

READERS = {".csv": "read_csv(?, all_varchar = true)", ".jsonl": "read_json(?, format = 'newline_delimited')",
           ".parquet": "read_parquet(?)"}  # fmt: skip
ESTIMATED = (
    "token types are ESTIMATED: the tokens of each piece are split in proportion to the characters of its parts; "
    "shared first pieces count as system"
)
CHARACTERS = {
    "out_chars_thinking": "thinking", "out_chars_text": "assistant", "out_chars_tool_use": "tool_call",
    "new_chars_tool_result": "tool_result", "new_chars_text": "user",
}  # fmt: skip
"""Column of an agent usage table -> token type, in the order of the prompt. What a call put out (`out_`) is part of the
piece that the next call of its chain adds."""


HEAVY_HITTERS = describe(h2o_blocks, candidate=False)
"""Runs on the paths of `with_attention` only, so it is not in the registry: `replay(paths, HEAVY_HITTERS, ...)`."""


def own_columns(
    log: Log, source: str | Path, columns: Mapping[str, str], key: str | None = "request_id"
) -> pl.DataFrame:
    """The columns (name -> DuckDB type) of `source`, one row per request in order, null where the file has no such id.

    `key` names the column of the log's own ids; None goes by the number of the record (from 1), for a log of one file.
    Raises ValueError for an unknown kind of file, a missing column, or where no id of the log is in the file.
    """
    source = Path(source)
    reader = READERS.get(source.suffix)
    if reader is None:
        raise ValueError(f"{source.name}: cannot read this kind of file; accepted: {', '.join(READERS)}")
    wanted = ", ".join(f'try_cast("{name}" AS {kind}) AS "{name}"' for name, kind in columns.items())
    with duckdb.connect() as con:
        there = [row[0] for row in con.execute(f"DESCRIBE SELECT * FROM {reader}", [str(source)]).fetchall()]
        for name in (*([key] if key else []), *columns):
            if name not in there:
                raise ValueError(f"{source.name}: no column {name!r}; it has {', '.join(there)}")
        number = f'"{key}"::VARCHAR' if key else "(row_number() OVER ())::VARCHAR"
        query = f"SELECT {number} AS source_id, {wanted} FROM {reader}"
        found = pl.DataFrame(con.sql(query, params=[str(source)]))
    by = "source_id" if key else "line::VARCHAR AS source_id"
    requests = pl.DataFrame(log.con.sql(f"SELECT {by} FROM request ORDER BY request_id"))
    if not requests["source_id"].is_in(found["source_id"].implode()).any():
        raise ValueError(f"{source.name}: none of its {found.height} values of {key!r} is a request of this log")
    first = found.unique("source_id", keep="first", maintain_order=True)
    return requests.join(first, on="source_id", how="left", maintain_order="left").drop("source_id")


def typed_by_characters(log: Log, source: str | Path) -> Paths:
    """Paths of a log of chains with every piece cut into *estimated* token types, by characters (see `ESTIMATED`).

    A piece is what a call added to the prompt before it: that prompt's answer (thinking, text, tool calls), then the
    tool results and user text of the call. Pieces without characters stay `other`. Sums and hits of whole pieces are
    those of the log; only where a piece is cut is estimated.
    """
    paths = load_paths(log)
    counted = own_columns(log, source, dict.fromkeys(CHARACTERS, "BIGINT")).fill_null(0)
    maker = first_request(paths)
    before = np.where(paths.parent >= 0, maker[np.maximum(paths.parent, 0)], -1)
    parts = np.stack([_of(counted[name].to_numpy(), before if name.startswith("out_") else maker)
                      for name in CHARACTERS], axis=1)  # fmt: skip
    parts[paths.parent < 0] = 0
    shared = maker < 0
    silent = (parts.sum(axis=1) == 0) & ~shared
    weights = np.column_stack([shared, parts, silent])
    kinds = [TOKEN_TYPES.index(name) for name in ("system", *CHARACTERS.values(), "other")]
    return cut(paths, weights, np.array(kinds, np.int32))


def typed_by_request(log: Log, source: str | Path, block_tokens: int | None = None) -> Paths:
    """Paths of a log that names content types per request (`input_types`), each block typed by the first request that
    has it: `tools`, then `system` for as many tokens as it counts of them, then `tool_result` where all of its input is
    tool results, `user` where all is text, else `other`. Types are BY REQUEST: the answer before it counts with its
    input."""
    paths = load_paths(log, block_tokens=block_tokens).by_unit
    columns = {"input_types": "VARCHAR[]", "tool_tokens": "BIGINT", "system_tokens": "BIGINT"}
    told = own_columns(log, source, columns, key=None)
    lone = pl.when(pl.col("input_types").list.n_unique() == 1).then(pl.col("input_types").list.first())
    kinds = told.select(lone.replace_strict({"tool_result": "tool_result", "text": "user"}, default="other"))
    codes = np.array([TOKEN_TYPES.index(kind) for kind in kinds.to_series().fill_null("other")])
    by = first_user(paths)
    start = paths.path_tokens - paths.tokens
    tools, system = (told[name].fill_null(0).to_numpy()[by] for name in ("tool_tokens", "system_tokens"))
    found = np.select([start < tools, start < tools + system],
                      [TOKEN_TYPES.index("tools"), TOKEN_TYPES.index("system")], codes[by])  # fmt: skip
    return replace(paths, node_type=found.astype(np.int32))


def first_user(paths: Paths) -> NDArray[np.int64]:
    """The first request whose path passes each node (ends there or below)."""
    by = first_request(paths)
    by[by < 0] = paths.requests
    for depth in range(int(paths.depth.max(initial=0)), 0, -1):
        here = np.flatnonzero(paths.depth == depth)
        np.minimum.at(by, paths.parent[here], by[here])
    return by


def first_request(paths: Paths) -> NDArray[np.int64]:
    """The first request whose path ends at each node; -1 = none does (a shared first piece)."""
    maker = np.full(paths.parent.size, -1, np.int64)
    ends = np.flatnonzero(paths.leaf >= 0)[::-1]
    maker[paths.leaf[ends]] = ends
    return maker


def _of(values: NDArray[Any], request: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(request >= 0, values[np.maximum(request, 0)], 0).astype(np.int64)


def cut(paths: Paths, weights: NDArray[np.int64], kinds: NDArray[np.int32]) -> Paths:
    """Every node cut into a chain of nodes, one per column of `weights` with tokens in it, of the column's kind; tokens
    in proportion to the weights, rounded so that they add up."""
    share = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
    ends = np.rint(share * paths.tokens[:, None]).astype(np.int64)
    tokens = np.diff(ends, axis=1, prepend=0)
    kept = tokens > 0
    kept[~kept.any(axis=1), -1] = True
    last = np.cumsum(kept.sum(axis=1)) - 1
    node_of, column = np.nonzero(kept)
    starts = np.append(True, node_of[1:] != node_of[:-1])
    above = np.where(paths.parent >= 0, last[np.maximum(paths.parent, 0)], -1)
    parent = np.where(starts, above[node_of], np.arange(node_of.size) - 1).astype(np.int32)
    new = tokens[kept]
    return replace(
        paths, parent=parent, depth=depths(parent), tokens=new, room_tokens=new, unit_tokens=new,
        path_tokens=path_sums(parent, new), leaf=np.where(paths.leaf >= 0, last[paths.leaf], -1).astype(np.int32),
        node_type=kinds[column],
    )  # fmt: skip


def with_attention(log: Log, source: str | Path, column: str = "path_attention") -> Paths:
    """Paths of a log of blocks or segments with what HEAVY_HITTERS asks for: per request the attention each piece of
    its path drew (summed over queries, layers and heads; any unit), a list as long as `path_keys`.

    Raises ValueError for a missing or negative value, or a list that does not fit the path, naming the request.
    """
    paths = load_paths(log)
    lists = own_columns(log, source, {column: "DOUBLE[]"})[column].to_list()
    lengths = np.where(paths.leaf >= 0, paths.depth[np.maximum(paths.leaf, 0)] + 1, 0)
    drawn = np.empty(paths.requests, object)
    for request, (values, length) in enumerate(zip(lists, lengths.tolist(), strict=True)):
        given = [] if values is None else values
        if not length <= len(given) <= length + 1:  # a partial block at the end is not cached
            raise ValueError(f"{column} of request {request} has {len(given)} values for a path of {length} pieces")
        if any(value is None or not value >= 0 for value in given):
            raise ValueError(f"{column} of request {request} has a missing or negative value; attention is 0 or more")
        drawn[request] = np.array(given[:length], np.float64)
    return replace(paths, tags={**paths.tags, "attention": drawn})
