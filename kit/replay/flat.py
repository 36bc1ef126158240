"""The loop where every path is one key of one piece: the rules and figures of `kit.replay.loop`, with less to do.

Such a key is there whole or not at all and has no children, so a match is one look at half a cache line, which is
asked for some requests ahead, and only the figures a request moves are booked. `suits` says for which logs this holds;
there both loops give the same figures to the last token (a property test).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies.ahead import fetch
from kit.policies.lru import enter, leave, touch, victim
from kit.prefix import Paths
from kit.replay.loop import (
    AGES,
    BELOW_MINIMUM,
    BYPASSED,
    EVICTIONS,
    FIRST_CAUSE,
    HAS_EXPIRED,
    HIT,
    HITS,
    IDLE,
    IN_FLIGHT,
    INPUT,
    LOST,
    N_FIELDS,
    NOBODY,
    REQUESTS,
    ROOT_FIRST,
    SPAN,
    UNCACHED,
    UNUSED,
    WAS_EVICTED,
    WRITE,
    empty_nodes,
    note_age,
    readable,
    unfinished,
)

AHEAD = 12
NODE = np.dtype(
    {
        "names": ["tokens", "room_tokens", "used_at", "pinned", "parent", "children", "fate", "reused"],
        "formats": [np.int32, np.int32, np.int32, np.int32, np.int8, np.int8, np.int8, np.bool_],
        "offsets": [0, 4, 8, 8, 12, 13, 14, 15],
        "itemsize": 16,
    }
)
"""One key, 16 bytes, as `kit.replay.loop.NODE`: `parent` is -1 and `children` 0 throughout; `pinned` is the same place
as `used_at`, since a request pins only the key it uses; `reused` since inserted."""


class Keys(NamedTuple):
    """As `kit.replay.loop.Tier`, with `readable_us` int64[nodes] beside the nodes: few runs look at it."""

    nodes: Any
    readable_us: NDArray[np.int64]
    row: NDArray[np.int64]
    used: NDArray[np.int64]
    ages: NDArray[np.int64]
    depths: NDArray[np.int64]


def suits(paths: Paths) -> bool:
    """Whether every path is a single node that is freed whole and worth no more than its room."""
    return bool(paths.parent.size and (paths.parent < 0).all() and (paths.unit_tokens >= paths.room_tokens).all()
                and (paths.tokens <= paths.room_tokens).all())  # fmt: skip


def tier(paths: Paths) -> Keys:
    """As `kit.replay.loop.tier`."""
    nodes = empty_nodes(NODE, paths)
    return Keys(nodes, np.zeros(nodes.size, np.int64), np.zeros(N_FIELDS, np.int64), np.zeros(1, np.int64),
                np.zeros((2, AGES), np.int64), np.zeros(11, np.int64))  # fmt: skip


# A policy may bring its own version.
def soon(pool: Any, own: Any, nodes: Any, node: int, close: int) -> None:
    """Requests for `close` and, after it, `node` are near: what will be looked at may be fetched."""


def remove(t: Any, pool: Any, own: Any, node: int, fate: int) -> None:
    """Take a resident key out of the tier: WAS_EVICTED or HAS_EXPIRED."""
    leave(pool, own, node, fate == WAS_EVICTED)
    gone = t.nodes[node]
    t.used[0] -= gone.room_tokens
    if not gone.reused:
        t.row[UNUSED] += gone.room_tokens
    gone.used_at = -1
    gone.fate = fate


def expire(week: Any, t: Any, pool: Any, own: Any, cursor: int, now: int, ttl_us: int, resident: Any) -> int:
    """Drop what was last used more than `ttl_us` before `now`; comes back as the new cursor over the trace."""
    while now - week.ts_us[cursor] > ttl_us:
        node = np.int64(week.leaf[cursor])
        if node >= 0 and t.nodes[node].used_at == cursor:
            resident[0] -= t.nodes[node].room_tokens * ((now - week.ts_us[cursor] - ttl_us) * 1e-6)
            remove(t, pool, own, node, np.int64(HAS_EXPIRED))
        cursor += 1
    return cursor


def make_room(week: Any, t: Any, pool: Any, own: Any, most: int, request: int, now: int) -> None:
    """Evict until at most `most` tokens are held, never what `request` pins (NOBODY = nothing is pinned)."""
    while t.used[0] > most or unfinished(pool, own):
        node = np.int64(victim(pool, own, t.nodes, request))
        if node < 0:
            break
        note_age(week, t, IDLE, node, t.nodes[node].room_tokens, now)
        t.row[EVICTIONS] += 1
        remove(t, pool, own, node, np.int64(WAS_EVICTED))


def found(week: Any, t: Any, pool: Any, own: Any, node: int, now: int, total: int, lost: bool, in_flight: bool,
          minimum_tokens: int, block: Any, hour: Any) -> tuple[int, int]:  # fmt: skip
    """A resident key: comes back as (hit tokens, tokens to write again)."""
    here = t.nodes[node]
    whole = np.int64(here.tokens)
    cause = LOST if lost else BELOW_MINIMUM
    hit, again = np.int64(0), whole
    if in_flight:
        cause = IN_FLIGHT
    elif not lost and whole >= minimum_tokens:
        hit = readable(pool, own, whole, total)
        again = np.int64(0)
    if hit < whole:
        block[cause] += whole - hit
        hour[cause] += whole - hit
    if hit > 0:
        note_age(week, t, SPAN, node, whole, now)
        here.reused = True
        t.depths[hit * 10 // total] += 1
        block[HITS] += 1
        hour[HITS] += 1
        block[HIT] += hit
        hour[HIT] += hit
    return hit, again


def serve(week: Any, t: Any, pool: Any, own: Any, request: int, capacity: int, visible_us: int, minimum_tokens: int,
          newcomer: bool, refresh: bool, block: Any, hour: Any) -> int:  # fmt: skip
    """One request for a key that is long enough; its figures are booked. Comes back as the tokens read or written."""
    node = np.int64(week.leaf[request])
    now = week.ts_us[request]
    here = t.nodes[node]
    room = np.int64(here.room_tokens)
    resident = here.used_at >= 0
    last = np.int64(here.used_at)
    hit, write, need = np.int64(0), np.int64(here.tokens), room
    if resident:
        in_flight = visible_us > 0 and now < t.readable_us[node]
        hit, write = found(week, t, pool, own, node, now, week.input_tokens[request], week.lost[request], in_flight,
                           minimum_tokens, block, hour)  # fmt: skip
        if refresh or hit == 0:
            last = request
        here.used_at = request
        need = np.int64(0)
    else:
        cause = FIRST_CAUSE + here.fate
        block[cause] += write
        hour[cause] += write
    if room > capacity:
        here.fate = BYPASSED
        return np.int64(0)
    if not newcomer or ROOT_FIRST:
        make_room(week, t, pool, own, capacity - need, np.int64(NOBODY) if ROOT_FIRST else request, now)
    if resident:
        here.used_at = last
        touch(pool, own, node, np.int64(0), request, now)
    else:
        enter(pool, own, node, np.int64(0), True, request, now)
        here.reused = False
        if visible_us > 0:
            t.readable_us[node] = now + visible_us
        t.used[0] += room
        here.used_at = request
    if newcomer:
        make_room(week, t, pool, own, capacity, np.int64(NOBODY), now)
    if write > 0:
        block[WRITE] += write
        hour[WRITE] += write
    return hit + write


def run(week: Any, t: Any, pool: Any, own: Any, capacity: int, ttl_us: int, visible_us: int, minimum_tokens: int,
        newcomer: bool, refresh: bool, by_block: Any, by_hour: Any, resident: Any) -> None:  # fmt: skip
    """As `kit.replay.loop.run`."""
    cursor, before = np.int64(0), np.int64(0)
    last = week.leaf.size - 1
    for request in range(week.leaf.size):
        coming = np.int64(max(week.leaf[min(request + AHEAD, last)], 0))
        fetch(t.nodes, coming)
        close = np.int64(max(week.leaf[min(request + AHEAD // 2, last)], 0))
        soon(pool, own, t.nodes, coming, close)
        fetch(week.ts_us, np.int64(max(t.nodes[close].used_at, 0)))
        now = week.ts_us[request]
        if request > 0:
            resident[0] += t.used[0] * ((now - before) * 1e-6)
        before = now
        if ttl_us > 0:
            cursor = expire(week, t, pool, own, cursor, now, ttl_us, resident)
        total = week.input_tokens[request]
        block = by_block[1 if week.warm[request] else 0, week.rate[request], week.block[request]]
        hour = by_hour[week.hour[request], week.rate[request]]
        block[REQUESTS] += 1
        hour[REQUESTS] += 1
        block[INPUT] += total
        hour[INPUT] += total
        node = np.int64(week.leaf[request])
        cacheable = node >= 0 and t.nodes[node].tokens >= minimum_tokens
        short = total - (t.nodes[node].tokens if cacheable else 0)
        if short > 0:
            block[BELOW_MINIMUM] += short
            hour[BELOW_MINIMUM] += short
        if cacheable:
            total -= serve(week, t, pool, own, request, capacity, visible_us, minimum_tokens, newcomer, refresh, block,
                           hour)  # fmt: skip
        if total > 0:
            block[UNCACHED] += total
            hour[UNCACHED] += total
        for field in (EVICTIONS, UNUSED):
            if t.row[field] > 0:
                block[field] += t.row[field]
                hour[field] += t.row[field]
                t.row[field] = 0
