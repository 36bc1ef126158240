"""The results dict: every key of results.json, composed from the finished steps as plain values."""

from __future__ import annotations

from typing import Any

import numpy as np

import kit
from kit import billing, providers
from kit.analysis.cache_life import cache_life, hours
from kit.analysis.chargeback import chargeback
from kit.analysis.headroom import gaps
from kit.analysis.lookup import at
from kit.analysis.overlap import overlap
from kit.analysis.parts import WINDOW, Parts
from kit.analysis.scene import ACTUAL
from kit.analysis.warned import warnings
from kit.decide import Decision
from kit.log import Log
from kit.log.breaks import prefix_breaks
from kit.policies import REGISTRY
from kit.prices import rate_sums
from kit.replay import Setting, Tally
from kit.replay.loop import FIELDS
from kit.replay.room import GIB

SCHEMA = "1"
CURVE_POINTS = 160
CLASSES = ("read_tokens", "write_tokens", "write_long_tokens", "uncached_tokens")


def compose(made: Parts, decision: Decision) -> dict[str, Any]:
    """The content of results.json, in the order of the contract."""
    lru = made.tally("lru")
    lru_bill = made.bills.bill(lru, WINDOW) if lru else None
    retention = _ttl_verdict(made)
    return {
        "schema": SCHEMA,
        "kit_version": kit.__version__,
        "warnings": warnings(made),
        "log": _log(made.log),
        "parameters": made.parameters.as_dict(),
        "settings": _settings(made),
        "concentration": made.measures.concentration,
        "rotation": made.measures.rotation,
        "value_rank": made.measures.value_rank,
        "token_types": made.measures.token_types,
        "scans": made.measures.scans,
        "reuse_gaps": made.measures.gaps,
        "prefix_breaks": prefix_breaks(made.log),
        "inter_turn": made.measures.inter_turn,
        "turns": made.measures.turns,
        "bounds": _bounds(made),
        "lru_curve": _curve(made),
        "policies": [_policy(name) for name in made.policy_names],
        "replay": made.rows,
        "provider": _provider(made),
        "money": _money(made, lru_bill),
        "ttl_verdict": _shown(retention, made.parameters.name_owners),
        "bill": _bill_lines(made),
        "miss_cost": lru_bill.missed_cost if lru_bill else None,
        "engine_work": _engine_work(made),
        "chargeback": chargeback(made, decision.policy, retention),
        "days": _days(made, lru) if lru else [],
        "hours": hours(made),
        "cache_life": cache_life(made),
        "fleet": made.fleet,
        "overlap": overlap(made),
        "decision": decision.as_dict(),
        "footer": {"command": made.command, "kit_version": kit.__version__},
    }


def _engine_work(made: Parts) -> list[dict[str, Any]]:
    """Prefill work done and saved by every policy at the budget, where the log is read as an own engine."""
    if made.scene.tier_mode != "engine":
        return []
    size, speed = made.parameters.model_parameters, made.parameters.prefill_tokens_per_second
    tallies = {policy: made.tally(policy) for policy in made.policy_names}
    return [
        {"policy": policy, **billing.prefill_work(made.bills.bill(tally, WINDOW), size, speed)}
        for policy, tally in tallies.items()
        if tally is not None
    ]


def _log(log: Log) -> dict[str, Any]:
    facts = log.facts
    return {
        "sha256": facts.sha256,
        "format": facts.format,
        "files": [str(file).replace("\\", "/").rsplit("/", 1)[-1] for file in facts.files],
        "rows": facts.rows,
        "kept": facts.kept,
        "rejected": dict(facts.rejected),
        "start": facts.start,
        "end": facts.end,
        "days": facts.days,
        "requests": facts.requests,
        "sessions": facts.sessions if facts.has_sessions else None,
        "chains": facts.chains,
        "keys": facts.keys,
        "identity": facts.identity,
        "has_clock": facts.has_clock,
        "output_is_placeholder": facts.output_is_placeholder,
        "missing": list(facts.missing),
        "cannot_tell": list(facts.cannot_tell),
        "warnings": list(facts.warnings),
        "derived": list(facts.derived),
    }


def _settings(made: Parts) -> dict[str, Any]:
    scene, paths = made.scene, made.scene.paths
    return {
        "tier_mode": scene.tier_mode,
        "block_tokens": paths.block_tokens if paths else None,
        "capacity_tokens": scene.actual,
        "capacity_origin": scene.capacity_origin,
        "capacity_gib": _gib(made),
        "kv_bytes_per_token": made.parameters.token_bytes,
        "replicas": scene.replicas,
        "sample": _sample(made),
        "ttl_seconds": scene.neutral.ttl_seconds,
        "minimum_tokens": scene.neutral.minimum_tokens,
        "write_class": scene.write_class,
        "provider_rule": scene.rule.id,
        "bootstrap_blocks": paths.n_blocks if paths else None,
        "block_basis": paths.block_basis if paths else None,
        "warm_basis": paths.warm_basis if paths else None,
        "decision_window": WINDOW,
        "decision_assumption": "neutral",
        "key_cut": made.measures.concentration.get("cut"),
        "reuse_gap_share_over_ttl": made.measures.gaps["longer_token_share"],
        "assumption_settings": [_setting(setting) for setting in scene.settings],
        "assumptions": list(scene.assumptions),
    }


def _gib(made: Parts) -> float | None:
    """The budget in GiB; None where the bytes of a token are not known."""
    each, tokens = made.parameters.token_bytes, made.scene.actual
    return tokens * each / GIB if tokens and each else None


def _sample(made: Parts) -> dict[str, Any] | None:
    """The sample behind the replayed figures with its error on LRU at every budget; None for the whole log."""
    sample, paths = made.scene.sample, made.scene.paths
    if sample is None or paths is None:
        return None
    errors = made.replayed.errors
    return {
        "rate": sample.rate,
        "what": sample.what,
        "reason": sample.reason,
        "longest_prefix_tokens": paths.longest_prefix_tokens,
        "requests": sample.paths.requests,
        "requests_of_log": paths.requests,
        "scaled_by": sample.factor,
        "lru_errors": [{"capacity_tokens": size, "hit_token_ratio": error} for size, error in errors.items()],
    }


def _setting(setting: Setting) -> dict[str, Any]:
    return {
        "name": setting.name,
        "ttl_seconds": setting.ttl_seconds,
        "loss": setting.loss,
        "visible_after_seconds": setting.visible_after_seconds,
        "minimum_tokens": setting.minimum_tokens,
        "refresh_on_read": setting.refresh_on_read,
        "hold_until_end": setting.hold_until_end,
    }


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _bounds(made: Parts) -> dict[str, Any]:
    """The cache without limit (neutral, and under the other settings) and the best possible at each budget."""
    limitless = {name: tally.total(WINDOW) for name, tally in made.replayed.limitless.items()}
    plain = {
        name: {
            "hits": total["hits"],
            "hit_tokens": total["hit_tokens"],
            "hit_token_ratio": _share(total["hit_tokens"], total["input_tokens"]),
        }
        for name, total in limitless.items()
    }
    return {
        "ceiling": plain.get("neutral", {"hits": None, "hit_tokens": None, "hit_token_ratio": None}),
        "ceiling_by_assumption": plain,
        "optimal": [
            {
                "capacity_tokens": bound.capacity_tokens,
                "hit_tokens": bound.hit_tokens,
                "hit_token_ratio": bound.hit_token_ratio,
                "exact": bound.exact,
                "method": bound.method,
            }
            for bound in made.replayed.best
        ],
        "gaps": gaps(made),
    }


def _curve(made: Parts) -> list[dict[str, Any]]:
    """LRU at every budget, thinned to a few points evenly spread on a logarithmic axis; the last is the ceiling."""
    if made.scene.paths is None or made.replayed.curve is None:
        return []
    total = int(made.scene.paths.input_tokens.sum())
    capacity, hit = made.replayed.curve
    known = np.flatnonzero(capacity > 0)
    if not known.size:
        return []
    steps = np.geomspace(1, known.size, CURVE_POINTS).round().astype(np.int64) - 1
    return [
        {
            "capacity_tokens": int(capacity[at]),
            "hit_tokens": int(hit[at]),
            "hit_token_ratio": _share(int(hit[at]), total),
        }
        for at in known[np.unique(steps)]
    ]


def _policy(name: str) -> dict[str, Any]:
    policy = REGISTRY[name]
    return {
        "name": name,
        "title": policy.title,
        "source": policy.source,
        "parameters": dict(policy.parameters),
        "candidate": policy.candidate,
    }


def _provider(made: Parts) -> dict[str, Any]:
    """What the provider reported, what the model of its cache gives for the same requests, and the edges it showed."""
    log, scene = made.log, made.scene
    told = providers.reported(log, scene.rates)
    found: dict[str, Any] = {"reported": told, "simulated": None, "ttl_observed": list(scene.ttl_observed)}
    if not log.facts.has_cached_tokens:
        return {**found, "survival": [], "losses": [], "reconciliation": None}
    held = providers.reconcile(log, scene.rates, scene.paths, scene.rule) if scene.paths else {"total": None}
    if held["total"]:
        simulated = held["total"]["simulated"]
        found["simulated"] = {
            **{name: simulated[name] for name in (*CLASSES, "cost")},
            **{"output_tokens": None, "currency": told["currency"]},
            "priced_token_share": told["priced_token_share"],
        }
    lost = providers.losses(log, list(scene.ttl_observed)) if scene.ttl_observed else []
    return {**found, "survival": providers.survival(log), "losses": lost, "reconciliation": held}


def _ttl_verdict(made: Parts) -> dict[str, Any]:
    """Which retention would have been cheapest, exactly from the gaps of the log."""
    scene, parameters = made.scene, made.parameters
    return billing.ttl_advice(
        made.log,
        scene.rates,
        scene.paths,
        scene.rule,
        minimum_tokens=scene.neutral.minimum_tokens,
        replicates=parameters.replicates,
        seed=parameters.seed,
    )


def _shown(retention: dict[str, Any], name_owners: bool) -> dict[str, Any]:
    """The retention verdict; its groups by owner only where owners may be named."""
    groups = [group for group in retention["groups"] if name_owners or group["dimension"] != "owner"]
    return {**retention, "groups": groups}


def _money(made: Parts, lru_bill: billing.Bill | None) -> dict[str, Any]:
    rates = made.scene.rates
    if rates is None:
        empty = ("currency", "label", "price_version", "lock_date", "priced_token_share", "output_cost")
        return {**dict.fromkeys(empty), "rates": [], "invoices": [], "effective": None, "warnings": []}
    return {
        "currency": rates.currency,
        "label": rates.label,
        "price_version": rates.price_version,
        "lock_date": rates.lock_date,
        "priced_token_share": rates.priced_token_share,
        "avoidable_cost": lru_bill.avoidable_cost if lru_bill else None,
        "output_cost": _output_cost(made),
        "rates": rates.as_rows(),
        "invoices": billing.check_invoices(made.log, rates),
        "effective": billing.effective_price(made.log, rates),
        "warnings": list(rates.warnings),
    }


def _output_cost(made: Parts) -> float | None:
    """What the answers cost; None where output tokens are placeholders, absent, or have no price."""
    rates = made.scene.rates
    if rates is None or made.log.facts.output_is_placeholder:
        return None
    sums = rate_sums(made.log.con, rates.rate_of_request, "sum(q.output_tokens)::BIGINT as tokens")
    priced = [(row["tokens"], rates.rows[row["rate_id"]].output) for row in sums if row["tokens"]]
    if not priced or any(price is None for _, price in priced):
        return None
    return sum(tokens * (price or 0.0) for tokens, price in priced) / 1e6


def _bill_lines(made: Parts) -> list[dict[str, Any]]:
    """Tokens and money by class at the budget, for every policy (neutral, all requests)."""
    lines = []
    for policy in made.policy_names:
        tally, row = (
            made.tally(policy),
            at(made.rows, policy=policy, capacity_label=ACTUAL, assumption="neutral", window=WINDOW),
        )
        if tally is None or row is None:
            continue
        cost = _cost_by_class(made, tally)
        lines += [
            {"policy": policy, "token_class": name, "tokens": row[name], "cost": cost.get(name)} for name in CLASSES
        ]
    return lines


def _cost_by_class(made: Parts, tally: Tally) -> dict[str, float | None]:
    """Money per class; a class is None where any of its tokens has no price."""
    rates = made.scene.rates
    if rates is None:
        return {}
    counts = tally.by_block.sum(axis=(0, 2))
    long = made.scene.write_class == "long"
    written = "write_long_tokens" if long else "write_tokens"
    mirror = made.scene.tier_mode == "mirror"
    cost: dict[str, float | None] = {"write_tokens": 0.0, "write_long_tokens": 0.0}
    for name, field, price in (
        ("read_tokens", "hit_tokens", lambda rate: rate.read if mirror else 0.0),
        (
            written,
            "write_tokens",
            lambda rate: (rate.write_long if long else rate.write_short) if mirror else rate.input,
        ),
        ("uncached_tokens", "uncached_tokens", lambda rate: rate.input),
    ):
        tokens = counts[:, FIELDS.index(field)].tolist()
        pairs = [(n, price(rate)) for n, rate in zip(tokens, rates.rows, strict=True) if n]
        cost[name] = None if any(p is None for _, p in pairs) else sum(n * (p or 0.0) for n, p in pairs) / 1e6
    return cost


def _days(made: Parts, lru: Tally) -> list[dict[str, Any]]:
    """Per UTC day: requests, input tokens and what LRU finds cached at the budget."""
    first_hour = made.bills.first_hour
    by_hour = lru.by_hour.sum(axis=1)
    days: dict[int, dict[str, int]] = {}
    for hour, counts in enumerate(by_hour.tolist()):
        day = days.setdefault((first_hour + hour) // 24, dict.fromkeys(("requests", "input_tokens", "hit_tokens"), 0))
        for name in day:
            day[name] += counts[FIELDS.index(name)]
    return [
        {
            "day": _date(day),
            "requests": found["requests"],
            "input_tokens": found["input_tokens"],
            "hit_tokens_lru": found["hit_tokens"],
            "hit_token_ratio_lru": _share(found["hit_tokens"], found["input_tokens"]),
        }
        for day, found in days.items()
    ]


def _date(days_since_epoch: int) -> str:
    from datetime import date, timedelta

    return (date(1970, 1, 1) + timedelta(days=days_since_epoch)).isoformat()
