"""The one loop: every request of a log against one policy at one capacity.

Order inside a request: expire -> match -> count -> evict the shortfall among the others -> insert -> the tail of the
path becomes the most evictable part of it. Requests run in arrival order, one at a time.

The functions `enter touch leave cover uncover victim` are bound to a policy when the loop is built (kit.replay.build);
run as it stands, the module is plain Python with LRU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies.lru import cover, enter, leave, touch, uncover, victim

FIELDS = (
    "requests", "hits", "input_tokens", "hit_tokens", "write_tokens", "uncached_tokens", "missed_cold",
    "missed_evicted", "missed_expired", "missed_lost", "missed_below_minimum", "missed_in_flight", "missed_oversize",
    "evictions", "evicted_unused_tokens",
)  # fmt: skip

(REQUESTS, HITS, INPUT, HIT, WRITE, UNCACHED, COLD, EVICTED, EXPIRED, LOST, BELOW_MINIMUM, IN_FLIGHT, OVERSIZE,
 EVICTIONS, UNUSED) = range(len(FIELDS))  # fmt: skip
FIRST_CAUSE = COLD
NEVER_SEEN, WAS_EVICTED, HAS_EXPIRED, WAS_LOST, TOO_SHORT, NOT_YET_READABLE, BYPASSED = range(7)
NOBODY = -2
ROOT_FIRST = False


class Week(NamedTuple):
    """What a replay reads; shapes and units as in `kit.prefix.Paths`. `lost` is the provider's draw per request."""

    parent: NDArray[np.int32]
    depth: NDArray[np.int32]
    tokens: NDArray[np.int64]
    room_tokens: NDArray[np.int64]
    path_tokens: NDArray[np.int64]
    leaf: NDArray[np.int32]
    ts_us: NDArray[np.int64]
    input_tokens: NDArray[np.int64]
    block: NDArray[np.int32]
    rate: NDArray[np.int32]
    hour: NDArray[np.int32]
    warm: NDArray[np.bool_]
    lost: NDArray[np.bool_]


class Tier(NamedTuple):
    """The tier under study, per node: `used_at` (request of the last use while resident, -1 = not resident), `fate`
    (why it is not resident), `children` (resident ones), `reused` (hit since inserted), `readable_us`, `pinned` (by
    which request). `row` holds one request's figures in the order of FIELDS, `used` the tokens held, `path` a scratch.
    """

    used_at: NDArray[np.int64]
    fate: NDArray[np.int8]
    children: NDArray[np.int32]
    reused: NDArray[np.bool_]
    readable_us: NDArray[np.int64]
    pinned: NDArray[np.int64]
    row: NDArray[np.int64]
    used: NDArray[np.int64]
    path: NDArray[np.int32]


def tier(nodes: int, longest_path: int) -> Tier:
    """An empty tier for `nodes` nodes whose deepest path has `longest_path` nodes."""
    return Tier(
        np.full(nodes, -1, np.int64), np.zeros(nodes, np.int8), np.zeros(nodes, np.int32), np.zeros(nodes, np.bool_),
        np.zeros(nodes, np.int64), np.full(nodes, NOBODY - 1, np.int64), np.zeros(len(FIELDS), np.int64),
        np.zeros(1, np.int64), np.empty(longest_path, np.int32),
    )  # fmt: skip


def remove(week: Any, t: Any, pool: Any, own: Any, node: int, evicted: bool) -> None:
    """Take a resident node out of the tier: evicted, or expired."""
    leave(pool, own, node, evicted)
    t.used[0] -= week.room_tokens[node]
    t.used_at[node] = -1
    t.fate[node] = WAS_EVICTED if evicted else HAS_EXPIRED
    if not t.reused[node]:
        t.row[UNUSED] += week.tokens[node]
    above = week.parent[node]
    if above >= 0:
        t.children[above] -= 1
        if t.children[above] == 0 and t.used_at[above] >= 0:
            uncover(pool, own, above)


def expire(week: Any, t: Any, pool: Any, own: Any, cursor: int, now: int, ttl_us: int, resident: Any) -> int:
    """Drop what was last used more than `ttl_us` before `now`. Recency is trace order, so a cursor over the trace
    finds it; comes back as the new cursor."""
    while now - week.ts_us[cursor] > ttl_us:
        node = week.leaf[cursor]
        while node >= 0 and t.used_at[node] <= cursor:
            if t.used_at[node] == cursor:
                resident[0] -= week.room_tokens[node] * ((now - week.ts_us[cursor] - ttl_us) * 1e-6)
                remove(week, t, pool, own, node, False)
            node = week.parent[node]
        cursor += 1
    return cursor


def climb(week: Any, t: Any, end: int) -> int:
    """Write the path into the scratch, leaf first; comes back as its length in nodes."""
    length = 0
    node = end
    while node >= 0:
        t.path[length] = node
        length += 1
        node = week.parent[node]
    return length


def match(t: Any, length: int, now: int, visible_us: int) -> int:
    """Index in the scratch of the first node, from the root down, that stops the match (-1 = all of it is there)."""
    at = length - 1
    while at >= 0 and t.used_at[t.path[at]] >= 0 and (visible_us == 0 or now >= t.readable_us[t.path[at]]):
        at -= 1
    return at


def count(week: Any, t: Any, length: int, at: int, request: int) -> tuple[int, int]:
    """Tokens matched and tokens of room still needed. One cause per missed token goes into the row: the node's own
    fate, and for a resident node behind the stop (stranded, or not yet readable) the cause of the stop."""
    hit, need = 0, 0
    for k in range(at + 1, length):
        t.pinned[t.path[k]] = request
        hit += week.tokens[t.path[k]]
    stop = NEVER_SEEN
    if at >= 0:
        stop = NOT_YET_READABLE if t.used_at[t.path[at]] >= 0 else t.fate[t.path[at]]
    for k in range(at, -1, -1):
        node = t.path[k]
        if t.used_at[node] >= 0:
            t.pinned[node] = request
            t.row[FIRST_CAUSE + stop] += week.tokens[node]
        else:
            need += week.room_tokens[node]
            t.row[FIRST_CAUSE + t.fate[node]] += week.tokens[node]
    return hit, need


def make_room(week: Any, t: Any, pool: Any, own: Any, most: int, request: int) -> None:
    """Evict until at most `most` tokens are held, never what `request` pins (NOBODY = nothing is pinned)."""
    while t.used[0] > most:
        remove(week, t, pool, own, victim(pool, own, t.pinned, request), True)
        t.row[EVICTIONS] += 1


def admit(week: Any, t: Any, pool: Any, own: Any, node: int, request: int, now: int, visible_us: int) -> None:
    """Insert a node that is not resident."""
    enter(pool, own, node, week.depth[node], t.children[node] == 0, request, now)
    t.used[0] += week.room_tokens[node]
    t.reused[node] = False
    t.readable_us[node] = now + visible_us
    above = week.parent[node]
    if above >= 0:
        t.children[above] += 1
        if t.children[above] == 1 and t.used_at[above] >= 0:
            cover(pool, own, above)


def settle(week: Any, t: Any, pool: Any, own: Any, length: int, at: int, request: int, now: int, visible_us: int,
           read: bool) -> None:  # fmt: skip
    """Touch and insert the path from leaf to root, so that the root ends most recent."""
    for k in range(length):
        node = t.path[k]
        if t.used_at[node] >= 0:
            touch(pool, own, node, week.depth[node], request, now)
            t.reused[node] = t.reused[node] or (read and k > at)
        else:
            admit(week, t, pool, own, node, request, now, visible_us)
        t.used_at[node] = request


def settle_root_first(week: Any, t: Any, pool: Any, own: Any, length: int, at: int, request: int, now: int,
                      visible_us: int, read: bool, capacity: int) -> None:  # fmt: skip
    """Walk the path from the root and insert what is missing, making room one node at a time with nothing pinned."""
    for k in range(length - 1, -1, -1):
        node = t.path[k]
        if t.used_at[node] >= 0:
            touch(pool, own, node, week.depth[node], request, now)
            t.reused[node] = t.reused[node] or (read and k > at)
        else:
            make_room(week, t, pool, own, capacity - week.room_tokens[node], NOBODY)
            admit(week, t, pool, own, node, request, now, visible_us)
        t.used_at[node] = request


def bypass(week: Any, t: Any, pool: Any, own: Any, length: int, at: int, request: int, now: int, read: bool) -> None:
    """A path larger than the tier: what is there is used, nothing is inserted, nothing evicted."""
    for k in range(at + 1, length):
        node = t.path[k]
        touch(pool, own, node, week.depth[node], request, now)
        t.reused[node] = t.reused[node] or read
        t.used_at[node] = request
    for k in range(at + 1):
        if t.fate[t.path[k]] == NEVER_SEEN and t.used_at[t.path[k]] < 0:
            t.fate[t.path[k]] = BYPASSED
    t.row[OVERSIZE] += t.row[EVICTED] + t.row[EXPIRED]
    t.row[EVICTED] = 0
    t.row[EXPIRED] = 0


def serve(week: Any, t: Any, pool: Any, own: Any, request: int, capacity: int, visible_us: int, minimum_tokens: int,
          newcomer: bool) -> None:  # fmt: skip
    """One request against the tier; its figures go into the row."""
    row = t.row
    end = week.leaf[request]
    total = week.input_tokens[request]
    row[REQUESTS] = 1
    row[INPUT] = total
    whole = week.path_tokens[end] if end >= 0 else 0
    if end < 0 or whole < minimum_tokens:
        row[UNCACHED] = total
        row[BELOW_MINIMUM] = total
        return
    now = week.ts_us[request]
    length = climb(week, t, end)
    at = match(t, length, now, visible_us)
    matched, need = count(week, t, length, at, request)
    hit = matched
    if matched > 0 and week.lost[request]:
        row[LOST] = matched
        hit = 0
    elif matched < minimum_tokens:
        row[BELOW_MINIMUM] += matched
        hit = 0
    held = 0
    for k in range(length):
        held += week.room_tokens[t.path[k]]
    if held <= capacity:
        if ROOT_FIRST:
            settle_root_first(week, t, pool, own, length, at, request, now, visible_us, hit > 0, capacity)
        else:
            if not newcomer:
                make_room(week, t, pool, own, capacity - need, request)
            settle(week, t, pool, own, length, at, request, now, visible_us, hit > 0)
            make_room(week, t, pool, own, capacity, NOBODY)
        row[WRITE] = whole - hit
    else:
        bypass(week, t, pool, own, length, at, request, now, hit > 0)
        row[WRITE] = matched - hit
    row[HITS] = 1 if hit > 0 else 0
    row[HIT] = hit
    row[UNCACHED] = total - hit - row[WRITE]
    row[BELOW_MINIMUM] += total - whole


def run(week: Any, t: Any, pool: Any, own: Any, capacity: int, ttl_us: int, visible_us: int, minimum_tokens: int,
        newcomer: bool, by_block: Any, by_hour: Any, resident: Any) -> None:  # fmt: skip
    """Fill `by_block` [2 (not warm, warm), rates, blocks, fields], `by_hour` [hours, rates, fields] and `resident` [1]
    (token-seconds held). `ttl_us` 0 = no expiry: an entry lives while its last use started at most `ttl_us` ago."""
    cursor = 0
    row = t.row
    for request in range(week.leaf.size):
        now = week.ts_us[request]
        if request > 0:
            resident[0] += t.used[0] * ((now - week.ts_us[request - 1]) * 1e-6)
        for field in range(row.size):
            row[field] = 0
        if ttl_us > 0:
            cursor = expire(week, t, pool, own, cursor, now, ttl_us, resident)
        serve(week, t, pool, own, request, capacity, visible_us, minimum_tokens, newcomer)
        window = 1 if week.warm[request] else 0
        rate, block, hour = week.rate[request], week.block[request], week.hour[request]
        for field in range(row.size):
            by_block[window, rate, block, field] += row[field]
            by_hour[hour, rate, field] += row[field]
