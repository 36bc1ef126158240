"""What the session-aware policies ask of a log: who sent each request, whether it is an agent, whether more follows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit.prefix import first_seen_rank

AGENT_SESSION = 3


def owners(session: Any, requests: int) -> NDArray[np.int64]:
    """Session of each request, numbered from 0; without sessions every request is a session of its own."""
    return np.arange(requests) if session is None else first_seen_rank(np.asarray(session))


def agents(session_type: Any, requests: int) -> NDArray[np.bool_]:
    """Whether each request is an agent's; without session types none is."""
    return np.zeros(requests, np.bool_) if session_type is None else np.asarray(session_type) == AGENT_SESSION


def later_turns(session: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the same session asks again after each request (what an oracle knows)."""
    last = np.full(int(session.max(initial=-1)) + 1, -1, np.int64)
    last[session] = np.arange(session.size)
    return last[session] > np.arange(session.size)
