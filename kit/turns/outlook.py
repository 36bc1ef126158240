"""What the gaps mean for a time to live: how often the next turn comes in time, and the tokens rewritten when not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kit.reuse.resample import deal, interval, ratio_interval
from kit.turns.gaps import CLOCKS, TRIGGERS, Batch, batches, read_gaps
from kit.turns.goodness import incidence_of
from kit.turns.summary import WITHIN_SECONDS


def _per_block(found: Batch, worth: Any) -> Any:
    """Sums per block of sessions of one column per TTL: [blocks, TTLs]."""
    block, _ = deal(found.session)
    return np.column_stack([np.bincount(block, weights=column) for column in worth])


def _row(found: Batch, trigger: str, ttls: Sequence[float], replicates: int, seed: int) -> list[dict[str, Any]]:
    mine = found.only(trigger)
    alive = [(mine.seconds <= ttl).astype(np.float64) for ttl in ttls]
    ones = np.ones(len(mine.seconds))
    low, high = ratio_interval(_per_block(mine, alive), _per_block(mine, [ones] * len(ttls)), replicates, seed)
    stake = mine.tokens.astype(np.float64)
    lost_low, lost_high = ratio_interval(
        _per_block(mine, [stake * (1 - part) for part in alive]), _per_block(mine, [ones] * len(ttls)), replicates, seed
    )
    times, come = incidence_of(found, trigger)
    reached = np.concatenate([[0.0], come])[np.searchsorted(times, ttls, side="right")]
    return [
        {
            "session_type": found.session_type,
            "trigger": trigger,
            "ttl_seconds": float(ttl),
            "n": len(mine.seconds),
            "p_within": float(alive[at].mean()),
            "interval": interval(low[at], high[at]),
            "p_next_within": float(reached[at]) if len(found.open_seconds) else None,
            "rewrite_tokens": int(mine.tokens[mine.seconds > ttl].sum()),
            "rewrite_tokens_per_turn": float((stake * (1 - alive[at])).mean()),
            "rewrite_interval": interval(lost_low[at], lost_high[at]),
            "rewrite_token_share": float((stake * (1 - alive[at])).sum() / stake.sum()) if stake.any() else None,
        }
        for at, ttl in enumerate(ttls)
    ]


def ttl_outlook(
    log: Any, ttls: Sequence[float] = WITHIN_SECONDS, replicates: int = 500, seed: int = 1
) -> list[dict[str, Any]]:
    """Per session type, trigger and time to live, on the start-to-start clock that a provider's TTL runs on.

    ``p_within``: share of the gaps seen that are no longer, with its 95 % interval over sessions. ``p_next_within``:
    probability that any turn is followed by such a turn in time, sessions that end included (None without open
    turns). ``rewrite_tokens``: prefix
    tokens (smaller of two neighbouring prompts) whose next turn came too late, in total, per turn and as a share.
    """
    gaps = read_gaps(log)
    rows: list[dict[str, Any]] = []
    for found, names in batches(gaps, CLOCKS[:1]):
        told = [
            told
            for trigger in ("all", *TRIGGERS)
            if found.of_kind(trigger).any()
            for told in _row(found, trigger, ttls, replicates, seed)
        ]
        rows += [{**row, "session_type": name} for name in names for row in told]
    return rows
