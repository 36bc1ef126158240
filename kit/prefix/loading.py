"""Paths of a loaded log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kit.prefix.forest import Ints, path_sums
from kit.prefix.paths import SESSION_TYPES, TOKEN_TYPES, Paths, make_paths

if TYPE_CHECKING:
    import polars as pl

    from kit.log import Log


def load_paths(
    log: Log,
    block_tokens: int | None = None,
    partial_tail: str = "drop",
    rate: NDArray[np.int32] | None = None,
) -> Paths:
    """Paths of a loaded log. `block_tokens` defaults to the log's own block size, else 1 (no rounding).

    Logs of blocks are evicted block by block; flat keys and turn increments as a whole.
    Raises ValueError where the log has no prefix identity: nothing can be replayed from lengths alone.
    """
    nodes = log.con.sql("SELECT coalesce(parent_id, -1)::INTEGER AS parent, tokens::BIGINT AS tokens FROM node "
                        "ORDER BY node_id").fetchnumpy()  # fmt: skip
    parent, tokens = np.asarray(nodes["parent"]), np.asarray(nodes["tokens"])
    if parent.size == 0:
        raise ValueError("this log has no prefix identity (no prefix_key, blocks or parent_request_id): no replay")
    requests = log.con.sql(
        "SELECT epoch_us(ts)::BIGINT AS ts_us, coalesce(input_tokens, prefix_tokens, 0)::BIGINT AS input_tokens, "
        "coalesce(node_id, -1)::INTEGER AS leaf FROM request LEFT JOIN request_node USING (request_id) "
        "ORDER BY request_id"
    ).fetchnumpy()
    tags, sessions = _tags(log)
    block = block_tokens or log.facts.block_tokens or 1
    by_block = log.facts.identity == "blocks" and block > 1 and partial_tail == "drop"
    paths = make_paths(
        parent, tokens, np.asarray(requests["leaf"]), np.asarray(requests["ts_us"]),
        np.asarray(requests["input_tokens"]), block_tokens=block, partial_tail=partial_tail, sessions=sessions,
        rate=rate, unit_tokens=block if by_block else None,
    )  # fmt: skip
    kinds = np.zeros(0, np.int32)
    if _filled(log, "node", ["token_type"])["token_type"]:
        ends = path_sums(parent, tokens)
        whole = ends if partial_tail == "keep" else ends // block * block
        kept = whole > np.where(parent >= 0, whole[np.maximum(parent, 0)], 0)
        types = _columns(log, "node", ["token_type"], "node_id")["token_type"]
        kinds = _codes(types, TOKEN_TYPES)[kept]
    return replace(paths, tags=tags, node_type=kinds)


def _filled(log: Log, table: str, names: Sequence[str]) -> dict[str, int]:
    """How many rows have a value, per column; `rows` is how many there are."""
    counts = ", ".join(f"count({name})" for name in names)
    (row,) = log.con.sql(f"SELECT {counts}, count(*) FROM {table}").fetchall()
    return dict(zip([*names, "rows"], row, strict=True))


def _columns(log: Log, table: str, names: Sequence[str], key: str) -> pl.DataFrame:
    """Some columns of a table in the order of its key."""
    import polars as pl  # 50 MB that a log of bare blocks does not need

    return pl.DataFrame(log.con.sql(f"SELECT {', '.join(names)} FROM {table} ORDER BY {key}"))


def _tags(log: Log) -> tuple[dict[str, NDArray[Any]], Ints | None]:
    """(what some policies ask of every request, the sessions as numbers or None): only what the log has is read."""
    have = _filled(log, "request", ["session_id", "replica", "session_type", "turn", "priority",
                                    "retention_seconds", "model", "ts_end"])  # fmt: skip
    rows = have.pop("rows")
    some = [name for name, filled in have.items() if filled and (filled == rows or name not in ("replica", "turn"))]
    if not some:
        return {}, None
    requests, sessions = _columns(log, "request", some, "request_id"), None
    tags: dict[str, NDArray[Any]] = {}
    if "session_id" in some:
        coded = _numbers(requests["session_id"])
        absent = requests["session_id"].is_null().to_numpy()
        tags["session"] = sessions = np.where(absent, coded.max() + 1 + np.arange(coded.size), coded)
    if "replica" in some:
        tags["replica"] = _numbers(requests["replica"])
    if "session_type" in some:
        tags["session_type"] = _codes(requests["session_type"], SESSION_TYPES).astype(np.int64)
    if "turn" in some:
        tags["turn"] = requests["turn"].to_numpy().astype(np.int64)
    for name, kind in (("priority", np.int64), ("retention_seconds", np.float64)):
        if name in some:
            tags[name] = requests[name].fill_null(-1).to_numpy().astype(kind)
    if "ts_end" in some:
        tags["ts_end_us"] = requests["ts_end"].dt.epoch("us").fill_null(-1).to_numpy().astype(np.int64)
    if "model" in some and requests["model"].n_unique() > 1:
        tags["model"] = _numbers(requests["model"])
    return tags, sessions


def _numbers(labels: pl.Series) -> NDArray[np.int64]:
    """Texts as numbers, a missing one as the empty text."""
    import polars as pl

    return labels.fill_null("").cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)


def _codes(labels: pl.Series, known: tuple[str, ...]) -> NDArray[np.int32]:
    """Index of each label among the known ones, 0 for any other."""
    import polars as pl

    table = {label: code for code, label in enumerate(known)}
    return labels.replace_strict(table, default=0, return_dtype=pl.Int32).fill_null(0).to_numpy().astype(np.int32)
