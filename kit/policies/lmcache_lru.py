"""LMCache: LRU over chunks of 256 tokens; what is short of a chunk is no hit.

Source: LMCache 0.5.6, `v1/storage_backend/cache_policy` LRU and `v1/config.py` (chunk_size 256). A request's hits are
applied tail first, so the order is that of `lru`. A match is floored to `chunk_tokens`. Ties: the deeper block first.
Leaves out: the room of chunks where the log's blocks are smaller (read the log with block_tokens=256 for that), the
other cache policies (FIFO and LFU are here under their own names), pinning.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit.policies.lru import cover, enter, free, leave, pool, touch, uncover, victim

__all__ = ["cover", "enter", "free", "leave", "own", "pool", "readable", "touch", "uncover", "victim"]

TITLE = "LMCache (LRU, chunks of 256)"
PARAMETERS: dict[str, float] = {"chunk_tokens": 256.0}
OVERLAPS = True
INLINE = True


def own(block_tokens: int, chunk_tokens: float = 256.0) -> NDArray[np.int64]:
    """Tokens of a chunk, int64[1]: at least one block of the log."""
    return np.array([max(int(chunk_tokens), block_tokens)])


def readable(p: Any, own: Any, matched: int, total: int) -> int:
    """Whole chunks of the match."""
    return matched // own[0] * own[0]
