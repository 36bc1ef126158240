"""What every retention choice costs for any group of requests, from their touches: sums, the cheapest, its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit.billing.touches import LATER, NEW, OWN, SHARED, WITHIN_LONG, WITHIN_SHORT, Touches
from kit.intervals import Interval, paired_ratio
from kit.prefix import Paths

KEEP_ALIVE_MARGIN = 0.05
TOO_CLOSE = "too close to call"
GAP_CLASSES = ("within_short", "within_long", "later", "new")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Prices:
    """Per request, in money per token: plain input, read, short and long write; NaN = not found."""

    plain: Floats
    read: Floats
    short: Floats
    long: Floats


@dataclass(frozen=True)
class Grouping:
    """One way to cut the requests: `codes` int64[requests] (-1 = in no group) into `names`; `keep_alive` is asked?"""

    dimension: str
    names: Sequence[str | None]
    codes: NDArray[np.int64]
    keep_alive: bool = True


class Choices:
    """Money per request under every choice, summed per group and bootstrap block. Unpriced requests are left out."""

    def __init__(
        self, touches: Touches, prices: Prices, short_seconds: float, paths: Paths, most_pings: int, replicates: int,
        seed: int,
    ) -> None:  # fmt: skip
        self.touches, self.prices, self.paths, self.most_pings = touches, prices, paths, most_pings
        self.replicates, self.seed, self.short_us = replicates, seed, round(short_seconds * 1e6)
        self.priced = np.isfinite(prices.plain) & np.isfinite(prices.read) & np.isfinite(prices.short)
        self.has_long = bool(self.priced.any() and np.isfinite(prices.long[self.priced]).all())
        rest = touches.rest_tokens * prices.plain
        self.by_choice = {name: rest + money for name, money in self._of(touches.tokens.sum(axis=1)).items()}

    def _of(self, tokens: NDArray[np.int64]) -> dict[str, Floats]:
        """Money per request for token counts [requests, 4] under each plain choice; long only where it has a price."""
        p, hit = self.prices, tokens[:, WITHIN_SHORT]
        mid, lost = tokens[:, WITHIN_LONG], tokens[:, LATER] + tokens[:, NEW]
        found = {"none": (hit + mid + lost) * p.plain, "short": hit * p.read + (mid + lost) * p.short}
        if self.has_long:
            found["long"] = (hit + mid) * p.read + lost * p.long
        return found

    def pinged(self, pings: int) -> Floats:
        """Money per request when up to `pings` keep-alive reads follow the chain's previous request."""
        t, p = self.touches, self.prices
        earlier = np.maximum(t.before, 0)
        needed = np.maximum(-(-t.gap_us // self.short_us) - 1, 0)
        sent = np.where(t.before >= 0, np.minimum(pings, needed), 0)
        saved = np.where(t.gap_us <= (pings + 1) * self.short_us, t.kept, 0) * (p.short - p.read)
        wasted = np.where(t.last, pings * t.path_tokens * p.read, 0.0)
        return self.by_choice["short"] - saved + sent * t.path_tokens[earlier] * p.read[earlier] + wasted

    def groups(self, groupings: Sequence[Grouping]) -> list[dict[str, Any]]:
        """Per group of every grouping: tokens by gap, cost of every choice, the cheapest, and what it saves."""
        sums = [_Sums(grouping, self.priced, self.paths) for grouping in groupings]
        plain = [{name: own.of(money) for name, money in self.by_choice.items()} for own in sums]
        alive: list[list[tuple[int, Floats]]] = [[] for _ in sums]
        for pings in range(1, self.most_pings + 1) if any(own.grouping.keep_alive for own in sums) else ():
            money = self.pinged(pings)
            for own, best in zip(sums, alive, strict=True):
                if own.grouping.keep_alive:
                    own.keep_cheaper(best, pings, own.of(money))
        whole = self.touches.tokens.sum(axis=1)
        return [
            self._row(own, at, whole, {name: table[at] for name, table in tables.items()}, best[at] if best else None)
            for own, tables, best in zip(sums, plain, alive, strict=True)
            for at in range(len(own.grouping.names))
        ]

    def segments(self) -> list[dict[str, Any]]:
        """Prefixes that several chains share, and those of one chain alone, each with its own cheapest choice."""
        rows = []
        for name, segment in (("shared", SHARED), ("own", OWN)):
            tokens = self.touches.tokens[:, segment]
            if tokens.any():
                everyone = np.zeros(self.priced.size, np.int64)
                own = _Sums(Grouping("segment", [name], everyone, keep_alive=False), self.priced, self.paths)
                tables = {choice: own.of(money)[0] for choice, money in self._of(tokens).items()}
                rows.append(self._row(own, 0, tokens, tables, None))
        return rows

    def _row(
        self,
        own: _Sums,
        at: int,
        tokens: NDArray[np.int64],
        columns: dict[str, Floats],
        alive: tuple[int, Floats] | None,
    ) -> dict[str, Any]:
        """One group: its head, its costs by choice, the verdict. `columns` are money per block."""
        if alive is not None:
            columns = {**columns, "keep_alive": alive[1]}
        counts = tokens[own.inside & (own.grouping.codes == at)].sum(axis=0)
        return {
            "dimension": own.grouping.dimension,
            "group": own.grouping.names[at],
            "requests": int(own.requests[at].sum()),
            "tokens": dict(zip(GAP_CLASSES, counts.tolist(), strict=True)),
            **self._verdict(columns, own.requests[at]),
            "pings": alive[0] if alive is not None else None,
        }

    def _verdict(self, columns: dict[str, Floats], requests: Floats) -> dict[str, Any]:
        """Costs, the cheapest choice, the next one, and what choosing saves against it with its interval."""
        costs = {choice: float(money.sum()) for choice, money in columns.items()}
        plain = {choice: cost for choice, cost in costs.items() if choice != "keep_alive"}
        best = min(plain, key=plain.__getitem__)
        if costs.get("keep_alive", np.inf) < plain[best] * (1 - KEEP_ALIVE_MARGIN):
            best = "keep_alive"
        others = {choice: cost for choice, cost in plain.items() if choice != best}
        second = min(others, key=others.__getitem__)
        saving = self._difference(columns[second], columns[best], requests)
        sure = saving is not None and saving.low > 0
        return {
            "costs": costs,
            "choice": best if sure else TOO_CLOSE,
            "cheapest": best,
            "next_best": second,
            "saving": saving.as_dict() if saving else None,
        }

    def _difference(self, dearer: Floats, cheaper: Floats, requests: Floats) -> Interval | None:
        basis = self.paths.block_basis
        told = paired_ratio(dearer, requests, cheaper, requests, self.replicates, self.seed, basis=basis)
        return told.scaled(float(requests.sum())) if told else None

    def dead_writes(self) -> dict[str, dict[str, Any]]:
        """Per retention: tokens written and never read within it, their share of all written, and their money."""
        rows: dict[str, dict[str, Any]] = {}
        whole = self.touches.tokens.sum(axis=1)
        for column, (name, price) in enumerate((("short", self.prices.short), ("long", self.prices.long))):
            written = whole[:, [WITHIN_LONG, LATER, NEW] if name == "short" else [LATER, NEW]].sum()
            dead, known = self.touches.dead[:, column], np.isfinite(price)
            rows[name] = {
                "tokens": int(dead.sum()),
                "share": float(dead.sum() / written) if written else None,
                "cost": float((dead[known] * price[known]).sum()) if known.any() else None,
            }
        return rows


class _Sums:
    """Sums of a money column per group and bootstrap block, for one grouping."""

    def __init__(self, grouping: Grouping, priced: NDArray[np.bool_], paths: Paths) -> None:
        self.grouping, self.inside = grouping, priced & (grouping.codes >= 0)
        self.shape = (len(grouping.names), paths.n_blocks)
        self.cell = grouping.codes[self.inside] * paths.n_blocks + paths.block[self.inside]
        self.requests = self.of(np.ones(priced.size))

    def of(self, money: Floats) -> Floats:
        """float64[groups, blocks]."""
        size = self.shape[0] * self.shape[1]
        sums = np.bincount(self.cell, weights=money[self.inside], minlength=size)
        return sums.astype(np.float64).reshape(self.shape)

    def keep_cheaper(self, best: list[tuple[int, Floats]], pings: int, table: Floats) -> None:
        """Replace a group's best number of pings where `table` is cheaper; the fewest of equals stays."""
        if not best:
            best += [(pings, row) for row in table]
            return
        for at, row in enumerate(table):
            if row.sum() < best[at][1].sum():
                best[at] = (pings, row)
