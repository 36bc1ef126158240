"""A plain replay, written apart from the kit: dicts, a linear search for the victim, no shared code.

It states each policy as a sort key (smallest evicted first) so that the compiled loop has something independent to
equal. A path is a tuple of node ids, root first; sizes are per node.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Plain:
    """One tier: `at` node -> last use (request), and the histories the policies need."""

    policy: str
    capacity: int
    size: dict[int, int]
    depth: dict[int, int]
    parent: dict[int, int]
    path_tokens: dict[int, int]
    ttl_us: int = 0
    minimum: int = 0
    newcomer: bool = False
    half_life_us: float = 86_400e6
    visible_us: int = 0
    at: dict[int, int] = field(default_factory=dict)
    inserted: dict[int, int] = field(default_factory=dict)
    uses: dict[int, int] = field(default_factory=dict)
    ever: Counter = field(default_factory=Counter)
    decayed: dict[int, float] = field(default_factory=dict)
    level: dict[int, float] = field(default_factory=dict)
    inflation: float = 0.0
    fate: dict[int, str] = field(default_factory=dict)
    started: dict[int, int] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    totals: Counter = field(default_factory=Counter)

    def used(self) -> int:
        return sum(self.size[n] for n in self.at)

    def key(self, n: int) -> tuple:
        tie = (self.at[n], -self.depth[n])
        return {
            "lru": tie,
            "lfu": (self.uses.get(n), *tie),
            "lfu_perfect": (self.ever[n], *tie),
            "lfu_decay": (self.decayed.get(n), *tie),
            "length": (-self.path_tokens[n], *tie),
            "fifo": (self.inserted[n], -self.depth[n]),
            "gdsf": (self.level.get(n), *tie),
        }[self.policy]

    def is_leaf(self, n: int) -> bool:
        return all(self.parent[m] != n for m in self.at)

    def drop(self, n: int, why: str) -> None:
        del self.at[n]
        self.fate[n] = why
        self.order = [m for m in self.order if m != n]

    def readable(self, matched: int, total: int) -> int:
        return matched

    def settles(self, path: tuple[int, ...], request: int) -> None: ...

    def make_room(self, most: int, pinned: set[int]) -> None:
        while self.used() > most:
            if self.policy == "fifo_flat":
                victim = self.order[0]
            else:
                victim = min((n for n in self.at if n not in pinned and self.is_leaf(n)), key=self.key)
            if self.policy == "gdsf":
                self.inflation = self.level[victim]
            self.drop(victim, "evicted")
            self.totals["evictions"] += 1

    def use(self, n: int, request: int, now: int, fresh: bool) -> None:
        self.uses[n] = 1 if fresh else self.uses[n] + 1
        self.ever[n] += 1
        x = now / self.half_life_us
        before = self.decayed.get(n, -math.inf)
        self.decayed[n] = x if before == -math.inf else max(before, x) + math.log2(1 + 2 ** -abs(before - x))
        self.level[n] = self.inflation + self.uses[n] / self.size[n]
        if fresh:
            self.inserted[n] = request
            self.written[n] = now
            self.order.append(n)
        self.at[n] = request
        self.started[n] = now

    def request(self, i: int, now: int, path: tuple[int, ...], total: int, lost: bool = False) -> int:
        if self.ttl_us:
            for n in [n for n in self.at if now - self.started[n] > self.ttl_us]:
                self.drop(n, "expired")
        t = self.totals
        t["requests"] += 1
        t["input_tokens"] += total
        whole = sum(self.size[n] for n in path)
        if not path or whole < self.minimum:
            t["missed_below_minimum"] += total
            t["uncached_tokens"] += total
            return 0
        run = 0
        while run < len(path) and path[run] in self.at and now >= self.written[path[run]] + self.visible_us:
            run += 1
        matched = sum(self.size[n] for n in path[:run])
        causes: Counter = Counter()
        if run < len(path):
            stop = "in_flight" if path[run] in self.at else self.fate.get(path[run], "cold")
            for n in path[run:]:
                causes[stop if n in self.at else self.fate.get(n, "cold")] += self.size[n]
        hit, again = matched, 0
        if matched and lost:
            causes["lost"] += matched
            hit = 0
        elif matched < self.minimum:
            causes["below_minimum"] += matched
            hit = 0
        else:
            hit = self.readable(matched, total)
            again = matched - hit
            causes["below_minimum"] += again
        causes["below_minimum"] += total - whole
        if whole <= self.capacity:
            self.settles(path, i)
            if self.policy == "fifo_flat":
                for n in path:
                    if n not in self.at:
                        self.make_room(self.capacity - self.size[n], set())
                        self.use(n, i, now, True)
                    else:
                        self.use(n, i, now, False)
            else:
                need = sum(self.size[n] for n in path if n not in self.at)
                if not self.newcomer:
                    self.make_room(self.capacity - need, set(path))
                for n in reversed(path):
                    self.use(n, i, now, n not in self.at)
                if self.newcomer:
                    self.make_room(self.capacity, set())
            write = whole - hit - again
        else:
            if run:
                self.settles(path, i)
            for n in path[:run]:
                self.use(n, i, now, False)
            for n in path[run:]:
                if n not in self.at and n not in self.fate:
                    self.fate[n] = "oversize"
            causes["oversize"] += causes.pop("evicted", 0) + causes.pop("expired", 0)
            write = matched - hit - again
        t["hits"] += hit > 0
        t["hit_tokens"] += hit
        t["write_tokens"] += write
        t["uncached_tokens"] += total - hit - write
        for cause, tokens in causes.items():
            t[f"missed_{cause}"] += tokens
        return hit
