"""The notebooks' sentences on hand-made results: ties, what was not replayed, and why."""

from __future__ import annotations

from typing import Any

from kit.analysis import readings as say

WHY = "nothing can be replayed without prefix identity"


def results(*hit_tokens: tuple[str, int], capacity: int | None = 100) -> dict[str, Any]:
    """Results with these policies at the budget, each with 1,000 input tokens."""
    rows = [
        {"policy": policy, "hit_tokens": found, "hit_token_ratio": found / 1_000, "capacity_tokens": capacity,
         "capacity_label": "actual", "assumption": "neutral", "window": "cold"}
        for policy, found in hit_tokens
    ]  # fmt: skip
    origin = "given" if rows else f"none: {WHY}"
    return {
        "replay": rows,
        "policies": [{"name": policy, "title": policy.upper()} for policy, _ in hit_tokens],
        "settings": {"capacity_tokens": capacity, "capacity_origin": origin, "block_tokens": 16},
        "bounds": {"ceiling": {"hit_token_ratio": None}, "optimal": []},
        "decision": {"policy": "lru", "sensitivity": {"map": [{"flips": False}]}},
    }


def test_the_policy_that_keeps_most() -> None:
    assert str(say.best(results(("lru", 500), ("gdsf", 520)))) == (
        "**GDSF keeps most: +2.0 pt of input tokens over LRU.**"
    )
    assert str(say.best(results(("lru", 500), ("lfu", 400), ("gdsf", 300)))) == (
        "**None of the 2 other policies tried keeps more than LRU at this budget.**"
    )


def test_policies_that_keep_exactly_what_lru_keeps_are_ties() -> None:
    assert str(say.best(results(("lru", 500), ("fifo", 500), ("gdsf", 300)))) == (
        "**None of the 2 other policies tried keeps more than LRU at this budget; FIFO keeps exactly as much.**"
    )


def test_one_other_policy_is_named() -> None:
    assert str(say.best(results(("lru", 500), ("gdsf", 300)))) == (
        "**GDSF, the only other policy tried, does not keep more than LRU at this budget.**"
    )


def test_what_could_not_be_replayed_is_said_with_its_reason() -> None:
    nothing = results(capacity=None)
    for sentence in (say.budget, say.bounds, say.doubling, say.best, say.bill, say.sensitivity):
        assert WHY in str(sentence({**nothing, "money": {}}))
        assert "not found" not in str(sentence({**nothing, "money": {}}))
