"""Runs of block ids to pieces: ids that are always taken together are one piece, so packed traces stay packed.

Inside one key scope the ids are cut where any run starts or ends, and where the token type changes; between two cuts
every request takes all ids or none, so a piece is one node whatever its length.
"""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True, nogil=True)
def _starts(first: Any, last: Any, run_of: Any, ends: Any, end_of: Any, block: Any) -> Any:
    """Ids at which a piece must begin: run starts, ids after run ends, and the first block of each segment.

    `run_of` and `end_of` are offsets per request into the runs and into the cumulative segment ends (tokens).
    """
    most = 2 * first.size + ends.size
    ids = np.empty(most, np.int64)
    owner = np.empty(most, np.int64)
    n = 0
    for request in range(run_of.size - 1):
        at = end_of[request]
        position = np.int64(0)
        for run in range(run_of[request], run_of[request + 1]):
            for edge in (first[run], last[run] + 1):
                ids[n], owner[n] = edge, request
                n += 1
            length = last[run] - first[run] + 1
            while at < end_of[request + 1] and -(-ends[at] // block[request]) < position + length:
                offset = -(-ends[at] // block[request]) - position
                if offset > 0:
                    ids[n], owner[n] = first[run] + offset, request
                    n += 1
                at += 1
            position += length
    return ids[:n].copy(), owner[:n].copy()


@njit(cache=True, nogil=True)
def _pieces(first: Any, last: Any, run_of: Any, cuts: Any, cut_of: Any, scope: Any, ends: Any, end_of: Any, block:
Any) -> Any:
    """Walk every run over the cuts of its scope: piece start ids, lengths in tokens, segment index, offsets."""
    size = 0
    for request in range(run_of.size - 1):
        own = cuts[cut_of[scope[request]] : cut_of[scope[request] + 1]]
        for run in range(run_of[request], run_of[request + 1]):
            size += np.searchsorted(own, last[run] + 1) - np.searchsorted(own, first[run])
    keys = np.empty(size, np.int64)
    tokens = np.empty(size, np.int64)
    segment = np.full(size, -1, np.int64)
    offsets = np.zeros(run_of.size, np.int64)
    n = 0
    for request in range(run_of.size - 1):
        own = cuts[cut_of[scope[request]] : cut_of[scope[request] + 1]]
        position, at = np.int64(0), end_of[request]
        for run in range(run_of[request], run_of[request + 1]):
            for cut in range(np.searchsorted(own, first[run]), np.searchsorted(own, last[run] + 1)):
                stop = own[cut + 1] if cut + 1 < own.size and own[cut + 1] <= last[run] else last[run] + 1
                keys[n] = own[cut]
                tokens[n] = (stop - own[cut]) * block[request]
                while at < end_of[request + 1] and ends[at] <= position:
                    at += 1
                segment[n] = at if at < end_of[request + 1] else -1
                position += tokens[n]
                n += 1
        offsets[request + 1] = n
    return keys, tokens, segment, offsets


def _offsets(counts: Any) -> Ints:
    return np.concatenate([[0], np.cumsum(np.asarray(counts, np.int64))]).astype(np.int64)


def _numbers(con: duckdb.DuckDBPyConnection, query: str) -> dict[str, Any]:
    return {name: np.asarray(values) for name, values in con.sql(query).fetchnumpy().items()}


def pieces(con: duckdb.DuckDBPyConnection) -> tuple[Ints, NDArray[np.uint64], Ints, Ints]:
    """Paths of pieces for the runs in `ordered`: (offsets, keys, tokens, index of each piece's segment or -1).

    The keys are salted with scope, model and cache scope. The segment index counts through all `piece_types` in order.
    """
    rows = _numbers(con, (
        "SELECT len(coalesce(runs, [])) AS runs, len(coalesce(piece_tokens, [])) AS segments, block_tokens AS block, "
        "hash(coalesce(key_scope, ''), coalesce(model, ''), coalesce(cache_scope, '')) AS scope FROM ordered "
        "ORDER BY request_id"
    ))  # fmt: skip
    run = _numbers(con, "SELECT r[1] AS first, r[2] AS last FROM (SELECT unnest(runs) AS r FROM ordered)")
    part = _numbers(con, "SELECT unnest(piece_tokens) AS tokens FROM ordered")
    run_of, end_of = _offsets(rows["runs"]), _offsets(rows["segments"])
    ends = _segment_ends(part["tokens"].astype(np.int64), end_of)
    scopes, scope = np.unique(rows["scope"].astype(np.uint64), return_inverse=True)
    block = rows["block"].astype(np.int64)
    first, last = run["first"].astype(np.int64), run["last"].astype(np.int64)
    ids, owner = _starts(first, last, run_of, ends, end_of, block)
    cuts, cut_of = _cuts(ids, scope[owner], scopes.size)
    keys, tokens, segment, offsets = _pieces(first, last, run_of, cuts, cut_of, scope, ends, end_of, block)
    salt = np.repeat(scopes[scope], np.diff(offsets))
    return offsets, keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ salt, tokens, segment


def _segment_ends(tokens: Ints, end_of: Ints) -> Ints:
    """Cumulative segment ends, starting again at each request."""
    total = np.cumsum(tokens)
    before = np.concatenate([[0], total])[end_of[:-1]]
    return total - np.repeat(before, np.diff(end_of))


def _cuts(ids: Ints, scope: Ints, scopes: int) -> tuple[Ints, Ints]:
    """Distinct cut ids per scope, sorted, with offsets per scope."""
    order = np.lexsort((ids, scope))
    ids, scope = ids[order], scope[order]
    new = np.ones(ids.size, bool)
    new[1:] = (ids[1:] != ids[:-1]) | (scope[1:] != scope[:-1])
    return ids[new], _offsets(np.bincount(scope[new], minlength=scopes))
