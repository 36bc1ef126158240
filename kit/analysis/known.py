"""Parameters that name something: looked up where it is defined, so that a wrong name is told before any work starts.

The lookups import what they need only for values that differ from the defaults; a notebook stays quick to open.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kit.analysis.parameters import Parameters
    from kit.log import Log


def check_names(p: Parameters) -> str | None:
    """The first parameter that names nothing known, as one line with the nearest and the accepted names; else None."""
    checks = (_service_class, _provider_rule, _key_cut, _format, _kv_number, _price_overlay, _provider, _thresholds)
    return next((found for found in (check(p) for check in checks) if found), None)


def given_twice(values: Iterable[str | int]) -> str | int | None:
    """The first value of a list that stands in it twice; None where each stands once."""
    seen: set[str | int] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def unknown(name: str, value: str, known: Iterable[str]) -> str:
    """One line for a value that is not among the known ones, with the nearest of them."""
    names = list(known)
    return f"{name} {value!r} is not known{near(value, names)}; accepted: {', '.join(names)}"


def near(value: str, names: Iterable[str]) -> str:
    """`` (did you mean x?)`` with the nearest name, empty where none is near."""
    close = difflib.get_close_matches(value.lower(), list(names), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _service_class(p: Parameters) -> str | None:
    if p.service_class == "standard":
        return None
    from kit.prices import SERVICE_CLASSES

    return None if p.service_class in SERVICE_CLASSES else unknown("service_class", p.service_class, SERVICE_CLASSES)


def _provider_rule(p: Parameters) -> str | None:
    if p.provider_rule is None:
        return None
    from kit.providers import rule_names

    known = rule_names()
    return None if p.provider_rule in known else unknown("provider_rule", p.provider_rule, known)


def _key_cut(p: Parameters) -> str | None:
    if p.key_cut is None:
        return None
    from kit.reuse.cuts import CUTS, is_cut

    if is_cut(p.key_cut):
        return None
    return f"{unknown('key_cut', p.key_cut, CUTS)} (K a whole number, as in first_4)"


def _format(p: Parameters) -> str | None:
    if p.format is None:
        return None
    from kit.formats import REGISTRY

    return None if p.format in REGISTRY else unknown("format", p.format, REGISTRY)


def _kv_number(p: Parameters) -> str | None:
    if p.kv_number == "bf16":
        return None
    from kit.replay.room import NUMBER_BYTES

    return None if p.kv_number in NUMBER_BYTES else unknown("kv_number", p.kv_number, NUMBER_BYTES)


def _price_overlay(p: Parameters) -> str | None:
    if p.price_overlay is None:
        return None
    if not Path(p.price_overlay).is_file():
        return f"price_overlay must name a TOML file (data/ holds an example), and {p.price_overlay} is not a file"
    from kit.prices import PriceError, load_overlay

    try:
        load_overlay(p.price_overlay)
    except PriceError as error:
        return f"price_overlay cannot be used: {error}"
    return None


def _provider(p: Parameters) -> str | None:
    """A provider without rules and list prices would quietly leave every cost unknown."""
    if p.provider is None or p.price_overlay is not None or p.tier_mode == "engine":
        return None
    from kit.prices import has_provider, provider_names
    from kit.providers import has_rule

    if has_provider(p.provider) or has_rule(p.provider):
        return None
    listed = provider_names()
    return (
        f"provider {p.provider!r} has no rules and no list prices{near(p.provider, listed)}; accepted: "
        f"{', '.join(listed)}; for another one give price_overlay, or tier_mode=engine if you run the model"
    )


def _thresholds(p: Parameters) -> str | None:
    if not p.thresholds:
        return None
    from kit.decide import ThresholdError, check_thresholds

    try:
        check_thresholds(p.thresholds)
    except ThresholdError as error:
        return str(error)
    return None


def unpriced_model(log: Log, p: Parameters) -> str | None:
    """Why the model the user names has no price in this log, as one line; None where it has one or needs none."""
    if p.model is None or p.price_overlay is not None or p.tier_mode == "engine":
        return None
    from kit.prices import list_cells, model_names

    named = [row[0] for row in log.con.sql("select distinct provider from request order by all").fetchall()]
    if any(cell.found for provider in named for cell in list_cells(provider, p.model, p.service_class)):
        return None
    provider = next((name for name in named if name is not None), None)
    whose = f" under provider {provider!r}" if provider else ""
    return (
        f"model {p.model!r} has no list price{whose}{near(p.model, model_names(provider))}; name one of "
        "python -m kit prices, give price_overlay, or tier_mode=engine if you run the model"
    )
