"""Paths of a loaded log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kit.prefix.forest import path_sums
from kit.prefix.paths import SESSION_TYPES, TOKEN_TYPES, Paths, make_paths

if TYPE_CHECKING:
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
    nodes = pl.DataFrame(log.con.sql("SELECT coalesce(parent_id, -1)::INTEGER AS parent, tokens::BIGINT AS tokens, "
                                     "token_type FROM node ORDER BY node_id"))  # fmt: skip
    if nodes.height == 0:
        raise ValueError("this log has no prefix identity (no prefix_key, blocks or parent_request_id): no replay")
    requests = pl.DataFrame(
        log.con.sql(
            "SELECT epoch_us(ts)::BIGINT AS ts_us, coalesce(input_tokens, prefix_tokens, 0)::BIGINT AS input_tokens, "
            "coalesce(node_id, -1)::INTEGER AS leaf, session_id, replica, session_type, turn, "
            "priority, retention_seconds, model FROM request "
            "LEFT JOIN request_node USING (request_id) "
            "ORDER BY request_id"
        )
    )
    sessions = None
    if requests["session_id"].null_count() < requests.height:
        coded = requests["session_id"].fill_null("").cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)
        absent = requests["session_id"].is_null().to_numpy()
        sessions = np.where(absent, coded.max() + 1 + np.arange(coded.size), coded)
    tags = {} if sessions is None else {"session": sessions}
    if requests["replica"].null_count() == 0 and requests.height:
        tags["replica"] = requests["replica"].cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)
    if requests["session_type"].null_count() < requests.height:
        tags["session_type"] = _codes(requests["session_type"], SESSION_TYPES).astype(np.int64)
    if requests["turn"].null_count() == 0 and requests.height:
        tags["turn"] = requests["turn"].to_numpy().astype(np.int64)
    for name, kind in (("priority", np.int64), ("retention_seconds", np.float64)):
        if requests[name].null_count() < requests.height:
            tags[name] = requests[name].fill_null(-1).to_numpy().astype(kind)
    if requests["model"].n_unique() > 1:
        tags["model"] = requests["model"].fill_null("").cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)
    block = block_tokens or log.facts.block_tokens or 1
    by_block = log.facts.identity == "blocks" and block > 1 and partial_tail == "drop"
    paths = make_paths(
        nodes["parent"].to_numpy(), nodes["tokens"].to_numpy(), requests["leaf"].to_numpy(),
        requests["ts_us"].to_numpy(), requests["input_tokens"].to_numpy(), block_tokens=block,
        partial_tail=partial_tail, sessions=sessions, rate=rate, unit_tokens=block if by_block else None,
    )  # fmt: skip
    kinds = np.zeros(0, np.int32)
    if nodes["token_type"].null_count() < nodes.height:
        ends = path_sums(nodes["parent"].to_numpy(), nodes["tokens"].to_numpy())
        whole = ends if partial_tail == "keep" else ends // block * block
        kept = whole > np.where(nodes["parent"].to_numpy() >= 0, whole[np.maximum(nodes["parent"].to_numpy(), 0)], 0)
        kinds = _codes(nodes["token_type"], TOKEN_TYPES)[kept]
    return replace(paths, tags=tags, node_type=kinds)


def _codes(labels: pl.Series, known: tuple[str, ...]) -> NDArray[np.int32]:
    """Index of each label among the known ones, 0 for any other."""
    table = {label: code for code, label in enumerate(known)}
    return labels.replace_strict(table, default=0, return_dtype=pl.Int32).fill_null(0).to_numpy().astype(np.int32)
