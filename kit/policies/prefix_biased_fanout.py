"""Prefix-biased by fan-out: the leaf fewest sessions ever passed through first, then the oldest use.

Source: the other reading of "prefix-biased" eviction: keep what many conversations share. A session counts once per
node; the count is kept after eviction. Without sessions every request is a session of its own (then it is perfect LFU).
Leaves out: ageing, so a template nobody uses any more stays. Tie: the oldest use, then the deeper node.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TITLE = "Prefix-biased (fan-out)"
PARAMETERS: dict[str, float] = {}
WANTS = ("session_id",)


class Own(NamedTuple):
    """`sessions` that passed through each node, the `last` of them, and the `session` of each request.

    A session that comes back to a node after another one did counts again, which is what one counter per node can do.
    """

    sessions: NDArray[np.float64]
    last: NDArray[np.int64]
    session: NDArray[np.int64]


def own(nodes: int, leaf: NDArray[np.int32], session: Any = None) -> Own:
    """Nobody has passed yet."""
    who = np.arange(leaf.size) if session is None else np.asarray(session)
    return Own(np.zeros(nodes), np.full(nodes, -1, np.int64), who.astype(np.int64))


def on_enter(own: Any, node: int, request: int, now_us: int) -> None:
    """One more session, unless it is the one that came last."""
    if own.last[node] != own.session[request]:
        own.sessions[node] += 1.0
        own.last[node] = own.session[request]


def on_touch(own: Any, node: int, request: int, now_us: int) -> None:
    """One more session, unless it is the one that came last."""
    if own.last[node] != own.session[request]:
        own.sessions[node] += 1.0
        own.last[node] = own.session[request]


def key(own: Any, node: int) -> float:
    """Sessions so far."""
    return own.sessions[node]
