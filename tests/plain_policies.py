"""Plain statements of the policies of `kit.policies`, written apart from them: dicts, lists, linear searches.

`Hosted` is the plain tier of `tests.reference` asking a *rule* what to evict. A rule sees node ids only: `missing`
(path nodes not resident, leaf first, before anything is evicted for them), `enter`, `touch`, `leave`, `victim`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kit.prefix import Paths
from kit.replay import Setting
from tests.reference import Plain


class Rule:
    """Recency, as the simplest rule; the others override what differs."""

    insert_first = False

    def __init__(self, paths: Paths, capacity: int, **parameters: float) -> None:
        self.size = {n: int(paths.room_tokens[n]) for n in range(paths.parent.size)}
        self.depth = {n: int(paths.depth[n]) for n in range(paths.parent.size)}
        self.capacity = capacity
        self.parameters = parameters
        self.order: list[int] = []
        self.tags: dict[str, Any] = {}
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

    def request(self, i: int, now: int, path: tuple[int, ...], total: int, lost: bool = False) -> int:
        self.path, self.asked, self.clock = path[::-1], i, now
        return super().request(i, now, path, total, lost)


def hosted(rule: type[Rule], paths: Paths, capacity: int, setting: Setting, **parameters: float) -> Hosted:
    """A plain tier over these paths with a rule."""
    count = range(paths.parent.size)
    made = rule(paths, capacity, **parameters)
    return Hosted(
        "rule", capacity, {n: int(paths.tokens[n]) for n in count}, {n: int(paths.depth[n]) for n in count},
        {n: int(paths.parent[n]) for n in count}, {n: int(paths.path_tokens[n]) for n in count},
        int((setting.ttl_seconds or 0) * 1e6), setting.minimum_tokens,
        setting.newcomer_may_be_victim or made.insert_first,
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
        if request < 0:
            self.seen_b2, self.fresh = False, 0
        if self.fresh or request < 0:
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


RULES: dict[str, type[Rule]] = {"sieve": Sieve, "s3fifo": S3Fifo, "arc": Arc, "twoq": TwoQ, "lruk": LruK}
