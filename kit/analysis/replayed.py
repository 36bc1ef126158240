"""Every replay of an analysis: policies x budgets x settings, and what no policy can beat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kit.analysis.parameters import Parameters
from kit.analysis.scene import Scene
from kit.replay import Bound, Tally, ceiling, lru_curve, optimal, replay_grid

Curve = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Replayed:
    """Replays, the limitless cache per setting, the optimum per budget, LRU's curve; all empty without paths."""

    tallies: list[Tally] = field(default_factory=list)
    limitless: dict[str, Tally] = field(default_factory=dict)
    best: list[Bound] = field(default_factory=list)
    curve: Curve | None = None

    def tally(self, policy: str, capacity: int | None, assumption: str) -> Tally | None:
        """One policy's replay at a budget under an assumption, None where it was not replayed."""
        wanted = (policy, capacity, assumption)
        return next((t for t in self.tallies if (t.policy, t.capacity_tokens, t.setting.name) == wanted), None)


def replay_grid_of(scene: Scene, parameters: Parameters) -> list[Tally]:
    """Every policy at every budget under every setting; nothing where the log has no prefix identity."""
    if scene.paths is None:
        return []
    return replay_grid(scene.paths, list(parameters.policy_names), list(scene.capacities), list(scene.settings))


def replay_all(scene: Scene, parameters: Parameters, progress: Callable[[str], None]) -> Replayed:
    """The grid and its bounds (the optimum and the curve under the neutral setting)."""
    if scene.paths is None:
        return Replayed()
    progress("replay")
    tallies = replay_grid_of(scene, parameters)
    progress("bounds")
    rules = (scene.neutral.ttl_seconds, scene.neutral.minimum_tokens)
    return Replayed(
        tallies=tallies,
        limitless={setting.name: ceiling(scene.paths, setting) for setting in scene.settings},
        best=[optimal(scene.paths, capacity, *rules) for capacity in scene.capacities],
        curve=lru_curve(scene.paths, *rules),
    )
