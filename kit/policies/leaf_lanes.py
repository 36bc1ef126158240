"""Resident leaves by class ("lane"), each lane a heap by last use: what policies are made of that compare class heads.

Only leaves can go, so only leaves are kept in order; using a node that has resident children costs a store or two.
Inside a lane the oldest use goes first and, within one request, the deeper node. Such a policy walks the path of a
request once, leaf to root (`arrive`), and has nothing left to do at each node of it.

A policy's `Pool` has `spots` (recarray of at least SPOT, one per node), `heap` (the lanes' node numbers, each lane in
its own stretch) and `core`, one record of small arrays, since every call passes all that the pool has: `lanes` (at
least LANE), `live`: how many lanes hold leaves, the last request seen, two places for the policy (from SPARE), then the
lanes that hold leaves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SPOT = [("order", np.int64), ("at", np.int32), ("parent", np.int32), ("children", np.int32), ("lane", np.int8),
        ("there", np.bool_)]  # fmt: skip
"""`order` rises with the last use and falls with depth, `at` place in the lane's heap (-1 = no leaf, or not resident),
`children` resident ones, `lane` of the last use, `there` = resident."""

LANE = [("start", np.int32), ("leaves", np.int32), ("slot", np.int32), ("best", np.int32), ("skipped", np.int64),
        ("order", np.int64), ("since_us", np.int64), ("asked", np.int64), ("value", np.float64)]  # fmt: skip
"""`start` of its stretch of the heap, how many `leaves` it holds, its place in `live` (`slot`); the leaf it would give
up (`best`, LOOK = look at its head again, NONE = nothing but what request `skipped` pins), its `order` and last use
`since_us`; what that is worth at request `asked` (`value`; -1 = weigh again)."""

DEEPEST = (1 << 31) - 1
LOOK, NONE = -1, -2
COUNT, REQUEST, SPARE = 0, 1, 2
FIRST = SPARE + 2


def empty_core(lane: list[Any], most: NDArray[np.int64], *arrays: tuple[Any, ...]) -> tuple[Any, NDArray[np.int32]]:
    """(core, heap) of lanes that hold at most `most` nodes each. `lane`: further fields of a lane, `arrays` (name,
    dtype, shape): further arrays of the core; all are 0 at first."""
    lanes = np.dtype((np.record, np.dtype([*LANE, *lane], align=True)))
    core = np.zeros(1, np.dtype([("live", np.int64, FIRST + most.size), ("lanes", lanes, most.size), *arrays],
                                align=True)).view(np.recarray)[0]  # fmt: skip
    core.lanes["start"] = np.cumsum(most) - most
    for name in ("slot", "best", "skipped", "asked"):
        core.lanes[name] = -1
    core.live[REQUEST] = -1
    return core, np.full(int(most.sum()), -1, np.int32)


def empty_spots(extra: list[tuple[str, Any]], parent: NDArray[np.int32]) -> Any:
    """A recarray of spots, one per node, none resident; `extra` fields start at 0."""
    spots = np.zeros(parent.size, np.dtype([*SPOT, *extra], align=True)).view(np.recarray)
    spots.at = -1
    spots.parent = parent
    return spots


def order_of(request: int, depth: int) -> int:
    """Rank of a use among all uses: by request, then deeper first."""
    return (np.int64(request) << 32) + (DEEPEST - np.int64(depth))


def last_use(order: int) -> int:
    """The request of a rank."""
    return order >> 32


def depth_of(order: int) -> int:
    """The depth of a rank."""
    return DEEPEST - (order & 0xFFFFFFFF)


def sift_up(p: Any, start: int, place: int, node: int) -> None:
    """Put a node at a place of a lane's heap, or above it."""
    order = p.spots[node].order
    while place > 0:
        above = (place - 1) >> 1
        other = np.int64(p.heap[start + above])
        if p.spots[other].order <= order:
            break
        p.heap[start + place] = other
        p.spots[other].at = place
        place = above
    p.heap[start + place] = node
    p.spots[node].at = place


def sift_down(p: Any, start: int, size: int, place: int, node: int) -> None:
    """Put a node at a place of a lane's heap, or below it."""
    order = p.spots[node].order
    below = 2 * place + 1
    while below < size:
        other = np.int64(p.heap[start + below])
        least = p.spots[other].order
        if below + 1 < size:
            right = np.int64(p.heap[start + below + 1])
            if p.spots[right].order < least:
                other, least, below = right, np.int64(p.spots[right].order), below + 1
        if order <= least:
            break
        p.heap[start + place] = other
        p.spots[other].at = place
        place = below
        below = 2 * place + 1
    p.heap[start + place] = node
    p.spots[node].at = place


def refill(p: Any, which: int, place: int, node: int) -> None:
    """A node takes a place of a lane's heap that another one leaves."""
    lane = p.core.lanes[which]
    start = np.int64(lane.start)
    lane.best = LOOK
    if place > 0 and p.spots[node].order < p.spots[p.heap[start + ((place - 1) >> 1)]].order:
        sift_up(p, start, place, node)
    else:
        sift_down(p, start, np.int64(lane.leaves), place, node)


def shrink_lane(p: Any, which: int, place: int) -> None:
    """A place of a lane's heap is left: its last node takes it."""
    lane = p.core.lanes[which]
    lane.best = LOOK
    lane.leaves -= 1
    if place < lane.leaves:
        refill(p, which, place, np.int64(p.heap[lane.start + lane.leaves]))
    if lane.leaves == 0:
        p.core.live[COUNT] -= 1
        last = p.core.live[FIRST + p.core.live[COUNT]]
        p.core.live[FIRST + lane.slot] = last
        p.core.lanes[last].slot = lane.slot


def add_leaf(p: Any, node: int) -> None:
    """A node with its order and lane set becomes a leaf."""
    which = np.int64(p.spots[node].lane)
    lane = p.core.lanes[which]
    lane.best = LOOK
    place = np.int64(lane.leaves)
    lane.leaves += 1
    if place == 0:
        lane.slot = p.core.live[COUNT]
        p.core.live[FIRST + p.core.live[COUNT]] = which
        p.core.live[COUNT] += 1
    sift_up(p, np.int64(lane.start), place, node)


def drop_leaf(p: Any, node: int) -> None:
    """A leaf is covered, or moves on: it leaves its lane."""
    gone = p.spots[node]
    place = np.int64(gone.at)
    gone.at = -1
    shrink_lane(p, np.int64(gone.lane), place)


def new_child(p: Any, node: int) -> None:
    """A node becomes resident."""
    p.spots[node].there = True
    if p.spots[node].parent >= 0:
        p.spots[p.spots[node].parent].children += 1


def give_up(p: Any, node: int) -> None:
    """A leaf is evicted or expires. Its parent may be the next leaf: mostly of the same lane, where it takes over."""
    gone = p.spots[node]
    place, which, parent = np.int64(gone.at), np.int64(gone.lane), np.int64(gone.parent)
    gone.at = -1
    gone.there = False
    bare = False
    if parent >= 0:
        p.spots[parent].children -= 1
        bare = p.spots[parent].children == 0
    if bare and p.spots[parent].lane == which:
        refill(p, which, place, parent)
        return
    shrink_lane(p, which, place)
    if bare:
        add_leaf(p, parent)


def look(p: Any, which: int) -> None:
    """The head of a lane is what it would give up; what was worked out for another leaf of the same use still holds."""
    lane = p.core.lanes[which]
    lane.best = p.heap[lane.start]
    lane.skipped = -1
    order = np.int64(p.spots[lane.best].order)
    if lane.asked < 0 or last_use(order) != last_use(np.int64(lane.order)):
        lane.since_us = p.asks[last_use(order)].ts_us
        lane.asked = -1
    lane.order = order


def look_past(p: Any, which: int, request: int) -> None:
    """The request pins the head of a lane (a path pins at most one leaf): the next oldest stands for it until then."""
    lane = p.core.lanes[which]
    start = np.int64(lane.start)
    lane.best = NONE
    lane.skipped = request
    lane.asked = -1
    if lane.leaves < 2:
        return
    node = np.int64(p.heap[start + 1])
    if lane.leaves > 2 and p.spots[p.heap[start + 2]].order < p.spots[node].order:
        node = np.int64(p.heap[start + 2])
    lane.best = node
    lane.order = p.spots[node].order
    lane.since_us = p.asks[last_use(np.int64(lane.order))].ts_us
