"""TensorRT-LLM: one queue per priority 0 to 100, the oldest of the lowest goes; a priority can run out.

Source: TensorRT-LLM `cpp/tensorrt_llm/batch_manager/evictionPolicy.cpp` @fc07e75 and its `kvcache` page. A use puts the
block at the back of the queue of the request's priority (35 unless the log says otherwise), the new value always
counts. A priority other than 35 with a retention time falls back to 35, at the back, once that time has passed.
Ties: the deeper block first. Nested paths: only leaves go, as there.
A block in use waits in no queue (`Setting.hold_until_end`): it takes its place, and its time starts, when it is free.
Leaves out: the host level, priorities by token range and of generated tokens (one value per request here).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies import lists
from kit.policies.lists import oldest_leaf, put, take

__all__ = ["cover", "enter", "free", "leave", "pool", "touch", "uncover", "victim"]

TITLE = "TensorRT-LLM (priorities)"
PARAMETERS: dict[str, float] = {}
OVERLAPS = True
NEEDS = ("priority",)
WANTS = ("retention_seconds",)
USUAL, HIGHEST = 35, 100
NEVER = 2**62


class Pool(NamedTuple):
    """One list per priority (see `kit.policies.lists`). `due_us` per node (NEVER = none) and the nodes with one linked
    by it (`sooner`, `later`; the last index is the sentinel), `asked` per node its last request. Per request
    `priority`, `lasting_us` (NEVER = for ever), `ts_us`; `now` [1] last request."""

    links: Any
    tokens: NDArray[np.int64]
    due_us: NDArray[np.int64]
    sooner: NDArray[np.int32]
    later: NDArray[np.int32]
    asked: NDArray[np.int32]
    priority: NDArray[np.int64]
    lasting_us: NDArray[np.int64]
    ts_us: NDArray[np.int64]
    now: NDArray[np.int64]


def pool(
    nodes: int, room_tokens: NDArray[np.int64], ts_us: NDArray[np.int64], priority: NDArray[np.int64],
    retention_seconds: Any = None,
) -> Pool:  # fmt: skip
    """Nothing resident. `priority` 0 to 100 per request (below 0 = not given: 35), `retention_seconds` per request
    (below 0 = not given: for ever)."""
    given = np.where(priority < 0, USUAL, np.minimum(priority, HIGHEST)).astype(np.int64)
    seconds = np.full(ts_us.size, -1.0) if retention_seconds is None else np.asarray(retention_seconds, np.float64)
    lasting = np.where((seconds < 0) | (given == USUAL), NEVER, np.round(seconds * 1e6)).astype(np.int64)
    links = np.full(nodes + 1, nodes, np.int32)
    return Pool(*lists.empty(room_tokens, HIGHEST + 1), np.full(nodes, NEVER), links, links.copy(),
                np.zeros(nodes, np.int32), given, lasting, ts_us, np.zeros(1, np.int64))  # fmt: skip


def schedule(p: Any, node: int, due_us: int) -> None:
    """Link a node among those whose priority will run out, by time."""
    p.due_us[node] = due_us
    if due_us == NEVER:
        return
    end = np.int64(p.due_us.size)
    before = np.int64(p.sooner[end])
    while before != end and p.due_us[before] > due_us:
        before = np.int64(p.sooner[before])
    after = p.later[before]
    p.later[before] = node
    p.sooner[node] = before
    p.later[node] = after
    p.sooner[after] = node


def unschedule(p: Any, node: int) -> None:
    """The priority of a node will not run out any more."""
    if p.due_us[node] != NEVER:
        p.later[p.sooner[node]] = p.later[node]
        p.sooner[p.later[node]] = p.sooner[node]
        p.due_us[node] = NEVER


def refresh(p: Any, now_us: int) -> None:
    """What has run out falls to the back of priority 35, the earliest first."""
    end = np.int64(p.due_us.size)
    node = np.int64(p.later[end])
    while node != end and p.due_us[node] <= now_us:
        unschedule(p, node)
        take(p, node)
        put(p, np.int64(USUAL), node)
        node = np.int64(p.later[end])


def place(p: Any, node: int, request: int, now_us: int) -> None:
    """The back of the queue of a request's priority, for as long as that lasts from now on."""
    p.asked[node] = request
    put(p, p.priority[request], node)
    schedule(p, node, now_us + p.lasting_us[request] if p.lasting_us[request] != NEVER else np.int64(NEVER))


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A block becomes resident at the request's priority."""
    p.now[0] = request
    refresh(p, now_us)
    place(p, node, request, now_us)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident block is used again: the back of the queue of the request's priority."""
    unschedule(p, node)
    take(p, node)
    enter(p, own, node, depth, False, request, now_us)


def free(p: Any, own: Any, node: int, end_us: int) -> None:
    """The last running request that uses a block has ended: placed anew, behind what has run out by then."""
    refresh(p, end_us)
    unschedule(p, node)
    take(p, node)
    place(p, node, np.int64(p.asked[node]), end_us)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A block is evicted or expires."""
    unschedule(p, node)
    take(p, node)


def cover(p: Any, own: Any, node: int) -> None:
    """Nothing: the queues hold all resident blocks."""


def uncover(p: Any, own: Any, node: int) -> None:
    """Nothing: the queues hold all resident blocks."""


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The oldest leaf of the lowest priority that has one; -1 = none."""
    refresh(p, p.ts_us[request if request >= 0 else p.now[0]])
    for priority in range(HIGHEST + 1):
        node = oldest_leaf(p, np.int64(priority), nodes, request)
        if node >= 0:
            return node
    return np.int64(-1)
