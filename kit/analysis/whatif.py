"""What would change the answer: the decision taken again at other budgets, lifetimes, blocks, prices, cuts and windows.

Each variation changes one thing about the finished analysis, replays what that touches, and reads the same table with
row 0 waived: under the neutral assumption, and where that asks for anything but plain LRU, or for something else than
before, under the pessimistic one too, as the verdict itself does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kit import numbers, reuse
from kit.analysis.again import Again, at_budget, rested, within_reach
from kit.analysis.evidence import gather
from kit.analysis.parts import Parts
from kit.analysis.scene import DOUBLE, HALF, Scene
from kit.decide import ACTIONS, Decision, Evidence, Sensitivity, Variation, decide, differs
from kit.policies import REGISTRY
from kit.prefix import load_paths
from kit.prices import Rates
from kit.replay import Tally, miniature, pessimistic
from kit.reuse.trace import Trace

NEUTRAL, PESSIMISTIC = "neutral", "pessimistic"
BUDGETS = (2 ** (-2 / 3), 2 ** (-1 / 3))  # and their doubles: with half and double, a third of an octave apart
LIFETIMES = (0.5, 2.0)
HALVINGS = 3
LONG_SECONDS = 3_600.0
PRICE_FACTORS = (0.5, 2.0)
BLOCK_FACTORS = (0.25, 4.0)
USUAL_BLOCK = 64
WARM_HOURS = 24
REPLICATES = 400

Ask = Callable[[str], Evidence]


@dataclass(frozen=True)
class Study:
    """The analysis with the policies that can decide, the scene to replay, what was replayed, and the base verdict."""

    made: Parts
    scene: Scene
    again: Again
    base: Decision
    trace: Trace

    def decided(self, ask: Ask) -> Decision:
        """The verdict of evidence asked for by assumption, the pessimistic one only where it can matter."""
        neutral = ask(NEUTRAL)
        found = _decide(self.made, neutral)
        plain = found.policy == "lru" and found.rule not in ACTIONS
        return found if plain and not differs(found, self.base) else _decide(self.made, neutral, ask(PESSIMISTIC))


def what_if(made: Parts) -> dict[str, Any]:
    """The sensitivity map of a finished analysis: {base, map[], nearest, note}; see `kit.decide.Sensitivity`.

    `note` says when the log was too large to be replayed again as a whole, what a sample of it gets wrong, and what was
    left out for that.
    """
    evidence = {name: gather(made, name) for name in (NEUTRAL, PESSIMISTIC)}
    base = _decide(made, evidence[NEUTRAL], evidence[PESSIMISTIC])
    few = _fewer(made, evidence[NEUTRAL], base)
    varied = [(one, _decide(made, found)) for one, found in _assumptions(made)]
    if not made.replayed.tallies:
        return {**Sensitivity(varied, base).as_dict(), "note": "nothing can be replayed, so nothing else was varied"}
    whole = Study(few, few.scene, Again.of(few), base, reuse.read_trace(made.log, made.parameters.time_zone))
    varied += [(one, whole.decided(ask)) for one, ask in _without_replay(whole)]
    study, note = _within_reach(whole)
    tried = _budgets(whole, study)
    if study is not None:
        varied += [(one, study.decided(ask)) for one, ask in (*_lifetimes(study), *_held(study), *_blocks(study))]
    return {**Sensitivity([*tried, *varied], base).as_dict(), "note": note}


def _decide(made: Parts, neutral: Evidence, harsh: Evidence | None = None) -> Decision:
    return decide(
        neutral,
        thresholds=dict(made.parameters.thresholds),
        waive_row_0=True,
        counters_trustworthy=made.parameters.counters_trustworthy,
        pessimistic=harsh,
    )


def _fewer(made: Parts, evidence: Evidence, base: Decision) -> Parts:
    """The same analysis with the policies that can decide anywhere near: LRU, decayed LFU, the verdict, on flat keys
    Length, a typed policy that was replayed, and at half, actual and double the budget the best one."""
    rows = [row for row in made.rows if (row["assumption"], row["window"]) == (NEUTRAL, "cold")]
    leading = [max((row for row in rows if row["capacity_tokens"] == capacity and REGISTRY[row["policy"]].candidate),
                   key=lambda row: row["hit_tokens"], default=None) for capacity in made.scene.capacities]  # fmt: skip
    rival = evidence.challenger(0.0)
    wanted = {
        "lru",
        "lfu_decay",
        base.policy,
        rival.policy if rival else "lru",
        *(row["policy"] for row in leading if row),
    }
    wanted |= {"length"} if made.log.facts.identity == "flat" else set()
    wanted |= set(made.policy_names) - set(made.parameters.policy_names)
    names = [name for name in made.policy_names if name in wanted]
    return replace(
        made,
        parameters=replace(made.parameters, policies=",".join(names)),
        bills=replace(made.bills, replicates=min(made.bills.replicates, REPLICATES)),
        replayed=replace(made.replayed, tallies=[t for t in made.replayed.tallies if t.policy in names]),
    )


def _within_reach(whole: Study) -> tuple[Study | None, str | None]:
    """(where more than half and double the budget can be tried, what is said of it); None where a sample will not do.

    A sample serves only if it gives the verdict of the whole log at the budget itself.
    """
    scene, note = within_reach(whole.made)
    if note is None and scene is not None:
        return replace(whole, scene=scene), None
    only = "only half and double the budget, the assumptions, the warm-up, prices and the key cut are varied"
    if scene is None:
        return None, f"{note}, so {only}"
    sampled = replace(whole, scene=scene, again=Again(whole.made))
    found = sampled.decided(partial(sampled.again.evidence, whole.made, scene))
    if not differs(found, whole.base):
        return sampled, note
    return None, f"{note}; on that sample the verdict itself is another (rule {found.rule}), so {only}"


def _assumptions(made: Parts) -> Iterator[tuple[Variation, Evidence]]:
    """The other assumptions about the provider, each alone."""
    for setting in made.scene.settings[1:]:
        yield Variation("provider", f"under the {setting.name} assumption"), gather(made, setting.name)


def _without_replay(study: Study) -> Iterator[tuple[Variation, Ask]]:
    """Variations that need no replay: the warm window, prices and the key cut."""
    made, scene = study.made, study.scene
    warm = [_warm(tally) for tally in made.replayed.tallies]
    limitless = {name: _warm(tally) for name, tally in made.replayed.limitless.items()}
    yield Variation("warm-up", "with the warm-up left out"), partial(gather, rested(made, warm, limitless))
    if scene.rates is not None and scene.tier_mode == "mirror":
        for name in ("read", "write"):
            for factor in PRICE_FACTORS:
                words = f"with cache {name}s at {factor:g}x their price"
                yield Variation(f"{name} price", words, factor), partial(gather, _priced(made, name, factor))
    if made.log.facts.identity not in (None, "flat") and made.measures.concentration.get("cut") != "root":
        yield Variation("key cut", "with keys cut at the root"), partial(gather, _cut_at_root(made, study.trace))


def _cut_at_root(made: Parts, trace: Trace) -> Parts:
    """Concentration and rotation with keys cut at the root."""
    top = made.parameters.top_fraction
    concentration, rotation = reuse.concentration(trace, top, "root"), reuse.rotation(trace, top, "root")
    return replace(made, measures=replace(made.measures, concentration=concentration, rotation=rotation))


def _budgets(whole: Study, study: Study | None) -> list[tuple[Variation, Decision]]:
    """The verdict from half to double the budget, and closer to where it flips first on either side.

    Half and double rest on the whole log, what lies between on the sample where there is one.
    """
    actual = whole.scene.actual or 0
    tried = {capacity: _at(whole, capacity) for capacity, label in whole.scene.capacities.items()
             if label in (HALF, DOUBLE)}  # fmt: skip
    if study is not None:
        thirds = [round(actual * factor) for factor in BUDGETS]
        for capacity in (one for third in thirds for one in (third, 2 * third)):
            tried.setdefault(capacity, _at(study, capacity))
        for side in (-1, 1):
            _closer(study, tried, side)
    return [tried[capacity] for capacity in sorted(tried)]


def _at(study: Study, capacity: int) -> tuple[Variation, Decision]:
    """The verdict at a budget in tokens."""
    assert study.scene.paths is not None
    capacity = max(capacity, 2 * study.scene.paths.block_tokens)
    factor = capacity / (study.scene.actual or 1)
    scene = at_budget(study.scene, capacity)
    words = f"at {factor:.2f}".rstrip("0").rstrip(".") + "x the budget"
    made = _scanned(study, capacity)
    return Variation("budget", words, factor), study.decided(partial(study.again.evidence, made, scene))


def _scanned(study: Study, capacity: int) -> Parts:
    """The same analysis with what one-shot tokens cost LRU at another budget, where any hour looks like a scan."""
    measures = study.made.measures
    if (measures.scans["max_busy_share"] or 0.0) < measures.scans["threshold"]:
        return study.made
    scans = {**measures.scans, "effect": reuse.scan_effect(study.trace, capacity)}
    return replace(study.made, measures=replace(measures, scans=scans))


def _closer(study: Study, tried: dict[int, tuple[Variation, Decision]], side: int) -> None:
    """Halve the step between the first budget that flips on one side and the last that does not, three times."""
    actual = study.scene.actual or 0
    beyond = sorted((one for one in tried if (one - actual) * side > 0), key=lambda one: abs(one - actual))
    outer = next((one for one in beyond if differs(tried[one][1], study.base)), None)
    if outer is None:
        return
    inner = max((one for one in beyond if abs(one - actual) < abs(outer - actual)),
                key=lambda one: abs(one - actual), default=actual)  # fmt: skip
    for _ in range(HALVINGS):
        middle = round(math.sqrt(inner * outer))
        if middle in (inner, outer):
            return
        tried[middle] = _at(study, middle)
        inner, outer = (inner, middle) if differs(tried[middle][1], study.base) else (middle, outer)


def _lifetimes(study: Study) -> Iterator[tuple[Variation, Ask]]:
    """Half and double the TTL, an hour, none; nothing where nothing expires."""
    now, scene = study.scene.neutral.ttl_seconds, study.scene
    if now is None:
        return
    tried: list[tuple[str, float | None, float | None]] = [
        (f"with a TTL of {numbers.seconds(now * factor)}", now * factor, factor) for factor in LIFETIMES
    ]
    if LONG_SECONDS not in (now, *(seconds for _, seconds, _ in tried)):
        tried.append((f"with a TTL of {numbers.seconds(LONG_SECONDS)}", LONG_SECONDS, LONG_SECONDS / now))
    for words, seconds, factor in [*tried, ("without a TTL", None, None)]:
        neutral = replace(scene.neutral, ttl_seconds=seconds)
        gaps = reuse.reuse_gaps(study.trace, seconds)
        made = replace(study.made, measures=replace(study.made.measures, gaps=gaps))
        other = replace(scene, settings=(neutral, pessimistic(neutral)))
        yield Variation("TTL", words, factor), partial(study.again.evidence, made, other)


def _held(study: Study) -> Iterator[tuple[Variation, Ask]]:
    """With running requests holding what they use, for an engine without a lifetime whose log says when they end."""
    scene = study.scene
    assert scene.paths is not None
    if scene.tier_mode == "mirror" or scene.neutral.ttl_seconds is not None or scene.neutral.hold_until_end:
        return
    if "ts_end_us" in scene.paths.tags:
        neutral = replace(scene.neutral, hold_until_end=True)
        other = replace(scene, settings=(neutral, pessimistic(neutral)))
        words = "with each request holding its prefix until it ends"
        yield Variation("overlap", words), partial(study.again.evidence, study.made, other)


def _blocks(study: Study) -> Iterator[tuple[Variation, Ask]]:
    """A quarter and four times the block; blocks of 64 tokens where none are counted. A log of blocks has no finer."""
    made, scene = study.made, study.scene
    assert scene.paths is not None
    now, fixed = scene.paths.block_tokens, made.log.facts.identity == "blocks"
    tried = [USUAL_BLOCK] if now == 1 else [round(now * factor) for factor in BLOCK_FACTORS if factor > 1 or not fixed]
    rate = scene.rates.rate_of_request if scene.rates else None
    for block in tried:
        paths = load_paths(made.log, block_tokens=block, partial_tail=made.parameters.partial_tail, rate=rate)
        if not paths.parent.size or (scene.actual or 0) < 2 * block:
            continue
        sample = miniature.draw(paths, scene.sample.rate, made.parameters.seed) if scene.sample else None
        factor = None if now == 1 else block / now
        words = f"with blocks of {numbers.count(block)} tokens"
        other = replace(scene, paths=paths, sample=sample)
        yield Variation("block size", words, factor), partial(study.again.evidence, made, other)


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
    return rested(other, list(made.replayed.tallies), dict(made.replayed.limitless))
