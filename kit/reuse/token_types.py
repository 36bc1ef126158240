"""What kind of token comes back: reuse by type, by place in the prompt, and one-shot tool output among the longest."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit

from kit.reuse.concentration import share
from kit.reuse.cuts import prompt_tokens, reusable_tokens
from kit.reuse.resample import interval, ratio_interval, request_blocks
from kit.reuse.trace import Codes, Ints, Trace, read_trace, sum_from_root

TOOL_OUTPUT = ("tool_result", "tool_output")
PLACES = (0, 1_000, 4_000, 16_000, 64_000, 256_000)


@njit(cache=True, nogil=True)
def _by_block(leaf: Ints, parent: Ints, tokens: Ints, kind: Codes, block: Ints, blocks: int, kinds: int) -> Ints:
    """[2, blocks, kinds]: tokens brought and tokens already seen, by the block of the request that brought them."""
    seen = np.zeros(len(parent), dtype=np.bool_)
    found = np.zeros((2, blocks, kinds), dtype=np.int64)
    for request in range(len(leaf)):
        node = leaf[request]
        while node >= 0:
            if kind[node] >= 0:
                found[0, block[request], kind[node]] += tokens[node]
                if seen[node]:
                    found[1, block[request], kind[node]] += tokens[node]
            seen[node] = True
            node = parent[node]
    return found


def _rows(trace: Trace, kind: Codes, names: list[Any], label: str, replicates: int) -> list[dict[str, Any]]:
    block, _ = request_blocks(trace)
    blocks = int(block.max(initial=0)) + 1
    found = _by_block(trace.leaf, trace.parent, trace.tokens, kind, block, blocks, len(names))
    brought, again = found.astype(np.float64)
    low, high = ratio_interval(again, brought, replicates)
    alone = np.bincount(
        kind[(kind >= 0) & (trace.passes == 1)],
        weights=trace.tokens[(kind >= 0) & (trace.passes == 1)],
        minlength=len(names),
    )
    rows = []
    for number, name in enumerate(names):
        tokens, reused = int(brought[:, number].sum()), int(again[:, number].sum())
        rows.append(
            {
                label: name,
                "tokens": tokens,
                "reused_tokens": reused,
                "reuse_rate": share(reused, tokens),
                "interval": interval(low[number], high[number]),
                "one_shot_token_share": share(alone[number], tokens),
            }
        )
    return rows


def _places(trace: Trace) -> tuple[Codes, list[str]]:
    start = trace.path_tokens - trace.tokens
    names = [f"{low:,} to {high:,}" for low, high in pairwise(PLACES)]
    return (np.searchsorted(PLACES, start, side="right") - 1).astype(np.int32), [*names, f"{PLACES[-1]:,} and more"]


def _tool_output_among_longest(trace: Trace, tenth: float = 0.1) -> float | None:
    """Of all tokens in the longest tenth of prompts: share that is tool output nobody used again."""
    tool = [code for code, name in enumerate(trace.type_names) if name in TOOL_OUTPUT]
    held = np.flatnonzero(trace.leaf >= 0)
    if not tool or not len(held):
        return None
    length = trace.path_tokens[trace.leaf[held]]
    longest = held[np.argsort(-length, kind="stable")[: int(np.ceil(len(held) * tenth))]]
    alone = np.where(np.isin(trace.token_type, tool) & (trace.passes == 1), trace.tokens, 0)
    one_shot = sum_from_root(trace.parent, alone)[trace.leaf[longest]]
    return share(one_shot.sum(), trace.path_tokens[trace.leaf[longest]].sum())


def token_types(log: Any, replicates: int = 1000) -> dict[str, Any]:
    """Reuse by token type and by place in the prompt, in a cache that never forgets.

    ``types``: per type tokens brought by all requests, tokens among them that had been seen before, their ratio with a
    95 % interval over sessions, and the share nobody used again. ``spread``: highest over lowest rate (None where the
    lowest is 0). ``places``: the same by the token offset at which a piece starts. Empty ``types`` without types.
    """
    trace = read_trace(log)
    names = list(trace.type_names)
    types = _rows(trace, trace.token_type, names, "token_type", replicates) if names else []
    rates = [row["reuse_rate"] for row in types if row["reuse_rate"] is not None]
    place, place_names = _places(trace)
    held = bool((trace.leaf >= 0).any())
    places = _rows(trace, place, place_names, "prompt_tokens", replicates) if held else []
    brought = prompt_tokens(trace).sum()
    return {
        "types": types,
        "spread": max(rates) / min(rates) if len(rates) > 1 and min(rates) > 0 else None,
        "overall_reuse_rate": share(reusable_tokens(trace).sum(), brought),
        "typed_token_share": share(sum(row["tokens"] for row in types), brought),
        "one_shot_tool_output_share_of_longest": _tool_output_among_longest(trace),
        "places": [row for row in places if row["tokens"]],
        "interval_basis": request_blocks(trace)[1],
    }
