"""Prefix identity to nodes: flat keys, paths of blocks or segments, or chains of turns become one forest.

Writes `node` and `request_node`. Keys are hashed to 64 bits together with model and cache scope, so a prefix is never
shared across models or scopes. Node tokens are the log's own lengths, not rounded.
"""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
from numba import njit

from kit.log import runs
from kit.log.codes import code_sql, earlier, numbered
from kit.log.requests import column
from kit.prefix import build_forest, depths, flat_forest

Con = duckdb.DuckDBPyConnection
Types = tuple[Any, Any] | None
SURROGATE = (
    "node: no prefix identity in the log; each prompt is taken to extend the one before it in its session "
    "(session-local reuse only, never a prompt shared by sessions)"
)
SCOPE = "coalesce(model, ''), coalesce(cache_scope, '')"


def _store(con: Con, parent: Any, tokens: Any, depth: Any, types: Types, leaf: Any) -> None:
    """Write the forest, and the leaf of each request (by dense request number; -1 = nothing cacheable).

    `types` is the number of each node's type (-1 = none) and the names by number.
    """
    nodes: dict[str, Any] = {
        "parent": np.asarray(parent, np.int32), "tokens": np.asarray(tokens, np.int64),
        "depth": np.asarray(depth, np.int32),
    }  # fmt: skip
    kind = "NULL::VARCHAR"
    if types is not None:
        nodes["typed"], nodes["token_type"] = types[0] >= 0, types[1][types[0]]
        kind = "CASE WHEN typed THEN token_type::VARCHAR END"
    con.register("forest_nodes", nodes)
    con.register("forest_leaves", {"node": np.asarray(leaf, np.int32)})
    con.execute(
        "CREATE OR REPLACE TABLE node AS SELECT row_number() OVER () - 1 AS node_id, "
        f"nullif(parent, -1)::BIGINT AS parent_id, tokens, depth, {kind} AS token_type FROM forest_nodes"
    )
    con.execute(
        "CREATE OR REPLACE TABLE request_node AS SELECT request_id, node::BIGINT AS node_id FROM "
        "(SELECT row_number() OVER () - 1 AS request_id, node FROM forest_leaves) WHERE node >= 0"
    )
    con.unregister("forest_nodes")
    con.unregister("forest_leaves")


def no_identity(con: Con) -> None:
    """Empty `node` and `request_node`: lengths alone say nothing about reuse."""
    _store(con, np.empty(0), np.empty(0), np.empty(0, np.int32), None, np.empty(0))


def from_flat(con: Con) -> None:
    """Nodes of flat keys; a key seen with several lengths becomes one node per step, so growth is paid once."""
    rows = con.sql(
        f"SELECT CASE WHEN prefix_key IS NOT NULL THEN hash(prefix_key, {SCOPE}) ELSE 0::UBIGINT END AS key, "
        "CASE WHEN prefix_key IS NOT NULL THEN prefix_tokens ELSE 0 END AS tokens FROM request"
    ).fetchnumpy()
    keys, tokens = np.asarray(rows["key"]), np.asarray(rows["tokens"], np.int64)
    real = tokens > 0
    offsets = np.concatenate([[0], np.cumsum(real)])
    leaf, parent, lengths, depth, _ = build_forest(offsets, keys[real], tokens[real])
    if (lengths[leaf[real]] != tokens[real]).any():
        some, parent, lengths, depth, _ = flat_forest(keys[real], tokens[real])
        leaf[real] = some
    _store(con, parent, lengths, depth, None, leaf)


def from_paths(con: Con) -> None:
    """Nodes of block or segment paths in the temporary table `path(request_id, path_keys, path_tokens, ...)`.

    Without `path_tokens` every key is a block of `block_tokens`, the last one what is left of the prompt.
    """
    lengths, types, scopes = con.sql(f"SELECT count(path_tokens), count(path_types), count(DISTINCT hash({SCOPE})) "
                                     "FROM path").fetchall()[0]  # fmt: skip
    rows = con.sql("SELECT len(coalesce(path_keys, [])) AS blocks, block_tokens, input_tokens FROM path "
                   "ORDER BY request_id").fetchnumpy()  # fmt: skip
    counts = np.asarray(rows["blocks"], np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    keys = _touch_keys(con, scopes == 1)
    sizes = None if lengths else _block_sizes(rows, counts)
    if sizes is not None and (sizes[1][counts > 0] > 0).all():
        leaf, parent, _, depth, first = build_forest(offsets, keys, keys.view(np.int64))
        request = np.searchsorted(offsets, first, side="right") - 1
        node_tokens = np.where(first == offsets[request + 1] - 1, sizes[1][request], sizes[0][request])
        return _store(con, parent, node_tokens, depth, _touch_types(con, first, None) if types else None, leaf)
    tokens = _touch_tokens(con, counts, offsets, sizes)
    real = tokens > 0
    if not real.all():
        counts = np.add.reduceat(real, offsets[:-1]) * (counts > 0) if keys.size else counts
        offsets = np.concatenate([[0], np.cumsum(counts)])
        keys, tokens = keys[real], tokens[real]
    leaf, parent, node_tokens, depth, first = build_forest(offsets, keys, tokens)
    return _store(con, parent, node_tokens, depth, _touch_types(con, first, real) if types else None, leaf)


def from_runs(con: Con) -> None:
    """Nodes of packed runs of block ids: one node per piece that is always taken together."""
    offsets, keys, tokens, segment = runs.pieces(con)
    leaf, parent, node_tokens, depth, first = build_forest(offsets, keys, tokens)
    types: Types = None
    if int(column(con, "SELECT count(piece_types) FROM ordered")[0]):
        code, words = _coded(con, "SELECT unnest(piece_types)::VARCHAR AS word FROM ordered")
        types = np.append(code, np.int32(-1))[segment[first]], words
    _store(con, parent, node_tokens, depth, types, leaf)


def _touch_keys(con: Con, alone: bool) -> Any:
    """The keys of all paths, one after the other: whole numbers as they are while there is one model and scope."""
    kinds = {row[0]: row[1] for row in con.sql("DESCRIBE path").fetchall()}
    if alone and kinds["path_keys"] == "UBIGINT[]":
        return column(con, "SELECT unnest(path_keys) AS k FROM path")
    return column(con, f"SELECT hash(k, {SCOPE}) FROM (SELECT unnest(path_keys) AS k, model, cache_scope FROM path)")


def _block_sizes(sizes: dict[str, Any], counts: Any) -> tuple[Any, Any]:
    """(tokens of a full block, tokens of the last block) of each request whose blocks have one size."""
    block, total = (np.asarray(sizes[name], np.int64) for name in ("block_tokens", "input_tokens"))
    return block, np.minimum(block, total - block * (counts - 1))


def _touch_tokens(con: Con, counts: Any, offsets: Any, sizes: tuple[Any, Any] | None) -> Any:
    if sizes is None:
        return column(con, "SELECT unnest(path_tokens)::BIGINT AS t FROM path").astype(np.int64)
    tokens = np.repeat(sizes[0], counts)
    tokens[(offsets[1:] - 1)[counts > 0]] = sizes[1][counts > 0]
    return tokens


def _touch_types(con: Con, first: Any, real: Any | None) -> tuple[Any, Any]:
    """The types of the touches `first`, counted among the real ones (None: all are)."""
    code, words = _coded(con, "SELECT unnest(path_types)::VARCHAR AS word FROM path")
    return (code if real is None else code[real])[first], words


def _coded(con: Con, query: str) -> tuple[Any, Any]:
    """(number of each `word` that a query gives, -1 = none; the words by number, the last one empty)."""
    code, names = numbered(column(con, f"SELECT {code_sql('word')} AS code FROM ({query})"))
    found = dict(con.sql(f"SELECT DISTINCT hash(word), word FROM ({query}) WHERE word IS NOT NULL").fetchall())
    return code, np.array([found[int(name)] for name in names] + [""], object)


@njit(cache=True, nogil=True)
def _grow_chains(parent: Any, prompt: Any, level: Any, level_end: Any, level_below: Any) -> Any:
    """One node per request that grows its parent's prompt, else one on top of the shared root of its scope.

    `level` is the length of the root that a request may start from (-1 none): an index into the ends of all lengths,
    `level_below` the next shorter length of the same scope, so that a longer root is the shorter one and a step.
    """
    most = prompt.size + level_end.size
    node_parent = np.full(most, -1, np.int32)
    node_tokens = np.zeros(most, np.int64)
    leaf = np.full(prompt.size, -1, np.int64)
    node_of = np.full(level_end.size, -1, np.int64)
    steps = np.empty(level_end.size, np.int64)
    nodes = 0
    for request in range(prompt.size):
        above, start, before, own = np.int64(-1), np.int64(0), parent[request], level[request]
        if before >= 0 and leaf[before] >= 0 and prompt[request] >= prompt[before]:
            above, start = leaf[before], prompt[before]
        elif own >= 0 and level_end[own] <= prompt[request]:
            missing = 0
            while own >= 0 and node_of[own] < 0:
                steps[missing] = own
                missing += 1
                own = level_below[own]
            for step in range(missing - 1, -1, -1):
                own = steps[step]
                below = level_below[own]
                node_of[own] = nodes
                node_parent[nodes] = node_of[below] if below >= 0 else -1
                node_tokens[nodes] = level_end[own] - (level_end[below] if below >= 0 else 0)
                nodes += 1
            above, start = node_of[level[request]], level_end[level[request]]
        if prompt[request] > start:
            node_parent[nodes] = above
            node_tokens[nodes] = prompt[request] - start
            above = np.int64(nodes)
            nodes += 1
        leaf[request] = above
    return node_parent[:nodes].copy(), node_tokens[:nodes].copy(), leaf


def shared_roots(scope: Any, reads: Any, first: Any) -> Any:
    """Length of the shared root each request may start from: int64[requests], 0 = none is known.

    `scope` numbers who shares a root (-1 nobody), `first` marks requests without a parent. The estimate is the median
    of what the *other* parentless requests of the scope that read something were reported to read, so that no
    request's own answer decides what it is predicted to find; a scope's only one stands for itself (it finds nothing
    before it anyway). Tokens; halves are cut.
    """
    pool = np.flatnonzero(first & (reads > 0) & (scope >= 0))
    pool = pool[np.lexsort((reads[pool], scope[pool]))]
    scopes = int(scope.max(initial=-1)) + 1
    count = np.bincount(scope[pool], minlength=scopes)
    begin = np.concatenate([[0], np.cumsum(count)])
    value = reads[pool]
    size = count[scope[pool]] - 1
    base, place = begin[scope[pool]], np.arange(pool.size) - begin[scope[pool]]

    def nth(index: Any) -> Any:
        return value[np.minimum(base + index + (index >= place), pool.size - 1)]

    out = np.zeros(scope.size, np.int64)
    full = np.zeros(scopes + 1, np.int64)
    have = np.flatnonzero(count)
    full[have] = (value[begin[have] + (count[have] - 1) // 2] + value[begin[have] + count[have] // 2]) // 2
    out[:] = full[scope]
    out[pool] = np.where(size > 0, (nth(np.maximum(size - 1, 0) // 2) + nth(size // 2)) // 2, value)
    return out


def _levels(scope: Any, root: Any) -> tuple[Any, Any, Any]:
    """(level of each request or -1, end of each level, level below it or -1): the distinct root lengths per scope."""
    span = int(root.max(initial=0)) + 1
    number, pairs = numbered(np.where(root > 0, scope.astype(np.int64) * span + root, 0).astype(np.uint64))
    order = np.argsort(pairs)
    rank = np.empty(pairs.size + 1, np.int64)
    rank[order], rank[-1] = np.arange(pairs.size), -1
    owner, end = pairs[order] // span, (pairs[order] % span).astype(np.int64)
    below = np.arange(pairs.size) - 1
    below[:1] = -1
    below[1:][owner[1:] != owner[:-1]] = -1
    return rank[number], end, below


def from_chain(con: Con, parent: Any, rooted: bool) -> int:
    """Nodes of turn increments; `parent` is the row of the request each one extends (-1 none). Scopes with a root.

    A request whose prompt shrank, whose model or cache scope changed or which restarts after compaction begins a new
    chain, on the shared root of its scope where there is one (`rooted`).
    """
    rows = con.sql(
        f"SELECT coalesce(input_tokens, 0) AS prompt, hash({SCOPE}) AS model, coalesce(restart, false) AS restart, "
        f"coalesce(read_tokens, 0) AS reads, CASE WHEN root_scope IS NULL THEN 0::UBIGINT ELSE hash({SCOPE}, "
        "root_scope) END AS scope FROM ordered"
    ).fetchnumpy()
    prompt, reads = np.asarray(rows["prompt"], np.int64), np.asarray(rows["reads"], np.int64)
    other = np.asarray(rows["model"]) != np.asarray(rows["model"])[np.maximum(parent, 0)]
    orphan = parent < 0
    parent = np.where(np.asarray(rows["restart"]) | other, -1, parent)
    scope, _ = numbered(np.asarray(rows["scope"]) if rooted else np.zeros(prompt.size, np.uint64))
    del rows, other
    root = shared_roots(scope, reads, orphan)
    level, ends, below = _levels(scope, root)
    scopes = int(np.unique(scope[root > 0]).size)
    del scope, root, reads, orphan
    node_parent, tokens, leaf = _grow_chains(parent, prompt, level, ends, below)
    del parent, prompt, level
    _store(con, node_parent, tokens, depths(node_parent), None, leaf)
    return scopes


def parent_warnings(codes: Any, wanted: Any, parent: Any) -> list[str]:
    """What to say of requests that name themselves, or a request that is not before them, as the one they extend."""
    own = int(np.count_nonzero((wanted != 0) & (wanted == codes)))
    open_ = np.flatnonzero((wanted != 0) & (wanted != codes) & (parent < 0))
    later = int(np.count_nonzero(np.isin(wanted[open_], codes)))
    absent = int(np.count_nonzero(~np.isin(wanted[open_], codes)))
    found = ((own, "themselves as their parent"), (absent, "a parent that is not among the requests"),
             (later, "a parent that comes after them (a cycle, or clocks that disagree)"))  # fmt: skip
    return [f"{number:,} requests name {what}; each starts a chain of its own" for number, what in found if number]


def identify(con: Con, surrogate: str) -> tuple[str | None, list[str], list[str]]:
    """Build the nodes by the best identity the log has: (flat | blocks | chain | None, statements about what is
    derived, warnings)."""
    have = con.sql(
        "SELECT count(path_keys), count(parent_source_id), count(prefix_key), count(chain), count(runs) FROM ordered"
    ).fetchall()[0]
    if have[4]:
        from_runs(con)
        return "blocks", [], []
    if have[0]:
        con.execute("CREATE OR REPLACE TEMP VIEW path AS SELECT * FROM ordered")
        from_paths(con)
        return "blocks", [], []
    if have[1]:
        codes, wanted = (
            column(con, f"SELECT {code_sql(name)} AS code FROM ordered") for name in ("source_id", "parent_source_id")
        )
        parent = earlier(codes, wanted)
        roots = from_chain(con, parent, rooted=True)
        note = "node: a request's prefix is its parent's prompt; a shorter prompt starts a new chain"
        shared = (
            f"node: {roots} shared roots, one per model, client version and working folder, as long as the median "
            "reported read of the other parentless requests there"
        )
        return "chain", [note, shared] if roots else [note], parent_warnings(codes, wanted, parent)
    if have[2]:
        from_flat(con)
        return "flat", [], []
    if have[3] and surrogate == "session":
        chain = column(con, f"SELECT {code_sql('chain')} AS code FROM ordered")
        from_chain(con, earlier(chain, chain), rooted=False)
        return "chain", [SURROGATE], []
    no_identity(con)
    return None, [], []

