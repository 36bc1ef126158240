"""How long until the next turn: gaps on both clocks, per trigger, session type and session, and their curves."""

from __future__ import annotations

from kit.turns.gaps import CLOCKS, TRIGGERS, TYPE_RULE, Batch, Gaps, batch, read_gaps
from kit.turns.summary import WITHIN_SECONDS, inter_turn

__all__ = ["CLOCKS", "TRIGGERS", "TYPE_RULE", "WITHIN_SECONDS", "Batch", "Gaps", "batch", "inter_turn", "read_gaps"]
