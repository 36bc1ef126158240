"""What a user may set about one analysis: every name, its type, its unit, its default, and how a text becomes a value.

Values are checked before any work starts: a NaN or an infinity would pass through papermill into the notebook file and
make it invalid JSON, so both are refused by name, as are unknown names (the known ones are listed).
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args, get_type_hints
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kit.analysis.known import check_names, given_twice, near
from kit.policies import REGISTRY

AUTO = "auto"
CANDIDATES = "lru,lfu,lfu_perfect,lfu_decay,length,fifo,fifo_flat,gdsf"


class ParameterError(ValueError):
    """A parameter that cannot be used: one line with its name, what it got and what it accepts."""


def _parameter(default: Any, meaning: str) -> Any:
    if isinstance(default, dict):
        return field(default_factory=dict, metadata={"meaning": meaning})
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True)
class Parameters:
    """All settings of one analysis; None means "decided from the log" and the report says what was decided and why."""

    capacity_tokens: int | None = _parameter(None, "tokens the cache may hold; none = chosen from the log")
    block_tokens: int | None = _parameter(None, "tokens per cache block; none = the log's or the provider's own")
    ttl_seconds: float | str | None = _parameter(AUTO, "seconds an unused entry lives; auto = the provider's short one")
    policies: str = _parameter(CANDIDATES, "eviction policies to compare, separated by commas")
    seed: int = _parameter(1, "seed of every random draw (provider loss, bootstrap)")
    tier_mode: str = _parameter(
        AUTO, "mirror | absorb | engine; auto = mirror where the provider is known, else engine"
    )
    provider: str | None = _parameter(None, "provider whose rules and prices apply; none = as the log says")
    model: str | None = _parameter(None, "model whose prices apply; none = as the log says")
    write_class: str = _parameter(AUTO, "short | long cache writes; auto = short")
    minimum_tokens: int | None = _parameter(None, "shortest prefix that is cached; none = the provider's rule")
    loss: float = _parameter(0.0, "share of reads the provider lost (0 to 1), in the neutral setting")
    visible_after_seconds: float = _parameter(0.0, "seconds until a write can be read, in the neutral setting")
    hold_until_end: bool = _parameter(False, "a request's prefix cannot be evicted until its ts_end (engines, no TTL)")
    capacity_gib: float | None = _parameter(None, "budget in GiB instead of tokens; needs kv_shape or its bytes")
    kv_shape: str | None = _parameter(None, "model shape behind the bytes per token (python -m kit shapes)")
    kv_number: str = _parameter("bf16", "bf16 | fp16 | fp8 | int8 | fp32 numbers in the key-value memory")
    kv_bytes_per_token: float | None = _parameter(None, "bytes of key-value memory per token; none = of kv_shape")
    replicas: int | None = _parameter(None, "engines that share the traffic, a budget each; none = as the log says")
    sample: float | str | None = _parameter(None, "share of the log to replay (0 to 1), auto, or none = all of it")
    model_parameters: float | None = _parameter(None, "active parameters of your own model, for prefill operations")
    prefill_tokens_per_second: float | None = _parameter(None, "tokens one of your GPUs prefills in a second")
    top_fraction: float = _parameter(0.05, "top share of keys called hot (0 to 1)")
    key_cut: str | None = _parameter(None, "where a prefix key is cut; none = the log's own default")
    time_zone: str = _parameter("UTC", "time zone in which a calendar day begins, an IANA name")
    replicates: int = _parameter(2000, "bootstrap replicates behind every interval")
    partial_tail: str = _parameter("drop", "drop | keep a last block that is not full")
    price_overlay: str | None = _parameter(None, "TOML file with negotiated prices")
    service_class: str = _parameter("standard", "standard | batch | flex | priority | fast list prices")
    provider_rule: str | None = _parameter(None, "caching rule by its id in provider_rules.json; none = by the model")
    waive_row_0: bool = _parameter(False, "decide although the log is too short or too small")
    counters_trustworthy: bool = _parameter(True, "frequency counters survive restarts and replicas")
    what_if: bool = _parameter(True, "take the decision again at other budgets, lifetimes, prices and cuts")
    name_owners: bool = _parameter(False, "name the log's owners: chargeback, and retention per owner")
    format: str | None = _parameter(None, "log format; none = recognised")
    column_map: Mapping[str, str] = _parameter({}, "canonical column -> column of the log")
    thresholds: Mapping[str, float] = _parameter({}, "thresholds of the decision table that differ from its defaults")

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            _check(spec.name, getattr(self, spec.name))
        _check_ranges(self)
        if wrong := check_names(self):
            raise ParameterError(wrong)

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name, in the order of the class, ready for JSON."""
        return {
            spec.name: dict(value) if isinstance(value := getattr(self, spec.name), Mapping) else value
            for spec in dataclasses.fields(self)
        }

    def changed(self) -> dict[str, Any]:
        """Only the values that differ from the defaults."""
        default = Parameters().as_dict()
        return {name: value for name, value in self.as_dict().items() if value != default[name]}

    @property
    def token_bytes(self) -> float | None:
        """Bytes of key-value memory per token: as given, else of the model shape; None where neither is given."""
        if self.kv_bytes_per_token is not None or self.kv_shape is None:
            return self.kv_bytes_per_token
        from kit.replay.room import token_bytes

        return token_bytes(self.kv_shape, self.kv_number)

    @property
    def policy_names(self) -> tuple[str, ...]:
        """The policies to compare, in the order given."""
        return tuple(name.strip() for name in self.policies.split(",") if name.strip())


def known_names() -> tuple[str, ...]:
    """Names that `--set` accepts: the scalar parameters, then the thresholds of the decision table."""
    scalars = [f.name for f in dataclasses.fields(Parameters) if f.name not in ("column_map", "thresholds")]
    return (*scalars, *(name for name in threshold_names() if name not in scalars))


def threshold_names() -> tuple[str, ...]:
    """Names of the decision table's thresholds (imported here only: a notebook that sets none stays quick to open)."""
    from kit.decide import THRESHOLDS

    return tuple(THRESHOLDS)


def from_settings(
    settings: Iterable[str], column_map: Mapping[str, str] | None = None, log_format: str | None = None
) -> Parameters:
    """Parameters from `name=value` texts; ParameterError names the text that cannot be used."""
    types = get_type_hints(Parameters)
    values: dict[str, Any] = {"column_map": dict(column_map or {})}
    thresholds: dict[str, float] = {}
    given: dict[str, str] = {} if log_format is None else {"format": log_format}
    for text in settings:
        name, equals, raw = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ParameterError(f"--set takes name=value, got {text!r}")
        if name not in known_names():
            raise ParameterError(_unknown(name))
        if given.setdefault(name, raw.strip()) != raw.strip():
            raise ParameterError(f"{name} is given twice, as {given[name]} and as {raw.strip()}; give it once")
        if name in types:
            values[name] = _typed(name, raw.strip(), types[name])
        else:
            thresholds[name] = _typed(name, raw.strip(), float)
    if log_format is not None:
        values["format"] = log_format
    return Parameters(**values, thresholds=thresholds)


def from_values(values: Mapping[str, Any]) -> Parameters:
    """Parameters from values by name, as a notebook's cell holds them; unknown names are refused."""
    names = {f.name for f in dataclasses.fields(Parameters)}
    for name in values:
        if name not in names:
            raise ParameterError(_unknown(name))
    return Parameters(**values)


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, known_names(), n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return f"unknown parameter {name!r}{hint}; known: {', '.join(known_names())}"


def _typed(name: str, raw: str, kind: Any) -> Any:
    """The value a text stands for, by the parameter's type; `none` is None where the type allows it."""
    kinds = get_args(kind) or (kind,)
    if raw.lower() in ("none", "null") and type(None) in kinds:
        return None
    for one in (bool, int, float, str):
        if one not in kinds:
            continue
        value = _convert(raw, one)
        if value is not None:
            return value
    raise ParameterError(f"{name} must be {_accepted(kind)}, got {raw!r}")


def _convert(raw: str, kind: type) -> Any:
    if kind is bool:
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(raw.lower())
    if kind is int:
        return int(raw) if re.fullmatch(r"[+-]?\d+(_\d+)*", raw) else None
    if kind is float:
        try:
            return float(raw)
        except ValueError:
            return None
    return raw if raw else None


def _accepted(kind: Any) -> str:
    words = {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "text",
        type(None): "none",
        Mapping: "a table of names",
    }
    kinds = get_args(kind) if type(None) in get_args(kind) or str in get_args(kind) else (kind,)
    return " or ".join(words.get(getattr(one, "__origin__", one) or one, "a table of names") for one in kinds)


def _check(name: str, value: Any) -> None:
    """Refuse NaN, infinities and values of a wrong type, by name (nested tables included)."""
    kind = get_type_hints(Parameters)[name]
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str) or isinstance(inner, bool) or not isinstance(inner, int | float | str):
                raise ParameterError(f"{name} must map names to plain values, got {key!r}: {inner!r}")
            _finite(f"{name}[{key}]", inner)
        return
    _finite(name, value)
    kinds = get_args(kind) or (kind,)
    right = (
        (value is None and type(None) in kinds)
        or (isinstance(value, bool) and bool in kinds)
        or (isinstance(value, int) and not isinstance(value, bool) and (int in kinds or float in kinds))
        or (isinstance(value, float) and float in kinds)
        or (isinstance(value, str) and str in kinds)
    )
    if not right:
        raise ParameterError(f"{name} must be {_accepted(kind)}, got {value!r}")


def _finite(name: str, value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ParameterError(f"{name} must be a finite number, got {value}")


def _is_zone(name: str) -> bool:
    try:
        return bool(ZoneInfo(name).key)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return name == "UTC"


LARGEST = 10**15
MOST_SECONDS = 10**11  # 3,169 years: in microseconds, and added to a date, still a 64-bit whole number
MOST_REPLICAS = 1024
NO_POLICY = "policies must name at least one"
LEAST_BYTES = 0.001
MOST_REPLICATES = 100_000
FEWEST_REPLICATES = 100  # the ends of a 95 % interval are the 2nd and the 98th of so many
POSITIVE = (
    "capacity_tokens", "block_tokens", "capacity_gib", "kv_bytes_per_token", "model_parameters",
    "prefill_tokens_per_second", "replicates", "replicas",
)  # fmt: skip


def _check_ranges(p: Parameters) -> None:
    """Limits between and within parameters; each message says what is accepted."""
    for spec in dataclasses.fields(p):
        value = getattr(p, spec.name)
        if isinstance(value, int | float) and abs(value) > LARGEST:
            raise ParameterError(f"{spec.name} must be at most {LARGEST:,}, got {value}")
    for name in ("ttl_seconds", "visible_after_seconds"):
        value = getattr(p, name)
        if isinstance(value, int | float) and value > MOST_SECONDS:
            raise ParameterError(f"{name} must be at most {MOST_SECONDS:,} seconds, got {value:g}")
    if p.replicas is not None and p.replicas > MOST_REPLICAS:
        raise ParameterError(f"replicas must be at most {MOST_REPLICAS:,}, got {p.replicas:,}")
    strangers = [name for name in p.policy_names if name not in REGISTRY]
    if strangers or not p.policy_names:
        found = f"unknown policy {strangers[0]!r}{near(strangers[0], REGISTRY)}" if strangers else NO_POLICY
        raise ParameterError(f"{found}; known: {', '.join(REGISTRY)} (parameter policies)")
    if (twice := given_twice(p.policy_names)) is not None:
        raise ParameterError(f"policies names {twice} twice; name each policy once")
    if p.seed < 0:
        raise ParameterError(f"seed must be 0 or more, got {p.seed}")
    if p.capacity_tokens == 1:
        raise ParameterError("capacity_tokens must be at least 2 (half of it is replayed too), got 1")
    for name in POSITIVE:
        value = getattr(p, name)
        if value is not None and value <= 0:
            raise ParameterError(f"{name} must be above 0, got {value}")
    if p.replicates > MOST_REPLICATES:
        raise ParameterError(f"replicates must be at most {MOST_REPLICATES:,}, got {p.replicates:,}")
    if p.replicates < FEWEST_REPLICATES:
        raise ParameterError(f"replicates must be at least {FEWEST_REPLICATES}, got {p.replicates}")
    for name in ("minimum_tokens", "visible_after_seconds"):
        value = getattr(p, name)
        if value is not None and value < 0:
            raise ParameterError(f"{name} must be 0 or more, got {value}")
    for name, low, share in (("loss", 0.0, "between 0 and 1"), ("top_fraction", 1e-9, "above 0 and at most 1")):
        if not low <= getattr(p, name) <= 1:
            raise ParameterError(f"{name} must be a share {share}, got {getattr(p, name)}")
    for name, accepted in (
        ("tier_mode", (AUTO, "mirror", "absorb", "engine")),
        ("write_class", (AUTO, "short", "long")),
        ("partial_tail", ("drop", "keep")),
    ):
        if getattr(p, name) not in accepted:
            raise ParameterError(f"{name} must be one of {', '.join(accepted)}, got {getattr(p, name)!r}")
    if not _is_zone(p.time_zone):
        raise ParameterError(f"time_zone must be an IANA name such as UTC or Europe/Berlin, got {p.time_zone!r}")
    if isinstance(p.ttl_seconds, str) and p.ttl_seconds != AUTO:
        raise ParameterError(f"ttl_seconds must be seconds, none or auto, got {p.ttl_seconds!r}")
    if isinstance(p.ttl_seconds, int | float) and p.ttl_seconds <= 0:
        raise ParameterError(f"ttl_seconds must be above 0 (or none), got {p.ttl_seconds}")
    if p.capacity_tokens and p.block_tokens and p.capacity_tokens < p.block_tokens:
        raise ParameterError(f"capacity_tokens must be at least one block ({p.block_tokens}), got {p.capacity_tokens}")
    _check_room(p)
    _check_sample(p.sample)


def _check_room(p: Parameters) -> None:
    """A budget in GiB needs bytes per token, given once; an unknown shape or number names the known ones."""
    if p.kv_bytes_per_token is not None and p.kv_bytes_per_token < LEAST_BYTES:
        raise ParameterError(f"kv_bytes_per_token must be at least {LEAST_BYTES}, got {p.kv_bytes_per_token:g}")
    if p.kv_shape is not None and p.kv_bytes_per_token is not None:
        raise ParameterError("give kv_shape or kv_bytes_per_token, not both")
    try:
        known = p.token_bytes
    except ValueError as error:
        raise ParameterError(f"kv_shape: {error}") from error
    if p.capacity_gib is not None and known is None:
        raise ParameterError(
            "capacity_gib needs kv_shape (a model of python -m kit shapes) or kv_bytes_per_token (bytes of key-value "
            "memory per token)"
        )
    if p.capacity_gib is not None and known is not None and p.capacity_gib * 2**30 > LARGEST * known:
        raise ParameterError(f"capacity_gib must hold at most {LARGEST:,} tokens of {known:g} bytes, got "
                             f"{p.capacity_gib:g} GiB")  # fmt: skip
    if p.capacity_gib is not None and p.capacity_tokens is not None:
        raise ParameterError("give capacity_tokens or capacity_gib, not both")


def _check_sample(sample: float | str | None) -> None:
    right = sample is None or sample == AUTO or (not isinstance(sample, str) and 0 < sample <= 1)
    if not right:
        raise ParameterError(f"sample must be a share above 0 and at most 1, auto or none, got {sample!r}")
