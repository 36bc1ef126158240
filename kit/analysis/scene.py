"""The scene of an analysis: which cache is studied, under which rules and prices, and every assumption behind it.

Nothing said: a known provider is mirrored with its short lifetime and its rules; an unknown one is an engine of one's
own, without expiry and without money. Every choice that was made for the user is a sentence in `assumptions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kit import prices, providers
from kit.analysis.parameters import AUTO, Parameters
from kit.analysis.rows import Billing
from kit.log import Log
from kit.prefix import HOUR_US, Paths, load_paths
from kit.prices import Rates
from kit.providers import Rule
from kit.replay import Setting, default_capacity, pessimistic, room

HALF, ACTUAL, DOUBLE = "half", "actual", "double"


@dataclass(frozen=True)
class Scene:
    """What is replayed: paths, settings (neutral first), capacities by label, prices, rule, and why each was chosen."""

    tier_mode: str
    rule: Rule
    rates: Rates | None
    paths: Paths | None
    settings: tuple[Setting, ...]
    capacities: dict[int, str]
    capacity_origin: str
    write_class: str
    assumptions: tuple[str, ...]
    ttl_observed: tuple[dict[str, Any], ...] = ()

    @property
    def neutral(self) -> Setting:
        """The setting behind plain figures."""
        return self.settings[0]

    @property
    def actual(self) -> int | None:
        """The budget under study, in tokens; None where nothing can be replayed."""
        return next((tokens for tokens, label in self.capacities.items() if label == ACTUAL), None)

    def billing(self, parameters: Parameters) -> Billing:
        """How replays of this scene are billed."""
        first_hour = int(self.paths.ts_us[0]) // HOUR_US if self.paths and self.paths.requests else 0
        return Billing(self.rates, self.tier_mode, self.write_class, parameters.replicates, parameters.seed, first_hour)


def set_the_scene(
    log: Log, parameters: Parameters, capacities: list[int] | None = None, progress: Callable[[str], None] = print
) -> Scene:
    """Rules, prices, paths, settings and budgets for a loaded log; without prefix identity there are no paths."""
    said = [
        f"{column} {value} is set by the user for every request"
        for column, value in (("provider", parameters.provider), ("model", parameters.model))
        if value is not None
    ]
    facts = providers.default_setting_facts(log, parameters.provider_rule)
    mode = facts["tier_mode"] if parameters.tier_mode == AUTO else parameters.tier_mode
    rates = prices.rate_table(log, parameters.price_overlay, parameters.service_class) if mode != "engine" else None
    progress("paths")
    block = parameters.block_tokens or log.facts.block_tokens or (facts["block_tokens"] if mode == "mirror" else None)
    rate = rates.rate_of_request if rates else None
    tail = parameters.partial_tail
    paths = load_paths(log, block_tokens=block, partial_tail=tail, rate=rate) if log.facts.identity else None
    neutral = _neutral(parameters, facts, mode)
    write_class = "short" if parameters.write_class == AUTO else parameters.write_class
    edges = providers.ttl_observed(log) if log.facts.has_cached_tokens else []
    observed = providers.observed_setting(log, neutral, write_class, edges) if edges and mode == "mirror" else None
    progress("budget")
    budgets, origin = _capacities(parameters, paths, neutral, capacities)
    return Scene(
        tier_mode=mode,
        rule=facts["rule"],
        rates=rates,
        paths=paths,
        settings=tuple(setting for setting in (neutral, pessimistic(neutral), observed) if setting is not None),
        capacities=budgets,
        capacity_origin=origin,
        write_class=write_class,
        ttl_observed=tuple(edges),
        assumptions=(*said, *facts["reasons"], *_stated(log, paths, mode, origin)),
    )


def _neutral(parameters: Parameters, facts: dict[str, Any], mode: str) -> Setting:
    """The setting of plain figures: the lifetime as published (mirror) or none, unless the user gives one."""
    ttl = parameters.ttl_seconds
    if ttl == AUTO:
        choice = facts["rule"].choice("long" if parameters.write_class == "long" else "short")
        ttl = choice.seconds if mode == "mirror" and choice is not None else None
    minimum = parameters.minimum_tokens
    if minimum is None:
        minimum = facts["minimum_tokens"] if mode == "mirror" else 0
    return Setting(
        name="neutral",
        ttl_seconds=float(ttl) if ttl is not None else None,
        loss=parameters.loss,
        visible_after_seconds=parameters.visible_after_seconds,
        minimum_tokens=minimum,
        seed=parameters.seed,
    )


def _capacities(
    parameters: Parameters, paths: Paths | None, setting: Setting, given: list[int] | None
) -> tuple[dict[int, str], str]:
    """Budgets in tokens with their labels, and where the actual one comes from."""
    if paths is None:
        return {}, "none: nothing can be replayed without prefix identity"
    if given is not None:
        return {tokens: str(tokens) for tokens in given}, "given"
    if parameters.capacity_tokens is not None:
        actual, origin = parameters.capacity_tokens, "given by the user"
    elif parameters.capacity_gib is not None and parameters.kv_bytes_per_token is not None:
        actual = room.capacity_tokens(parameters.capacity_gib, parameters.kv_bytes_per_token)
        origin = f"{parameters.capacity_gib:g} GiB at {parameters.kv_bytes_per_token:g} bytes per token"
    else:
        actual, origin = default_capacity(paths, setting.ttl_seconds, setting.minimum_tokens)
    actual = max(actual, 2)
    return {actual // 2: HALF, actual: ACTUAL, actual * 2: DOUBLE}, origin


def _stated(log: Log, paths: Paths | None, mode: str, origin: str) -> list[str]:
    """What every report says about how it counted."""
    if paths is None:
        return [f"tier mode {mode}", f"budget: {origin}"]
    said = [
        f"tier mode {mode}",
        f"budget: {origin}",
        f"prefixes are counted in whole blocks of {paths.block_tokens} tokens"
        if paths.block_tokens > 1
        else "prefixes are counted to the token",
        f"intervals over {paths.block_basis}; the warm window is {paths.warm_basis}",
        "a replica column is absent, so one cache for the whole log is assumed",
    ]
    replicas = log.con.sql("select count(distinct replica)::BIGINT from request").fetchall()[0][0]
    return said[:-1] if replicas else said
