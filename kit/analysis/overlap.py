"""What running requests hold, where a request's prefix stays until it ends (`hold_until_end`)."""

from __future__ import annotations

from typing import Any

from kit import numbers
from kit.analysis.parts import Parts
from kit.analysis.rows import BASE_POLICY


def overlap(made: Parts) -> dict[str, Any] | None:
    """{policy, capacity_tokens, requests, ended_requests (with a ts_end), most_held_tokens at once, crowded_requests
    that found no room beside that, sentence} of LRU at the budget; None where requests come one after the other."""
    scene, tally = made.scene, made.tally(BASE_POLICY)
    if scene.paths is None or tally is None or not tally.setting.hold_until_end:
        return None
    found = {
        "policy": BASE_POLICY,
        "capacity_tokens": tally.capacity_tokens,
        "requests": scene.paths.requests,
        "ended_requests": int((scene.paths.tags["ts_end_us"] >= 0).sum()),
        "most_held_tokens": tally.most_held_tokens,
        "crowded_requests": tally.crowded_requests,
    }
    return {**found, "sentence": sentence(found)}


def sentence(found: dict[str, Any]) -> str:
    """How much of the budget running requests take at most, and how many requests that leaves without room."""
    share = found["most_held_tokens"] / found["capacity_tokens"]
    lead = (f"Running requests hold up to {numbers.tokens(found['most_held_tokens'])} at once, "
            f"{numbers.percent(share)} of the budget; ")  # fmt: skip
    crowded, all_of_them = found["crowded_requests"], found["requests"]
    if not crowded:
        return lead + "every request that fits the budget finds room beside them."
    return lead + (
        f"{numbers.count(crowded)} of {numbers.count(all_of_them)} requests ({numbers.percent(crowded / all_of_them)}) "
        "find no room beside them and store nothing (an engine would let them wait, which a log cannot tell)."
    )
