"""The search that a policy makes on the log itself before it settles: Marconi's weight of work against recency.

A policy file that names a parameter in `SEARCHED` gives a `GRID` of values and `work` per node. As there, nothing is
known before the first eviction; the requests that follow it, `window` times as many as came before, are replayed once
per value, and the value that saves most work holds for the rest of the log.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kit.policies import Policy
from kit.prefix import Paths, path_sums
from kit.replay import Setting, replay
from kit.replay.fleet import select

MOST_WORK = 2**30


def searched(
    paths: Paths, policy: Policy, capacity_tokens: int, setting: Setting, given: dict[str, float], compiled: bool
) -> dict[str, float]:
    """The parameters a policy runs with: those given, the value its search finds, and the request it holds from.

    A log that ends before the search could be made keeps the value the policy begins with.
    """
    module, values = policy.module, {**policy.parameters, **given}
    before = requests_before_eviction(paths, policy, capacity_tokens, setting, given, compiled)
    end = int(before * (1 + values["window"])) if before is not None else paths.requests
    if end >= paths.requests:
        return {**given, module.SEARCHED: policy.parameters[module.SEARCHED]}
    window = worth_in_work(select(paths, np.arange(end)).by_unit, policy, values["width"])
    saved = [
        replay(window, policy, capacity_tokens=capacity_tokens, setting=setting, compiled=compiled,
               parameters={**given, module.SEARCHED: value}).total()["hit_tokens"]
        for value in module.GRID
    ]  # fmt: skip
    return {**given, module.SEARCHED: module.GRID[int(np.argmax(saved))], "start": float(end)}


def requests_before_eviction(
    paths: Paths, policy: Policy, capacity_tokens: int, setting: Setting, given: dict[str, float], compiled: bool
) -> int | None:
    """Requests served before the first that evicts; None where none does. By doubling, then halving."""
    values = {**given, policy.module.SEARCHED: policy.parameters[policy.module.SEARCHED]}

    def evicts(requests: int) -> bool:
        part = select(paths, np.arange(requests))
        tally = replay(part, policy, capacity_tokens=capacity_tokens, setting=setting, parameters=values,
                       compiled=compiled)  # fmt: skip
        return tally.total()["evictions"] > 0

    free, full = 0, 64
    while full < paths.requests and not evicts(full):
        free, full = full, 2 * full
    full = min(full, paths.requests)
    if not evicts(full):
        return None
    while full - free > 1:
        middle = (free + full) // 2
        free, full = (free, middle) if evicts(middle) else (middle, full)
    return free


def worth_in_work(paths: Paths, policy: Policy, width: float) -> Paths:
    """The same paths with a hit worth its work instead of its tokens (whole numbers, scaled to fit 30 bits)."""
    work = policy.module.work(paths.path_tokens, paths.parent, width)
    unit = max(6.0 * width, float(work.max(initial=0.0)) / MOST_WORK)
    worth = np.maximum(np.rint(work / unit), 1).astype(np.int64)
    whole = path_sums(paths.parent, worth)
    total = np.where(paths.leaf >= 0, whole[np.maximum(paths.leaf, 0)], 0) if worth.size else paths.input_tokens
    return replace(paths, tokens=worth, input_tokens=np.maximum(total, paths.input_tokens))
