"""The replay alone, as `python -m kit replay` prints it: rows of `replay[]`, for one cache or for routed replicas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kit.analysis.fleets import how_many, routes_for
from kit.analysis.known import given_twice
from kit.analysis.parameters import CANDIDATES, MOST_REPLICAS, ParameterError, Parameters
from kit.analysis.replayed import Replayed, anchored_grid, playable, spread_over_seeds
from kit.analysis.rows import Beside, replay_rows
from kit.analysis.scene import Scene, set_the_scene
from kit.log import Log, LogError
from kit.log.facts import EMPTY
from kit.replay.fleet import replay_routes

NO_IDENTITY = "this log has no prefix identity (no prefix keys, blocks or chains), so nothing can be replayed"


def rows_of(
    log: Log,
    parameters: Parameters,
    capacities: list[int] | None,
    routes: list[str] | None,
    progress: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Rows of `replay[]` for the policies at the budgets (None: half, actual, double).

    With `routes` every row also says `routing` and `replicas`, and its budget is what each replica may hold. LogError
    where nothing can be replayed or a policy asked for lacks what it needs (one of the candidates nobody named has no
    rows then), ParameterError where the log cannot be routed so.
    """
    scene = set_the_scene(log, parameters, capacities, progress)
    if scene.paths is None:
        empty = EMPTY in log.facts.cannot_tell
        raise LogError(f"nothing can be replayed; the log cannot tell {EMPTY}" if empty else NO_IDENTITY)
    named = parameters.policies != CANDIDATES
    parameters, left_out = playable(parameters, scene.paths)
    if left_out and named:
        raise LogError("; ".join(left_out))
    progress("replay")
    if routes is not None:
        return _routed(scene, parameters, routes, progress)
    cells = getattr(progress, "part", None)
    names = list(parameters.policy_names)
    tallies, errors = anchored_grid(scene, names, cells)
    spreads = spread_over_seeds(scene, names, errors.get(scene.actual or 0, 0.0), cells)
    replayed = Replayed(tallies=tallies, spreads=spreads, errors=errors)
    bills = scene.billing(parameters)
    return replay_rows(replayed.tallies, scene.capacities, bills, Beside.of(scene, replayed))


def _routed(
    scene: Scene, parameters: Parameters, routes: list[str], progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    replicas = how_many(scene, parameters)
    if replicas is None:
        if (scene.replicas or 0) > MOST_REPLICAS and parameters.replicas is None:
            raise ParameterError(f"the log names {scene.replicas:,} replicas and at most {MOST_REPLICAS:,} can be "
                                 "replayed; give --set replicas=N")  # fmt: skip
        raise ParameterError("--routing needs several replicas: give --set replicas=N, or a log with a replica column")
    if scene.sample is not None or scene.paths is None:
        raise ParameterError("replicas are replayed on the whole log; leave --sample out")
    possible, left_out = routes_for(scene, replicas)
    if (twice := given_twice(routes)) is not None:
        raise ParameterError(f"routing names {twice} twice; name each routing once")
    reasons = {row["routing"]: row["reason"] for row in left_out}
    for name in routes:
        if name not in possible:
            why = reasons.get(name, f"accepted: {', '.join(possible)}")
            raise ParameterError(f"routing {name!r} cannot be replayed here: {why}")
    names, budgets = list(parameters.policy_names), list(scene.capacities)
    cells = getattr(progress, "part", None)
    found = replay_routes(scene.paths, routes, replicas, names, budgets, list(scene.settings), cells)
    rows = []
    for name in routes:
        tallies = [tally for routing, tally in found if routing == name]
        told = replay_rows(tallies, scene.capacities, scene.billing(parameters))
        rows += [{"routing": name, "replicas": replicas, **row} for row in told]
    return rows
