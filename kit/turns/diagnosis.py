"""Everything about turns in one call, as plain dicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from kit.turns.drift import drift
from kit.turns.gaps import CLOCKS, TRIGGERS, TYPE_RULE, Gaps, batch, read_gaps, tick
from kit.turns.goodness import incidence_of, qq, survival
from kit.turns.outlook import ttl_outlook
from kit.turns.pooling import per_session, session_summary
from kit.turns.summary import inter_turn

CANNOT_TELL = "this log has no sessions or no times: gaps between turns cannot be told"
SESSION_CLOCK = (
    "times are relative to each session: how long last turns were watched and what changes by day cannot be told"
)


def curves(log: Any, rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Of every fitted start-to-start row of `inter_turn`: quantile pairs (``qq``), and ``survival``, seen and fitted.

    Flat rows that carry their session_type and trigger.
    """
    gaps = read_gaps(log)
    found: dict[str, list[dict[str, Any]]] = {"qq": [], "survival": []}
    for row in rows:
        if row["clock"] != CLOCKS[0] or row["mu"] is None:
            continue
        group = batch(gaps, row["session_type"])
        mine = group.of_kind(row["trigger"])
        times, come = incidence_of(group, row["trigger"])
        share = row["continues"] or float(come[-1])
        named = {"session_type": row["session_type"], "trigger": row["trigger"]}
        found["qq"] += [{**named, **pair} for pair in qq(group.seconds[mine], row["mu"], row["sigma"])]
        seen = survival(times, come, share, row["mu"], row["sigma"])
        found["survival"] += [{**named, **point} for point in seen]
    return found


def _counted(gaps: Gaps) -> dict[str, Any]:
    """Gaps, zeros and negative ones on each clock, by trigger and in all, and the clock's step."""
    found = {}
    for clock in CLOCKS:
        seconds = gaps.seconds[clock]
        known = ~np.isnan(seconds)
        found[clock] = {
            "gaps": int(known.sum()),
            "tick_seconds": tick(seconds),
            "positive": int((seconds > 0).sum()),
            "zeros": int((seconds == 0).sum()),
            "negative": int((seconds < 0).sum()),
            "by_trigger": {name: int((known & (gaps.trigger == at)).sum()) for at, name in enumerate(TRIGGERS)},
        }
    return found


def diagnose(log: Any, replicates: int = 200, seed: int = 1, zone: str = "UTC") -> dict[str, Any]:
    """All figures of this package: inter_turn, counts, qq, survival, per_session, ttl_outlook and drift; plain.

    ``drift`` is empty on a log without a common clock, everything is empty on one without sessions (``cannot_tell``).
    """
    gaps = read_gaps(log, zone)
    rows = inter_turn(gaps, replicates, seed)
    told: dict[str, Any] = {} if gaps.session_names else {"cannot_tell": CANNOT_TELL}
    if gaps.session_names and not gaps.has_clock:
        told = {"note": SESSION_CLOCK}
    return {
        "inter_turn": rows,
        "counts": _counted(gaps),
        "session_type_rule": TYPE_RULE,
        **curves(gaps, rows),
        "per_session": session_summary(per_session(gaps)),
        "ttl_outlook": ttl_outlook(gaps, seed=seed),
        "drift": drift(gaps, seed=seed) if gaps.has_clock else [],
        "zone": zone,
        **told,
    }
