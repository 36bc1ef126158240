"""Every replay of an analysis: policies x budgets x settings, and what no policy can beat.

With a sample in the scene the replays of other policies than LRU are estimates for the whole log
(`kit.replay.miniature`); LRU and the cache without limit are always replayed on the whole log.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit.analysis.parameters import Parameters
from kit.analysis.rows import BASE_POLICY
from kit.analysis.scene import Scene
from kit.policies import REGISTRY, Policy
from kit.prefix import Paths
from kit.replay import Bound, Setting, Tally, ceiling, lru_curve, miniature, optimal, replay, replay_grid

Curve = tuple[NDArray[np.int64], NDArray[np.int64]]
Cells = Callable[[int, int], None]
SEEDS = 5


@dataclass(frozen=True)
class Replayed:
    """Replays, the limitless cache per setting, the optimum per budget, LRU's curve; all empty without paths.

    `spreads` the lowest and highest hit-token ratio of each sampling policy over SEEDS seeds, at the budget under the
    neutral setting; `errors` per budget what a sample gets wrong on LRU (empty without a sample).
    """

    tallies: list[Tally] = field(default_factory=list)
    limitless: dict[str, Tally] = field(default_factory=dict)
    best: list[Bound] = field(default_factory=list)
    curve: Curve | None = None
    spreads: dict[str, tuple[float, float]] = field(default_factory=dict)
    errors: dict[int, float] = field(default_factory=dict)

    def tally(self, policy: str, capacity: int | None, assumption: str) -> Tally | None:
        """One policy's replay at a budget under an assumption, None where it was not replayed."""
        wanted = (policy, capacity, assumption)
        return next((t for t in self.tallies if (t.policy, t.capacity_tokens, t.setting.name) == wanted), None)


QUEUED = (
    "{name} is left out: it keeps leaves by their place in a queue, which holding them until a request ends would lose "
    "(hold_until_end)"
)


def playable(parameters: Parameters, paths: Paths | None) -> tuple[Parameters, tuple[str, ...]]:
    """(the parameters with the policies this log has the fields for, one sentence per policy left out).

    ValueError where none is left.
    """
    lacking = {
        name: tag for name in parameters.policy_names for tag in REGISTRY[name].tags if paths and tag not in paths.tags
    }
    stiff = [name for name in parameters.policy_names if parameters.hold_until_end and not REGISTRY[name].overlaps]
    kept = [name for name in parameters.policy_names if name not in lacking and name not in stiff]
    said = tuple(
        f"{name} is left out: it needs {tag} of the requests, which this log does not have (name the column with "
        f"--map {tag}=COLUMN)"
        for name, tag in lacking.items()
    ) + tuple(QUEUED.format(name=name) for name in stiff if name not in lacking)
    if not kept:
        raise ValueError("; ".join(said))
    return replace(parameters, policies=",".join(kept)), said


def grid(
    scene: Scene,
    policies: Iterable[str | Policy],
    capacities: Sequence[int],
    settings: Sequence[Setting],
    cells: Cells | None = None,
) -> list[Tally]:
    """Every policy at every budget under every setting, from the sample where there is one (levels as they are)."""
    assert scene.paths is not None
    if scene.sample is not None:
        return miniature.sampled_grid(scene.sample, policies, capacities, settings, cells)
    return replay_grid(scene.paths, policies, capacities, settings, cells)


def limitless(scene: Scene, setting: Setting) -> Tally:
    """The cache without limit under a setting, from the sample where there is one."""
    assert scene.paths is not None
    return miniature.sampled_ceiling(scene.sample, setting) if scene.sample else ceiling(scene.paths, setting)


def anchored_grid(
    scene: Scene, policies: Sequence[str], cells: Cells | None = None
) -> tuple[list[Tally], dict[int, float]]:
    """(every policy at every budget under every setting, the sample's error on LRU by budget); no error without one.

    Estimates are set right by LRU on the whole log, which stands in the grid itself.
    """
    assert scene.paths is not None
    budgets, settings = list(scene.capacities), list(scene.settings)
    if scene.sample is None:
        return grid(scene, policies, budgets, settings, cells), {}
    others = [name for name in policies if name != BASE_POLICY]
    raw = grid(scene, [BASE_POLICY, *others], budgets, settings, cells)
    exact = {_cell(one): one for one in replay_grid(scene.paths, [BASE_POLICY], budgets, settings)}
    small = {_cell(one): one for one in raw if one.policy == BASE_POLICY}
    errors = {
        capacity: (small[capacity, "neutral"].hit_token_ratio() or 0.0)
        - (exact[capacity, "neutral"].hit_token_ratio() or 0.0)
        for capacity in budgets
    }
    tallies = [
        exact[at] if one.policy == BASE_POLICY else miniature.anchored(one, small[at], exact[at])
        for one in raw
        for at in (_cell(one),)
    ]
    return [one for one in tallies if one.policy in policies], errors


def _cell(tally: Tally) -> tuple[int, str]:
    return tally.capacity_tokens, tally.setting.name


def _best(scene: Scene, capacity: int, lru: Tally | None, most: Tally) -> Bound:
    """The optimum at a budget; from a sample it is set right by LRU (`lru`) and never above the cache without limit."""
    assert scene.paths is not None
    rules = (scene.neutral.ttl_seconds, scene.neutral.minimum_tokens)
    if scene.sample is None:
        return optimal(scene.paths, capacity, *rules)
    bound = miniature.sampled_optimal(scene.sample, capacity, *rules)
    (small,) = grid(scene, [BASE_POLICY], [capacity], [scene.neutral])
    found: dict[str, Any] = {}
    for window, name in (("cold", "hit"), ("warm", "warm_hit")):
        exact, total = (lru or small).total(window)["hit_tokens"], most.total(window)
        hit = exact + getattr(bound, f"{name}_tokens") - small.total(window)["hit_tokens"]
        hit = min(max(hit, exact), total["hit_tokens"])
        found |= {f"{name}_tokens": hit, f"{name}_token_ratio": hit / total["input_tokens"] if hit else 0.0}
    return replace(bound, **found)


def seeded(names: Iterable[str]) -> list[str]:
    """The policies among these that draw: their result differs from seed to seed."""
    return [name for name in names if "seed" in REGISTRY[name].parameters]


def spread_over_seeds(
    scene: Scene, names: Iterable[str], error: float = 0.0, cells: Cells | None = None
) -> dict[str, tuple[float, float]]:
    """Lowest and highest hit-token ratio of every policy that draws, over SEEDS seeds at the budget (neutral).

    `error` is what a sample gets wrong on LRU there, and is taken off.
    """
    drawn = [(name, float(seed)) for name in seeded(names) for seed in range(1, SEEDS + 1)]
    if not drawn or scene.paths is None or scene.actual is None:
        return {}
    paths = scene.sample.paths if scene.sample else scene.paths
    budget = scene.sample.budget(scene.actual) if scene.sample else scene.actual
    found: dict[str, list[float]] = {}
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        running = [(name, pool.submit(replay, paths, name, capacity_tokens=budget, setting=scene.neutral,
                                      parameters={"seed": seed})) for name, seed in drawn]  # fmt: skip
        for done, (name, tally) in enumerate(running, 1):
            found.setdefault(name, []).append(tally.result().hit_token_ratio() or 0.0)
            if cells:
                cells(done, len(drawn))
    return {name: (min(ratios) - error, max(ratios) - error) for name, ratios in found.items()}


def replay_all(scene: Scene, parameters: Parameters, progress: Callable[[str], None]) -> Replayed:
    """The grid and its bounds (the optimum and the curve under the neutral setting), told cell by cell."""
    if scene.paths is None:
        return Replayed()
    cells: Cells | None = getattr(progress, "part", None)
    progress("replay")
    names, budgets = list(parameters.policy_names), list(scene.capacities)
    tallies, errors = anchored_grid(scene, names, cells)
    spreads = spread_over_seeds(scene, names, errors.get(scene.actual or 0, 0.0), cells)
    progress("bounds")
    most = {setting.name: ceiling(scene.paths, setting) for setting in scene.settings}
    lru = {one.capacity_tokens: one for one in tallies if (one.policy, one.setting.name) == (BASE_POLICY, "neutral")}
    return Replayed(
        tallies=tallies,
        limitless=most,
        best=[_best(scene, capacity, lru.get(capacity), most["neutral"]) for capacity in budgets],
        curve=lru_curve(scene.paths, scene.neutral.ttl_seconds, scene.neutral.minimum_tokens),
        spreads=spreads,
        errors=errors,
    )
