"""What the provider reported beside the model: share read, bill, and where the two disagree so much that it matters."""

from __future__ import annotations

from typing import Any

from kit import numbers
from kit.charts import pick

Row = dict[str, Any]
INPUT_CLASSES = ("read_tokens", "write_tokens", "write_long_tokens", "uncached_tokens")
BILLS_DIFFER = 0.05  # of the reported bill
READS_DIFFER = 0.001  # of the input tokens
LABELS = {"LIST": " (at list prices)", "CONTRACT": " (at your contract's prices)"}
UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def lifetime_words(seconds: float | None) -> str:
    """A time to live by name: ``the 5-minute lifetime``; without one ``no expiry``."""
    if seconds is None:
        return "no expiry"
    for length, unit in UNITS:
        if seconds >= length and seconds % length == 0:
            return f"the {numbers.count(seconds / length)}-{unit} lifetime"
    return f"the lifetime of {numbers.seconds(seconds)}"


def read_share(results: Row) -> float | None:
    """Share of the reported input that the provider read from its cache; None where the log does not report it."""
    told = pick.get(results, "provider.reported", {})
    if told.get("read_tokens") is None or told.get("uncached_tokens") is None:
        return None
    total = _reported_input(told)
    return float(told["read_tokens"] / total) if total else None


def _reported_input(told: Row) -> int:
    return sum(told.get(name) or 0 for name in INPUT_CLASSES)


def long_share(results: Row) -> float | None:
    """Share of the reported writes that are of the long class; None where the log does not tell the classes apart."""
    told = pick.get(results, "provider.reported", {})
    short, long = told.get("write_tokens"), told.get("write_long_tokens")
    return float(long / (short + long)) if short is not None and long is not None and short + long else None


def beside_the_bill(results: Row) -> list[str]:
    """Sentences for page one: what the provider reported, the class of writes, and a warning where the model is off."""
    return [line for line in (told(results), write_class(results), *warnings(results)) if line]


def warnings(results: Row) -> list[str]:
    """Where the model's bill or its ceiling does not fit what the provider reported; empty where both do."""
    return [line for line in (bill_warning(results), ceiling_warning(results)) if line]


def told(results: Row) -> str:
    """The reported share read and bill beside the model's, in one sentence; empty where nothing is reported."""
    share, lru = read_share(results), pick.at_actual(results, "lru") or {}
    if share is None:
        return ""
    bill, model = pick.get(results, "provider.reported.cost"), lru.get("cost")
    currency = pick.get(results, "provider.reported.currency") or pick.get(results, "money.currency", "USD")
    label = LABELS.get(str(pick.get(results, "provider.reported.label")), "")
    billed = f" and billed {numbers.money(bill, currency, True)}{label} for the input" if bill is not None else ""
    said = f"The provider reported {numbers.percent(share)} read{billed}{_of_requests(results)}"
    found = f"; the model gives {numbers.percent(lru.get('hit_token_ratio'))} with LRU" if lru else ""
    cost = f" and {numbers.money(model, currency, True)}" if lru and model is not None and bill is not None else ""
    return f"{said}{found}{cost}."


def _of_requests(results: Row) -> str:
    some, every = pick.get(results, "provider.reported.requests"), pick.get(results, "log.requests")
    if not some or not every or some >= every:
        return ""
    return f", for {numbers.count(some)} of {numbers.count(every)} requests"


def bill_warning(results: Row) -> str:
    """A warning where the model's bill is over a twentieth off the reported one, both over all requests; else empty."""
    bill, model = pick.get(results, "provider.reported.cost"), (pick.at_actual(results, "lru") or {}).get("cost")
    currencies = {pick.get(results, name) for name in ("provider.reported.currency", "money.currency")} - {None}
    if not bill or model is None or _of_requests(results) or len(currencies) > 1:
        return ""
    off = model / bill - 1
    if abs(off) <= BILLS_DIFFER:
        return ""
    way = "above" if off > 0 else "below"
    return (
        f"The model's bill is {numbers.percent(abs(off), 0)} {way} the reported one: take what was paid from the "
        "report, and only differences between policies from the model."
    )


def class_words(results: Row, name: str) -> str:
    """A class of writes by its published lifetime: ``5-minute``; else by its name."""
    seconds = pick.get(results, f"ttl_verdict.ttl_seconds.{name}")
    words = lifetime_words(seconds).removeprefix("the ").removesuffix(" lifetime")
    return words if seconds is not None and " " not in words else name


def write_class(results: Row) -> str:
    """How the bill prices writes, where the log's own mix is another; empty where it is the same or not reported."""
    used, long = str(pick.get(results, "settings.write_class") or "short"), long_share(results)
    bill = (pick.at_actual(results, "lru") or {}).get("cost")
    other = None if long is None or bill is None else 1 - long if used == "long" else long
    if not other:
        return ""
    return (
        f"The bill is priced as if every write were the {class_words(results, used)} kind; the log's own mix is "
        f"{numbers.percent(long, 0)} long."
    )


def ceiling_warning(results: Row) -> str:
    """A warning where the provider read more than the model's unlimited cache finds, and what is at fault."""
    share, ceiling = read_share(results), pick.get(results, "bounds.ceiling.hit_token_ratio")
    if share is None or ceiling is None or share - ceiling <= READS_DIFFER:
        return ""
    name = lifetime_words(pick.get(results, "settings.ttl_seconds"))
    return (
        f"The provider read more than the model allows with an unlimited cache and {name} "
        f"({numbers.percent(share)} against {numbers.percent(ceiling)}): {_fault(results, share - ceiling, name)}."
    )


def _fault(results: Row, excess: float, name: str) -> str:
    """The lifetime where what comes back after it is half of the excess or more, else what the log tells of prompts."""
    late, reused = (pick.get(results, f"reuse_gaps.{key}") for key in ("longer_token_share", "reused_tokens"))
    total = _reported_input(pick.get(results, "provider.reported", {}))
    if pick.get(results, "settings.ttl_seconds") is None or late is None or reused is None:
        return "its cache found beginnings that this log does not show"
    if late * reused >= excess * total / 2:
        return f"it kept prefixes longer than {name} that is assumed"
    return f"not because of {name}, but because it found beginnings that this log, as counted here, does not show"
