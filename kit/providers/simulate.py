"""The kit's model of a provider's cache, request by request, to be held against what the provider reported.

Room for every prefix; an entry lives for the retention of the class it was last written with (as the log reports it),
counted from the start of the last request that wrote or read it; a prefix under the minimum is not cached. A request
whose nodes are all new still continues its chain when its prompt is at least 0.95 of the one before (clients drop
reasoning, logs drop a link). A shared root whose length the log does not state is estimated for each request from the
*other* requests that begin a chain there, so a request never explains itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kit.prefix import Paths, root_of

SAME_PROMPT = 0.95
FOREVER_US = 2**62
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

COLUMNS = """
SELECT coalesce(read_tokens, -1) AS reported, coalesce(input_tokens, 0) AS input, read_tokens IS NOT NULL AS told,
  coalesce(epoch_us(ts_end), epoch_us(ts)) AS end_us,
  coalesce(lag(request_id) OVER k, -1) AS before, coalesce(lag(input_tokens) OVER k, 0) AS input_before,
  coalesce(model = lag(model) OVER k, true) AS same_model,
  dense_rank() OVER (ORDER BY coalesce(session_id, chain_id, request_id::VARCHAR)) - 1 AS session,
  coalesce(last_value(CASE WHEN write_long_tokens > 0 THEN 1 WHEN write_tokens > 0 THEN 0 END IGNORE NULLS) OVER k, 0)
    ::TINYINT AS class
FROM request WINDOW k AS (PARTITION BY coalesce(chain_id, session_id, request_id::VARCHAR) ORDER BY request_id)
ORDER BY request_id
"""


@dataclass(frozen=True)
class Simulated:
    """Per request: `read` tokens, `matched` (the longest prefix an earlier request had, dead or alive), `in_flight`
    (its last writer had not finished), `starts` (nothing but a shared root is on its path from before), `follows` (its
    chain has an earlier request), `write_class` (0 short, 1 long), `reported` read and `input` tokens, `told` (the
    provider reported a read), `session` code.
    """

    read: Ints
    matched: Ints
    in_flight: Flags
    starts: Flags
    follows: Flags
    write_class: NDArray[np.int8]
    reported: Ints
    input: Ints
    told: Flags
    session: Ints


@njit(cache=True, nogil=True)
def _simulate(
    leaf: Any, onto: Any, parent: Any, path: Any, ts: Any, end: Any, input_tokens: Any, write_class: Any, ttl: Any,
    minimum: int,
) -> Any:  # fmt: skip
    """(read, matched, in flight) per request. `onto` is the node whose path a request matches (its own leaf, or that of
    the request it continues); every node carries when and with which class it was last written."""
    read, matched = np.zeros(leaf.size, np.int64), np.zeros(leaf.size, np.int64)
    flying = np.zeros(leaf.size, np.bool_)
    touched = np.full(parent.size, -1, np.int64)
    by_class = np.zeros(parent.size, np.int8)
    writer = np.full(parent.size, -1, np.int64)
    for request in range(leaf.size):
        if leaf[request] < 0 or input_tokens[request] < minimum:
            continue
        now, node, alive = ts[request], onto[request], np.int64(-1)
        while node >= 0 and alive < 0:
            if touched[node] >= 0:
                matched[request] = max(matched[request], min(path[node], input_tokens[request]))
                if now - touched[node] <= ttl[by_class[node]]:
                    alive = node
            node = parent[node]
        if alive >= 0 and path[alive] >= minimum:
            read[request] = min(path[alive], input_tokens[request])
            flying[request] = writer[alive] >= 0 and now < end[writer[alive]]
            node = alive
            while node >= 0:
                touched[node] = now
                node = parent[node]
        node = leaf[request]
        while node >= 0:
            if touched[node] != now:
                by_class[node] = write_class[request]
                writer[node] = request
                touched[node] = now
            node = parent[node]
    return read, matched, flying


def simulate(log: Any, paths: Paths, ttl_seconds: tuple[float | None, float | None], minimum_tokens: int) -> Simulated:
    """Replay a log against a provider's rule, each write with its reported class. `ttl_seconds` is (short, long)."""
    c = {name: column.to_numpy() for name, column in log.con.sql(COLUMNS).pl().to_dict().items()}
    ttl = np.array([FOREVER_US if ttl is None else round(ttl * 1e6) for ttl in ttl_seconds], np.int64)
    leaf, chained = paths.leaf.astype(np.int64), log.facts.identity == "chain"
    starts = _starts(paths, leaf)
    continues = starts & chained & (c["before"] >= 0) & c["same_model"]
    continues &= c["input"] >= SAME_PROMPT * c["input_before"]
    onto = np.where(continues, leaf[np.maximum(c["before"], 0)], leaf)
    read, matched, flying = _simulate(
        leaf, onto, paths.parent, paths.path_tokens, paths.ts_us, c["end_us"], c["input"], c["class"], ttl,
        minimum_tokens,
    )  # fmt: skip
    starts &= ~continues
    if chained:
        read = _other_roots(paths, leaf, starts, read, c["reported"])
    return Simulated(
        read, matched, flying, starts, c["before"] >= 0, c["class"], c["reported"], c["input"], c["told"], c["session"]
    )


def expected_losses(log: Any, run: Simulated) -> NDArray[np.float64]:
    """Tokens per request that a simulated read is expected to miss although its entry should be alive.

    Entries are dropped and clients rewrite prompts: what share of simulated reads that costs is measured per kind of
    trigger (a person edits more than a tool) on all *other* sessions, so no request explains itself. Zero where there
    is only one session.
    """
    trigger = log.con.sql("SELECT coalesce(trigger, '') AS t FROM request ORDER BY request_id").pl()["t"]
    kind = trigger.rank("dense").to_numpy().astype(np.int64) - 1
    counted = run.told & ~run.starts & (run.read > 0)
    base = np.where(counted, run.read, 0).astype(np.float64)
    lost = np.where(counted, np.maximum(run.read - run.reported, 0), 0).astype(np.float64)
    shape = (int(run.session.max()) + 1, int(kind.max()) + 1)
    cell = run.session * shape[1] + kind
    by_cell = [np.bincount(cell, weights=w, minlength=shape[0] * shape[1]).reshape(shape) for w in (lost, base)]
    others_lost, others_base = (sums.sum(axis=0) - sums for sums in by_cell)
    share = np.divide(others_lost, others_base, out=np.zeros_like(others_lost), where=others_base > 0)
    return base * share[run.session, kind]


def _starts(paths: Paths, leaf: Ints) -> Flags:
    """Requests that begin a chain: all of their path is new, but for a root that no request ends in (a derived one)."""
    if not paths.parent.size:
        return np.ones(leaf.size, np.bool_)
    never = np.iinfo(np.int64).max
    ends, passes = np.full(paths.parent.size, never, np.int64), np.full(paths.parent.size, never, np.int64)
    used, root = np.flatnonzero(leaf >= 0), root_of(paths.parent)
    np.minimum.at(ends, leaf[used], used)
    np.minimum.at(passes, root[leaf[used]], used)
    at = np.maximum(leaf, 0)
    own, depth = ends[at] == np.arange(leaf.size), paths.depth[at]
    derived = ends[root[at]] > passes[root[at]]
    return (leaf < 0) | (own & ((depth == 0) | ((depth == 1) & derived)))


def _other_roots(paths: Paths, leaf: Ints, starts: Flags, read: Ints, reported: Ints) -> Ints:
    """Reads of chain starts that found their root alive: the median of what the *others* there were reported to read.

    The root's length in the log's nodes is itself a median over all of them; here every request leaves itself out.
    """
    root = np.where(leaf >= 0, root_of(paths.parent)[np.maximum(leaf, 0)], -1) if paths.parent.size else leaf
    adjusted = read.copy()
    told = np.flatnonzero(starts & (root >= 0) & (reported > 0))
    order = told[np.lexsort((reported[told], root[told]))]
    roots, first, size = np.unique(root[order], return_index=True, return_counts=True)
    place = np.full(leaf.size, -1, np.int64)
    place[order] = np.arange(order.size)
    found = np.flatnonzero(starts & (read > 0) & (root >= 0))
    group = np.searchsorted(roots, root[found])
    known = (
        (group < roots.size) & (roots[np.minimum(group, roots.size - 1)] == root[found]) if roots.size else group < 0
    )
    adjusted[found[~known]] = 0
    found, group = found[known], group[known]
    own = place[found] - first[group]
    values = reported[order].astype(np.float64)
    adjusted[found] = _median_of_others(values, first[group], size[group], np.where(place[found] >= 0, own, -1))
    return adjusted


def _median_of_others(values: NDArray[np.float64], first: Ints, size: Ints, own: Ints) -> Ints:
    """Median of a sorted group of `size` values from `first` without the member `own` (-1 = no member); 0 if none."""
    left = size - (own >= 0)
    ends = []
    for at in ((left - 1) // 2, left // 2):
        place = first + at + ((own >= 0) & (at >= own))
        ends.append(values[np.clip(place, 0, max(values.size - 1, 0))])
    return np.where(left > 0, (ends[0] + ends[1]) / 2, 0).astype(np.int64)
