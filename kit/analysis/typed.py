"""The typed policy rule 5 asks for: left out of the usual comparison, replayed where everything else of the rule holds.

It is replayed at the budget only, under every setting: at five times LRU's work that is about a fifth of the usual
comparison (eight policies at three budgets), so no report waits for it where it cannot matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kit.analysis.evidence import TYPED, turn_evidence
from kit.analysis.measures import Measures
from kit.analysis.parameters import Parameters
from kit.analysis.replayed import Replayed, grid
from kit.analysis.scene import Scene
from kit.decide import RULES, THRESHOLDS, Evidence
from kit.decide.read import policy_title, read_rule

TYPED_RULE = next(rule for rule in RULES if rule.policy == TYPED)
FROM_REPLAY = ("saecache", "saecache_gain")


def why_typed(scene: Scene, measures: Measures, parameters: Parameters) -> str | None:
    """Why the typed policy is to be replayed, as a sentence; None where it is there already or rule 5 cannot fire."""
    if scene.paths is None or TYPED in parameters.policy_names or not parameters.counters_trustworthy:
        return None
    known = Evidence(tier_mode=scene.tier_mode, **turn_evidence(measures))
    read = read_rule(TYPED_RULE, known, {**THRESHOLDS, **parameters.thresholds})
    conditions = [one for one in read.readings if one.measure not in FROM_REPLAY]
    if not all(one.holds for one in conditions):
        return None
    return (
        f"{policy_title(TYPED)} is replayed too, at the budget, because everything else rule {TYPED_RULE.number} asks "
        f"for holds: {', '.join(one.text for one in conditions)}"
    )


def with_typed(
    scene: Scene, measures: Measures, parameters: Parameters, replayed: Replayed, progress: Callable[[str], None]
) -> tuple[Scene, Replayed]:
    """The scene and its replays, with the typed policy and the sentence that says why where rule 5 needs it."""
    why = why_typed(scene, measures, parameters)
    if why is None or scene.paths is None:
        return scene, replayed
    progress(f"replay of {policy_title(TYPED)}")
    tallies = grid(scene, [TYPED], [scene.actual or 0], list(scene.settings))
    told = replace(scene, assumptions=(*scene.assumptions, why))
    return told, replace(replayed, tallies=[*replayed.tallies, *tallies])
