"""Results made up for the report's tests, in the shape of results.json; the sums add up, the traffic is invented.

10,000 requests of 20,000 input tokens each: 200M tokens. Prices per million: read 0.30, write 3.75, uncached 3.00 USD.
A policy with hit-token ratio h: read = 200M x h, uncached = 10M (below the minimum), write = the rest.
Cost = (read x 0.30 + write x 3.75 + uncached x 3.00) / 1e6. Of the misses 40M are cold and 10M below the minimum;
the rest is evicted, but for 6M expired.
"""

from __future__ import annotations

from typing import Any

REQUESTS, INPUT, MILLION = 10_000, 200_000_000, 1_000_000
COLD, BELOW, EXPIRED = 40_000_000, 10_000_000, 6_000_000
PRICE = {"read": 0.30, "write": 3.75, "uncached": 3.00}
TITLES = {
    "lru": "LRU",
    "lfu": "LFU",
    "lfu_decay": "LFU with decay",
    "length": "Length",
    "gdsf": "GDSF",
    "fifo": "FIFO",
}
CAPACITIES = {"half": 500_000, "actual": 1_000_000, "double": 2_000_000}
HITS = {  # hit-token ratio at half, actual, double
    "lru": (0.21, 0.33, 0.48),
    "lfu": (0.30, 0.44, 0.55),
    "lfu_decay": (0.31, 0.46, 0.57),
    "length": (0.09, 0.17, 0.30),
    "gdsf": (0.28, 0.43, 0.55),
    "fifo": (0.18, 0.29, 0.44),
}
CEILING = 0.72


def cost_of(hit_tokens: int) -> float:
    """USD for the week: reads, writes and the 10M tokens below the minimum."""
    write = INPUT - hit_tokens - BELOW
    return (hit_tokens * PRICE["read"] + write * PRICE["write"] + BELOW * PRICE["uncached"]) / MILLION


def row(policy: str, label: str, ratio: float, lru: float, priced: bool = True, **more: Any) -> dict[str, Any]:
    """One replay row at a labelled budget; hits are taken as one per 20,000 hit tokens."""
    hit = round(INPUT * ratio)
    hits = hit // 20_000
    cost = cost_of(hit) if priced else None
    lru_cost = cost_of(round(INPUT * lru))
    change = (cost or 0) - lru_cost
    interval = None
    if policy != "lru":
        interval = {
            "hit_token_ratio": {"value": ratio - lru, "low": ratio - lru - 0.01, "high": ratio - lru + 0.01},
            "cost_per_request": {
                "value": change / REQUESTS,
                "low": (change - 8) / REQUESTS,
                "high": (change + 8) / REQUESTS,
            }
            if priced
            else None,
        }
    return {
        "policy": policy,
        "capacity_tokens": CAPACITIES[label],
        "capacity_label": label,
        "assumption": "neutral",
        "window": "cold",
        "ttl_seconds": 300.0,
        "requests": REQUESTS,
        "hits": hits,
        "hit_tokens": hit,
        "hit_token_ratio": ratio,
        "missed": {
            "cold": COLD,
            "evicted": INPUT - hit - COLD - BELOW - EXPIRED,
            "expired": EXPIRED,
            "lost": 0,
            "below_minimum": BELOW,
            "in_flight": 0,
            "oversize": 0,
        },
        "read_tokens": hit,
        "write_tokens": INPUT - hit - BELOW,
        "write_long_tokens": 0,
        "uncached_tokens": BELOW,
        "evictions": 12_345,
        "cost": cost,
        "cost_per_request": cost / REQUESTS if cost is not None else None,
        "m_raw": INPUT / hits,
        "m_eq": (cost or 0) / PRICE["uncached"] * MILLION / hits if priced else None,
        "interval": interval,
        **more,
    }


def replay(hits: dict[str, tuple[float, float, float]] | None = None, priced: bool = True) -> list[dict[str, Any]]:
    """Rows of every policy at three budgets."""
    hits = hits or HITS
    return [
        row(policy, label, ratios[place], hits["lru"][place], priced)
        for place, label in enumerate(CAPACITIES)
        for policy, ratios in hits.items()
    ]


SENTENCE = "Switch this cache from LRU to LFU with decay: rule 6 fired, the top 5 % of keys carry 61 % of requests."
TRAIL = [
    (
        0,
        "Is the log enough to decide on?",
        "7 days, 10,000 requests, 2,400 reused keys, 0.2% rejected",
        "at least 7 days, 5,000 requests, 100 reused keys, at most 1% rejected",
        0.43,
        "does not fire",
    ),
    (1, "Could any cache help?", "ceiling 72%", "under 5%", -10.0, "does not fire"),
    (2, "Do entries outlive the gaps?", "12% of reuse gaps exceed the TTL", "50% or more", -0.76, "does not fire"),
    (3, "Is LRU already saturated?", "46% of the ceiling", "95% or more", -0.52, "does not fire"),
    (
        4,
        "Is the cache short of room?",
        "doubling lifts LRU by 45%, best policy gains 87% of that",
        "25% or more and less than half",
        -0.4,
        "does not fire",
    ),
    (5, "Is it typed multi-turn traffic?", None, "own engine, reuse differs 10x", None, "cannot tell"),
    (
        6,
        "Is reuse skewed and steady?",
        "top 5% of keys carry 61%, overlap 74%, LFU with decay better",
        "50% and 50%",
        0.22,
        "fires",
    ),
    (7, "Is there a scan?", "19% in the worst hour", "30% or more", -0.37, "not consulted", "would not fire"),
    (
        8,
        "Are the longest keys the least reused?",
        "rank correlation +0.12",
        "-0.30 or less",
        -1.4,
        "not consulted",
        "would not fire",
    ),
    (
        9,
        "Does the replay favour another policy?",
        "LFU with decay by 13.0 pt",
        "2 pt or more",
        -0.37,
        "not consulted",
        "would fire: Switch to LFU with decay at this budget",
    ),
    (10, "Do the keys rotate?", "61% and 74%", "under 50%", -0.37, "not consulted", "would not fire"),
    (11, "Otherwise", "-", "-", "-", "not consulted", "would fire: Keep LRU"),
]


CONDITIONS = {
    3: [("LRU reaches 46% of the ceiling", "at least 95%", False, -0.52)],
    6: [
        ("the top 5% of keys carry 61% of requests", "at least 50%", True, 0.22),
        ("74% of a day's top keys return the next day", "at least 50%", True, 0.48),
        ("LFU with decay changes hit tokens by +13.0 pt", "whole interval on the better side", True, 11.2),
    ],
    8: [("keys are flat", "yes", True, None), ("correlation: not found", "at most −0.30", None, None)],
}


def conditions(rule: int) -> list[dict[str, Any]]:
    """The conditions of a rule as the decision writes them."""
    names = ("words", "asked", "holds", "margin")
    return [{"measure": "m", **dict(zip(names, line, strict=True))} for line in CONDITIONS.get(rule, [])]


def chargeback() -> dict[str, Any]:
    """Two owners and the requests of none: 300 + 150 + 64.80 = 514.80 dollars; 20 - 5 - 3 = 12 dollars saved."""
    rows = []
    for owner, requests, tokens, cost, saving in (
        ("team-a", 6_000, 120_000_000, 300.0, 20.0),
        ("team-b", 3_000, 60_000_000, 150.0, -5.0),
        (None, 1_000, 20_000_000, 64.8, -3.0),
    ):
        rows.append(
            {"owner": owner, "requests": requests, "input_tokens": tokens, "read_tokens": tokens // 2,
             "write_tokens": tokens // 2, "write_long_tokens": 0, "uncached_tokens": 0, "cost": cost,
             "output_cost": None, "avoidable_cost": cost / 10, "saving": saving, "cost_share": cost / 514.8,
             "input_token_share": tokens / INPUT, "saving_share": saving / 12.0}
        )  # fmt: skip
    total = {
        "requests": REQUESTS, "input_tokens": INPUT, "read_tokens": INPUT // 2, "write_tokens": INPUT // 2,
        "write_long_tokens": 0, "uncached_tokens": 0, "cost": 514.8, "output_cost": None, "avoidable_cost": 51.48,
        "saving": 12.0,
    }  # fmt: skip
    return {"basis": "as reported", "currency": "USD", "saving_of": "retention", "total": total, "owners": rows}


def inter_turn() -> list[dict[str, Any]]:
    """Two kinds of session, both clocks; mu and sigma are of the natural logarithm of seconds."""
    rows = []
    for kind, trigger, mu, sigma, n, p300 in (
        ("agent", "tool", 2.3, 1.0, 5200, 0.998),
        ("chat", "person", 4.8, 1.3, 2600, 0.757),
    ):
        for clock in ("start_to_start", "end_to_start"):
            rows.append(
                {
                    "session_type": kind,
                    "trigger": trigger,
                    "clock": clock,
                    "n": n,
                    "censored": 310,
                    "mu": mu,
                    "sigma": sigma,
                    "median_seconds": 2.718281828**mu,
                    "fitted_median_seconds": 2.718281828**mu,
                    "ks": 0.03,
                    "aic": {"lognormal": 100.0, "exponential": 140.0},
                    "p_within": {"300": p300, "3600": 0.999},
                }
            )
    return rows


def retention(priced: bool) -> dict[str, Any]:
    """Short beats long by 12 USD over the week; without prices no choice can be made."""
    if not priced:
        return {
            "choice": None,
            "sentence": "Without prices there is no advice on retention.",
            "groups": [],
            "costs": {},
        }
    saving = {"value": 12.0, "low": 8.0, "high": 16.0, "level": 0.95}
    costs = {"none": 600.0, "short": 514.8, "long": 526.8}
    whole = {
        "dimension": "all",
        "group": "all",
        "requests": REQUESTS,
        "costs": costs,
        "choice": "short",
        "next_best": "long",
    }
    person = {
        **whole,
        "dimension": "trigger",
        "group": "person",
        "costs": {**costs, "keep_alive": 500.0},
        "choice": "too close to call",
    }
    return {
        "choice": "short",
        "currency": "USD",
        "costs": costs,
        "saving": saving,
        "assumptions": ["room for every prefix"],
        "sentence": "Use the short retention (5m): on this log it costs USD 12.00 less than the long retention (1h).",
        "groups": [
            {**whole, "saving": saving},
            {**person, "saving": {"value": 1.0, "low": -3.0, "high": 5.0, "level": 0.95}},
        ],
    }


def results(priced: bool = True) -> dict[str, Any]:
    """A full set of results: rule 6 fires, the decayed LFU is proposed, money known unless `priced` is false."""
    saving = (cost_of(round(INPUT * 0.33)) - cost_of(round(INPUT * 0.46))) * 365.25 / 12 / 7
    lru_tokens = round(INPUT * 0.33)
    evicted = INPUT - lru_tokens - COLD - BELOW - EXPIRED
    return {
        "schema": 1,
        "kit_version": "0.1.0",
        "log": {
            "sha256": "3f1a" * 16,
            "format": "canonical",
            "files": ["week.parquet"],
            "rows": 10_019,
            "kept": REQUESTS,
            "rejected": {"no time": 12, "negative token count": 7},
            "start": "2026-11-16T00:00:04+00:00",
            "end": "2026-11-22T23:58:51+00:00",
            "days": 7,
            "requests": REQUESTS,
            "sessions": 1_412,
            "keys": 4_100,
            "missing": ["replica"],
            "cannot_tell": ["how several engines share the traffic (no replica column)"],
            "warnings": ["output tokens are placeholders in 2% of requests"],
            "derived": [],
        },
        "parameters": {"tier_mode": "mirror", "capacity_tokens": 1_000_000, "seed": 1},
        "settings": {
            "tier_mode": "mirror",
            "block_tokens": 1,
            "capacity_tokens": 1_000_000,
            "capacity_origin": "as asked for",
            "ttl_seconds": 300.0,
            "minimum_tokens": 1024,
            "provider_rule": "anthropic",
            "bootstrap_blocks": 200,
            "block_basis": "sessions",
            "warm_basis": "after the first day",
            "key_cut": "the key itself",
            "assumptions": ["One cache is assumed: the log names no replica."],
        },
        "concentration": {
            "top_fraction": 0.05,
            "request_share": 0.61,
            "token_share": 0.70,
            "curve": [
                {"key_share": k / 20, "request_share": 1 - (1 - k / 20) ** 18, "token_share": 1 - (1 - k / 20) ** 23}
                for k in range(21)
            ],
            "top_keys": [
                {
                    "alias": "k1",
                    "requests": 1200,
                    "request_share": 0.12,
                    "reusable_tokens": 9_592_000,
                    "days_seen": 7,
                    "prefix_tokens": 8000,
                },
                {
                    "alias": "k2",
                    "requests": 800,
                    "request_share": 0.08,
                    "reusable_tokens": 4_794_000,
                    "days_seen": 7,
                    "prefix_tokens": 6000,
                },
            ],
        },
        "rotation": {"day_overlap": [0.7 + day / 1000 for day in range(17, 23)], "median": 0.74},
        "value_rank": {
            "spearman_length_value": 0.31,
            "spearman_length_count": 0.12,
            "longest_tenth": {"keys": 410, "one_shot_share": 0.64, "requests_share": 0.08, "value_share": 0.22},
            "deciles": [
                {
                    "decile": k,
                    "keys": 410,
                    "min_prefix_tokens": 40_000 // k - 500,
                    "max_prefix_tokens": 44_000 // k,
                    "requests": 600 + 80 * k,
                    "one_shot_share": 0.66 - 0.03 * k,
                }
                for k in range(1, 11)
            ],
        },
        "inter_turn": inter_turn(),
        "bounds": {
            "ceiling": {"hit_tokens": round(INPUT * CEILING), "hit_token_ratio": CEILING},
            "optimal": [
                {
                    "capacity_tokens": CAPACITIES[label],
                    "hit_tokens": round(INPUT * ratio),
                    "hit_token_ratio": ratio,
                    "exact": True,
                    "method": "MIN",
                }
                for label, ratio in zip(CAPACITIES, (0.38, 0.52, 0.64), strict=True)
            ],
        },
        "lru_curve": [
            {"capacity_tokens": 250_000 * 2**k, "hit_tokens": round(INPUT * ratio), "hit_token_ratio": ratio}
            for k, ratio in enumerate((0.12, 0.21, 0.33, 0.48, 0.60))
        ],
        "policies": [{"name": name, "title": title, "source": "made up for a test"} for name, title in TITLES.items()],
        "replay": replay(priced=priced),
        "provider": {
            "reported": {
                "read_tokens": 60_000_000,
                "write_tokens": 130_000_000,
                "write_long_tokens": 0,
                "uncached_tokens": 10_000_000,
                "output_tokens": 4_000_000,
                "cost": cost_of(60_000_000) if priced else None,
                "currency": "USD",
                "priced_token_share": 1.0,
            },
            "simulated": {
                "read_tokens": lru_tokens,
                "write_tokens": INPUT - lru_tokens - BELOW,
                "write_long_tokens": 0,
                "uncached_tokens": BELOW,
                "output_tokens": 4_000_000,
                "cost": cost_of(lru_tokens) if priced else None,
                "currency": "USD",
                "priced_token_share": 1.0,
            },
            "ttl_observed": [{"write_class": "short", "ttl_seconds": 300, "low": 290, "high": 320, "n": 88}],
        },
        "money": {
            "currency": "USD",
            "label": "LIST",
            "price_version": "genai-prices 0.2.3",
            "lock_date": "2026-11-20",
            "priced_token_share": 1.0 if priced else 0.0,
            "output_cost": 60.0 if priced else None,
            "warnings": [],
            "rates": [
                {
                    "rate_id": 0,
                    "provider": "anthropic",
                    "model": "model-m",
                    "valid_from": None,
                    "valid_to": None,
                    "tier_above": None,
                    "input": PRICE["uncached"] if priced else None,
                    "read": PRICE["read"] if priced else None,
                    "write_short": PRICE["write"] if priced else None,
                    "write_long": None,
                    "output": 15.0 if priced else None,
                    "currency": "USD",
                    "source": "genai-prices",
                    "label": "LIST",
                }
            ],
        },
        "bill": [
            {
                "policy": row["policy"],
                "token_class": f"{name}_tokens",
                "tokens": row[f"{name}_tokens"],
                "cost": row[f"{name}_tokens"] * price / MILLION if priced else None,
            }
            for row in replay(priced=priced)
            if row["capacity_label"] == "actual"
            for name, price in (("read", 0.30), ("write", 3.75), ("write_long", 6.0), ("uncached", 3.0))
        ],
        "miss_cost": {
            "cold": COLD * 3.75e-6,
            "evicted": evicted * 3.75e-6,
            "expired": EXPIRED * 3.75e-6,
            "lost": 0.0,
            "below_minimum": BELOW * 3.0e-6,
            "in_flight": 0.0,
            "oversize": 0.0,
        }
        if priced
        else {},
        "ttl_verdict": retention(priced),
        "days": [
            {
                "day": f"2026-11-{16 + k}",
                "requests": 1500 - 10 * k,
                "input_tokens": 30_000_000 - k,
                "hit_token_ratio_lru": 0.33,
                "hit_tokens_lru": 9_000_000 + k,
            }
            for k in range(7)
        ],
        "decision": {
            "rule": 6,
            "policy": "lfu_decay",
            "sentence": SENTENCE,
            "accepted": True,
            "provisional": None,
            "room": {
                "added_tokens": 1_000_000,
                "saving_per_month": {"value": 300.0, "low": 250.0, "high": 350.0, "currency": "USD"}
                if priced
                else None,
                "sentence": "Doubling the budget under LRU (1M tokens more) saves $300 a month." if priced else None,
            },
            "standings": [{"policy": name, "probability_best": 1.0 if name == "lfu_decay" else 0.0} for name in TITLES],
            "what_to_set": [
                {
                    "system": "engine A",
                    "version": "1.0",
                    "tier": "blocks",
                    "available": True,
                    "setting": "policy: decay",
                },
                {"system": "engine B", "version": "2.0", "tier": "blocks", "available": False, "setting": "LRU only"},
            ],
            "sensitivity": {
                "map": [
                    {
                        "dimension": "budget",
                        "words": "at 0.5x the budget",
                        "rule": 6,
                        "policy": "lfu_decay",
                        "flips": False,
                    },
                    {"dimension": "TTL", "words": "with a TTL of 2.5 min", "rule": 3, "policy": "lru", "flips": True},
                ],
                "nearest": "With a TTL of 2.5 min, rule 3 fires instead of rule 6: keep LRU.",
                "note": "the log has 9 block touches, so what is replayed is a sample",
            },
            "too_close_to_call": None,
            "near_misses": [
                {"rule": 9, "policy": "gdsf", "margin": 0.1, "text": "Rule 9 (GDSF) would fire but comes after rule 6"}
            ],
            "trail": [
                {"conditions": conditions(line[0])}
                | dict(
                    zip(
                        ("rule", "question", "measured", "threshold", "margin", "outcome", "would_say"),
                        line,
                        strict=False,
                    )
                )
                for line in TRAIL
            ],
            "saving_per_month": {"value": saving, "low": saving - 35, "high": saving + 35, "currency": "USD"}
            if priced
            else None,
        },
        "footer": {"command": "python -m kit report week.parquet", "kit_version": "0.1.0"},
    }
