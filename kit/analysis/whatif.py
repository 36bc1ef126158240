"""What would change the answer: the decision taken again at other budgets, lifetimes, blocks, prices, cuts and windows.

Each variation changes one thing about the finished analysis, replays what that touches, and reads the same table (row 0
waived, neutral assumption unless that is varied). A log too large to replay again keeps the variations that need
no replay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kit import numbers, reuse
from kit.analysis.evidence import gather
from kit.analysis.parts import Parts
from kit.analysis.replayed import grid, limitless
from kit.analysis.rows import replay_rows
from kit.analysis.scene import ACTUAL, DOUBLE, HALF, Scene
from kit.decide import Decision, Evidence, Sensitivity, Variation, decide
from kit.prefix import load_paths
from kit.prices import Rates
from kit.replay import Tally, miniature

NEUTRAL = "neutral"
BUDGETS = (0.5, 0.7, 1.4, 2.0)
LIFETIMES = (0.5, 2.0)
HALVINGS = 2
LONG_SECONDS = 3_600.0
PRICE_FACTORS = (0.5, 2.0)
LARGER_BLOCKS = 4
WARM_HOURS = 24
REPLICATES = 400
MOST_TOUCHES = 2_000_000


def what_if(made: Parts, decision: Decision) -> dict[str, Any]:
    """The sensitivity map of a finished analysis: {base, map[], nearest, note}; see `kit.decide.Sensitivity`."""
    base = _decide(gather(made, NEUTRAL), made)
    small, few = _can_replay(made), _fewer(made, base, decision)
    varied = [*_free(made, few), *(_replayed(few) if small else ())]
    tried = [(variation, _decide(evidence, made)) for variation, evidence in varied]
    if small:
        tried += _closer(few, Sensitivity(tried, base))
        tried.sort(key=lambda one: one[0].factor or 0.0 if one[0].dimension == "budget" else math.inf)
    note = None if small else "the log is too large to replay again, so budgets, lifetimes and blocks were not varied"
    return {**Sensitivity(tried, base).as_dict(), "note": note}


def _decide(evidence: Evidence, made: Parts) -> Decision:
    return decide(
        evidence,
        thresholds=dict(made.parameters.thresholds),
        waive_row_0=True,
        counters_trustworthy=made.parameters.counters_trustworthy,
    )


def _can_replay(made: Parts) -> bool:
    """Whether the log has paths short enough in sum (block touches) to be replayed some sixty times more."""
    paths = made.scene.sample.paths if made.scene.sample else made.scene.paths
    if paths is None or not made.replayed.tallies:
        return False
    used = paths.leaf[paths.leaf >= 0]
    return int(paths.depth[used].sum() + used.size) <= MOST_TOUCHES


def _free(made: Parts, few: Parts) -> Iterator[tuple[Variation, Evidence]]:
    """Variations that need no replay: the other assumptions, the warm window, prices and the key cut."""
    for setting in made.scene.settings[1:]:
        yield Variation("provider", f"under the {setting.name} assumption"), gather(made, setting.name)
    if not made.replayed.tallies:
        return
    warm = [_warm(tally) for tally in few.replayed.tallies]
    limitless = {name: _warm(tally) for name, tally in few.replayed.limitless.items()}
    yield Variation("warm-up", "with the warm-up left out"), gather(_with(few, warm, limitless), NEUTRAL)
    if made.scene.rates is not None and made.scene.tier_mode == "mirror":
        for name in ("read", "write"):
            for factor in PRICE_FACTORS:
                words = f"with cache {name}s at {factor:g}x their price"
                yield Variation(f"{name} price", words, factor), gather(_priced(few, name, factor), NEUTRAL)
    yield from _other_cut(made)


def _other_cut(made: Parts) -> Iterator[tuple[Variation, Evidence]]:
    """Concentration and rotation with keys cut at the root, where keys are nested and cut elsewhere."""
    if made.log.facts.identity in (None, "flat") or made.measures.concentration.get("cut") == "root":
        return
    trace, top = reuse.read_trace(made.log), made.parameters.top_fraction
    measures = replace(
        made.measures,
        concentration=reuse.concentration(trace, top, "root"),
        rotation=reuse.rotation(trace, top, "root"),
    )
    yield Variation("key cut", "with keys cut at the root"), gather(replace(made, measures=measures), NEUTRAL)


def _replayed(made: Parts) -> Iterator[tuple[Variation, Evidence]]:
    """Variations that replay: budgets, lifetimes and larger blocks."""
    scene, actual = made.scene, made.scene.actual or 0
    for factor in BUDGETS:
        yield _budget(made, factor)
    for words, seconds, ratio in _lifetimes(scene):
        neutral = replace(scene.neutral, ttl_seconds=seconds)
        gaps = reuse.reuse_gaps(reuse.read_trace(made.log), seconds)
        other = replace(made, measures=replace(made.measures, gaps=gaps))
        yield Variation("TTL", words, ratio), _again(other, replace(scene, settings=(neutral,)))
    if scene.paths is not None and scene.paths.block_tokens > 1:
        block = scene.paths.block_tokens * LARGER_BLOCKS
        rate = scene.rates.rate_of_request if scene.rates else None
        paths = load_paths(made.log, block_tokens=block, partial_tail=made.parameters.partial_tail, rate=rate)
        words = f"with blocks of {numbers.count(block)} tokens"
        if actual >= block:
            sample = miniature.draw(paths, scene.sample.rate, made.parameters.seed) if scene.sample else None
            larger = replace(scene, paths=paths, sample=sample)
            yield Variation("block size", words, float(LARGER_BLOCKS)), _again(made, larger)


def _closer(made: Parts, found: Sensitivity) -> list[tuple[Variation, Decision]]:
    """Budgets between the nearest one that flips and the nearest one inside it that does not, halving twice."""
    flipping = [
        variation.factor for variation, _ in found.flips if variation.dimension == "budget" and variation.factor
    ]
    if not flipping:
        return []
    outer, inner, closer = flipping[0], 1.0, []
    steady = [v.factor for v, _ in found.tried if v.dimension == "budget" and v.factor and v.factor not in flipping]
    inside = [factor for factor in steady if (factor - 1) * (outer - 1) > 0 and abs(factor - 1) < abs(outer - 1)]
    inner = max(inside, key=lambda factor: abs(factor - 1), default=inner)
    for _ in range(HALVINGS):
        factor = round(math.sqrt(inner * outer), 2)
        if factor in (inner, outer):
            break
        variation, evidence = _budget(made, factor)
        closer.append((variation, _decide(evidence, made)))
        flips = bool(Sensitivity(closer[-1:], found.base).flips)
        inner, outer = (inner, factor) if flips else (factor, outer)
    return closer


def _budget(made: Parts, factor: float) -> tuple[Variation, Evidence]:
    """The analysis at another budget, in multiples of the one under study."""
    smallest = made.scene.paths.block_tokens if made.scene.paths else 1
    capacity = max(round((made.scene.actual or 0) * factor), smallest)
    return Variation("budget", f"at {factor:g}x the budget", factor), _again(made, _budgets(made.scene, capacity))


def _lifetimes(scene: Scene) -> list[tuple[str, float | None, float | None]]:
    """(words, seconds, factor) of the lifetimes to try: half, double, an hour, none."""
    now = scene.neutral.ttl_seconds
    if now is None:
        return []
    tried: list[tuple[str, float | None, float | None]] = [
        (f"with a TTL of {numbers.seconds(now * factor)}", now * factor, factor) for factor in LIFETIMES
    ]
    if now < LONG_SECONDS:
        tried.append((f"with a TTL of {numbers.seconds(LONG_SECONDS)}", LONG_SECONDS, LONG_SECONDS / now))
    return [*tried, ("without a TTL", None, None)]


def _fewer(made: Parts, base: Decision, decision: Decision) -> Parts:
    """The same analysis with the policies that can decide: LRU, decayed LFU, Length, both verdicts, the best rival."""
    rival = gather(made, NEUTRAL).challenger(0.0)
    wanted = {"lru", "lfu_decay", base.policy, decision.policy, rival.policy if rival else "lru"}
    wanted |= {"length"} if made.log.facts.identity == "flat" else set()
    names = ",".join(name for name in made.parameters.policy_names if name in wanted)
    tallies = [t for t in made.replayed.tallies if t.policy in wanted and t.setting.name == NEUTRAL]
    return replace(
        made,
        parameters=replace(made.parameters, policies=names),
        bills=replace(made.bills, replicates=min(made.bills.replicates, REPLICATES)),
        replayed=replace(made.replayed, tallies=tallies),
    )


def _budgets(scene: Scene, capacity: int) -> Scene:
    return replace(scene, capacities={max(capacity // 2, 1): HALF, capacity: ACTUAL, capacity * 2: DOUBLE})


def _again(made: Parts, scene: Scene) -> Evidence:
    """Evidence of the same log in another scene, replayed under its neutral setting only."""
    assert scene.paths is not None
    names = list(made.parameters.policy_names)
    tallies = grid(scene, names, [scene.actual or 0], [scene.neutral])
    others = [capacity for capacity in scene.capacities if capacity not in (scene.actual,)]
    if "length" in names:
        others = [capacity for capacity in others if capacity >= scene.paths.block_tokens]
        tallies += grid(scene, names, others, [scene.neutral])
    else:
        tallies += grid(scene, ["lru"], others[-1:], [scene.neutral])
    return gather(_with(replace(made, scene=scene), tallies, {NEUTRAL: limitless(scene, scene.neutral)}), NEUTRAL)


def _with(made: Parts, tallies: list[Tally], limitless: Mapping[str, Tally]) -> Parts:
    """The same analysis resting on other replays."""
    rows = replay_rows(tallies, made.scene.capacities, made.bills)
    return replace(made, rows=rows, replayed=replace(made.replayed, tallies=tallies, limitless=dict(limitless)))


def _warm(tally: Tally) -> Tally:
    """A replay with the requests before the warm window taken out of every count."""
    blocks, hours = tally.by_block.copy(), tally.by_hour.copy()
    blocks[0] = 0
    hours[: WARM_HOURS if len(hours) > 2 * WARM_HOURS else len(hours) // 2] = 0
    return replace(tally, by_block=blocks, by_hour=hours)


def _priced(made: Parts, name: str, factor: float) -> Parts:
    """The same replays at other prices for cache reads or writes."""
    rates = made.scene.rates
    assert isinstance(rates, Rates)
    fields = ("read",) if name == "read" else ("write_short", "write_long")
    rows = tuple(
        replace(rate, **{field: getattr(rate, field) * factor for field in fields if getattr(rate, field) is not None})
        for rate in rates.rows
    )
    scene = replace(made.scene, rates=replace(rates, rows=rows))
    other = replace(made, scene=scene, bills=replace(made.bills, rates=scene.rates))
    return _with(other, list(made.replayed.tallies), made.replayed.limitless)
