"""How sure a verdict is against the other policies, and why one that is more often the best is not recommended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kit import numbers
from kit.decide.evidence import HITS, Contrast, Evidence
from kit.decide.read import obstacles, policy_title
from kit.intervals import Standing


def firmness(
    evidence: Evidence, policy: str, rule: int, gain_points: float, conflict: Mapping[str, Any] | None = None
) -> str | None:
    """How likely `policy` is the best of those compared, its regret, and what stands against a likelier one.

    None where nothing was compared. `rule` is the row that decides, `conflict` the two verdicts where the assumptions
    differ.
    """
    mine = next((row for row in evidence.standings if row.policy == policy), None)
    if mine is None or len(evidence.standings) < 2 or not evidence.online:
        return None
    title = policy_title(policy)
    if len(mine.identical) == len(evidence.standings) - 1:
        return f"all {len(evidence.standings)} policies to choose from find exactly the same, so none is the best"
    same = ", ".join(policy_title(name) for name in mine.identical)
    told = (
        f"{title} is the best of the {len(evidence.standings)} policies to choose from in "
        f"{numbers.percent(mine.probability_best)} of the redrawn logs"
    )
    told += f" ({same} {'find' if len(mine.identical) > 1 else 'finds'} exactly what it finds)" if same else ""
    return f"{told}; {_behind(mine, evidence.online[0])}{_likelier(evidence, mine, rule, gain_points, conflict)}"


def _behind(mine: Standing, measured: Contrast) -> str:
    if mine.regret == 0:
        return "in none it is behind another"
    if measured.measure == HITS:
        behind = f"{numbers.decimal(100 * mine.regret)} points of input tokens found"
    elif measured.currency:
        behind = f"{numbers.unit_price(1000 * mine.regret, measured.currency)} per 1,000 requests"
    else:
        behind = f"{numbers.count(1000 * mine.regret)} token equivalents per 1,000 requests"
    return f"on average it is {behind} behind the best of each"


def _likelier(
    evidence: Evidence, mine: Standing, rule: int, gain_points: float, conflict: Mapping[str, Any] | None
) -> str:
    """The policy that is most often the best, where it is another one, with what it fails."""
    top = max(evidence.standings, key=lambda row: (row.probability_best, row.policy == mine.policy))
    contrast = evidence.against_lru(top.policy)
    if top.policy == mine.policy or top.probability_best <= mine.probability_best or contrast is None:
        return ""
    against = obstacles(contrast)
    if not against and (contrast.hit_ratio_change or 0.0) < gain_points:
        against = [f"it gains {numbers.points(contrast.hit_ratio_change)} of the {numbers.points(gain_points)} asked"]
    if not against:
        against = ["it does not pass under both assumptions" if conflict else f"rule {rule} comes first"]
    return (
        f"; {policy_title(top.policy)} is in {numbers.percent(top.probability_best)}, but is not recommended: "
        f"{' and '.join(against)}"
    )
