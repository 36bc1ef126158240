"""Several engines share the traffic: what each route keeps, so that what cache-aware routing wins is one table.

Every replica has the whole budget, and every route the same replicas. One cache that all replicas share, as large as
theirs together, stands beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kit import numbers
from kit.analysis.parameters import MOST_REPLICAS, Parameters
from kit.analysis.parts import WINDOW, Parts
from kit.analysis.rows import BASE_POLICY, differences_from
from kit.analysis.scene import Scene
from kit.replay import Tally, replay
from kit.replay.fleet import ROUTES, members, replay_routes, route

LOGGED, RANDOM, SHARED = "logged", "random", "one_cache"
TITLES = {
    "logged": "As the log says",
    "session": "Sticky by session",
    "root": "By hash of the prefix's beginning",
    "round_robin": "Round robin",
    "random": "Random",
    "one_cache": "One cache shared by all, as large",
}
IN_WORDS = {
    "logged": "as the log says",
    "session": "by session",
    "root": "by hash of the prefix's beginning",
    "round_robin": "round robin",
    "random": "at random",
}
AWARE = ("session", "root")


def how_many(scene: Scene, parameters: Parameters) -> int | None:
    """Replicas to replay: as given, else as the log names them; None where that is one cache, or more than 1,024."""
    wanted = parameters.replicas or scene.replicas
    return wanted if wanted and 1 < wanted <= MOST_REPLICAS and scene.paths is not None else None


def routes_for(scene: Scene, replicas: int) -> tuple[list[str], list[dict[str, str]]]:
    """(the routes this log can be given, the others with why not)."""
    assert scene.paths is not None
    tags, left_out = scene.paths.tags, []
    if scene.replicas is None:
        left_out.append({"routing": LOGGED, "reason": "the log does not name a replica for every request"})
    elif scene.replicas != replicas:
        reason = f"the log names {scene.replicas:,} replicas, not the {replicas:,} asked for"
        left_out.append({"routing": LOGGED, "reason": reason})
    if "session" not in tags:
        left_out.append({"routing": "session", "reason": "the log names no sessions"})
    missing = {row["routing"] for row in left_out}
    return [name for name in ROUTES if name not in missing], left_out


def compare_routes(made: Parts, progress: Callable[[str], None]) -> dict[str, Any] | None:
    """The fleet at the budget under LRU, one row per route; None where one cache is assumed or `how_many` has none.

    On the whole log, also where other figures come from a sample: LRU is quick.
    {replicas, basis (logged | given), policy, capacity_tokens (of each replica), total_capacity_tokens, base (the route
    the differences are against), rows[], left_out[{routing, reason}], sentence}.
    """
    scene, parameters = made.scene, made.parameters
    replicas = how_many(scene, parameters)
    if replicas is None or scene.actual is None:
        return None
    progress("fleet")
    routes, left_out = routes_for(scene, replicas)
    cells = getattr(progress, "part", None)
    assert scene.paths is not None
    found = replay_routes(scene.paths, routes, replicas, [BASE_POLICY], [scene.actual], [scene.neutral], cells)
    shared = replay(scene.paths, BASE_POLICY, capacity_tokens=scene.actual * replicas, setting=scene.neutral)
    base = LOGGED if LOGGED in routes else RANDOM
    rows = _rows(made, [*found, (SHARED, shared)], base, replicas)
    head = {
        "replicas": replicas,
        "basis": LOGGED if parameters.replicas is None else "given",
        "policy": BASE_POLICY,
        "capacity_tokens": scene.actual,
        "total_capacity_tokens": scene.actual * replicas,
        "base": base,
    }
    return {**head, "rows": rows, "left_out": left_out, "sentence": sentence(rows, replicas, base)}


def _rows(made: Parts, found: list[tuple[str, Tally]], base: str, replicas: int) -> list[dict[str, Any]]:
    named = [replace(tally, policy=routing) for routing, tally in found]
    priced = [(tally, made.bills.bill(tally, WINDOW)) for tally in named]
    differences = differences_from(priced, made.bills, WINDOW, base)
    rows = []
    for (tally, bill), difference in zip(priced, differences, strict=True):
        total = tally.total(WINDOW)
        rows.append({
            "routing": tally.policy,
            "title": TITLES[tally.policy],
            "requests": total["requests"],
            "hits": total["hits"],
            "input_tokens": total["input_tokens"],
            "hit_tokens": total["hit_tokens"],
            "hit_token_ratio": tally.hit_token_ratio(WINDOW),
            "busiest_request_share": _busiest(made, tally.policy, replicas),
            "cost": bill.cost,
            "interval": None if tally.policy == base else difference,
        })  # fmt: skip
    return rows


def _busiest(made: Parts, routing: str, replicas: int) -> float | None:
    """Share of the requests on the replica that serves most; None for one cache."""
    paths = made.scene.paths
    if routing == SHARED or paths is None:
        return None
    served = members(route(paths, replicas, routing, made.scene.neutral.seed))
    return float(max(np.array([len(one) for one in served])) / paths.requests)


def sentence(rows: list[dict[str, Any]], replicas: int, base: str) -> str:
    """What the best cache-aware route wins against the base, in words."""
    by_name = {row["routing"]: row for row in rows}
    aware = [by_name[name] for name in AWARE if name in by_name and by_name[name]["hit_token_ratio"] is not None]
    start = by_name[base]
    if not aware or start["hit_token_ratio"] is None:
        return f"Over {numbers.count(replicas)} replicas no cache-aware route can be compared on this log."
    best = max(aware, key=lambda row: row["hit_token_ratio"])
    told = (best["interval"] or {}).get("hit_token_ratio")
    band = ""
    if told is not None:
        ends = numbers.span(numbers.points(told["low"]), numbers.points(told["high"]))
        band = f" (95% interval {ends})"
    change = numbers.points(best["hit_token_ratio"] - start["hit_token_ratio"])
    return (
        f"Over {numbers.count(replicas)} replicas, requests routed {IN_WORDS[best['routing']]} find "
        f"{numbers.percent(best['hit_token_ratio'])} of input tokens cached, routed {IN_WORDS[base]} "
        f"{numbers.percent(start['hit_token_ratio'])}: {change}{band}."
    )
