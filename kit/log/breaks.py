"""What breaks a prefix: where a request stops repeating the one before it, and what stands there.

Consecutive requests of a chain (without sessions: of a root) are compared. Where the later one does not extend the
earlier one there is a break: everything of the earlier prompt behind it is lost for this request. If the first piece
behind the break was never seen before, the content there is always new (a clock, an id, an edit): fix the prompt. If it
was seen before, the same content comes again and only a larger or longer-lived cache would have kept it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numba import njit

from kit.log import Log
from kit.prefix import path_sums, root_of

WORST = 10


@njit(cache=True, nogil=True)
def _first_seen(parent: Any, leaf: Any) -> Any:
    """First request that touches each node."""
    first = np.full(parent.size, -1, np.int64)
    for request in range(leaf.size):
        at = leaf[request]
        while at >= 0 and first[at] < 0:
            first[at] = request
            at = parent[at]
    return first


@njit(cache=True, nogil=True)
def _breaks(parent: Any, depth: Any, leaf: Any, group: Any, groups: int) -> Any:
    """Per request: leaf of the request before it in its group (-1 none), last common node, first own node behind it."""
    last = np.full(groups, -1, np.int64)
    before = np.full(leaf.size, -1, np.int64)
    common = np.full(leaf.size, -1, np.int64)
    behind = np.full(leaf.size, -1, np.int64)
    for request in range(leaf.size):
        own, other = leaf[request], last[group[request]]
        last[group[request]] = own
        if own < 0 or other < 0:
            continue
        before[request] = other
        while own != other:
            if own >= 0 and (other < 0 or depth[own] >= depth[other]):
                behind[request] = own
                own = parent[own]
            else:
                other = parent[other]
        common[request] = own
    return before, common, behind


def _arrays(log: Log) -> dict[str, Any]:
    nodes = pl.DataFrame(
        log.con.sql(
            "SELECT coalesce(parent_id, -1)::BIGINT AS parent, depth, tokens, token_type FROM node ORDER BY node_id"
        )
    )
    rows = pl.DataFrame(
        log.con.sql("SELECT coalesce(node_id, -1)::BIGINT AS leaf, chain_id FROM request LEFT JOIN request_node "
                    "USING (request_id) ORDER BY request_id")
    )  # fmt: skip
    parent, leaf = nodes["parent"].to_numpy(), rows["leaf"].to_numpy()
    by_chain = rows["chain_id"].null_count() < rows.height
    if by_chain:
        alone = pl.int_range(pl.len()).cast(pl.String).str.replace("^", "\x1falone ")
        key = rows.select(pl.coalesce("chain_id", alone).rank("dense") - 1).to_series().to_numpy()
    else:
        key = np.where(leaf >= 0, root_of(parent.astype(np.int32))[leaf], parent.size) if parent.size else leaf * 0
    return {
        **{name: nodes[name].to_numpy() for name in ("parent", "depth", "tokens")},
        "type": nodes["token_type"],
        "leaf": leaf,
        "group": key.astype(np.int64),
        "basis": "chain" if by_chain else "root",
    }


def prefix_breaks(log: Log) -> dict[str, Any] | None:
    """Breaks of a log with prefix identity, else None.

    Returns {basis, pairs, extended, broken, lost_tokens, by_type[], worst[]}. `by_type`: {token_type, content (new |
    again), breaks, lost_tokens, median_position_tokens}. `worst`: the places that cost most, {position_tokens,
    token_type, breaks, different, lost_tokens, content}, where `different` counts the distinct pieces that followed.
    """
    if log.facts.identity is None:
        return None
    found = _arrays(log)
    parent, tokens = found["parent"], found["tokens"]
    groups = int(found["group"].max()) + 1
    before, common, behind = _breaks(parent, found["depth"], found["leaf"], found["group"], groups)
    ends = path_sums(parent.astype(np.int32), tokens)
    pairs = np.flatnonzero(before >= 0)
    broken = pairs[common[pairs] != before[pairs]]
    at = common[broken]
    position = np.where(at >= 0, ends[at], 0)
    seen = _first_seen(parent, found["leaf"])
    following = behind[broken]
    fresh = np.where(following >= 0, seen[following] == broken, False)
    frame = pl.DataFrame({
        "place": at, "position_tokens": position, "lost_tokens": ends[before[broken]] - position,
        "following": following,
        "token_type": found["type"].gather(pl.Series(np.maximum(following, 0))),
        "content": np.where(following < 0, "cut", np.where(fresh, "new", "again")),
    })  # fmt: skip
    return {
        "basis": found["basis"], "pairs": int(pairs.size), "extended": int(pairs.size - broken.size),
        "broken": int(broken.size), "lost_tokens": int(frame["lost_tokens"].sum()),
        "by_type": _by_type(frame), "worst": _worst(frame),
    }  # fmt: skip


def _by_type(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return (
        frame.group_by("token_type", "content")
        .agg(pl.len().alias("breaks"), pl.col("lost_tokens").sum(),
             pl.col("position_tokens").median().alias("median_position_tokens"))
        .sort("lost_tokens", "token_type", "content", descending=[True, False, False])
        .to_dicts()
    )  # fmt: skip


def _worst(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return (
        frame.group_by("place", "position_tokens", "token_type")
        .agg(pl.len().alias("breaks"), pl.col("following").n_unique().alias("different"), pl.col("lost_tokens").sum(),
             pl.col("content").mode().sort().first())
        .sort("lost_tokens", "place", descending=[True, False])
        .head(WORST).drop("place").to_dicts()
    )  # fmt: skip
