"""What the log says before any replay: concentration, rotation, value of length, types, scans, gaps and turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kit import reuse, turns
from kit.analysis.parameters import Parameters
from kit.analysis.scene import Scene
from kit.decide import THRESHOLDS
from kit.log import Log


@dataclass(frozen=True)
class Measures:
    """The plain dicts of kit.reuse and kit.turns, and the two shares the decision table adds to them."""

    concentration: dict[str, Any]
    rotation: dict[str, Any]
    value_rank: dict[str, Any]
    token_types: dict[str, Any]
    scans: dict[str, Any]
    gaps: dict[str, Any]
    inter_turn: list[dict[str, Any]]
    turns: dict[str, Any]
    second_session_type_share: float | None
    multi_turn_share: float | None


def measure(log: Log, scene: Scene, parameters: Parameters, progress: Callable[[str], None]) -> Measures:
    """All measures of a loaded log, the trace read once."""
    progress("reuse")
    trace = reuse.read_trace(log, parameters.time_zone)
    limit = parameters.thresholds.get("scan_token_share", THRESHOLDS["scan_token_share"])
    found = reuse.diagnose(
        trace,
        parameters.top_fraction,
        parameters.key_cut,
        scene.neutral.ttl_seconds,
        scene.actual,
        scan_threshold=0.0,
        zone=parameters.time_zone,
    )
    every = found["scans"]["hours"]
    scans = {**found["scans"], "threshold": limit, "hours": [hour for hour in every if hour["share"] >= limit]}
    progress("turns")
    turned = turns.diagnose(log, seed=parameters.seed, zone=parameters.time_zone)
    return Measures(
        concentration=found["concentration"],
        rotation=found["rotation"],
        value_rank=found["value_rank"],
        token_types=found["token_types"],
        scans=scans,
        gaps=found["reuse_gaps"],
        inter_turn=turned.pop("inter_turn"),
        turns=turned,
        second_session_type_share=_second_type(log),
        multi_turn_share=_multi_turn(log),
    )


def _second_type(log: Log) -> float | None:
    """Share of input tokens in the second largest session type; None where types are not named."""
    rows = log.con.sql(
        "select sum(input_tokens)::BIGINT from request where session_type is not null "
        "group by session_type order by 1 desc"
    ).fetchall()
    total = sum(tokens or 0 for (tokens,) in rows)
    if not rows or not total:
        return None
    return (rows[1][0] or 0) / total if len(rows) > 1 else 0.0


def _multi_turn(log: Log) -> float | None:
    """Share of sessions with more than one request; None without sessions."""
    sessions, several = log.con.sql(
        "select count(*)::BIGINT, count_if(n > 1)::BIGINT from "
        "(select count(*) as n from request where session_id is not null group by session_id)"
    ).fetchall()[0]
    return several / sessions if sessions else None
