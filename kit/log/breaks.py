"""What breaks a prefix: where a request stops repeating the one before it, and what stands there.

Consecutive requests of a chain are compared. Where the later one does not extend the earlier one there is a break:
everything of the earlier prompt behind it is lost for this request. The first piece behind the break tells which kind:
none (`cut`), sent before by some request (`again`: a larger or longer-lived cache would have kept it), never sent
before. The last is `removed` where something was taken out (a tool output cleared, a history summed up): what stood
there never comes again, and now less than half as much stands there, or a piece of another type while none of the old
type and length is left. Else it is `new`: the content there changes (a clock, an id, an edit). Without chains requests
that follow each other are different users, and none of this can be told.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numba import njit

from kit.log import Log
from kit.prefix import path_sums

WORST = 10
LEAST_BREAKS = 2  # of a place that is among the worst: one break alone is no place to look at
MUCH_SHORTER = 0.5


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


def _last_seen(parent: Any, leaf: Any) -> Any:
    """Last request that touches each node."""
    return leaf.size - 1 - _first_seen(parent, np.ascontiguousarray(leaf[::-1]))


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


@njit(cache=True, nogil=True)
def _stood(parent: Any, tokens: Any, kind: Any, earlier: Any, later: Any, common: Any) -> tuple[Any, Any]:
    """Per break, from both prompts' leaves and their last common node: the piece that stood there, and if it is gone.

    Gone: the first piece of the later prompt behind the break has another type, and none there has its type and length.
    """
    stood = np.full(common.size, -1, np.int64)
    gone = np.zeros(common.size, np.bool_)
    for place in range(common.size):
        at = earlier[place]
        while at >= 0 and at != common[place]:
            stood[place] = at
            at = parent[at]
        old, first, at = stood[place], np.int64(-1), later[place]
        found = old < 0
        while at >= 0 and at != common[place]:
            found = found or (kind[at] == kind[old] and tokens[at] == tokens[old])
            first, at = at, parent[at]
        gone[place] = not found and first >= 0 and kind[first] != kind[old]
    return stood, gone


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
    alone = pl.int_range(pl.len()).cast(pl.String).str.replace("^", "\x1falone ")
    key = rows.select(pl.coalesce("chain_id", alone).rank("dense") - 1).to_series().to_numpy()
    kinds = nodes["token_type"].rank("dense").fill_null(0)
    return {
        **{name: nodes[name].to_numpy() for name in ("parent", "depth", "tokens")},
        "type": nodes["token_type"],
        "kind": kinds.to_numpy().astype(np.int64),
        "leaf": rows["leaf"].to_numpy(),
        "group": key.astype(np.int64),
        "chains": rows["chain_id"].null_count() < rows.height,
    }


def prefix_breaks(log: Log) -> dict[str, Any] | None:
    """Breaks of a log with prefix identity, else None.

    Returns {basis, pairs, extended, broken, lost_tokens, by_type[], worst[]}. `basis` is "chain", or None where the log
    has no chains; then the counts are None and the lists empty. `by_type`: {token_type, content (new, removed, again or
    cut), breaks, lost_tokens, median_position_tokens}; the type is that of what stands there now, of what stood there
    where it was removed. `worst`: the places with at least two breaks that cost most, {position_tokens, token_type,
    breaks, different, lost_tokens, content}, where `different` counts the distinct pieces that followed.
    """
    if log.facts.identity is None:
        return None
    found = _arrays(log)
    if not found["chains"]:
        counts = dict.fromkeys(("basis", "pairs", "extended", "broken", "lost_tokens"))
        return {**counts, "by_type": [], "worst": []}
    parent, leaf = found["parent"], found["leaf"]
    groups = int(found["group"].max()) + 1
    before, common, behind = _breaks(parent, found["depth"], leaf, found["group"], groups)
    pairs = np.flatnonzero(before >= 0)
    broken = pairs[common[pairs] != before[pairs]]
    frame = _frame(found, broken, before[broken], common[broken], behind[broken])
    return {
        "basis": "chain", "pairs": int(pairs.size), "extended": int(pairs.size - broken.size),
        "broken": int(broken.size), "lost_tokens": int(frame["lost_tokens"].sum()),
        "by_type": _by_type(frame), "worst": _worst(frame),
    }  # fmt: skip


def _frame(found: dict[str, Any], broken: Any, before: Any, at: Any, following: Any) -> pl.DataFrame:
    """One row per break: its place, the tokens lost behind it, the type and the kind of what stands there."""
    parent, tokens, leaf = found["parent"], found["tokens"], found["leaf"]
    ends = path_sums(parent.astype(np.int32), tokens)
    position = np.where(at >= 0, ends[at], 0)
    lost = ends[before] - position
    stood, gone = _stood(parent, tokens, found["kind"], before, leaf[broken], at)
    never_again = _last_seen(parent, leaf)[stood] < broken
    much_shorter = ends[leaf[broken]] - position < MUCH_SHORTER * lost
    removed = never_again & (gone | much_shorter)
    fresh = _first_seen(parent, leaf)[following] == broken
    content = np.select([following < 0, ~fresh, removed], ["cut", "again", "removed"], "new")
    shown = np.where(content == "removed", stood, np.maximum(following, 0))
    return pl.DataFrame({
        "place": at, "position_tokens": position, "lost_tokens": lost, "following": following,
        "token_type": found["type"].gather(pl.Series(shown)), "content": content,
    })  # fmt: skip


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
        .filter(pl.col("breaks") >= LEAST_BREAKS)
        .sort("lost_tokens", "place", descending=[True, False])
        .head(WORST).drop("place").to_dicts()
    )  # fmt: skip
