"""The log as arrays: fetched from DuckDB once, walked with compiled loops, shared by every reuse figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

DAY_US = 86_400_000_000
HOUR_US = 3_600_000_000

REQUESTS = """
SELECT r.request_id, epoch_us(r.ts) AS ts_us, r.input_tokens, r.prefix_tokens, r.session_id,
       coalesce(r.chain_id, r.session_id) AS chain_id, r.prefix_key, n.node_id,
       (timezone($zone, r.ts))::DATE - DATE '1970-01-01' AS day
FROM request AS r LEFT JOIN request_node AS n USING (request_id) ORDER BY r.request_id
"""
NODES = "SELECT node_id, parent_id, tokens, token_type FROM node ORDER BY node_id"


@dataclass(frozen=True)
class Trace:
    """One log as numpy arrays, requests in log order.

    Per request: ``ts_us`` (UTC microseconds), ``day`` (calendar day of ``zone``, days since 1970), ``input_tokens``,
    ``session`` and ``chain`` (codes, -1 none), ``leaf`` (deepest node of its path, -1 nothing cacheable).
    Per node: ``parent`` (-1 root; always a smaller number than the node), ``tokens``, ``token_type`` (code into
    ``type_names``, -1 none), ``depth`` (0 root), ``path_tokens`` (root to node, inclusive) and ``passes`` (requests
    whose path runs through it).
    """

    ts_us: Ints
    day: Codes
    input_tokens: Ints
    session: Codes
    chain: Codes
    leaf: Ints
    parent: Ints
    tokens: Ints
    token_type: Codes
    depth: Ints
    path_tokens: Ints
    passes: Ints
    type_names: tuple[str, ...]
    identity: str | None
    block_tokens: int | None
    has_clock: bool
    has_sessions: bool
    zone: str

    @property
    def requests(self) -> int:
        """Requests in the log."""
        return len(self.ts_us)


@njit(cache=True, nogil=True)
def sum_from_leaves(parent: Ints, own: Ints) -> Ints:
    """Each node's own value plus the values of everything below it."""
    total = own.copy()
    for node in range(len(parent) - 1, -1, -1):
        if parent[node] >= 0:
            total[parent[node]] += total[node]
    return total


@njit(cache=True, nogil=True)
def sum_from_root(parent: Ints, own: Ints) -> Ints:
    """Each node's own value plus the values of everything above it."""
    total = own.copy()
    for node in range(len(parent)):
        if parent[node] >= 0:
            total[node] += total[parent[node]]
    return total


@njit(cache=True, nogil=True)
def least_from_leaves(parent: Ints, own: Ints) -> Ints:
    """The smallest of each node's own value and the values of everything below it."""
    least = own.copy()
    for node in range(len(parent) - 1, -1, -1):
        if parent[node] >= 0 and least[node] < least[parent[node]]:
            least[parent[node]] = least[node]
    return least


@njit(cache=True, nogil=True)
def deepest_marked(parent: Ints, marked: NDArray[np.bool_]) -> Ints:
    """For each node the deepest marked node on its path, itself included; -1 where none is marked."""
    found = np.full(len(parent), -1, dtype=np.int64)
    for node in range(len(parent)):
        if marked[node]:
            found[node] = node
        elif parent[node] >= 0:
            found[node] = found[parent[node]]
    return found


@njit(cache=True, nogil=True)
def highest_marked(parent: Ints, marked: NDArray[np.bool_]) -> Ints:
    """For each node the first marked node met coming down from the root, itself included; -1 where none is marked."""
    found = np.full(len(parent), -1, dtype=np.int64)
    for node in range(len(parent)):
        if parent[node] >= 0:
            found[node] = found[parent[node]]
        if found[node] < 0 and marked[node]:
            found[node] = node
    return found


def codes(column: pl.Series) -> Codes:
    """Dense codes of a text column in order of the text, -1 for null: the same on every run."""
    ranks = column.rank("dense").cast(pl.Int64) - 1
    return ranks.fill_null(-1).to_numpy().astype(np.int32)


def _whole(column: pl.Series, missing: int) -> Ints:
    return column.cast(pl.Int64).fill_null(missing).to_numpy().astype(np.int64)


def _requests(con: duckdb.DuckDBPyConnection, zone: str) -> pl.DataFrame:
    try:
        return con.sql(REQUESTS, params={"zone": zone}).pl()
    except duckdb.Error as error:
        if "zone" in str(error).lower():
            raise ValueError(
                f"zone={zone!r} is not a time zone; give an IANA name such as UTC or Europe/Berlin"
            ) from error
        raise


def _nodes(con: duckdb.DuckDBPyConnection, requests: pl.DataFrame) -> tuple[pl.DataFrame, Ints]:
    """The node table and each request's leaf; a flat log without node rows gets one node per prefix key."""
    nodes = con.sql(NODES).pl()
    if nodes.height or requests["prefix_key"].null_count() == requests.height:
        return nodes, _whole(requests["node_id"], -1)
    leaf = codes(requests["prefix_key"]).astype(np.int64)
    held = leaf >= 0
    tokens = np.zeros(int(leaf.max()) + 1, dtype=np.int64)
    np.maximum.at(tokens, leaf[held], _whole(requests["prefix_tokens"], 0)[held])
    flat = pl.DataFrame({"node_id": np.arange(len(tokens)), "tokens": tokens})
    return flat.with_columns(parent_id=pl.lit(None, pl.Int64), token_type=pl.lit(None, pl.String)), leaf


def _paths(nodes: pl.DataFrame, leaf: Ints) -> dict[str, Any]:
    parent = _whole(nodes["parent_id"], -1)
    tokens = _whole(nodes["tokens"], 0)
    if (parent >= np.arange(len(parent))).any():
        raise ValueError("table node: a parent_id is not below its node_id; write parents before their children")
    return {
        "parent": parent,
        "tokens": tokens,
        "depth": sum_from_root(parent, np.ones(len(parent), dtype=np.int64)) - 1,
        "path_tokens": sum_from_root(parent, tokens),
        "passes": sum_from_leaves(parent, np.bincount(leaf[leaf >= 0], minlength=len(parent)).astype(np.int64)),
    }


def read_trace(log: Any, zone: str = "UTC") -> Trace:
    """Arrays of a loaded log (``con`` and ``facts`` are all that is used); a ``Trace`` comes back as it is.

    ``zone`` decides where a calendar day begins. Raises ``ValueError`` for an unknown zone or a broken node table.
    """
    if isinstance(log, Trace):
        return log
    requests = _requests(log.con, zone)
    nodes, leaf = _nodes(log.con, requests)
    return Trace(
        ts_us=_whole(requests["ts_us"], 0),
        day=_whole(requests["day"], 0).astype(np.int32),
        input_tokens=_whole(requests["input_tokens"], 0),
        session=codes(requests["session_id"]),
        chain=codes(requests["chain_id"]),
        leaf=leaf,
        token_type=codes(nodes["token_type"]),
        type_names=tuple(sorted(nodes["token_type"].drop_nulls().unique())),
        identity=log.facts.identity,
        block_tokens=log.facts.block_tokens,
        has_clock=log.facts.has_clock,
        has_sessions=log.facts.has_sessions,
        zone=zone,
        **_paths(nodes, leaf),
    )
