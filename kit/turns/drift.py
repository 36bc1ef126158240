"""Do the gaps of a day look like those of the week? The same figures per day, flagged where a day leaves the week."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np

from kit.reuse.resample import deal, interval, ratio_interval
from kit.turns.gaps import TRIGGERS, Batch, batch, read_gaps
from kit.turns.lognormal import LEAST_GAPS

FIVE_MINUTES = 300.0


def _apart(day: dict[str, float], week: dict[str, float]) -> bool:
    return day["high"] < week["low"] or day["low"] > week["high"]


def _columns(found: Batch) -> tuple[Any, Any, Any]:
    """Days; sums of ln x and of gaps within 5 minutes; counts: each [blocks, days + 1], the whole log last."""
    days, at = np.unique(found.day, return_inverse=True)
    block, blocks = deal(found.session)
    shape = (blocks, len(days))
    cell = block * len(days) + at
    worth = (np.log(found.seconds), (found.seconds <= FIVE_MINUTES).astype(np.float64))
    sums = [np.bincount(cell, weights=part, minlength=shape[0] * shape[1]).reshape(shape) for part in worth]
    count = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    whole = [np.column_stack([part, part.sum(axis=1)]) for part in (*sums, count)]
    return days, whole[:2], whole[2]


def drift(log: Any, clock: str = "start_to_start", replicates: int = 500, seed: int = 1) -> list[dict[str, Any]]:
    """Per trigger and day (of the zone the gaps were read in): gaps, mu, median and share within 5 minutes.

    ``mu`` is the mean of ln seconds of the gaps seen. ``interval`` of mu and of the share: 95 %, sessions redrawn.
    ``left_the_week``: the day's interval of mu or of the share does not meet that of the whole log; None where that
    cannot be told (below 8 gaps, or too few sessions).
    """
    gaps = read_gaps(log)
    rows: list[dict[str, Any]] = []
    for trigger in ("all", *TRIGGERS):
        found = batch(gaps, "all", clock).only(trigger)
        if len(found.seconds):
            rows += _days(found, trigger, replicates, seed)
    return rows


def _days(found: Batch, trigger: str, replicates: int, seed: int) -> list[dict[str, Any]]:
    days, sums, count = _columns(found)
    spans = [ratio_interval(part, count, replicates, seed) for part in sums]
    rows = []
    for place, day in enumerate(days):
        n = int(count[:, place].sum())
        edges = [interval(low[place], high[place]) for low, high in spans]
        week = [interval(low[-1], high[-1]) for low, high in spans]
        apart = [_apart(one, other) for one, other in zip(edges, week, strict=True) if one and other]
        left = any(apart) if n >= LEAST_GAPS and apart else None
        rows.append(
            {
                "day": (date(1970, 1, 1) + timedelta(days=int(day))).isoformat(),
                "trigger": trigger,
                "n": n,
                "mu": float(sums[0][:, place].sum() / n),
                "median_seconds": float(np.median(found.seconds[found.day == day])),
                "p_within_300": float(sums[1][:, place].sum() / n),
                "interval": {"mu": edges[0], "p_within_300": edges[1]},
                "left_the_week": left,
            }
        )
    return rows
