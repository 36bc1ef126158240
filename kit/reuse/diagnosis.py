"""Everything about reuse in one call, as plain dicts."""

from __future__ import annotations

from typing import Any

from kit.reuse.concentration import concentration, cut_sentence, other_cuts
from kit.reuse.gaps import reuse_gaps
from kit.reuse.popularity import popularity, working_set
from kit.reuse.rotation import hourly_rotation, rotation
from kit.reuse.scan_effect import scan_effect
from kit.reuse.scans import scans
from kit.reuse.token_types import token_types
from kit.reuse.trace import read_trace
from kit.reuse.value import value_rank

EVERY_CUT = ("longest_shared", "full", "first_1", "first_2", "first_4", "first_8", "root", "session", "chain")


def diagnose(
    log: Any,
    top_fraction: float = 0.05,
    cut: str | None = None,
    ttl_seconds: float | None = None,
    capacity_tokens: int | None = None,
    scan_threshold: float = 0.3,
    zone: str = "UTC",
) -> dict[str, Any]:
    """All figures of this package: concentration, rotation, value_rank, token_types, scans and reuse_gaps.

    Each is what the function of that name returns, and more: ``concentration`` with every other ``cuts`` the log can
    give and a ``sentence``; ``rotation`` with ``hourly``, ``popularity`` (half-lives) and ``working_set``; ``scans``
    with its ``effect`` on LRU where a budget is given. ``zone`` decides where a day begins.
    """
    trace = read_trace(log, zone)
    figures = concentration(trace, top_fraction, cut)
    others = other_cuts(trace, EVERY_CUT, top_fraction)
    return {
        "concentration": {**figures, "cuts": others, "sentence": cut_sentence(figures, others)},
        "rotation": {
            **rotation(trace, top_fraction, cut, zone),
            "hourly": hourly_rotation(trace, top_fraction, cut),
            "popularity": popularity(trace, top_fraction, cut),
            "working_set": working_set(trace),
        },
        "value_rank": value_rank(trace, cut),
        "token_types": token_types(trace),
        "scans": {
            **scans(trace, scan_threshold),
            "effect": scan_effect(trace, capacity_tokens) if capacity_tokens else None,
        },
        "reuse_gaps": reuse_gaps(trace, ttl_seconds),
    }
