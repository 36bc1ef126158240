"""The one loop: every request of a log against one policy at one capacity.

Order inside a request: expire -> match -> count -> evict the shortfall among the others -> insert -> the tail of the
path becomes the most evictable part of it. Requests run in arrival order, one at a time
(`kit.replay.overlap` lets them hold their paths until they end).

The functions `enter touch leave cover uncover victim` are bound to a policy when the loop is built (kit.replay.build);
run as it stands, the module is plain Python with LRU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies.lru import cover, enter, leave, touch, uncover, victim
from kit.prefix import Paths

FIELDS = (
    "requests", "hits", "input_tokens", "hit_tokens", "write_tokens", "uncached_tokens", "missed_cold",
    "missed_evicted", "missed_expired", "missed_lost", "missed_below_minimum", "missed_in_flight", "missed_oversize",
    "evictions", "evicted_unused_tokens",
)  # fmt: skip

(REQUESTS, HITS, INPUT, HIT, WRITE, UNCACHED, COLD, EVICTED, EXPIRED, LOST, BELOW_MINIMUM, IN_FLIGHT, OVERSIZE,
 EVICTIONS, UNUSED) = range(len(FIELDS))  # fmt: skip
N_FIELDS = len(FIELDS)
FIRST_CAUSE = COLD
NEVER_SEEN, WAS_EVICTED, HAS_EXPIRED, WAS_LOST, TOO_SHORT, NOT_YET_READABLE, BYPASSED = range(7)
NOBODY = -2
ROOT_FIRST = False
AGES = 40
IDLE, SPAN = range(2)
LINE = 64


NODE = np.dtype(
    [
        ("path_tokens", np.int64), ("readable_us", np.int64), ("tokens", np.int32), ("room_tokens", np.int32),
        ("unit_tokens", np.int32), ("held_tokens", np.int32), ("reused_tokens", np.int32), ("cut_tokens", np.int32),
        ("parent", np.int32), ("depth", np.int32), ("used_at", np.int32), ("pinned", np.int32), ("children", np.int32),
        ("fate", np.int8),
    ],
    align=True,
)  # fmt: skip
"""One node, 64 bytes (one cache line): what it is (`kit.prefix.Paths`) and how it stands in the tier.

`used_at` request of the last use while resident (-1 = not resident), `held_tokens` room held (a segment loses its tail
unit by unit), `reused_tokens` of its head hit since inserted, `fate` why it is not resident, `children` resident ones,
`pinned` until which request, `readable_us` from when the part behind `cut_tokens` can be read. While a node is not
resident `cut_tokens` says from where on its tail had been evicted before the rest expired."""

class Week(NamedTuple):
    """The requests of a log as in `kit.prefix.Paths` (the same arrays, nothing is copied); `lost` is the provider's
    draw per request."""

    ts_us: NDArray[np.int64]
    input_tokens: NDArray[np.int64]
    leaf: NDArray[np.int32]
    block: NDArray[np.int32]
    rate: NDArray[np.int32]
    hour: NDArray[np.int32]
    warm: NDArray[np.bool_]
    lost: NDArray[np.bool_]


class Tier(NamedTuple):
    """The tier under study: `nodes` recarray of NODE, `row` one request's figures in the order of FIELDS, `used` [1]
    tokens held, `path` a scratch for one path, leaf first; `ages` [2, AGES] tokens evicted by idle time, and tokens
    hit by the time since their last use, bin k holding 2^(k-1) to 2^k - 1 whole seconds (bin 0: under one second);
    `depths` [11] hit requests by tenth of prompt hit."""

    nodes: Any
    row: NDArray[np.int64]
    used: NDArray[np.int64]
    path: NDArray[np.int32]
    ages: NDArray[np.int64]
    depths: NDArray[np.int64]


def empty_nodes(dtype: np.dtype[Any], paths: Paths) -> Any:
    """The nodes of a log, none resident, as a recarray whose records do not straddle cache lines. ValueError where a
    node is larger than 2^31 - 1 tokens."""
    if paths.room_tokens.size and int(paths.room_tokens.max()) > np.iinfo(np.int32).max:
        raise ValueError(f"a prefix part of {int(paths.room_tokens.max()):,} tokens is above 2,147,483,647; "
                         "check the unit of the token columns")  # fmt: skip
    raw = np.zeros(paths.parent.size * dtype.itemsize + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    nodes = raw[start : start + paths.parent.size * dtype.itemsize].view(dtype).view(np.recarray)
    for name in ("parent", "depth", "tokens", "room_tokens", "unit_tokens", "path_tokens"):
        if name in (dtype.names or ()):
            nodes[name] = getattr(paths, name)
    nodes["pinned"] = NOBODY - 1
    nodes["used_at"] = -1
    return nodes


def tier(paths: Paths) -> Tier:
    """An empty tier over the nodes of a log."""
    longest = int(paths.depth.max()) + 1 if paths.depth.size else 1
    return Tier(empty_nodes(NODE, paths), np.zeros(len(FIELDS), np.int64), np.zeros(1, np.int64),
                np.empty(longest, np.int32), np.zeros((2, AGES), np.int64), np.zeros(11, np.int64))  # fmt: skip


def requests(paths: Paths, lost: NDArray[np.bool_]) -> Week:
    """The requests of a log, with the provider's draw."""
    return Week(paths.ts_us, paths.input_tokens, paths.leaf, paths.block, paths.rate, paths.hour, paths.warm, lost)


# A policy may bring its own version of these two (an engine that evicts in batches, or never serves the last token).
def unfinished(pool: Any, own: Any) -> bool:
    """Whether the policy goes on evicting although there is room."""
    return False


def readable(pool: Any, own: Any, matched: int, total: int) -> int:
    """Tokens of a match that count as a hit; the rest is computed again, not stored again (cause: below minimum)."""
    return matched


# Where requests overlap, `kit.replay.overlap` takes the place of these two.
def fits(week: Any, t: Any, length: int, held: int, capacity: int, request: int) -> bool:
    """Whether a path that takes `held` tokens of room can be stored."""
    return held <= capacity


def keep(week: Any, t: Any, pool: Any, own: Any, length: int, request: int) -> None:
    """Nothing: a request has ended when the next one starts."""


def remove(t: Any, pool: Any, own: Any, node: int, fate: int) -> None:
    """Take a resident node out of the tier: WAS_EVICTED or HAS_EXPIRED."""
    leave(pool, own, node, fate == WAS_EVICTED)
    gone = t.nodes[node]
    t.used[0] -= gone.held_tokens
    t.row[UNUSED] += max(gone.held_tokens - gone.reused_tokens, 0)
    gone.cut_tokens = gone.held_tokens
    gone.held_tokens = 0
    gone.used_at = -1
    gone.fate = fate
    if gone.parent >= 0:
        above = t.nodes[gone.parent]
        above.children -= 1
        if above.children == 0 and above.used_at >= 0:
            uncover(pool, own, np.int64(gone.parent))


def trim(t: Any, node: int, tokens: int) -> None:
    """Evict the last `tokens` of a resident segment, leaving its head."""
    short = t.nodes[node]
    left = short.held_tokens - tokens
    t.row[UNUSED] += max(short.held_tokens - max(left, short.reused_tokens), 0)
    short.reused_tokens = min(short.reused_tokens, left)
    short.cut_tokens = min(short.cut_tokens, left)
    short.held_tokens = left
    t.used[0] -= tokens


def expire(week: Any, t: Any, pool: Any, own: Any, cursor: int, now: int, ttl_us: int, resident: Any) -> int:
    """Drop what was last used (or written, where reads do not refresh) more than `ttl_us` before `now`. Recency is
    trace order, so a cursor over the trace finds it; comes back as the new cursor."""
    while now - week.ts_us[cursor] > ttl_us:
        node = np.int64(week.leaf[cursor])
        while node >= 0 and t.nodes[node].used_at <= cursor:
            if t.nodes[node].used_at == cursor:
                resident[0] -= t.nodes[node].held_tokens * ((now - week.ts_us[cursor] - ttl_us) * 1e-6)
                remove(t, pool, own, node, np.int64(HAS_EXPIRED))
            node = t.nodes[node].parent
        cursor += 1
    return cursor


def match(t: Any, end: int, now: int, visible_us: int) -> tuple[int, int]:
    """Write the path into the scratch, leaf first. Comes back as (its length in nodes, index of the first node from the
    root down that is not wholly there and readable, -1 = all of it is)."""
    length = 0
    node = end
    while node >= 0:
        t.path[length] = node
        length += 1
        node = t.nodes[node].parent
    at = length - 1
    while at >= 0:
        here = t.nodes[t.path[at]]
        if here.used_at < 0 or here.held_tokens < here.room_tokens or (visible_us > 0 and now < here.readable_us):
            break
        at -= 1
    return length, at


def count(t: Any, length: int, at: int, request: int, now: int, visible_us: int) -> tuple[int, int, int]:
    """(tokens matched, room still needed, room of the whole path). One cause per missed token goes into the row: the
    node's own fate, and for a resident node behind the stop (stranded, or not yet readable) the cause of the stop."""
    hit, need, held = 0, 0, 0
    for k in range(at + 1, length):
        node = t.nodes[t.path[k]]
        node.pinned = request
        hit += node.tokens
        held += node.room_tokens
    stop = NEVER_SEEN
    for k in range(at, -1, -1):
        node = t.nodes[t.path[k]]
        held += node.room_tokens
        need += node.room_tokens - node.held_tokens
        if node.used_at < 0:
            early = min(node.cut_tokens, node.tokens) if node.fate == HAS_EXPIRED else node.tokens
            t.row[FIRST_CAUSE + node.fate] += early
            t.row[EVICTED] += node.tokens - early
            if k == at:
                stop = node.fate
            continue
        node.pinned = request
        there = node.tokens if node.held_tokens == node.room_tokens else node.held_tokens
        if k == at:
            stop = WAS_EVICTED
            readable = there
            if visible_us > 0 and now < node.readable_us:
                stop = NOT_YET_READABLE
                readable = min(there, node.cut_tokens)
            hit += readable
            t.row[IN_FLIGHT] += there - readable
        else:
            t.row[FIRST_CAUSE + stop] += there
        t.row[EVICTED] += node.tokens - there
    return hit, need, held


def age_step(seconds: int) -> int:
    """The bin of a time in whole seconds: the number of its binary digits, AGES - 1 at most."""
    at = 0
    if seconds >> 16:
        seconds >>= 16
        at = 16
    if seconds >> 8:
        seconds >>= 8
        at += 8
    if seconds >> 4:
        seconds >>= 4
        at += 4
    while seconds > 0 and at < AGES - 1:
        seconds >>= 1
        at += 1
    return at


def note_age(week: Any, t: Any, which: int, node: int, tokens: int, now: int) -> None:
    """Count tokens that are evicted (`which` IDLE) or hit (SPAN) under the time since their last use."""
    t.ages[which, age_step((now - week.ts_us[t.nodes[node].used_at]) // 1_000_000)] += tokens


def make_room(week: Any, t: Any, pool: Any, own: Any, most: int, request: int, now: int) -> None:
    """Evict until at most `most` tokens are held, never what `request` pins (NOBODY = nothing is pinned). The tail of a
    segment goes first, as many units of it as the shortfall needs."""
    while t.used[0] > most or unfinished(pool, own):
        node = victim(pool, own, t.nodes, request)
        if node < 0:
            break
        loser = t.nodes[node]
        units = max(-(-(t.used[0] - most) // loser.unit_tokens), 1)
        if units * loser.unit_tokens < loser.held_tokens:
            note_age(week, t, IDLE, node, units * loser.unit_tokens, now)
            trim(t, node, units * loser.unit_tokens)
            t.row[EVICTIONS] += units
        else:
            note_age(week, t, IDLE, node, loser.held_tokens, now)
            t.row[EVICTIONS] += -(-loser.held_tokens // loser.unit_tokens)
            remove(t, pool, own, node, np.int64(WAS_EVICTED))


def admit(t: Any, pool: Any, own: Any, node: int, request: int, now: int, visible_us: int) -> None:
    """Insert a node that is not resident."""
    fresh = t.nodes[node]
    enter(pool, own, node, fresh.depth, fresh.children == 0, request, now)
    fresh.reused_tokens = 0
    fresh.cut_tokens = 0
    fresh.readable_us = now + visible_us
    t.used[0] += fresh.room_tokens
    fresh.held_tokens = fresh.room_tokens
    if fresh.parent >= 0:
        above = t.nodes[fresh.parent]
        above.children += 1
        if above.children == 1 and above.used_at >= 0:
            cover(pool, own, np.int64(fresh.parent))


def regrow(t: Any, node: int, now: int, visible_us: int) -> None:
    """Insert the missing tail of a resident segment."""
    short = t.nodes[node]
    if short.held_tokens < short.room_tokens:
        if now >= short.readable_us:
            short.cut_tokens = short.held_tokens
        short.readable_us = now + visible_us
        t.used[0] += short.room_tokens - short.held_tokens
        short.held_tokens = short.room_tokens


def hit_until(week: Any, t: Any, node: int, whole: bool, now: int, visible_us: int) -> None:
    """Mark how much of a resident node this request has read, and how long after its last use."""
    here = t.nodes[node]
    read = here.held_tokens
    if not whole and visible_us > 0 and now < here.readable_us:
        read = min(read, here.cut_tokens)
    here.reused_tokens = max(here.reused_tokens, read)
    if read > 0:
        note_age(week, t, SPAN, node, here.tokens if read == here.room_tokens else read, now)


def settle(week: Any, t: Any, pool: Any, own: Any, length: int, at: int, request: int, now: int, visible_us: int,
           read: bool, capacity: int, refresh: bool) -> None:  # fmt: skip
    """Touch what is resident and insert what is missing, from leaf to root so that the root ends most recent.

    ROOT_FIRST policies walk from the root instead and make room one node at a time, with nothing pinned.
    """
    for step in range(length):
        k = length - 1 - step if ROOT_FIRST else step
        node = np.int64(t.path[k])
        if t.nodes[node].used_at >= 0:
            if read and k >= at:
                hit_until(week, t, node, k > at, now, visible_us)
            touch(pool, own, node, t.nodes[node].depth, request, now)
            regrow(t, node, now, visible_us)
            if refresh or not read:
                t.nodes[node].used_at = request
        else:
            if ROOT_FIRST:
                make_room(week, t, pool, own, capacity - t.nodes[node].room_tokens, np.int64(NOBODY), now)
            admit(t, pool, own, node, request, now, visible_us)
            t.nodes[node].used_at = request


def bypass(week: Any, t: Any, pool: Any, own: Any, length: int, at: int, request: int, now: int, visible_us: int,
           read: bool) -> None:  # fmt: skip
    """A path larger than the tier: what is there is used, nothing is inserted, nothing evicted."""
    for k in range(length):
        node = t.nodes[t.path[k]]
        if node.used_at >= 0 and (k > at or (k == at and (visible_us == 0 or now >= node.readable_us))):
            if read:
                hit_until(week, t, np.int64(t.path[k]), k > at, now, visible_us)
            touch(pool, own, np.int64(t.path[k]), node.depth, request, now)
            node.used_at = request
        elif node.fate == NEVER_SEEN and node.used_at < 0:
            node.fate = BYPASSED
    t.row[OVERSIZE] += t.row[EVICTED] + t.row[EXPIRED]
    t.row[EVICTED] = 0
    t.row[EXPIRED] = 0


def serve(week: Any, t: Any, pool: Any, own: Any, request: int, capacity: int, visible_us: int, minimum_tokens: int,
          newcomer: bool, refresh: bool) -> None:  # fmt: skip
    """One request against the tier; its figures go into the row."""
    row = t.row
    end = np.int64(week.leaf[request])
    total = week.input_tokens[request]
    row[REQUESTS] = 1
    row[INPUT] = total
    if end < 0 or t.nodes[end].path_tokens < minimum_tokens:
        row[UNCACHED] = total
        row[BELOW_MINIMUM] = total
        return
    now = week.ts_us[request]
    whole = t.nodes[end].path_tokens
    length, at = match(t, end, now, visible_us)
    matched, need, held = count(t, length, at, request, now, visible_us)
    hit = matched
    again = 0
    if matched > 0 and week.lost[request]:
        row[LOST] = matched
        hit = 0
    elif matched < minimum_tokens:
        row[BELOW_MINIMUM] += matched
        hit = 0
    else:
        hit = readable(pool, own, matched, total)
        again = matched - hit
        row[BELOW_MINIMUM] += again
    if fits(week, t, length, held, capacity, request):
        if not newcomer and not ROOT_FIRST:
            make_room(week, t, pool, own, capacity - need, request, now)
        settle(week, t, pool, own, length, at, request, now, visible_us, hit > 0, capacity, refresh)
        if newcomer:
            make_room(week, t, pool, own, capacity, np.int64(NOBODY), now)
        keep(week, t, pool, own, length, request)
        row[WRITE] = whole - hit - again
    else:
        bypass(week, t, pool, own, length, at, request, now, visible_us, hit > 0)
        row[WRITE] = matched - hit - again
    row[HITS] = 1 if hit > 0 else 0
    if hit > 0:
        t.depths[hit * 10 // total] += 1
    row[HIT] = hit
    row[UNCACHED] = total - hit - row[WRITE]
    row[BELOW_MINIMUM] += total - whole


def book(week: Any, t: Any, request: int, by_block: Any, by_hour: Any) -> None:
    """Add the row of a request to its cells."""
    window = 1 if week.warm[request] else 0
    rate = week.rate[request]
    block, hour = week.block[request], week.hour[request]
    for field in range(N_FIELDS):
        by_block[window, rate, block, field] += t.row[field]
        by_hour[hour, rate, field] += t.row[field]


def run(week: Any, t: Any, pool: Any, own: Any, capacity: int, ttl_us: int, visible_us: int, minimum_tokens: int,
        newcomer: bool, refresh: bool, by_block: Any, by_hour: Any, resident: Any) -> None:  # fmt: skip
    """Fill `by_block` [2 (not warm, warm), rates, blocks, fields], `by_hour` [hours, rates, fields] and `resident` [1]
    (token-seconds held). `ttl_us` 0 = no expiry: an entry lives while its last use (`refresh`), or else its writing,
    started at most `ttl_us` ago."""
    cursor = np.int64(0)
    row = t.row
    before = np.int64(0)
    for request in range(week.leaf.size):
        now = week.ts_us[request]
        if request > 0:
            resident[0] += t.used[0] * ((now - before) * 1e-6)
        before = now
        for field in range(N_FIELDS):
            row[field] = 0
        if ttl_us > 0:
            cursor = expire(week, t, pool, own, cursor, now, ttl_us, resident)
        serve(week, t, pool, own, request, capacity, visible_us, minimum_tokens, newcomer, refresh)
        book(week, t, request, by_block, by_hour)
