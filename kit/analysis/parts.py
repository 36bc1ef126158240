"""Everything the finished steps of an analysis left behind, handed to the decision and to the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kit.analysis.measures import Measures
from kit.analysis.parameters import Parameters
from kit.analysis.replayed import Replayed
from kit.analysis.rows import Billing
from kit.analysis.scene import Scene
from kit.log import Log
from kit.replay import Tally

WINDOW = "cold"  # plain figures and the decision count every request


@dataclass(frozen=True)
class Parts:
    """The log, how it was studied, what was measured, what was replayed and how it is billed."""

    log: Log
    parameters: Parameters
    scene: Scene
    measures: Measures
    rows: list[dict[str, Any]]
    replayed: Replayed
    bills: Billing
    command: str | None
    fleet: dict[str, Any] | None = None

    @property
    def policy_names(self) -> tuple[str, ...]:
        """The policies that were replayed: those asked for, then those a rule asked for."""
        return tuple(dict.fromkeys((*self.parameters.policy_names, *(t.policy for t in self.replayed.tallies))))

    def tally(self, policy: str) -> Tally | None:
        """A policy's replay at the budget under study, neutral setting."""
        return self.replayed.tally(policy, self.scene.actual, "neutral")
