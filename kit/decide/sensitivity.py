"""What would change the answer: the verdict at other budgets, lifetimes, prices and cuts, and the nearest flip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kit.decide.verdict import ACTIONS, Decision


@dataclass(frozen=True)
class Variation:
    """One thing changed: `dimension` (such as "budget"), in `words`, by `factor` (None where it has no scale)."""

    dimension: str
    words: str
    factor: float | None = None

    @property
    def distance(self) -> float:
        """How far from the base on a logarithmic scale; a change without a scale counts as a doubling."""
        return math.log(2) if not self.factor else abs(math.log(self.factor))


@dataclass(frozen=True)
class Sensitivity:
    """The map: the verdict under every variation, and the nearest flip in words (None: it never flips)."""

    tried: Sequence[tuple[Variation, Decision]]
    base: Decision

    @property
    def flips(self) -> list[tuple[Variation, Decision]]:
        """Variations under which another policy or another action is recommended, the nearest first."""
        changed = [(variation, found) for variation, found in self.tried if differs(found, self.base)]
        return sorted(changed, key=lambda one: (one[0].distance, one[0].dimension, one[0].words))

    @property
    def nearest(self) -> str | None:
        """The nearest flip as a sentence, such as ``At 1.3x the budget, rule 4 fires: ...``."""
        if not self.flips:
            return None
        variation, found = self.flips[0]
        words, rule = variation.words[0].upper() + variation.words[1:], _rule(found)
        same = rule == _rule(self.base)
        told = f"rule {rule} names another policy" if same else f"rule {rule} fires instead of rule {_rule(self.base)}"
        return f"{words}, {told}: {_action(found)}."

    def as_dict(self) -> dict[str, Any]:
        """Plain values for results.json: base, map and nearest."""
        rows = [
            {
                "dimension": variation.dimension,
                "words": variation.words,
                "factor": variation.factor,
                "rule": _rule(found),
                "policy": _policy(found),
                "flips": differs(found, self.base),
            }
            for variation, found in self.tried
        ]
        nearest = self.nearest or "Nothing that was tried changes the answer."
        return {"base": {"rule": _rule(self.base), "policy": _policy(self.base)}, "map": rows, "nearest": nearest}


def _rule(found: Decision) -> int:
    """The rule that decides with row 0 waived: a log that is too short has a provisional answer to vary."""
    return int(found.provisional["rule"]) if found.provisional else found.rule


def _policy(found: Decision) -> str:
    return str(found.provisional["policy"]) if found.provisional else found.policy


def differs(found: Decision, base: Decision) -> bool:
    """Whether a verdict asks for something else: another policy, or another thing to do beside keeping LRU (the
    layout, the TTL, room), whichever row keeps it."""
    act, before = (ACTIONS.get(_rule(one)) for one in (found, base))
    return (_policy(found), act) != (_policy(base), before)


def _action(found: Decision) -> str:
    row = found.trail[_rule(found)]
    text = str(row["advice"]).format(budget="the budget", title=row["policy_title"])
    return text[0].lower() + text[1:]
