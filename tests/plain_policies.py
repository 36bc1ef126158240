"""Plain statements of the policies of `kit.policies`, written apart from them: dicts, lists, linear searches.

`Hosted` is the plain tier of `tests.reference` asking a *rule* what to evict. A rule sees node ids only: `missing`
(path nodes not resident, leaf first, before anything is evicted for them), `enter`, `touch`, `leave`, `victim`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from kit.policies.w_tinylfu import slot
from kit.prefix import Paths
from kit.replay import Setting
from tests.reference import Plain


class Rule:
    """Recency, as the simplest rule; the others override what differs."""

    insert_first = False
    newcomer = False

    def __init__(self, paths: Paths, capacity: int, **parameters: float) -> None:
        self.size = {n: int(paths.room_tokens[n]) for n in range(paths.parent.size)}
        self.depth = {n: int(paths.depth[n]) for n in range(paths.parent.size)}
        self.capacity = capacity
        self.parameters = parameters
        self.order: list[int] = []
        self.above = [int(above) for above in paths.parent]
        self.path_sum = [int(tokens) for tokens in paths.path_tokens]
        self.asked_leaf = [int(node) for node in paths.leaf]
        self.asked = -1
        self.tags = {name: values.tolist() for name, values in paths.tags.items()}
        self.setup()

    def setup(self) -> None: ...

    def tokens(self, nodes: Any) -> int:
        return sum(self.size[n] for n in nodes)

    def missing(self, nodes: list[int]) -> None: ...

    def enter(self, n: int, request: int, now: int, leaf: bool) -> None:
        self.order.append(n)

    def touch(self, n: int, request: int, now: int) -> None:
        self.order.remove(n)
        self.order.append(n)

    def leave(self, n: int, evicted: bool) -> None:
        self.order.remove(n)

    def bare(self, n: int) -> None:
        """A node lost its last child."""

    def covered(self, n: int) -> None:
        """A node got its first child."""

    def victim(self, leaves: list[int], request: int, now: int) -> int:
        return next(n for n in self.order if n in leaves)

    def match_ends(self, deepest: int, request: int) -> None:
        """The deepest resident block of the request's path, before anything is evicted for it."""

    def more(self) -> bool:
        """Whether to evict on although there is room."""
        return False

    def readable(self, matched: int, total: int) -> int:
        return matched


@dataclass
class Hosted(Plain):
    """The plain tier with a rule."""

    rule: Any = None
    asked: int = -1
    clock: int = 0

    def drop(self, n: int, why: str) -> None:
        self.rule.leave(n, why == "evicted")
        super().drop(n, why)
        above = self.parent[n]
        if above in self.at and self.is_leaf(above):
            self.rule.bare(above)

    def make_room(self, most: int, pinned: set[int]) -> None:
        if pinned:
            self.rule.missing([n for n in self.path if n not in self.at])
        while self.used() > most or self.rule.more():
            leaves = [n for n in self.at if n not in pinned and self.is_leaf(n)]
            if not leaves:
                break
            self.drop(self.rule.victim(leaves, self.asked, self.clock), "evicted")
            self.totals["evictions"] += 1

    def use(self, n: int, request: int, now: int, fresh: bool) -> None:
        was_leaf = {m for m in self.at if self.is_leaf(m)}
        super().use(n, request, now, fresh)
        if fresh:
            self.rule.enter(n, request, now, self.is_leaf(n))
            if self.parent[n] in was_leaf:
                self.rule.covered(self.parent[n])
        else:
            self.rule.touch(n, request, now)

    def readable(self, matched: int, total: int) -> int:
        return self.rule.readable(matched, total)

    def settles(self, path: tuple[int, ...], request: int) -> None:
        self.rule.match_ends(next((n for n in reversed(path) if n in self.at), -1), request)

    def request(self, i: int, now: int, path: tuple[int, ...], total: int, lost: bool = False) -> int:
        self.path, self.asked, self.clock, self.rule.asked = path[::-1], i, now, i
        return super().request(i, now, path, total, lost)


def hosted(rule: type[Rule], paths: Paths, capacity: int, setting: Setting, **parameters: float) -> Hosted:
    """A plain tier over these paths with a rule."""
    count = range(paths.parent.size)
    made = rule(paths, capacity, **parameters)
    made.newcomer = setting.newcomer_may_be_victim or made.insert_first
    return Hosted(
        "rule", capacity, {n: int(paths.tokens[n]) for n in count}, {n: int(paths.depth[n]) for n in count},
        {n: int(paths.parent[n]) for n in count}, {n: int(paths.path_tokens[n]) for n in count},
        int((setting.ttl_seconds or 0) * 1e6), setting.minimum_tokens,
        made.newcomer,
        visible_us=int(setting.visible_after_seconds * 1e6), rule=made,
    )  # fmt: skip


class Sieve(Rule):
    """`order` holds leaves, oldest first; `hand` is a position, taken modulo the length."""

    def setup(self) -> None:
        self.seen: set[int] = set()
        self.hand = 0

    def enter(self, n: int, request: int, now: int, leaf: bool) -> None:
        self.seen.discard(n)
        if leaf:
            at_end = self.hand >= len(self.order)
            self.order.append(n)
            if at_end:
                self.hand = len(self.order)

    def touch(self, n: int, request: int, now: int) -> None:
        self.seen.add(n)

    def forget(self, n: int) -> None:
        if n in self.order:
            k = self.order.index(n)
            at_end = self.hand >= len(self.order)
            self.order.remove(n)
            if at_end:
                self.hand = len(self.order)
            elif k < self.hand:
                self.hand -= 1

    def leave(self, n: int, evicted: bool) -> None:
        self.forget(n)

    covered = forget

    def bare(self, n: int) -> None:
        if self.hand >= len(self.order):
            self.hand = 0
        self.order.insert(self.hand, n)

    def victim(self, leaves: list[int], request: int, now: int) -> int:
        while True:
            if self.hand >= len(self.order):
                self.hand = 0
            n = self.order[self.hand]
            if n in leaves:
                if n not in self.seen:
                    return n
                self.seen.discard(n)
            self.hand += 1


class S3Fifo(Rule):
    def setup(self) -> None:
        self.small: list[int] = []
        self.main: list[int] = []
        self.ghost: list[int] = []
        self.back: set[int] = set()
        self.home: dict[int, str] = {}
        self.freq: dict[int, int] = {}
        self.evicted_any = False
        share = {"small_share": 0.1, "ghost_share": 0.9, "promote_uses": 2} | self.parameters
        self.small_room = int(self.capacity * share["small_share"])
        self.ghost_room = int(self.capacity * share["ghost_share"])
        self.threshold = share["promote_uses"]

    def held(self, home: str) -> int:
        return self.tokens(n for n, at in self.home.items() if at == home)

    def queue(self, n: int) -> list[int]:
        return self.small if self.home[n] == "small" else self.main

    def missing(self, nodes: list[int]) -> None:
        for n in nodes:
            if n in self.ghost:
                self.ghost.remove(n)
                self.back.add(n)

    def enter(self, n: int, request: int, now: int, leaf: bool) -> None:
        self.missing([n])
        first_fill = not self.evicted_any and self.held("small") >= self.small_room
        to_main = n in self.back or self.size[n] >= self.small_room or first_fill
        self.back.discard(n)
        self.home[n] = "main" if to_main else "small"
        self.freq[n] = 0
        if leaf:
            self.queue(n).append(n)

    def touch(self, n: int, request: int, now: int) -> None:
        self.freq[n] += 1

    def covered(self, n: int) -> None:
        self.queue(n).remove(n)

    def bare(self, n: int) -> None:
        self.queue(n).insert(0, n)

    def leave(self, n: int, evicted: bool) -> None:
        if n in self.queue(n):
            self.queue(n).remove(n)
        if evicted and self.home[n] == "small" and self.size[n] <= self.ghost_room:
            self.ghost.append(n)
            while self.tokens(self.ghost) > self.ghost_room:
                self.ghost.pop(0)
        del self.home[n]

    def victim(self, leaves: list[int], request: int, now: int) -> int:
        self.evicted_any = True
        while True:
            small = [n for n in self.small if n in leaves]
            main = [n for n in self.main if n in leaves]
            if main and (not small or self.held("main") > self.capacity - self.small_room):
                n = main[0]
                if not self.freq[n]:
                    return n
                self.freq[n] = min(self.freq[n], 3) - 1
                self.main.remove(n)
                self.main.append(n)
                continue
            n = small[0]
            if self.freq[n] < self.threshold:
                return n
            self.small.remove(n)
            self.main.append(n)
            self.home[n] = "main"
            self.freq[n] = 0


class Arc(Rule):
    def setup(self) -> None:
        self.t1: list[int] = []
        self.t2: list[int] = []
        self.b1: list[int] = []
        self.b2: list[int] = []
        self.p = 0.0
        self.back: set[int] = set()
        self.seen_b2, self.fresh, self.drop_key = False, 0, False

    def missing(self, nodes: list[int]) -> None:
        self.seen_b2, self.fresh = False, 0
        for n in nodes:
            if n in self.b1 or n in self.b2:
                self.seen_b2 |= self.hit_ghost(n)
            else:
                self.fresh += self.size[n]

    def hit_ghost(self, n: int) -> bool:
        one, two = self.tokens(self.b1), self.tokens(self.b2)
        self.back.add(n)
        if n in self.b1:
            self.p = min(self.p + max(1.0, two / one), self.capacity)
            self.b1.remove(n)
            return False
        self.p = max(self.p - max(1.0, one / two), 0.0)
        self.b2.remove(n)
        return True

    def enter(self, n: int, request: int, now: int, leaf: bool) -> None:
        if n in self.b1 or n in self.b2:
            self.hit_ghost(n)
        (self.t2 if n in self.back else self.t1).append(n)
        self.back.discard(n)

    def touch(self, n: int, request: int, now: int) -> None:
        (self.t1 if n in self.t1 else self.t2).remove(n)
        self.t2.append(n)

    def leave(self, n: int, evicted: bool) -> None:
        data, ghosts = (self.t1, self.b1) if n in self.t1 else (self.t2, self.b2)
        data.remove(n)
        if evicted and not self.drop_key:
            ghosts.append(n)
        self.drop_key = False

    def victim(self, leaves: list[int], request: int, now: int) -> int:
        self.drop_key = False
        if self.newcomer:
            self.seen_b2, self.fresh = False, 0
        if self.fresh or self.newcomer:
            l1 = self.tokens(self.t1) + self.tokens(self.b1)
            if l1 + self.fresh > self.capacity:
                if self.b1:
                    self.b1.pop(0)
                else:
                    self.drop_key = True
            elif l1 + self.tokens(self.t2) + self.tokens(self.b2) >= 2 * self.capacity and self.b2:
                self.b2.pop(0)
        t1 = self.tokens(self.t1)
        one = self.drop_key or t1 > self.p or (self.seen_b2 and t1 == self.p)
        order = self.t1 + self.t2 if one else self.t2 + self.t1
        return next(n for n in order if n in leaves)


class TwoQ(Rule):
    def setup(self) -> None:
        self.ain: list[int] = []
        self.am: list[int] = []
        self.aout: list[int] = []
        self.home: dict[int, str] = {}
        self.back: set[int] = set()
        share = {"in_share": 0.25, "out_share": 0.5} | self.parameters
        self.kin, self.kout = int(self.capacity * share["in_share"]), int(self.capacity * share["out_share"])

    def missing(self, nodes: list[int]) -> None:
        for n in nodes:
            if n in self.aout:
                self.aout.remove(n)
                self.back.add(n)

    def enter(self, n: int, request: int, now: int, leaf: bool) -> None:
        self.missing([n])
        if n in self.back:
            self.back.discard(n)
            self.home[n] = "am"
            self.am.append(n)
        else:
            self.home[n] = "ain"
            if leaf:
                self.ain.append(n)

    def touch(self, n: int, request: int, now: int) -> None:
        if self.home[n] == "am":
            self.am.remove(n)
            self.am.append(n)

    def covered(self, n: int) -> None:
        if n in self.ain:
            self.ain.remove(n)

    def bare(self, n: int) -> None:
        if self.home[n] == "ain":
            self.ain.insert(0, n)

    def leave(self, n: int, evicted: bool) -> None:
        for queue in (self.ain, self.am):
            if n in queue:
                queue.remove(n)
        if evicted and self.home[n] == "ain" and self.size[n] <= self.kout:
            self.aout.append(n)
            while self.tokens(self.aout) > self.kout:
                self.aout.pop(0)
        del self.home[n]

    def victim(self, leaves: list[int], request: int, now: int) -> int:
        waiting = [n for n in self.ain if n in leaves]
        if waiting and self.tokens(n for n, at in self.home.items() if at == "ain") > self.kin:
            return waiting[0]
        return next(n for n in self.am + waiting if n in leaves)


class LruK(Rule):
    def setup(self) -> None:
        self.uses: dict[int, list[int]] = {}

    def enter(self, n: int, request: int, now: int, leaf: bool) -> None:
        self.uses.setdefault(n, []).append(request)

    def touch(self, n: int, request: int, now: int) -> None:
        self.uses[n].append(request)

    def leave(self, n: int, evicted: bool) -> None: ...

    def victim(self, leaves: list[int], request: int, now: int) -> int:
        def key(n: int) -> tuple[int, int, int]:
            used = self.uses[n]
            return (used[-2] if len(used) > 1 else -1, used[-1], -self.depth[n])

        return min(leaves, key=key)


class Ranked(Rule):
    """Lowest `rank` first, then the oldest use, then the deeper block."""

    def setup(self) -> None:
        self.last: dict[int, int] = {}

    def used(self, n: int, request: int, now: int, fresh: bool) -> None: ...

    def enter(self, n: int, request: int, now: int, leaf: bool) -> None:
        self.last[n] = request
        self.used(n, request, now, True)

    def touch(self, n: int, request: int, now: int) -> None:
        self.last[n] = request
        self.used(n, request, now, False)

    def leave(self, n: int, evicted: bool) -> None: ...

    def rank(self, n: int, request: int, now: int) -> Any:
        raise NotImplementedError

    def victim(self, leaves: list[int], request: int, now: int) -> int:
        return min(leaves, key=lambda n: (self.rank(n, request, now), self.last[n], -self.depth[n]))


class LastToken(Rule):
    """A hit leaves at least one token of the prompt to compute (blocks of one token here)."""

    def readable(self, matched: int, total: int) -> int:
        return min(matched, total - 1)


class Chunks(Rule):
    def readable(self, matched: int, total: int) -> int:
        chunk = int(self.parameters.get("chunk_tokens", 256))
        return matched // chunk * chunk


class Radix(LastToken):
    """Runs are lists of blocks, root side first; a run is one radix node."""

    def setup(self) -> None:
        self.runs: list[list[int]] = []
        self.fresh: tuple[int, list[int]] = (-1, [])
        self.going: list[int] = []
        self.hits: dict[int, int] = {}
        self.stamp: dict[int, tuple[int, int]] = {}
        self.tick = 0
        self.cut_at = -1

    def run_of(self, n: int) -> list[int]:
        return next(run for run in self.runs if n in run)

    def mark(self, n: int, request: int) -> None:
        self.tick += 1
        self.stamp[n] = (request, self.tick)

    def match_ends(self, deepest: int, request: int) -> None:
        """The match of this request ends at `deepest` (-1 = nothing matched)."""
        if self.cut_at == request:
            return
        self.cut_at = request
        if deepest < 0:
            return
        run = self.run_of(deepest)
        rest = run[run.index(deepest) + 1 :]
        if rest:
            self.runs[self.runs.index(run)] = run[: -len(rest)]
            self.runs.append(rest)
            for n in reversed(rest):
                self.mark(n, request)

    def enter(self, n: int, request: int, now: int, leaf: bool) -> None:
        if self.fresh[0] == request and self.fresh[1] in self.runs and self.above[self.fresh[1][0]] == n:
            self.fresh[1].insert(0, n)
        else:
            self.fresh = (request, [n])
            self.runs.append(self.fresh[1])
        self.hits[n] = 1
        self.mark(n, request)

    def touch(self, n: int, request: int, now: int) -> None:
        self.hits[n] += 1
        self.mark(n, request)

    def leave(self, n: int, evicted: bool) -> None:
        run = self.run_of(n)
        run.remove(n)
        self.going = run if evicted else []
        self.runs = [r for r in self.runs if r]

    def more(self) -> bool:
        return bool(self.going)

    def rank(self, n: int) -> Any:
        return 0

    def victim(self, leaves: list[int], request: int, now: int) -> int:
        if self.going:
            return self.going[-1]
        return min(leaves, key=lambda n: (self.rank(n), self.stamp[n]))


class RadixLfu(Radix):
    def rank(self, n: int) -> Any:
        return self.hits[n]


class RadixPriority(Radix):
    """A block's priority is the highest of the requests that inserted or covered it."""

    def setup(self) -> None:
        super().setup()
        self.level: dict[int, int] = {}

    def enter(self, n: int, request: int, now: int, leaf: bool) -> None:
        super().enter(n, request, now, leaf)
        self.level[n] = self.tags["priority"][request]

    def touch(self, n: int, request: int, now: int) -> None:
        super().touch(n, request, now)
        self.level[n] = max(self.level[n], self.tags["priority"][request])

    def rank(self, n: int) -> Any:
        return self.level[n]


class RadixSlru(Radix):
    def rank(self, n: int) -> Any:
        return self.hits[n] >= 2


class Priorities(Rule):
    """One queue of (block) per priority; `due` says when a block falls back to 35."""

    def setup(self) -> None:
        self.queues: dict[int, list[int]] = {p: [] for p in range(101)}
        self.due: dict[int, tuple[int, int]] = {}
        self.tick = 0

    def refresh(self, now: int) -> None:
        for n in sorted((n for n, (at, _) in self.due.items() if at <= now), key=lambda n: self.due[n]):
            self.leave(n, False)
            self.queues[35].append(n)

    def enter(self, n: int, request: int, now: int, leaf: bool) -> None:
        self.refresh(now)
        priority, keep = self.tags["priority"][request], self.tags["retention_seconds"][request]
        self.queues[priority].append(n)
        if priority != 35 and keep >= 0:
            self.tick += 1
            self.due[n] = (now + round(keep * 1e6), self.tick)

    def touch(self, n: int, request: int, now: int) -> None:
        self.leave(n, False)
        self.enter(n, request, now, False)

    def leave(self, n: int, evicted: bool) -> None:
        self.due.pop(n, None)
        for queue in self.queues.values():
            if n in queue:
                queue.remove(n)

    def victim(self, leaves: list[int], request: int, now: int) -> int:
        self.refresh(now)
        return next(n for p in range(101) for n in self.queues[p] if n in leaves)


class MultiLru(Ranked):
    def setup(self) -> None:
        super().setup()
        self.uses: dict[int, int] = {}

    def used(self, n: int, request: int, now: int, fresh: bool) -> None:
        self.uses[n] = min(self.uses.get(n, 0) + 1, 15)

    def rank(self, n: int, request: int, now: int) -> Any:
        return sum(self.uses[n] >= level for level in (3, 8, 15))


class Leases(Ranked):
    def setup(self) -> None:
        super().setup()
        self.lease: dict[int, float] = {}
        self.left = 0

    def used(self, n: int, request: int, now: int, fresh: bool) -> None:
        self.lease[n] = now if fresh else max(self.lease[n], now + 10e6)

    def leave(self, n: int, evicted: bool) -> None:
        del self.lease[n]
        if evicted and self.left:
            self.left -= 1

    def more(self) -> bool:
        used = self.tokens(self.lease) / self.capacity
        if not self.left and used > 0.90:
            self.left = math.ceil(max(0.05, used - 0.90 + 0.05) * len(self.lease))
        return self.left > 0

    def rank(self, n: int, request: int, now: int) -> Any:
        return self.lease[n]


class Halving(Ranked):
    def setup(self) -> None:
        super().setup()
        self.count: dict[int, int] = {}
        self.since = 0
        self.period = 10 * max(int(self.capacity / (sum(self.size.values()) / len(self.size))), 1)

    def used(self, n: int, request: int, now: int, fresh: bool) -> None:
        if self.since >= self.period:
            self.count = {m: c // 2 for m, c in self.count.items()}
            self.since = 0
        self.since += 1
        self.count[n] = min(self.count.get(n, 0) + 1, 15)

    def rank(self, n: int, request: int, now: int) -> Any:
        return self.count[n]


class Safe(Ranked):
    def setup(self) -> None:
        super().setup()
        self.longest: dict[int, int] = {}

    def used(self, n: int, request: int, now: int, fresh: bool) -> None:
        self.longest[n] = max(self.longest.get(n, 0), self.path_sum[self.asked_leaf[request]])

    def rank(self, n: int, request: int, now: int) -> Any:
        threshold = self.parameters.get("threshold_tokens", 0)
        needed = max(self.longest[n] + self.parameters.get("next_prompt_tokens", 0) - threshold, 0)
        return -1 if self.path_sum[n] - self.size[n] >= needed else 0


class Drawn(Rule):
    """Resident leaves in an array, drawn by the Lehmer generator."""

    def setup(self) -> None:
        self.array: list[int] = []
        self.state = 2_654_435_761 % 2_147_483_646 + 1
        self.since: dict[int, int] = {}
        self.begin()

    def begin(self) -> None: ...

    def draw(self, below: int) -> int:
        self.state = self.state * 48_271 % (2**31 - 1)
        return self.state % below

    def sample(self, most: int) -> list[int]:
        if len(self.array) <= most:
            return list(self.array)
        return [self.array[self.draw(len(self.array))] for _ in range(most)]

    def enter(self, n: int, request: int, now: int, leaf: bool) -> None:
        self.fresh(n, request, now)
        if leaf:
            self.array.append(n)

    def fresh(self, n: int, request: int, now: int) -> None: ...

    def covered(self, n: int) -> None:
        if n in self.array:
            k = self.array.index(n)
            self.array[k] = self.array[-1]
            self.array.pop()

    def bare(self, n: int) -> None:
        self.array.append(n)

    def leave(self, n: int, evicted: bool) -> None:
        self.covered(n)


class HyperbolicRule(Drawn):
    def begin(self) -> None:
        self.uses: dict[int, int] = {}

    def fresh(self, n: int, request: int, now: int) -> None:
        self.uses[n], self.since[n] = 1, request

    def touch(self, n: int, request: int, now: int) -> None:
        self.uses[n] += 1

    def victim(self, leaves: list[int], request: int, now: int) -> int:
        able = [n for n in self.sample(64) if n in leaves]
        return min(able, key=lambda n: self.uses[n] / max(request - self.since[n], 1))


class RedisLru(Drawn):
    """`pool` holds (idle, key) by rising idle time."""

    def begin(self) -> None:
        self.pool: list[tuple[int, int]] = []

    def fresh(self, n: int, request: int, now: int) -> None:
        self.since[n] = now // 10**6

    def touch(self, n: int, request: int, now: int) -> None:
        self.since[n] = now // 10**6

    def score(self, n: int, now: int) -> int:
        return now // 10**6 - self.since[n]

    def victim(self, leaves: list[int], request: int, now: int) -> int:
        while True:
            for n in self.sample(5):
                idle = self.score(n, now)
                place = sum(1 for other, _ in self.pool if other < idle)
                if len(self.pool) < 16:
                    self.pool.insert(place, (idle, n))
                elif place > 0:
                    self.pool.insert(place, (idle, n))
                    self.pool.pop(0)
            while self.pool:
                _, n = self.pool.pop()
                if n in leaves:
                    return n


class RedisLfu(RedisLru):
    def begin(self) -> None:
        super().begin()
        self.counter: dict[int, int] = {}

    def fresh(self, n: int, request: int, now: int) -> None:
        self.counter[n], self.since[n] = 5, now // 60_000_000

    def touch(self, n: int, request: int, now: int) -> None:
        c = max(self.counter[n] - (now // 60_000_000 - self.since[n]), 0)
        if c < 255 and self.draw(10**6) < 10**6 / (max(c - 5, 0) * 10 + 1):
            c += 1
        self.counter[n], self.since[n] = c, now // 60_000_000

    def score(self, n: int, now: int) -> int:
        return 255 - max(self.counter[n] - (now // 60_000_000 - self.since[n]), 0)


class LhdRule(Drawn):
    """Without a period ending (short logs never learn): densities stay (class + 1) / (age + 1)."""

    def begin(self) -> None:
        self.clock = 0
        self.last: dict[int, tuple[int, int]] = {}
        self.recent: dict[int, int] = {}
        self.head = 0
        self.level = 0.0

    def rank_of(self, n: int) -> float:
        age = min((self.clock - self.since[n]) >> 1, 19_999)
        ages, group = sum(self.last[n]), 0
        while 0 < ages < 20_000 and group < 15:
            ages, group = ages * 2, group + 1
        group = 15 if ages == 0 else group
        return (group + 1) / (age + 1) / self.size[n]

    def fresh(self, n: int, request: int, now: int) -> None:
        self.last[n], self.since[n] = (0, 20_000), self.clock
        if self.rank_of(n) < self.level:
            self.recent[self.head % 8] = n
            self.head += 1
        self.clock += 1

    def touch(self, n: int, request: int, now: int) -> None:
        age = (self.clock - self.since[n]) >> 1
        self.last[n] = (age, self.last[n][0])
        self.since[n] = self.clock
        self.clock += 1

    def victim(self, leaves: list[int], request: int, now: int) -> int:
        looked = self.sample(32) + [self.recent[k] for k in sorted(self.recent)]
        able = [n for n in looked if n in leaves]
        best = min(able, key=self.rank_of)
        self.level = 0.9 * self.level + (1 - 0.9) * self.rank_of(best)
        return best


class Marconi(Drawn):
    def begin(self) -> None:
        self.hit = -1

    def fresh(self, n: int, request: int, now: int) -> None:
        self.since[n] = now

    def touch(self, n: int, request: int, now: int) -> None:
        if self.hit != request:
            self.hit, self.since[n] = request, now

    def victim(self, leaves: list[int], request: int, now: int) -> int:
        able = [n for n in self.array if n in leaves]
        worth = {n: 6 * 4096.0 + 2 * self.path_sum[n] - self.size[n] for n in able}
        fresh = {n: 1e6 / max(now - self.since[n], 1) for n in able}

        def norm(values: dict[int, float], n: int) -> float:
            low, high = min(values.values()), max(values.values())
            return (values[n] - low) / (high - low) if high > low else 1.0

        return min(able, key=lambda n: norm(worth, n) + norm(fresh, n))


class LeCaRRule(Rule):
    def setup(self) -> None:
        self.uses: dict[int, int] = {}
        self.ghosts: dict[int, tuple[str, int]] = {}
        self.weight = 0.5
        self.state = 1
        held = max(int(self.capacity / (sum(self.size.values()) / len(self.size))), 1)
        self.discount = 0.005 ** (1 / held)
        self.by, self.now = "lru", 0

    def learn(self, n: int) -> None:
        if n in self.ghosts:
            by, left = self.ghosts.pop(n)
            factor = math.exp(-0.45 * self.discount ** (self.now - left))
            lru, lfu = self.weight, 1.0 - self.weight
            if by == "lru":
                self.weight = lru * factor / (lru * factor + 1.0 - lru)
            else:
                self.weight = 1.0 - lfu * factor / (lfu * factor + 1.0 - lfu)

    def missing(self, nodes: list[int]) -> None:
        self.now = self.asked
        for n in nodes:
            self.learn(n)

    def enter(self, n: int, request: int, now: int, leaf: bool) -> None:
        self.now = request
        self.learn(n)
        self.uses[n] = 1
        self.order.append(n)

    def touch(self, n: int, request: int, now: int) -> None:
        self.now = request
        super().touch(n, request, now)
        self.uses[n] += 1

    def leave(self, n: int, evicted: bool) -> None:
        super().leave(n, evicted)
        if evicted:
            self.ghosts[n] = (self.by, self.now)
            while self.tokens(self.ghosts) > self.capacity:
                del self.ghosts[next(iter(self.ghosts))]

    def victim(self, leaves: list[int], request: int, now: int) -> int:
        self.state = self.state * 48_271 % (2**31 - 1)
        able = [n for n in self.order if n in leaves]
        if self.state % 10**6 < self.weight * 10**6:
            self.by = "lru"
            return able[0]
        self.by = "lfu"
        return min(able, key=lambda n: (self.uses[n], able.index(n)))


class Workload(Rule):
    def setup(self) -> None:
        self.group: dict[int, tuple[int, int]] = {}
        self.at: dict[int, int] = {}
        self.gaps: dict[tuple[int, int], list[float]] = {}

    def enter(self, n: int, request: int, now: int, leaf: bool) -> None:
        self.order.append(n)
        self.group[n] = (self.tags["session_type"][request], min(self.tags["turn"][request], 8))
        self.at[n] = now

    def touch(self, n: int, request: int, now: int) -> None:
        self.gaps.setdefault(self.group[n], [60.0]).append((now - self.at[n]) * 1e-6)
        self.order.remove(n)
        self.enter(n, request, now, False)

    def victim(self, leaves: list[int], request: int, now: int) -> int:
        heads: dict[tuple[int, int], int] = {}
        for n in self.order:
            if n in leaves:
                heads.setdefault(self.group[n], n)

        def chance(n: int) -> float:
            gaps = self.gaps.get(self.group[n], [60.0])
            total = 0.0
            for gap in gaps:
                total += gap
            mean = max(total / len(gaps), 1e-6)
            return math.exp(-((now - self.at[n]) * 1e-6) / mean) * (1 - math.exp(-300.0 / mean))

        ranked = [(chance(heads[g]), -self.depth[heads[g]], g) for g in sorted(heads)]
        return heads[min(ranked)[2]]


class TinyLfu(Rule):
    """Window, probation, protected as lists, oldest first; the counts of the sketch as a table of the same slots."""

    insert_first = True

    def setup(self) -> None:
        self.window: list[int] = []
        self.probation: list[int] = []
        self.protected: list[int] = []
        options = {"window_share": 0.01, "count_from_share": 0.5, "adaptive": 1} | self.parameters
        self.most = max(int(self.capacity / (sum(self.size.values()) / len(self.size))), 1)
        self.window_most = self.capacity - int((1 - options["window_share"]) * self.capacity)
        self.protected_most = int(0.8 * (self.capacity - self.window_most))
        self.counts: dict[tuple[int, int], int] = {}
        self.start, self.counting = int(options["count_from_share"] * self.capacity), False
        self.added, self.seen, self.good = 0, 0, 0
        self.rate, self.step, self.adjust = 0.0, -0.0625 * self.capacity, 0
        self.request, self.candidates, self.tried = -1, None, False
        self.adaptive = options["adaptive"]

    def slots(self, n: int) -> list[tuple[int, int]]:
        width = 4
        while width < 4 * self.most:
            width *= 2
        return [(row, slot(n, row, width)) for row in range(4)]

    def count(self, n: int) -> None:
        if not self.counting:
            return
        open_slots = [k for k in self.slots(n) if self.counts.get(k, 0) < 15]
        for k in open_slots:
            self.counts[k] = self.counts.get(k, 0) + 1
        self.added += bool(open_slots)
        if open_slots and self.added >= 10 * self.most:
            odd = sum(c % 2 for c in self.counts.values())
            self.counts = {k: c // 2 for k, c in self.counts.items()}
            self.added = (self.added - odd // 4) // 2

    def frequency(self, n: int) -> int:
        return min(self.counts.get(k, 0) for k in self.slots(n))

    def demote(self) -> None:
        while self.tokens(self.protected) > self.protected_most:
            self.probation.append(self.protected.pop(0))

    def begin(self, request: int) -> None:
        if request == self.request:
            return
        if self.candidates is None:
            self.overflow()
        self.request, self.candidates, self.tried = request, None, False
        if not self.adaptive:
            return
        if not self.counting:
            self.rate, self.seen, self.good = 0.0, 0, 0
        elif self.seen >= 10 * self.most:
            rate = self.good / self.seen
            change, self.rate = rate - self.rate, rate
            amount = self.step if change >= 0 else -self.step
            sign = 1 if amount >= 0 else -1
            self.step = 0.0625 * self.capacity * sign if abs(change) >= 0.05 else 0.98 * amount
            self.adjust, self.seen, self.good = int(amount), 0, 0
        if self.adjust > 0 and self.protected_most > 0:
            self.move(min(self.adjust, self.protected_most), 1)
        elif self.adjust < 0 and self.window_most > 1:
            self.move(min(-self.adjust, self.window_most - 1), -1)

    def move(self, quota: int, way: int) -> None:
        self.window_most += way * quota
        self.protected_most -= way * quota
        if way > 0:
            self.demote()
        while True:
            source = self.window
            if way > 0:
                fits = self.probation and self.size[self.probation[0]] <= quota
                source = self.probation if fits else self.protected
            if not source or self.size[source[0]] > quota:
                break
            n = source.pop(0)
            quota -= self.size[n]
            (self.window if way > 0 else self.probation).append(n)
        self.window_most -= way * quota
        self.protected_most += way * quota
        self.adjust = way * quota

    def overflow(self) -> None:
        self.candidates = []
        while self.tokens(self.window) > self.window_most:
            n = self.window.pop(0)
            self.probation.append(n)
            self.candidates.append(n)

    def enter(self, n: int, request: int, now: int, leaf: bool) -> None:
        self.begin(request)
        self.window.append(n)
        if self.tokens(self.window + self.probation + self.protected) >= self.start:
            self.counting = True
        self.count(n)
        self.seen += 1

    def touch(self, n: int, request: int, now: int) -> None:
        self.begin(request)
        self.count(n)
        self.seen += 1
        self.good += 1
        home = next(q for q in (self.window, self.probation, self.protected) if n in q)
        home.remove(n)
        if home is self.probation and self.size[n] <= self.protected_most:
            self.protected.append(n)
            self.demote()
        else:
            home.append(n)

    def leave(self, n: int, evicted: bool) -> None:
        for queue in (self.window, self.probation, self.protected):
            if n in queue:
                queue.remove(n)
        if self.candidates and n in self.candidates:
            self.candidates.remove(n)

    def victim(self, leaves: list[int], request: int, now: int) -> int:
        if self.candidates is None:
            self.overflow()
        able = [n for n in self.candidates if n in leaves]
        if not able and not self.tried:
            self.tried = True
            self.candidates = list(self.window)
            able = [n for n in self.candidates if n in leaves]
        residents = [n for n in self.probation if n in leaves]
        if not able:
            self.candidates = []
            return next(n for n in residents + self.protected + self.window if n in leaves)
        n = able[0]
        self.candidates = self.candidates[self.candidates.index(n) + 1 :]
        if residents and n == residents[0]:
            self.candidates = []
        elif residents and self.frequency(n) > self.frequency(residents[0]):
            return residents[0]
        return n


RULES: dict[str, type[Rule]] = {
    "sieve": Sieve, "s3fifo": S3Fifo, "arc": Arc, "twoq": TwoQ, "lruk": LruK, "w_tinylfu": TinyLfu,
    "lfu_halving": Halving, "vllm_lru": LastToken, "sglang_lru": Radix, "sglang_lfu": RadixLfu,
    "sglang_slru": RadixSlru, "sglang_priority": RadixPriority,
    "tensorrt_priority": Priorities, "dynamo_multilru": MultiLru, "lmcache_lru": Chunks,
    "mooncake_store": Leases, "redis_lru": RedisLru, "redis_lfu": RedisLfu, "hyperbolic": HyperbolicRule,
    "lhd": LhdRule, "lecar": LeCaRRule, "workload_aware": Workload, "tlru": Safe, "marconi": Marconi,
}  # fmt: skip
