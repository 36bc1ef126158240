"""The scene of an analysis: which cache is studied, under which rules and prices, and every assumption behind it.

Nothing said: a known provider is mirrored with its short lifetime and its rules; an unknown one is an engine of one's
own, without expiry and without money. Every choice that was made for the user is a sentence in `assumptions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kit import prices, providers
from kit.analysis.parameters import AUTO, MOST_REPLICAS, ParameterError, Parameters
from kit.analysis.rows import Billing
from kit.log import Log
from kit.prefix import HOUR_US, Paths, load_paths
from kit.prices import Rates
from kit.providers import Rule
from kit.replay import Setting, default_capacity, miniature, pessimistic, room
from kit.replay.miniature import Sample
from kit.terms import TERMS

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
    sample: Sample | None = None
    replicas: int | None = None

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
    if paths is not None and not paths.parent.size:
        raise _no_whole_block(log, paths.block_tokens, parameters.block_tokens is not None)
    _check_holding(parameters, facts, mode, paths)
    neutral, clock = _by_creation(_neutral(parameters, facts, mode), facts["rule"], paths, mode)
    write_class = "short" if parameters.write_class == AUTO else parameters.write_class
    edges = providers.ttl_observed(log) if log.facts.has_cached_tokens else []
    observed = providers.observed_setting(log, neutral, write_class, edges) if edges and mode == "mirror" else None
    progress("budget")
    budgets, origin = _capacities(parameters, paths, neutral, capacities)
    sample, sampling = _sample(parameters, paths, budgets)
    replicas, fleet = _fleet(log)
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
        assumptions=(
            *(*said, *facts["reasons"], *clock, *_stated(paths, mode, origin, fleet)),
            *(*_held(neutral, paths), *sampling),
        ),
        sample=sample,
        replicas=replicas,
    )


def _no_whole_block(log: Log, block_tokens: int, by_user: bool) -> ParameterError:
    """No prefix fills a block: what the longest one is, and which block would fit."""
    longest = load_paths(log, block_tokens=1).longest_prefix_tokens
    whose = "block_tokens" if by_user else "the block of this log or provider"
    return ParameterError(
        f"{whose} is {block_tokens:,} tokens, longer than every prefix in the log (the longest has {longest:,}), so "
        f"nothing could be cached; set block_tokens to at most {longest:,}"
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
        hold_until_end=parameters.hold_until_end,
    )


def _check_holding(parameters: Parameters, facts: dict[str, Any], mode: str, paths: Paths | None) -> None:
    """Only an engine without a lifetime holds what runs, and only a log with ends tells how long."""
    if not parameters.hold_until_end:
        return
    if mode == "mirror" or isinstance(parameters.ttl_seconds, int | float):
        found = f"ttl_seconds is {parameters.ttl_seconds:g}" if mode != "mirror" else f"the rule is {facts['rule'].id}"
        raise ParameterError("hold_until_end is what an engine of your own does with running requests, without a "
                             f"lifetime; here {found}; set tier_mode=engine and ttl_seconds=none")  # fmt: skip
    if paths is not None and "ts_end_us" not in paths.tags:
        raise ParameterError("hold_until_end needs ts_end of the requests, which this log does not have; name the "
                             "column with --map ts_end=COLUMN, or leave hold_until_end out")  # fmt: skip


def _by_creation(setting: Setting, rule: Rule, paths: Paths | None, mode: str) -> tuple[Setting, list[str]]:
    """The setting with the clock of a rule whose lifetimes reads do not refresh, and what is said about it."""
    choice = rule.choice()
    if mode != "mirror" or setting.ttl_seconds is None or choice is None or choice.refresh_on_read is not False:
        return setting, []
    if paths is None or (paths.parent >= 0).any():
        return setting, [
            "at this provider a lifetime counts from creation; prefixes that grow are replayed as if reads refreshed "
            "it, which finds too much"
        ]
    return replace(setting, refresh_on_read=False), [
        "a lifetime counts from creation, as this provider has it; the curve over all budgets and the optimum let "
        "reads refresh it and are upper bounds"
    ]


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
    elif parameters.capacity_gib is not None and parameters.token_bytes is not None:
        actual = room.capacity_tokens(parameters.capacity_gib, parameters.token_bytes)
        origin = _gib_words(parameters)
    else:
        actual, origin = default_capacity(paths, setting.ttl_seconds, setting.minimum_tokens)
    actual = max(actual, 2)
    least = 2 * paths.block_tokens
    if actual < least and paths.block_tokens > 1:
        raise ParameterError(
            f"the budget must be at least two blocks of {paths.block_tokens:,} tokens, {least:,} tokens in all (half "
            f"of it is replayed too), got {actual:,}"
        )
    return {actual // 2: HALF, actual: ACTUAL, actual * 2: DOUBLE}, origin


def _gib_words(parameters: Parameters) -> str:
    """A budget in GiB in words, with what a token takes and why."""
    each = f"{parameters.token_bytes:,.10g} bytes of key-value memory per token"
    shape = f" ({parameters.kv_shape}, {parameters.kv_number})" if parameters.kv_shape else ""
    return f"given by the user: {parameters.capacity_gib:g} GiB at {each}{shape}"


def _fleet(log: Log) -> tuple[int | None, str]:
    """(engines named in the log's replica column, what is assumed); None where it does not name one for every
    request."""
    named, told, requests = log.con.sql(
        "select count(distinct replica)::BIGINT, count(replica)::BIGINT, count(*)::BIGINT from request"
    ).fetchall()[0]
    if not named:
        return None, "a replica column is absent, so one cache for the whole log is assumed"
    if told < requests:
        return None, f"the replica of {requests - told:,} requests is not told, so one cache for the log is assumed"
    if named == 1:
        return 1, "the log names one replica, so one cache for the whole log"
    if named > MOST_REPLICAS:
        return named, (
            f"the log names {named:,} replicas, more than the {MOST_REPLICAS:,} that can be replayed (pods that were "
            "replaced count each): one cache for the whole log, no fleet beside it; replicas=N gives one of N engines"
        )
    return named, (
        f"the log names {named:,} replicas; policies are compared on one cache for the whole log, and the fleet is "
        "replayed beside it with a budget for each replica"
    )


def _sample(
    parameters: Parameters, paths: Paths | None, capacities: dict[int, str]
) -> tuple[Sample | None, tuple[str, ...]]:
    """(the sample to replay, None for the whole log; what is said about it)."""
    if parameters.sample is None or paths is None:
        return None, ()
    if parameters.sample != AUTO:
        rate, reason = float(parameters.sample), "given by the user"
    else:
        rate, reason = miniature.auto_rate(paths, min(capacities))
    if rate >= 1:
        return None, (f"sample {parameters.sample}: {reason if parameters.sample == AUTO else 'the whole log'}",)
    actual = next((size for size, label in capacities.items() if label == ACTUAL), min(capacities))
    if actual * rate < paths.longest_prefix_tokens <= actual:
        least = math.ceil(paths.longest_prefix_tokens / actual * 100) / 100
        reason += (f", but too little: the same share of {actual:,} tokens cannot hold the longest prefix, "
                   f"{paths.longest_prefix_tokens:,}, so policies differ otherwise than on the whole log; "
                   f"take {least:g} or more")  # fmt: skip
    what = "sessions" if "session" in paths.tags else "roots"
    return miniature.draw(paths, rate, parameters.seed, reason), (
        f"figures of other policies than LRU are estimates: LRU on the whole log, and the difference to it on "
        f"{rate * 100:g} % of {what} at the same share of the budget ({reason})",
    )


def _mode_words(mode: str) -> str:
    found = TERMS[mode].sentence if mode in TERMS else ""
    return f"tier mode {mode} ({found[:1].lower()}{found[1:].removesuffix('.')})" if found else f"tier mode {mode}"


def _held(setting: Setting, paths: Paths | None) -> list[str]:
    """How many requests say when they ended, where that is replayed."""
    if not setting.hold_until_end or paths is None:
        return []
    ended = int((paths.tags["ts_end_us"] >= 0).sum())
    return [
        f"a request holds its prefix until its ts_end ({ended:,} of {paths.requests:,} requests have one), as engines "
        "do; what does not fit beside running requests is not stored; the curve over all budgets and the optimum "
        "take requests one after the other, and only the optimum is an upper bound"
    ]


def _stated(paths: Paths | None, mode: str, origin: str, fleet: str) -> list[str]:
    """What every report says about how it counted."""
    if paths is None:
        return [_mode_words(mode), f"budget {origin}"]
    return [
        _mode_words(mode),
        f"budget {origin}",
        f"prefixes are counted in whole blocks of {paths.block_tokens:,} tokens"
        if paths.block_tokens > 1
        else "prefixes are counted to the token",
        f"intervals over {paths.block_basis}; the warm window is {paths.warm_basis}",
        fleet,
    ]
