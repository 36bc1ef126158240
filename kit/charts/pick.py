"""Reading the plain `results` dict: which replay row a figure or table speaks of, and what a policy is called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]
CAUSES = {
    "cold": "never seen before",
    "evicted": "evicted for room",
    "expired": "expired (TTL)",
    "lost": "lost by the provider",
    "below_minimum": "below the minimum length",
    "in_flight": "not yet readable",
    "oversize": "larger than the tier",
}
BOUNDS = ("infinite", "optimal")


def get(results: Row, path: str, default: Any = None) -> Any:
    """The value at a dotted path, or the default where any step is absent or null."""
    value: Any = results
    for step in path.split("."):
        if not isinstance(value, dict) or value.get(step) is None:
            return default
        value = value[step]
    return value


def title_of(results: Row, policy: str) -> str:
    """What a reader calls a policy: its title in the results, else its name."""
    titles = {row.get("name"): row.get("title") for row in get(results, "policies", [])}
    return str(titles.get(policy) or policy)


def short_title(results: Row, policy: str) -> str:
    """The title without its remark in brackets, for a label beside a line, where that still names one policy only."""
    every = [str(row.get("title") or row.get("name")) for row in get(results, "policies", [])]
    title = title_of(results, policy)
    short = title.split(" (")[0]
    return short if sum(other.split(" (")[0] == short for other in every) < 2 else title


def main_window(results: Row) -> str:
    """The window the decision is read from: as stated in the settings, else all requests (`cold`)."""
    return str(get(results, "settings.decision_window", "cold"))


def main_assumption(results: Row) -> str:
    """The assumption plain figures are read from: as stated in the settings, else `neutral`."""
    return str(get(results, "settings.decision_assumption", "neutral"))


def replay_rows(results: Row, **conditions: Any) -> list[Row]:
    """Replay rows of the main window and assumption (unless asked otherwise) that match every given field."""
    wanted = {"window": main_window(results), "assumption": main_assumption(results), **conditions}
    return [row for row in get(results, "replay", []) if all(row.get(key) == value for key, value in wanted.items())]


def actual_capacity(results: Row) -> int | None:
    """The budget under study in tokens: from the settings, else from the rows labelled `actual`."""
    stated = get(results, "settings.capacity_tokens")
    if stated is not None:
        return int(stated)
    return next((int(row["capacity_tokens"]) for row in replay_rows(results, capacity_label="actual")), None)


def at_actual(results: Row, policy: str, **conditions: Any) -> Row | None:
    """The one replay row of a policy at the budget under study, or None."""
    capacity = actual_capacity(results)
    rows = replay_rows(results, policy=policy, **conditions)
    return next((row for row in rows if row.get("capacity_tokens") == capacity), None)


def online(rows: Iterable[Row]) -> list[Row]:
    """Rows without the bounds, which no running cache can follow."""
    return [row for row in rows if row.get("policy") not in BOUNDS]


def policies_at_actual(results: Row) -> list[Row]:
    """Rows of every online policy at the budget under study, best hit-token ratio first, of equals LRU first."""
    capacity = actual_capacity(results)
    rows = [row for row in online(replay_rows(results)) if row.get("capacity_tokens") == capacity]
    return sorted(rows, key=lambda row: (-(row.get("hit_token_ratio") or 0.0), row["policy"] != "lru", row["policy"]))


def alike(results: Row) -> list[Row]:
    """Rows of the policies that find and cost exactly what LRU does at the budget under study."""
    lru = at_actual(results, "lru") or {}
    same = [lru.get("hit_tokens"), lru.get("cost")]
    others = [row for row in policies_at_actual(results) if row["policy"] != "lru"]
    return [row for row in others if lru and [row.get("hit_tokens"), row.get("cost")] == same]


def all_alike(results: Row) -> bool:
    """True where every other policy that was tried finds and costs exactly what LRU does at the budget under study."""
    return 0 < len(alike(results)) == len(policies_at_actual(results)) - 1


def proposed_policy(results: Row) -> str:
    """The policy the decision names; LRU where there is no decision."""
    return str(get(results, "decision.policy", "lru"))


def other_policy(results: Row) -> str | None:
    """What to set beside LRU: the proposed policy, where that is LRU the one row 9 of the decision compares with it,
    else the best other online policy that does not find exactly the same tokens."""
    compared = next((row.get("policy") for row in get(results, "decision.trail", []) if row.get("rule") == 9), None)
    for policy in (proposed_policy(results), str(compared or "lru")):
        if policy != "lru" and at_actual(results, policy):
            return policy
    lru = at_actual(results, "lru")
    others = [row for row in policies_at_actual(results) if row["policy"] != "lru"]
    others = [row for row in others if lru is None or row["hit_tokens"] != lru["hit_tokens"]] or others
    with_cost = [row for row in others if row.get("cost_per_request") is not None]
    if with_cost:
        return str(min(with_cost, key=lambda row: (row["cost_per_request"], row["policy"]))["policy"])
    return str(others[0]["policy"]) if others else None


def interval(row: Row | None, measure: str) -> Row | None:
    """A row's interval of the difference against LRU, as {value, low, high}, or None where it was not computed."""
    found = ((row or {}).get("interval") or {}).get(measure)
    return found if found and found.get("low") is not None and found.get("high") is not None else None
