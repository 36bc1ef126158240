"""T-LRU: blocks that the next turn would not miss go first, then the least recently used.

Source: T-LRU (arXiv 2510.15152) as SGLang 0.5.23 ships it, policy `tlru`. A block is safe to lose if the prefix above
it is at least (longest prompt seen through it + estimate of the next prompt - latency threshold) long. With threshold
and estimate at their default 0 no block is safe and the order is LRU. Ties: the deeper block first.
Leaves out: SGLang's whole-node eviction (blocks here), the refusal to start with a threshold that changes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TITLE = "T-LRU"
PARAMETERS: dict[str, float] = {"threshold_tokens": 0.0, "next_prompt_tokens": 0.0}


class Own(NamedTuple):
    """Per node `path_tokens`, `tokens`, `longest` prompt seen through it; `leaf` per request; `slack` [1] tokens."""

    path_tokens: NDArray[np.int64]
    tokens: NDArray[np.int64]
    longest: NDArray[np.int64]
    leaf: NDArray[np.int32]
    slack: NDArray[np.int64]


def own(
    path_tokens: NDArray[np.int64], tokens: NDArray[np.int64], leaf: NDArray[np.int32], threshold_tokens: float = 0.0,
    next_prompt_tokens: float = 0.0,
) -> Own:  # fmt: skip
    """No prompts seen."""
    slack = np.array([int(next_prompt_tokens) - int(threshold_tokens)])
    return Own(path_tokens, tokens, np.zeros(path_tokens.size, np.int64), leaf, slack)


def on_enter(own: Any, node: int, request: int, now_us: int) -> None:
    """A prompt passes."""
    own.longest[node] = max(own.longest[node], own.path_tokens[own.leaf[request]])


def on_touch(own: Any, node: int, request: int, now_us: int) -> None:
    """A prompt passes."""
    own.longest[node] = max(own.longest[node], own.path_tokens[own.leaf[request]])


def key(own: Any, node: int) -> float:
    """-1 = safe to lose, 0 = not."""
    needed = max(own.longest[node] + own.slack[0], 0)
    return -1.0 if own.path_tokens[node] - own.tokens[node] >= needed else 0.0
