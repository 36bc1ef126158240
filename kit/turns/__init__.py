"""How long until the next turn: gaps on both clocks, per trigger, session type and session, and their curves."""

from __future__ import annotations

from kit.turns.gaps import CLOCKS, TRIGGERS, TYPE_RULE, Gaps, Group, groups, read_gaps, select
from kit.turns.summary import inter_turn

__all__ = ["CLOCKS", "TRIGGERS", "TYPE_RULE", "Gaps", "Group", "groups", "inter_turn", "read_gaps", "select"]
