"""What the provider really did, from the cached tokens it reported: survival, edges of the TTL, losses, duplicates.

A *return* is a request with an earlier one in its chain whose prompt it extends (at least 0.95 of its length); what it
read of the prompt before it says whether the entry was still there. Its write class is the class of the last write in
the chain before it. Nothing here uses the published rules except to name the nearest published retention.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from kit.intervals import block_weights, quantiles, ratio
from kit.prefix import BOOTSTRAP_BLOCKS
from kit.providers.rules import rule_for
from kit.replay import Setting

SURVIVAL_EDGES = (0, 60, 300, 600, 3600, 86400)
SAME_PROMPT = 0.95
HELD_SHARE = 0.5
LEAST_RETURNS = 5
SOFT_FACTOR = 2.0
EDGE_REPLICATES = 1000
EDGE_ZONE = 8.0
SLACK_TOKENS, SLACK_SHARE = 32, 0.01
WRITE_CLASSES = ("short", "long")
CLOCKS = ("start_to_start", "end_to_start")
Floats = NDArray[np.float64]

RETURNS = f"""
WITH ordered AS (
  SELECT request_id, coalesce(chain_id, session_id) AS chain, coalesce(session_id, chain_id) AS session, ts, model,
    provider, input_tokens, read_tokens,
    read_tokens + coalesce(write_tokens, 0) + coalesce(write_long_tokens, 0) AS cached_tokens,
    CASE WHEN write_long_tokens > 0 THEN 'long' WHEN write_tokens > 0 THEN 'short' END AS wrote,
    lag(ts) OVER k AS ts_before, lag(ts_end) OVER k AS end_before, lag(input_tokens) OVER k AS input_before,
    lag(read_tokens + coalesce(write_tokens, 0) + coalesce(write_long_tokens, 0)) OVER k AS cached_before
  FROM request WHERE coalesce(chain_id, session_id) IS NOT NULL
  WINDOW k AS (PARTITION BY coalesce(chain_id, session_id) ORDER BY request_id)),
classed AS (
  SELECT *, last_value(wrote IGNORE NULLS) OVER
    (PARTITION BY chain ORDER BY request_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS last_wrote
  FROM ordered)
SELECT request_id, session, read_tokens, input_before,
  CASE WHEN (SELECT count(wrote) FROM ordered) = 0 THEN 'short' ELSE last_wrote END AS write_class,
  (epoch_us(ts) - epoch_us(ts_before)) / 1e6 AS start_to_start,
  (epoch_us(ts) - epoch_us(end_before)) / 1e6 AS end_to_start,
  coalesce(nullif(cached_before, 0), input_before) AS held_before
FROM classed
WHERE ts_before IS NOT NULL AND read_tokens IS NOT NULL AND input_before > 0
  AND input_tokens >= {SAME_PROMPT} * input_before
ORDER BY request_id
"""


def returns(log: Any) -> pl.DataFrame:
    """Every return of the log, in request order; empty where the log has no chains, no clock or no cached tokens.

    Columns: request_id, session, write_class (short | long | null), start_to_start and end_to_start (seconds),
    input_before (prompt of the request before), held_before (what it left in the cache), read_tokens.
    """
    frame = pl.DataFrame(log.con.sql(RETURNS))
    return frame if log.facts.has_clock else frame.clear()


def _session_codes(frame: pl.DataFrame) -> NDArray[np.int64]:
    """Bootstrap units: sessions, dealt into at most 200 blocks."""
    return ((frame["session"].rank("dense").cast(pl.Int64) - 1) % BOOTSTRAP_BLOCKS).to_numpy().astype(np.int64)


def survival(log: Any) -> list[dict[str, Any]]:
    """Share of the previous prompt's tokens that a return still read, by idle time and write class, over sessions.

    Idle time is end to start (start to start where the log has no end). Rows: write_class, idle_from_seconds,
    idle_to_seconds (None = open), clock, n, share (by tokens, a read counts at most the previous prompt), low, high.
    """
    frame = returns(log)
    clock = "end_to_start" if frame["end_to_start"].null_count() < frame.height else "start_to_start"
    rows = []
    for write_class in WRITE_CLASSES:
        own = frame.filter((pl.col("write_class") == write_class) & pl.col(clock).is_not_null())
        place = np.searchsorted(SURVIVAL_EDGES, own[clock].clip(0).to_numpy(), side="right") - 1
        for at, edge in enumerate(SURVIVAL_EDGES):
            part = own.filter(pl.Series(place == at))
            if part.height:
                beyond = SURVIVAL_EDGES[at + 1] if at + 1 < len(SURVIVAL_EDGES) else None
                head = {"write_class": write_class, "idle_from_seconds": edge, "idle_to_seconds": beyond}
                rows.append({**head, "clock": clock, "n": part.height, **_share_read(part)})
    return rows


def _share_read(frame: pl.DataFrame) -> dict[str, float | None]:
    """Tokens read / tokens of the prompt before, with its interval over sessions."""
    sessions = _session_codes(frame)
    read = np.minimum(frame["read_tokens"].to_numpy(), frame["input_before"].to_numpy()).astype(np.float64)
    before = frame["input_before"].to_numpy().astype(np.float64)
    told = ratio(np.bincount(sessions, weights=read), np.bincount(sessions, weights=before))
    return {
        "share": float(read.sum() / before.sum()),
        "low": told.low if told else None,
        "high": told.high if told else None,
    }


def ttl_observed(log: Any) -> list[dict[str, Any]]:
    """The TTL of each write class as the log itself shows it; only classes where it can be told.

    Rows: write_class, ttl_seconds (the longest gap at which an entry is more likely held than gone, start to start,
    the clock a replay uses), low and high (95 % over sessions: last held to first gone gap), n (returns),
    held_inside and held_beyond (share of returns), end_to_start_seconds with its low and high (the other clock: the
    provider's own starts between the two), published_seconds (nearest published retention of the dominant model). A
    class whose entries fade over more than a factor of two in time has no edge: it is left to the survival curve.
    """
    frame = returns(log).filter(pl.col("write_class").is_not_null())
    rows = []
    for write_class in WRITE_CLASSES:
        own = frame.filter(pl.col("write_class") == write_class)
        edges = [_edge(own.filter(pl.col(clock).is_not_null()), clock) for clock in CLOCKS]
        if edges[0] is None:
            continue
        other = edges[1] or dict.fromkeys(("ttl_seconds", "low", "high"))
        rows.append({
            "write_class": write_class, **edges[0],
            "end_to_start_seconds": other["ttl_seconds"], "end_to_start_low": other["low"],
            "end_to_start_high": other["high"], "published_seconds": _nearest_published(log, edges[0]["ttl_seconds"]),
        })  # fmt: skip
    return rows


def _held(frame: pl.DataFrame) -> NDArray[np.bool_]:
    return frame["read_tokens"].to_numpy() >= HELD_SHARE * frame["held_before"].to_numpy()


def _last_held(score: Any) -> int:
    """Index of the last point on the holding side: the best split of a sequence into held before and gone after."""
    return int(np.argmax(np.cumsum(score)))


def _edge(frame: pl.DataFrame, clock: str) -> dict[str, Any] | None:
    """Split the returns of one class at the gap that puts the fewest on the wrong side; None where there is no edge."""
    frame = frame.sort(clock, "request_id")
    gaps, held = frame[clock].to_numpy(), _held(frame)
    if held.sum() < LEAST_RETURNS or (~held).sum() < LEAST_RETURNS:
        return None
    at = _last_held(held - 0.5)
    if gaps.size - at - 1 < LEAST_RETURNS or at + 1 < LEAST_RETURNS or gaps[at] <= 0:
        return None
    first_gone, last_held = (gaps[_last_held(held - level)] for level in (0.8, 0.2))
    inside, beyond = float(held[: at + 1].mean()), float(held[at + 1 :].mean())
    if last_held > SOFT_FACTOR * max(first_gone, 1e-9) or inside - beyond < HELD_SHARE:
        return None
    near = (gaps >= gaps[at] / EDGE_ZONE) & (gaps <= gaps[at] * EDGE_ZONE)
    low, high = _edge_interval(gaps[near], held[near], _session_codes(frame.filter(pl.Series(near))))
    return {
        "ttl_seconds": float(gaps[at]),
        "low": float(min(low, gaps[at])),
        "high": float(max(high, gaps[at + 1])),
        "n": int(gaps.size),
        "held_inside": inside,
        "held_beyond": beyond,
    }


def _edge_interval(gaps: Floats, held: NDArray[np.bool_], sessions: NDArray[np.int64]) -> tuple[float, float]:
    """Low end of the last held and high end of the first gone gap at 95 %, whole sessions drawn again."""
    units = int(sessions.max()) + 1
    if units < 2:
        return float(gaps[0]), float(gaps[-1])
    last, first = np.empty(EDGE_REPLICATES), np.empty(EDGE_REPLICATES)
    for draw, weight in enumerate(block_weights(units, EDGE_REPLICATES)):
        drawn = weight[sessions]
        at = _last_held((held - 0.5) * drawn)
        after = np.flatnonzero(drawn[at + 1 :])
        last[draw], first[draw] = gaps[at], gaps[at + 1 + after[0]] if after.size else gaps[-1]
    low, high = quantiles(units)
    return float(np.quantile(last, low)), float(np.quantile(first, high))


def _nearest_published(log: Any, seconds: float) -> int | None:
    query = "SELECT provider, model FROM request GROUP BY ALL ORDER BY sum(input_tokens) DESC, provider, model LIMIT 1"
    named = log.con.sql(query).fetchall()
    published = [choice.seconds for choice in rule_for(*named[0]).ttl if choice.seconds] if named else []
    return min(published, key=lambda choice: abs(np.log(choice / seconds)), default=None)


def losses(log: Any, edges: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """How much was gone although its TTL had not run out, per write class with an edge.

    Rows: write_class, within_seconds (low end of the observed edge), n, lost_requests (share of returns that read less
    than half of what was left), lost_tokens (share of those tokens not read), low, high (of lost_tokens, over
    sessions). `edges` are the rows of `ttl_observed` where they are already known.
    """
    frame, rows = returns(log), []
    for edge in ttl_observed(log) if edges is None else edges:
        inside = frame.filter(
            (pl.col("write_class") == edge["write_class"]) & (pl.col("start_to_start") <= edge["low"])
        )
        if inside.height:
            share = _share_held(inside)
            lost = {"lost_requests": float(1 - _held(inside).mean()), **share}
            rows.append({"write_class": edge["write_class"], "within_seconds": edge["low"], "n": inside.height, **lost})
    return rows


def _share_held(frame: pl.DataFrame) -> dict[str, float | None]:
    sessions, left = _session_codes(frame), frame["held_before"].to_numpy().astype(np.float64)
    lost = left - np.minimum(frame["read_tokens"].to_numpy(), left)
    told = ratio(np.bincount(sessions, weights=lost), np.bincount(sessions, weights=left))
    return {
        "lost_tokens": float(lost.sum() / left.sum()),
        "low": told.low if told else None,
        "high": told.high if told else None,
    }


def observed_setting(
    log: Any, base: Setting, write_class: str = "short", edges: list[dict[str, Any]] | None = None
) -> Setting | None:
    """`base` with the TTL and loss that the log shows for a write class, named "observed"; None where it shows none."""
    edges = [row for row in (ttl_observed(log) if edges is None else edges) if row["write_class"] == write_class]
    lost = losses(log, edges)
    if not lost:
        return None
    return replace(base, name="observed", ttl_seconds=edges[0]["ttl_seconds"], loss=lost[0]["lost_tokens"])


@njit(cache=True, nogil=True)
def _written_twice(leaf: Any, parent: Any, path: Any, tokens: Any, read: Any, start: Any, end: Any, slack: Any) -> Any:
    """Per request: tokens it wrote that an unfinished request before it had just written, too."""
    twice = np.zeros(leaf.size, np.int64)
    writer = np.full(parent.size, -1, np.int64)
    for request in range(leaf.size):
        node = leaf[request]
        while node >= 0:
            if read[request] + slack[node] < path[node]:
                before = writer[node]
                if before >= 0 and start[request] < end[before]:
                    twice[request] += tokens[node]
                writer[node] = request
            node = parent[node]
    return twice


def duplicate_writes(log: Any, paths: Any) -> dict[str, Any]:
    """Tokens that parallel requests wrote although another had just written them and was not finished yet.

    Comes back: requests and tokens written twice, and their share of all written tokens. A token counts as written when
    the reported read does not reach it (within 1 % and 32 tokens). None where the log reports no reads or no ends. An
    entry becomes readable before its request ends, so the figure is an upper bound of the avoidable part.
    """
    columns = log.con.sql(
        "SELECT read_tokens, epoch_us(ts_end) AS end_us, coalesce(write_tokens, 0) + coalesce(write_long_tokens, 0) AS "
        "written FROM request ORDER BY request_id"
    ).pl()
    unknown = {"requests": None, "tokens": None, "share": None}
    if columns["read_tokens"].null_count() == columns.height or columns["end_us"].null_count() == columns.height:
        return unknown
    read = columns["read_tokens"].fill_null(2**62).to_numpy()
    end = columns["end_us"].fill_null(0).to_numpy()
    slack = (SLACK_TOKENS + SLACK_SHARE * paths.path_tokens).astype(np.int64)
    twice = _written_twice(paths.leaf, paths.parent, paths.path_tokens, paths.tokens, read, paths.ts_us, end, slack)
    written = int(columns["written"].sum())
    twice = np.minimum(twice, columns["written"].to_numpy()) if written else twice
    return {
        "requests": int((twice > 0).sum()),
        "tokens": int(twice.sum()),
        "share": float(twice.sum() / written) if written else None,
    }
