"""Prefix identity to nodes: flat keys, paths of blocks or segments, or chains of turns become one forest.

Writes `node` and `request_node`. Keys are hashed to 64 bits together with model and cache scope, so a prefix is never
shared across models or scopes. Node tokens are the log's own lengths, not rounded.
"""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import polars as pl
from numba import njit

from kit.log import runs
from kit.prefix import build_forest, depths, flat_forest

Con = duckdb.DuckDBPyConnection
SURROGATE = (
    "node: no prefix identity in the log; each prompt is taken to extend the one before it in its session "
    "(session-local reuse only, never a prompt shared by sessions)"
)
SCOPE = "coalesce(model, ''), coalesce(cache_scope, '')"


def _column(con: Con, query: str) -> Any:
    """One result column as a numpy array (NULL must not occur)."""
    (only,) = con.sql(query).fetchnumpy().values()
    return np.asarray(only)


def _store(con: Con, parent: Any, tokens: Any, depth: Any, types: list[str | None] | None, leaf: Any) -> None:
    """Write the forest and the leaf of each request (by dense request number; -1 = nothing cacheable)."""
    nodes = pl.DataFrame(
        {"parent": np.asarray(parent, np.int64), "tokens": np.asarray(tokens, np.int64), "depth": depth}
    )
    kinds = pl.Series("token_type", types if types is not None else [None] * nodes.height, dtype=pl.String)
    nodes = nodes.with_row_index("node_id").with_columns(kinds)
    leaves = pl.DataFrame({"node": np.asarray(leaf, np.int64)}).with_row_index("request_id").filter(pl.col("node") >= 0)
    con.register("forest_nodes", nodes)
    con.register("forest_leaves", leaves)
    con.execute(
        "CREATE OR REPLACE TABLE node AS SELECT node_id::BIGINT AS node_id, nullif(parent, -1)::BIGINT AS parent_id, "
        "tokens::BIGINT AS tokens, depth::INTEGER AS depth, token_type FROM forest_nodes ORDER BY node_id"
    )
    con.execute(
        "CREATE OR REPLACE TABLE request_node AS SELECT request_id::BIGINT AS request_id, node::BIGINT AS node_id "
        "FROM forest_leaves ORDER BY request_id"
    )
    con.unregister("forest_nodes")
    con.unregister("forest_leaves")


def no_identity(con: Con) -> None:
    """Empty `node` and `request_node`: lengths alone say nothing about reuse."""
    _store(con, np.empty(0), np.empty(0), np.empty(0, np.int32), None, np.empty(0))


def from_flat(con: Con) -> None:
    """Nodes of flat keys; a key seen with several lengths becomes one node per step, so growth is paid once."""
    where = "FROM request WHERE prefix_key IS NOT NULL AND prefix_tokens > 0"
    rows = con.sql(
        f"SELECT request_id, hash(prefix_key, {SCOPE}) AS key, prefix_tokens {where} ORDER BY request_id"
    ).fetchnumpy()
    total = int(_column(con, "SELECT count(*) FROM request")[0])
    some, parent, tokens, depth, _ = flat_forest(np.asarray(rows["key"]), np.asarray(rows["prefix_tokens"]))
    leaf = np.full(total, -1, np.int64)
    leaf[np.asarray(rows["request_id"])] = some
    _store(con, parent, tokens, depth, None, leaf)


def from_paths(con: Con) -> None:
    """Nodes of block or segment paths in the temporary table `path(request_id, path_keys, path_tokens, ...)`.

    Without `path_tokens` every key is a block of `block_tokens`, the last one what is left of the prompt.
    """
    counts = _column(con, "SELECT len(coalesce(path_keys, [])) FROM path ORDER BY request_id").astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    keys = _column(con, f"SELECT hash(k, {SCOPE}) FROM (SELECT unnest(path_keys) AS k, model, cache_scope FROM path)")
    tokens = _touch_tokens(con, counts, offsets)
    real = tokens > 0
    if not real.all():
        counts = np.add.reduceat(real, offsets[:-1]) * (counts > 0) if keys.size else counts
        offsets = np.concatenate([[0], np.cumsum(counts)])
        keys, tokens = keys[real], tokens[real]
    leaf, parent, node_tokens, depth, first = build_forest(offsets, keys, tokens)
    _store(con, parent, node_tokens, depth, _touch_types(con, first, real), leaf)


def from_runs(con: Con) -> None:
    """Nodes of packed runs of block ids: one node per piece that is always taken together."""
    offsets, keys, tokens, segment = runs.pieces(con)
    leaf, parent, node_tokens, depth, first = build_forest(offsets, keys, tokens)
    types = None
    if int(_column(con, "SELECT count(piece_types) FROM ordered")[0]):
        words = pl.DataFrame(con.sql("SELECT unnest(piece_types)::VARCHAR AS t FROM ordered"))["t"].to_list()
        types = [words[index] if index >= 0 else None for index in segment[first]]
    _store(con, parent, node_tokens, depth, types, leaf)


def _touch_tokens(con: Con, counts: Any, offsets: Any) -> Any:
    listed = int(_column(con, "SELECT count(path_tokens) FROM path")[0])
    if listed:
        return _column(con, "SELECT unnest(path_tokens)::BIGINT AS t FROM path").astype(np.int64)
    sizes = con.sql("SELECT block_tokens, input_tokens FROM path ORDER BY request_id").fetchnumpy()
    block, total = (np.asarray(sizes[name], np.int64) for name in ("block_tokens", "input_tokens"))
    tokens = np.repeat(block, counts)
    last = (offsets[1:] - 1)[counts > 0]
    tokens[last] = np.minimum(block, total - block * (counts - 1))[counts > 0]
    return tokens


def _touch_types(con: Con, first: Any, real: Any) -> list[str | None] | None:
    if not int(_column(con, "SELECT count(path_types) FROM path")[0]):
        return None
    types = pl.DataFrame(con.sql("SELECT unnest(path_types)::VARCHAR AS t FROM path"))["t"]
    return types.filter(pl.Series(real)).gather(first).to_list()


@njit(cache=True, nogil=True)
def _grow_chains(parent: Any, prompt: Any, scope: Any, root_tokens: Any) -> Any:
    """One node per request that grows its parent's prompt; shared roots where they are shorter than the prompt."""
    most = prompt.size + root_tokens.size
    node_parent = np.full(most, -1, np.int64)
    node_tokens = np.zeros(most, np.int64)
    leaf = np.full(prompt.size, -1, np.int64)
    root_node = np.full(root_tokens.size, -1, np.int64)
    nodes = 0
    for request in range(prompt.size):
        above, start, before = np.int64(-1), np.int64(0), parent[request]
        if before >= 0 and leaf[before] >= 0 and prompt[request] >= prompt[before]:
            above, start = leaf[before], prompt[before]
        elif scope[request] >= 0 and 0 < root_tokens[scope[request]] <= prompt[request]:
            own = scope[request]
            if root_node[own] < 0:
                root_node[own] = nodes
                node_tokens[nodes] = root_tokens[own]
                nodes += 1
            above, start = root_node[own], root_tokens[own]
        if prompt[request] > start:
            node_parent[nodes] = above
            node_tokens[nodes] = prompt[request] - start
            above = np.int64(nodes)
            nodes += 1
        leaf[request] = above
    return node_parent[:nodes].copy(), node_tokens[:nodes].copy(), leaf


def from_chain(con: Con) -> int:
    """Nodes of turn increments from `link(request_id, parent, prompt, scope, reads, restart)`; number of shared roots.

    A request whose prompt shrank, whose model changed or which restarts after compaction begins a new chain from the
    shared root of its scope. The length of that root is the median of what parentless requests of the scope that read
    something were reported to read: derived, not logged.
    """
    con.execute(
        "CREATE OR REPLACE TEMP TABLE root AS SELECT scope, median(reads)::BIGINT AS tokens FROM link "
        "WHERE parent IS NULL AND reads > 0 AND scope IS NOT NULL GROUP BY scope"
    )
    rows = con.sql(
        "SELECT coalesce(CASE WHEN NOT restart THEN parent END, -1) AS parent, prompt, "
        "coalesce(root_id, -1) AS scope FROM link LEFT JOIN (SELECT row_number() OVER (ORDER BY scope) - 1 AS "
        "root_id, scope "
        "FROM root) USING (scope) ORDER BY request_id"
    ).fetchnumpy()
    roots = _column(con, "SELECT tokens FROM root ORDER BY scope").astype(np.int64)
    before, prompt, scope = (np.asarray(rows[name], np.int64) for name in ("parent", "prompt", "scope"))
    parent, tokens, leaf = _grow_chains(before, prompt, scope, roots)
    _store(con, parent, tokens, depths(parent), None, leaf)
    return int(roots.size)


def identify(con: Con, surrogate: str) -> tuple[str | None, list[str]]:
    """Build the nodes by the best identity the log has: (flat | blocks | chain | None, statements about what is
    derived)."""
    have = con.sql(
        "SELECT count(path_keys), count(parent_source_id), count(prefix_key), count(chain), count(runs) FROM ordered"
    ).fetchall()[0]
    if have[4]:
        from_runs(con)
        return "blocks", []
    if have[0]:
        con.execute("CREATE OR REPLACE TEMP VIEW path AS SELECT * FROM ordered")
        from_paths(con)
        return "blocks", []
    if have[1]:
        _link(
            con,
            "LEFT JOIN request p ON p.source_id = o.parent_source_id AND p.request_id < o.request_id",
            "p.request_id",
        )
        roots = from_chain(con)
        note = "node: a request's prefix is its parent's prompt; a shorter prompt starts a new chain"
        shared = (
            f"node: {roots} shared roots, one per model, client version and working folder, as long as the median "
            "reported "
            "read of parentless requests there"
        )
        return "chain", [note, shared] if roots else [note]
    if have[2]:
        from_flat(con)
        return "flat", []
    if have[3] and surrogate == "session":
        previous = "(SELECT *, lag(request_id) OVER (PARTITION BY chain ORDER BY request_id) AS before FROM ordered)"
        _link(con, f"LEFT JOIN {previous} p USING (request_id)", "p.before", root="NULL")
        from_chain(con)
        return "chain", [SURROGATE]
    no_identity(con)
    return None, []


def _link(con: Con, join: str, parent: str, root: str = "o.root_scope") -> None:
    """The temporary table `link` that `from_chain` reads; a parent of another model or scope is no parent."""
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE linked AS SELECT o.request_id, {parent} AS parent, "
        "coalesce(o.input_tokens, 0) AS prompt, "
        f"concat_ws('|', o.model, o.cache_scope, {root}) AS scope, {root} IS NULL AS rootless, "
        "coalesce(o.read_tokens, 0) AS reads, coalesce(o.restart, false) AS restart, o.model AS model, "
        "o.cache_scope AS cache_scope "
        f"FROM ordered o {join}"
    )
    con.execute(
        "CREATE OR REPLACE TEMP TABLE link AS SELECT l.request_id, l.parent, l.prompt, "
        "CASE WHEN NOT l.rootless THEN l.scope END AS scope, l.reads, l.restart OR (l.parent IS NOT NULL AND "
        "(l.model IS DISTINCT FROM q.model OR l.cache_scope IS DISTINCT FROM q.cache_scope)) AS restart "
        "FROM linked l LEFT JOIN linked q ON q.request_id = l.parent ORDER BY l.request_id"
    )
