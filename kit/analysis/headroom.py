"""At every budget: what a better policy could still win, and what only more room could."""

from __future__ import annotations

from typing import Any

from kit.analysis.parts import WINDOW, Parts
from kit.policies import REGISTRY


def gaps(made: Parts) -> list[dict[str, Any]]:
    """One row per budget, shares of all input tokens (neutral, all requests); empty where nothing was replayed.

    `policy_gap`: the optimum less LRU; `best_policy_gap`: the optimum less the best online policy that was replayed;
    `room_gap`: the ceiling less the optimum. Where the optimum is only a bound (`exact` false) a policy gap is at most,
    a room gap at least so large.
    """
    limitless = made.replayed.limitless.get("neutral")
    if limitless is None:
        return []
    ceiling, rows = limitless.hit_token_ratio(WINDOW), []
    for bound in made.replayed.best:
        found = {
            tally.policy: tally.hit_token_ratio(WINDOW)
            for tally in made.replayed.tallies
            if (tally.capacity_tokens, tally.setting.name) == (bound.capacity_tokens, "neutral")
            and REGISTRY[tally.policy].candidate
        }
        best = max(found, key=lambda name: (found[name] or 0.0, name == "lru"), default=None)
        rows.append({
            "capacity_tokens": bound.capacity_tokens,
            "policy_gap": _less(bound.hit_token_ratio, found.get("lru")),
            "best_policy": best,
            "best_policy_gap": _less(bound.hit_token_ratio, found[best]) if best else None,
            "room_gap": _less(ceiling, bound.hit_token_ratio),
            "exact": bound.exact,
        })  # fmt: skip
    return rows


def _less(more: float | None, less: float | None) -> float | None:
    return None if more is None or less is None else more - less
