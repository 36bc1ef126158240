"""Who pays: the bill of the log per owner, and each owner's part of what the verdict saves.

Owners are named only where the parameter `name_owners` asks for it. Every total is the sum of its owners, with None
for requests whose owner the log does not name; a part that has no price stays not found, for the total too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kit import billing
from kit.analysis.parts import Parts
from kit.billing.bill import PER_MILLION, class_prices
from kit.billing.retention import MOST_GROUPS, OTHERS
from kit.replay import replay
from kit.replay.loop import FIELDS

Row = dict[str, Any]
Owner = str | None
TOKENS = ("read_tokens", "write_tokens", "write_long_tokens", "uncached_tokens")
COUNTS = ("requests", "input_tokens", *TOKENS)
LEDGER = "as the provider reported; where it told nothing, by its published rule with room for every prefix"
REPLAY = "LRU at the budget, simulated"
SUMS = (*COUNTS, "cost", "output_cost", "avoidable_cost")


def chargeback(made: Parts, policy: str, retention: Mapping[str, Any]) -> Row | None:
    """Per owner: requests, tokens by class, money, and the saving of the verdict; None where owners are not asked for.

    The classes are those of `kit.billing.ledger` (as reported, else simulated) where there are prices, else of LRU at
    the budget. `saving_of` says which verdict the saving belongs to: "policy" where it leaves LRU, else "retention".
    """
    if not made.parameters.name_owners:
        return None
    owners = _owners(made)
    rates = made.scene.rates
    least = made.scene.neutral.minimum_tokens
    books = billing.ledger(made.log, rates, minimum_tokens=least) if rates else None
    rows = _billed(books["chargeback"]) if books else _replayed(made, owners)
    kind, saved, saved_in_all = _saving(made, policy, retention, owners)
    for row in rows:
        row["saving"] = saved.get(row["owner"])
    total = {name: _sum([row[name] for row in rows]) for name in SUMS}
    total["saving"] = saved_in_all
    for row in rows:
        for name, share in (("cost", "cost_share"), ("input_tokens", "input_token_share"), ("saving", "saving_share")):
            row[share] = _share(row[name], total[name])
    rows.sort(key=lambda row: (-(row["cost"] or 0.0), -row["input_tokens"], row["owner"] is None, row["owner"] or ""))
    return {
        "basis": LEDGER if rates else REPLAY,
        "currency": rates.currency if rates else None,
        "saving_of": kind,
        "total": total,
        "owners": rows,
    }


def _owners(made: Parts) -> list[Owner]:
    """The owner of every request; None where the log names none."""
    return [row[0] for row in made.log.con.sql("SELECT owner FROM request ORDER BY request_id").fetchall()]


def _sum(values: Sequence[float | None]) -> float | None:
    """The sum; None where any part is not found."""
    return None if any(value is None for value in values) else sum(value or 0 for value in values)


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _billed(lines: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The ledger's lines (per owner, model and day) added up per owner."""
    names = dict.fromkeys(line["owner"] for line in lines)
    of = {name: [line for line in lines if line["owner"] == name] for name in names}
    rows = []
    for name, mine in of.items():
        row: Row = {"owner": name, **{key: _sum([line[key] for line in mine]) for key in SUMS if key != "input_tokens"}}
        row["input_tokens"] = sum(row[key] for key in TOKENS)
        rows.append(row)
    return rows


def _replayed(made: Parts, owners: Sequence[Owner]) -> list[Row]:
    """Without prices: what LRU at the budget finds and misses per owner; nothing where nothing can be replayed."""
    names, counts = _counts(made, "lru", owners)
    rows = []
    for name, group in zip(names, counts, strict=True):
        found = dict(zip(FIELDS, group.sum(axis=0).tolist(), strict=True))
        row: Row = {"owner": name, **dict.fromkeys(SUMS), **{key: found[key] for key in ("requests", "input_tokens")}}
        classes = (found["hit_tokens"], found["write_tokens"], 0, found["uncached_tokens"])
        rows.append({**row, **dict(zip(TOKENS, classes, strict=True))})
    return rows


def _counts(made: Parts, policy: str, owners: Sequence[Owner]) -> tuple[list[Owner], np.ndarray]:
    """Owners in order, and the counts of one replay at the budget: int64[owners, rates, FIELDS]."""
    paths, capacity = made.scene.paths, made.scene.actual
    if paths is None or capacity is None:
        return [], np.zeros((0, 1, len(FIELDS)), np.int64)
    names = list(dict.fromkeys(owners))
    code_of = {name: code for code, name in enumerate(names)}
    codes = np.array([code_of[name] for name in owners], np.int64)
    group = (codes * paths.n_rates + paths.rate).astype(np.int32)
    nothing = np.zeros(paths.requests, np.int32)
    by_owner = replace(
        paths, rate=group, n_rates=len(names) * paths.n_rates, block=nothing, n_blocks=1, hour=nothing, n_hours=1
    )
    tally = replay(by_owner, policy, capacity_tokens=capacity, setting=made.scene.neutral)
    counts = tally.by_block.sum(axis=(0, 2)).reshape(len(names), paths.n_rates, len(FIELDS))
    return names, counts


def _saving(
    made: Parts, policy: str, retention: Mapping[str, Any], owners: Sequence[Owner]
) -> tuple[str | None, dict[Owner, float | None], float | None]:
    """Which verdict saves, and money saved per owner and in all over the log, where it can be told."""
    if policy != "lru" and made.scene.rates is not None:
        before, after = (_costs(made, name, owners) for name in ("lru", policy))
        saved = {name: _less(cost, after[name]) for name, cost in before.items()}
        return "policy", saved, _sum(list(saved.values()))
    groups = retention.get("groups") or []
    whole = next((group for group in groups if group["dimension"] == "all"), None)
    if whole is None or retention.get("choice") != whole["cheapest"]:
        return None, {}, None
    pair = (whole["next_best"], whole["cheapest"])
    mine = [group for group in groups if group["dimension"] == "owner"]
    pooled = OTHERS if len(set(owners)) > MOST_GROUPS else None  # no owner's own, even where one is called so
    told = [group for group in mine if pooled is None or group["group"] != pooled]
    named = {group["group"]: _difference(group["costs"], pair) for group in told}
    if not mine:
        named = dict.fromkeys(owners, _difference(whole["costs"], pair))
    return "retention", named, _difference(whole["costs"], pair)


def _difference(costs: Mapping[str, float | None], pair: tuple[str, str]) -> float | None:
    return _less(costs.get(pair[0]), costs.get(pair[1]))


def _less(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else before - after


def _costs(made: Parts, policy: str, owners: Sequence[Owner]) -> dict[Owner, float | None]:
    """Input cost per owner under a policy at the budget; None where a price is not found."""
    scene = made.scene
    assert scene.rates is not None
    prices = [class_prices(rate, scene.tier_mode, scene.write_class) for rate in scene.rates.rows]
    names, counts = _counts(made, policy, owners)
    places = [FIELDS.index(name) for name in ("hit_tokens", "write_tokens", "uncached_tokens")]
    return {name: _cost(group[:, places], prices) for name, group in zip(names, counts, strict=True)}


def _cost(counts: np.ndarray, prices: Sequence[tuple[float, float, float] | None]) -> float | None:
    parts = []
    for tokens, price in zip(counts.tolist(), prices, strict=True):
        if any(tokens):
            parts.append(None if price is None else sum(n * p for n, p in zip(tokens, price, strict=True)))
    total = _sum(parts)
    return None if total is None else total / PER_MILLION
