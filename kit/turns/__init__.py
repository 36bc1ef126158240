"""How long until the next turn: gaps on both clocks, per trigger, session type and session, and their curves."""

from __future__ import annotations

from kit.turns.diagnosis import curves, diagnose
from kit.turns.drift import drift
from kit.turns.gaps import CLOCKS, TRIGGERS, TYPE_RULE, Batch, Gaps, batch, read_gaps
from kit.turns.outlook import ttl_outlook
from kit.turns.pooling import per_session, pool, session_summary
from kit.turns.summary import WITHIN_SECONDS, inter_turn
from kit.turns.tally import gap_summary

__all__ = [
    "CLOCKS",
    "TRIGGERS",
    "TYPE_RULE",
    "WITHIN_SECONDS",
    "Batch",
    "Gaps",
    "batch",
    "curves",
    "diagnose",
    "drift",
    "gap_summary",
    "inter_turn",
    "per_session",
    "pool",
    "read_gaps",
    "session_summary",
    "ttl_outlook",
]
