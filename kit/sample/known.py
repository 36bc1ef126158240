"""What is true of a sample week before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from kit.sample.traffic import GAPS, NIGHTLY, SCAN_HOUR, Gap
from kit.sample.week import LIST_COLUMNS


@dataclass(frozen=True)
class Answers:
    """What is true of a sample week by construction, or by plain counting over its rows."""

    gaps: Mapping[tuple[str, str], Gap]  # (session type, trigger) -> end-to-start log-normal, seconds
    requests: int
    sessions: int
    days: int
    input_tokens: int
    request_share: Mapping[str, float]  # session type -> share of the requests (the nightly job counts as single)
    hot_prompts: int  # shared system prompts
    scan_hour: int  # UTC
    scan_requests: int  # of the nightly job, all nights
    long_tool_outputs: int  # requests that carry a tool output nobody reads again
    seen_before_tokens: (
        int  # tokens whose whole prefix an earlier request had: what a cache that never forgets would hit
    )
    reuse_by_type: Mapping[str, float]  # token type -> the same as a share of the tokens of that type


def answers(week: pl.DataFrame) -> Answers:
    """What is true of a sample week: the parameters it was drawn with, and counts over its rows.

    The counts use no other part of the kit, so they can check it.
    """
    nodes = week.select("path_keys", "path_tokens", "path_types").explode(list(LIST_COLUMNS))
    nodes = nodes.with_columns(seen=~pl.col("path_keys").is_first_distinct())
    by_type = nodes.group_by("path_types").agg(
        tokens=pl.col("path_tokens").sum(), seen=pl.col("path_tokens").filter("seen").sum()
    )
    times_carried = nodes.group_by("path_keys").agg(
        n=pl.len(), tokens=pl.col("path_tokens").first(), name=pl.col("path_types").first()
    )
    nightly = week.filter(pl.col("session_id").str.starts_with(f"{NIGHTLY}-"))
    return Answers(
        gaps=GAPS,
        requests=week.height,
        sessions=week["session_id"].n_unique(),
        days=week["ts"].dt.date().n_unique(),
        input_tokens=int(week["input_tokens"].sum()),
        request_share={
            name: n / week.height for name, n in week["session_type"].value_counts().sort("session_type").iter_rows()
        },
        hot_prompts=times_carried.filter(pl.col("name") == "system").height,
        scan_hour=SCAN_HOUR,
        scan_requests=nightly.height,
        long_tool_outputs=times_carried.filter(
            pl.col("name") == "tool_result", pl.col("n") == 1, pl.col("tokens") >= 6_000
        ).height,
        seen_before_tokens=int(by_type["seen"].sum()),
        reuse_by_type={name: seen / tokens for name, tokens, seen in by_type.sort("path_types").iter_rows()},
    )
