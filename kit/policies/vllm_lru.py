"""vLLM's prefix cache: LRU over full blocks, and the last token of a prompt is always computed again.

Source: vLLM 0.33.0, `v1/core/block_pool.py` and `kv_cache_manager.py`. Blocks are freed tail first into one queue, so
the order is that of `lru`. A hit is capped at the prompt less one token and floored to a block: a prompt that is cached
whole loses its last block (counted as below minimum, computed again, not stored again). Ties: the deeper block first.
With `Setting.hold_until_end` blocks are freed when their last request has ended.
Leaves out: blocks of generated tokens, the slot of a partial last block
(`partial_tail="keep"` gives it one), two blocks with one hash.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit.policies.lru import cover, enter, free, leave, pool, touch, uncover, victim

__all__ = ["cover", "enter", "free", "leave", "own", "pool", "readable", "touch", "uncover", "victim"]

TITLE = "vLLM (LRU, last token computed again)"
PARAMETERS: dict[str, float] = {}
OVERLAPS = True
INLINE = True


def own(block_tokens: int) -> NDArray[np.int64]:
    """The block size, int64[1]."""
    return np.array([block_tokens])


def readable(p: Any, own: Any, matched: int, total: int) -> int:
    """At most the prompt less one token, in whole blocks."""
    return min(matched, (total - 1) // own[0] * own[0])
