"""From the results of every step to what the decision table reads, under one assumption."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from kit.analysis.lookup import at
from kit.analysis.measures import Measures
from kit.analysis.parts import WINDOW, Parts
from kit.analysis.rows import Billing, differences_from, standings_of
from kit.analysis.scene import ACTUAL, DOUBLE
from kit.decide import Contrast, Evidence
from kit.decide.evidence import COST, HITS
from kit.intervals import Standing, from_dict
from kit.log import LogFacts
from kit.policies import REGISTRY
from kit.replay import Tally

LENGTH_RIVALS = ("lru", "lfu_decay")
TYPED = "saecache"
RARE = 0.01  # a token type with a smaller share of tokens says nothing
SIMPLE = ("lru", "lfu", "lfu_perfect", "lfu_decay", "length", "gdsf", "fifo")


def gather(made: Parts, assumption: str) -> Evidence:
    """Everything the table asks, for one assumption; None where this log cannot tell."""
    scene, measures, rows, facts = made.scene, made.measures, made.rows, made.log.facts
    cell = {"assumption": assumption, "window": WINDOW, "capacity_label": ACTUAL}
    lru, double = at(rows, policy="lru", **cell), at(rows, policy="lru", **{**cell, "capacity_label": DOUBLE})
    online = [row for row in rows if _matches(row, cell) and _candidate(row["policy"])]
    best = max(online, key=lambda row: (row["hit_tokens"], row["policy"] == "lru"), default=None)
    limitless = made.replayed.limitless[assumption].total(WINDOW) if made.replayed.limitless else {}
    tenth = measures.value_rank["longest_tenth"] or {}
    return Evidence(
        days=facts.days if facts.has_clock else None,
        requests=facts.requests,
        reused_keys=measures.concentration["reused_keys"],
        rejected_share=facts.damaged / facts.rows if facts.rows else None,
        missing_fields=() if facts.has_clock else ("a common clock",),
        assumption=assumption,
        tier_mode=scene.tier_mode,
        capacity_tokens=scene.actual,
        observed_seconds=_span_seconds(facts),
        input_tokens=limitless.get("input_tokens"),
        ceiling_hit_tokens=limitless.get("hit_tokens"),
        lru_hit_tokens=lru["hit_tokens"] if lru else None,
        lru_double_hit_tokens=double["hit_tokens"] if double else None,
        best_online=best["policy"] if best else None,
        best_online_hit_tokens=best["hit_tokens"] if best else None,
        ttl_seconds=scene.neutral.ttl_seconds,
        gaps_beyond_ttl_share=measures.gaps["longer_token_share"],
        **turn_evidence(measures),
        top_fraction=measures.concentration["top_fraction"],
        top_key_request_share=measures.concentration["request_share"],
        day_overlap=measures.rotation["median"],
        **_scan_evidence(measures, scene.actual),
        flat_keys=None if facts.identity is None else facts.identity == "flat",
        spearman_length_count=measures.value_rank["spearman_length_count"],
        longest_one_shot_share=tenth.get("one_shot_share"),
        longest_request_share=tenth.get("requests_share"),
        longest_system_keys=int(tenth["holds_system_key"]) if tenth else None,
        length_checks=_length_checks(made, assumption),
        saecache=_saecache(made, assumption),
        standings=_standings(made, assumption),
        doubling=_doubling(made, assumption),
        kv_bytes_per_token=made.parameters.token_bytes,
        online=tuple(_contrast(row, lru, row["interval"], made.bills) for row in online if lru and row is not lru),
    )


def _span_seconds(facts: LogFacts) -> float | None:
    if not facts.has_clock or facts.start is None or facts.end is None:
        return None
    return (facts.end - facts.start).total_seconds()


def _matches(row: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(row[name] == value for name, value in wanted.items())


def _candidate(policy: str) -> bool:
    return policy in REGISTRY and REGISTRY[policy].candidate


def turn_evidence(measures: Measures) -> dict[str, Any]:
    """Session types, the fits of their gaps and reuse by token type (row 5), by name of the Evidence attribute."""
    fits = [
        row
        for row in measures.inter_turn
        if row["clock"] == "start_to_start" and row["session_type"] not in (None, "all")
    ]
    typed = [row for row in fits if row["trigger"] in (None, "all")]
    distances = [row["ks"] for row in typed if row["ks"] is not None]
    best = [min(row["aic"], key=row["aic"].get) == "lognormal" for row in typed if row.get("aic")]
    return {
        "second_session_type_share": measures.second_session_type_share,
        "multi_turn_share": measures.multi_turn_share,
        "fewest_gaps": min((row["n"] for row in typed), default=None),
        "worst_gap_ks": max(distances, default=None),
        "log_normal_best": all(best) if best else None,
        "type_reuse_factor": _reuse_factor(measures.token_types["types"]),
    }


def _reuse_factor(types: Sequence[Mapping[str, Any]]) -> float | None:
    """Highest over lowest reuse rate of the token types with at least 1 % of tokens; infinite where one is never reused
    and another is, None under two types."""
    total = sum(row["tokens"] for row in types)
    rates = [row["reuse_rate"] for row in types if row["reuse_rate"] is not None and row["tokens"] >= RARE * total]
    if len(rates) < 2 or not max(rates):
        return None
    return max(rates) / min(rates) if min(rates) else math.inf


def _scan_evidence(measures: Measures, capacity_tokens: int | None) -> dict[str, Any]:
    """The worst busy hour of one-shot tokens, and what all such tokens cost LRU at this budget over the log (row 7).

    The loss is the replay without the room they take, not a fall from one hour to the next: hours differ in traffic.
    """
    effect = measures.scans.get("effect") or {}
    known = effect.get("capacity_tokens") == capacity_tokens
    return {
        "scan_token_share": measures.scans["max_busy_share"],
        "scan_usual_share": measures.scans["median_share"],
        "scan_lru_loss": effect.get("lost_token_share") if known else None,
    }


def _contrast(
    row: Mapping[str, Any], base: Mapping[str, Any], interval: Mapping[str, Any] | None, bills: Billing
) -> Contrast:
    """One policy against another from their replay rows and the interval of their difference."""
    measure = HITS if bills.tier_mode == "engine" else COST
    told = (interval or {}).get(measure)
    priced = bills.rates is not None and row["cost_per_request"] is not None
    change = None
    if row["hit_token_ratio"] is not None and base["hit_token_ratio"] is not None:
        change = row["hit_token_ratio"] - base["hit_token_ratio"]
    return Contrast(
        policy=row["policy"],
        baseline=base["policy"],
        interval=from_dict(told),
        measure=measure,
        currency=bills.rates.currency if priced and bills.rates else None,
        capacity_tokens=row["capacity_tokens"],
        hit_ratio_change=change,
        m_eq_now=base["m_eq"],
        m_eq_proposed=row["m_eq"],
        requests=row["requests"],
        input_tokens=row["input_tokens"],
        title=REGISTRY[row["policy"]].title,
        chosen_on=(told or {}).get("chosen_on"),
        checked_on=(told or {}).get("checked_on"),
        base_value=base["hit_token_ratio"] if measure == HITS else base["cost_per_request"] if priced else None,
        base_hit_ratio=base["hit_token_ratio"],
    )


def _length_checks(made: Parts, assumption: str) -> tuple[Contrast, ...]:
    """Length against LRU and decayed LFU at every budget (row 8)."""
    checks = []
    for capacity in made.scene.capacities:
        cell = [t for t in made.replayed.tallies if t.capacity_tokens == capacity and t.setting.name == assumption]
        priced = [(tally, made.bills.bill(tally, WINDOW)) for tally in cell]
        rows = {tally.policy: _brief(tally, bill) for tally, bill in priced}
        if "length" not in rows:
            continue
        for rival in (name for name in LENGTH_RIVALS if name in rows):
            told = dict(zip(rows, differences_from(priced, made.bills, WINDOW, rival), strict=True))
            checks.append(_contrast(rows["length"], rows[rival], told["length"], made.bills))
    return tuple(checks)


def _standings(made: Parts, assumption: str) -> tuple[Standing, ...]:
    """Every online candidate at the budget: how likely it is the best."""
    wanted = (made.scene.actual, assumption)
    cell = [t for t in made.replayed.tallies if (t.capacity_tokens, t.setting.name) == wanted and _candidate(t.policy)]
    return standings_of(cell, made.bills, WINDOW) if cell else ()


def _saecache(made: Parts, assumption: str) -> Contrast | None:
    """The SAECache-style policy against the best simple one at the budget (row 5); None where it was not replayed."""
    wanted = (made.scene.actual, assumption)
    cell = [t for t in made.replayed.tallies if (t.capacity_tokens, t.setting.name) == wanted]
    priced = [(tally, made.bills.bill(tally, WINDOW)) for tally in cell]
    rows = {tally.policy: _brief(tally, bill) for tally, bill in priced}
    simple = [name for name in SIMPLE if name in rows]
    if TYPED not in rows or not simple:
        return None
    best = max(simple, key=lambda name: rows[name]["hit_token_ratio"] or 0.0)
    told = dict(zip(rows, differences_from(priced, made.bills, WINDOW, best), strict=True))
    return _contrast(rows[TYPED], rows[best], told[TYPED], made.bills)


def _doubling(made: Parts, assumption: str) -> Contrast | None:
    """LRU at double the budget against LRU at the budget: what room is worth."""
    double = next((capacity for capacity, label in made.scene.capacities.items() if label == DOUBLE), None)
    found = [made.replayed.tally("lru", capacity, assumption) for capacity in (made.scene.actual, double)]
    pair = [(tally, made.bills.bill(tally, WINDOW)) for tally in found if tally is not None]
    if len(pair) < 2:
        return None
    base, more = (_brief(tally, bill) for tally, bill in pair)
    return _contrast(more, base, differences_from(pair, made.bills, WINDOW)[1], made.bills)


def _brief(tally: Tally, bill: Any) -> dict[str, Any]:
    total = tally.total(WINDOW)
    ratio = total["hit_tokens"] / total["input_tokens"] if total["input_tokens"] else None
    return {
        "policy": tally.policy, "capacity_tokens": tally.capacity_tokens, "hit_token_ratio": ratio, "m_eq": bill.m_eq,
        "cost_per_request": bill.cost_per_request, "requests": total["requests"], "input_tokens": total["input_tokens"],
    }  # fmt: skip
