"""Every touch of every prefix token, by the gap since the touch before: what a retention choice costs, exactly.

In a cache that never runs out of room, a touch is a read or a write and both start the clock again, so the gap since
the last touch does not depend on the retention. Tokens re-used within the retention are read, all others written: the
bill of any retention follows from the gaps alone, to the last digit, without a fitted distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from kit.prefix import Paths

Ints = NDArray[np.int64]
WITHIN_SHORT, WITHIN_LONG, LATER, NEW = range(4)
OWN, SHARED = range(2)


@dataclass(frozen=True)
class Touches:
    """Tokens per request by gap class, and what became of what was written.

    `tokens` int64[requests, 2 segments (own, shared), 4 (re-used within short, within long, later, new)]; a node is
    shared when more than one chain passes through it. `kept` int64[requests]: tokens re-used after the short retention
    but no later than the chain's previous request, so a keep-alive would have kept them. `before` int64[requests]: the
    chain's previous request (-1 none), `gap_us` since its start, `last` bool: nothing follows in the chain. `dead`
    int64[requests, 2 (short, long)]: tokens the request wrote that were not read again within the retention.
    `first_read_us` int64[nodes]: from first write to first re-use, -1 never. `path_tokens` int64[requests].
    """

    tokens: Ints
    kept: Ints
    before: Ints
    gap_us: Ints
    last: NDArray[np.bool_]
    dead: Ints
    first_read_us: Ints
    path_tokens: Ints
    node_tokens: Ints
    rest_tokens: Ints


@njit(cache=True, nogil=True)
def _shared_nodes(leaf: Any, parent: Any, chain: Any) -> Any:
    """Nodes that more than one chain passes through; requests without a chain count as one chain each."""
    first = np.full(parent.size, -1, np.int64)
    shared = np.zeros(parent.size, np.bool_)
    for request in range(leaf.size):
        node = leaf[request]
        while node >= 0:
            if first[node] < 0:
                first[node] = chain[request]
            elif first[node] != chain[request]:
                shared[node] = True
            node = parent[node]
    return shared


@njit(cache=True, nogil=True)
def _walk(leaf: Any, parent: Any, worth: Any, ts_us: Any, gap_us: Any, shared: Any, short_us: int, long_us: int) -> Any:
    tokens = np.zeros((leaf.size, 2, 4), np.int64)
    kept = np.zeros(leaf.size, np.int64)
    dead = np.zeros((leaf.size, 2), np.int64)
    touched = np.full(parent.size, -1, np.int64)
    writer = np.full((parent.size, 2), -1, np.int64)
    first_read = np.full(parent.size, -1, np.int64)
    seen_twice = np.zeros(parent.size, np.bool_)
    limits = (short_us, long_us)
    for request in range(leaf.size):
        node, now = leaf[request], ts_us[request]
        while node >= 0:
            size, segment, gap = worth[node], int(shared[node]), now - touched[node]
            if touched[node] < 0:
                tokens[request, segment, 3] += size
            else:
                tokens[request, segment, 0 if gap <= short_us else (1 if gap <= long_us else 2)] += size
                if gap > short_us and gap_us[request] >= 0 and gap <= gap_us[request]:
                    kept[request] += size
                if not seen_twice[node]:
                    first_read[node], seen_twice[node] = gap, True
            for k in range(2):
                if touched[node] >= 0 and gap <= limits[k]:
                    writer[node, k] = -1
                else:
                    if writer[node, k] >= 0:
                        dead[writer[node, k], k] += size
                    writer[node, k] = request
            touched[node] = now
            node = parent[node]
    for node in range(parent.size):
        for k in range(2):
            if writer[node, k] >= 0:
                dead[writer[node, k], k] += worth[node]
    return tokens, kept, dead, first_read


def previous_in_chain(chain: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """(previous request of the same chain or -1, whether nothing follows); chain -1 = no chain, alone."""
    order = np.argsort(chain, kind="stable")
    same = (chain[order][1:] == chain[order][:-1]) & (chain[order][1:] >= 0)
    before = np.full(chain.size, -1, np.int64)
    before[order[1:][same]] = order[:-1][same]
    last = np.ones(chain.size, np.bool_)
    last[order[:-1][same]] = False
    return before, last


def chain_codes(con: Any) -> Ints:
    """int64[requests]: code of each request's chain (else its session), -1 where the log has neither."""
    column = con.sql("SELECT coalesce(chain_id, session_id) AS chain FROM request ORDER BY request_id").pl()["chain"]
    return (column.rank("dense").cast(pl.Int64) - 1).fill_null(-1).to_numpy().astype(np.int64)


def read_touches(paths: Paths, chain: Ints, short_seconds: float, long_seconds: float, minimum_tokens: int) -> Touches:
    """Walk a log once. `chain` int64[requests] (-1 none); prefixes under `minimum_tokens` count as not cacheable."""
    used = np.where(paths.leaf >= 0, paths.path_tokens[np.maximum(paths.leaf, 0)], 0) if paths.tokens.size else 0
    leaf = np.where((paths.leaf >= 0) & (used >= minimum_tokens), paths.leaf, -1).astype(np.int64)
    path_tokens = np.where(leaf >= 0, used, 0).astype(np.int64)
    before, last = previous_in_chain(chain)
    gap_us = np.where(before >= 0, paths.ts_us - paths.ts_us[np.maximum(before, 0)], -1)
    alone = np.where(chain >= 0, chain, chain.max(initial=0) + 1 + np.arange(chain.size))
    shared = _shared_nodes(leaf, paths.parent, alone)
    limits = (round(short_seconds * 1e6), round(long_seconds * 1e6))
    tokens, kept, dead, first = _walk(leaf, paths.parent, paths.tokens, paths.ts_us, gap_us, shared, *limits)
    rest = paths.input_tokens - path_tokens
    return Touches(tokens, kept, before, gap_us, last, dead, first, path_tokens, paths.tokens, rest)
