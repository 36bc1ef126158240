"""The same log replayed again in another scene: what the variations of a verdict rest on, no replay done twice.

A log with more block touches than a reader waits for is replayed by miniature instead (`kit.replay.miniature`): a
seeded share of its sessions against the same share of every budget, with the error of that sample said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from kit import numbers
from kit.analysis.evidence import gather
from kit.analysis.parts import Parts
from kit.analysis.replayed import grid, limitless
from kit.analysis.rows import replay_rows
from kit.analysis.scene import ACTUAL, DOUBLE, HALF, Scene
from kit.decide import Evidence
from kit.policies import REGISTRY
from kit.prefix import Paths
from kit.replay import Setting, Tally, miniature

MOST_MORE = 2  # times the touches a sample may have where a smaller one would be too coarse
Key = tuple[int, str, int, str]


@dataclass
class Again:
    """Replays of scenes of one log, remembered; `paths` keeps what the keys stand for alive."""

    made: Parts
    known: dict[Key, Tally] = field(default_factory=dict)
    paths: list[Paths] = field(default_factory=list)

    @classmethod
    def of(cls, made: Parts) -> Again:
        """Starts with the replays the finished analysis has already."""
        found = cls(made)
        found.known.update({_key(made.scene, t.policy, t.capacity_tokens, t.setting): t for t in made.replayed.tallies})
        return found

    def evidence(self, made: Parts, scene: Scene, assumption: str) -> Evidence:
        """What the table reads, of the log in another scene under one assumption; `made` holds the measures."""
        setting = next(one for one in scene.settings if one.name == assumption)
        tallies = self._tallies(scene, list(self.made.parameters.policy_names), setting)
        return gather(rested(replace(made, scene=scene), tallies, {assumption: self._limitless(scene, setting)}),
                      assumption)  # fmt: skip

    def _tallies(self, scene: Scene, names: Sequence[str], setting: Setting) -> list[Tally]:
        """Every policy at the budget, LRU at double, and where Length is compared every policy at half and double."""
        assert scene.paths is not None
        names = [name for name in names if REGISTRY[name].overlaps or not setting.hold_until_end]
        actual, others = scene.actual or 0, [c for c, label in scene.capacities.items() if label != ACTUAL]
        cells = [(name, actual) for name in names]
        if "length" in names:
            cells += [(name, one) for one in others if one >= scene.paths.block_tokens for name in names]
        else:
            cells += [("lru", one) for one in others[-1:]]
        self._replay(scene, cells, setting)
        return [self.known[_key(scene, name, capacity, setting)] for name, capacity in cells]

    def _replay(self, scene: Scene, cells: Iterable[tuple[str, int]], setting: Setting) -> None:
        missing: dict[int, list[str]] = {}
        for name, capacity in cells:
            if _key(scene, name, capacity, setting) not in self.known:
                missing.setdefault(capacity, []).append(name)
        self.paths.append(_paths(scene))
        for capacity, names in missing.items():
            for tally in grid(scene, names, [capacity], [setting]):
                self.known[_key(scene, tally.policy, capacity, setting)] = tally

    def _limitless(self, scene: Scene, setting: Setting) -> Tally:
        key = _key(scene, "infinite", 0, setting)
        if key not in self.known:
            self.known[key] = limitless(scene, setting)
        return self.known[key]


def _paths(scene: Scene) -> Paths:
    assert scene.paths is not None
    return scene.sample.paths if scene.sample else scene.paths


def _key(scene: Scene, policy: str, capacity: int, setting: Setting) -> Key:
    return id(_paths(scene)), policy, capacity, repr(setting)


def rested(made: Parts, tallies: list[Tally], without_limit: dict[str, Tally]) -> Parts:
    """The same analysis resting on other replays."""
    rows = replay_rows(tallies, made.scene.capacities, made.bills)
    return replace(made, rows=rows, replayed=replace(made.replayed, tallies=tallies, limitless=without_limit))


def at_budget(scene: Scene, capacity: int) -> Scene:
    """The scene at another budget, with its half and its double."""
    return replace(scene, capacities={max(capacity // 2, 1): HALF, capacity: ACTUAL, capacity * 2: DOUBLE})


def within_reach(made: Parts) -> tuple[Scene | None, str | None]:
    """(the scene to replay some hundred times over, what is said of it); no scene where even a sample is too much work.

    The work is what the policies of the analysis visit: runs of blocks count once where every policy takes them whole.
    """
    scene = replace(made.scene, sample=None)
    if scene.paths is None:
        return scene, None
    work = miniature.touches(scene.paths, made.parameters.policy_names, scene.actual or 0)
    if work <= miniature.AGAIN_TOUCHES:
        return scene, None
    lead = f"the log has {work:,} block touches"
    share = max(miniature.AGAIN_TOUCHES / work, miniature.least_rate(scene.paths, scene.actual or 1))
    if share * work > MOST_MORE * miniature.AGAIN_TOUCHES or share >= 1:
        return None, f"{lead} and a sample of it would leave the budget under {miniature.LEAST_ENTRIES:,} entries"
    sample = miniature.draw(scene.paths, share, made.parameters.seed, lead)
    error = miniature.lru_error(scene.paths, sample, scene.actual or 0, scene.neutral)
    return replace(scene, sample=sample), (
        f"{lead}, so what is replayed between half and double the budget, and with other lifetimes and blocks, is a "
        f"seeded {numbers.percent(share)} of its {sample.what}, on which LRU's share of tokens found is off by "
        f"{numbers.points(error)}"
    )
