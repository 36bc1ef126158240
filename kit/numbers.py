"""How a number is written for a reader: one rule per kind, tested, used by every table, chart and sentence.

An unknown is "not found", nothing is "-", tiny is "< 0.1%", and zero means zero. A minus is the real minus sign.
What is written still knows its number and unit (`Written`), for those who want to calculate with it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

NOT_FOUND = "not found"
ABSENT = "-"
TOO_FEW = "too few sessions for an interval"
FEWEST_UNITS = 10  # sessions or stretches; an interval over fewer is not shown to a reader
MINUS = "−"
SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£"}
_UNSEEN = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ufeff\\ufff9-\\ufffb]"
)
Number = int | float | None
SHARE, DIFFERENCE, RELATIVE = "share", "difference of shares", "relative change"
P = ParamSpec("P")


class Written(str):
    """A number as text that still knows its `value` (a pair for an interval, None unknown) and `unit`, for a CSV file.

    Text made from it (cut, joined, formatted into a sentence) is plain text again.
    """

    value: Number | tuple[Number, Number]
    unit: str

    def __new__(cls, text: str, value: Number | tuple[Number, Number] = None, unit: str = "") -> Written:
        """The text with its number beside it."""
        made = super().__new__(cls, text)
        made.value, made.unit = value, unit
        return made


Write = Callable[Concatenate[Number, P], str]


def _keeping(unit: str | None = "") -> Callable[[Write[P]], Callable[Concatenate[Number, P], Written]]:
    """A writer whose text keeps its number, in that unit; None: the currency the writer is given."""

    def kept(write: Write[P]) -> Callable[Concatenate[Number, P], Written]:
        @wraps(write)
        def writer(value: Number, *args: P.args, **more: P.kwargs) -> Written:
            currency: Any = args[0] if args else more.get("currency", "USD")
            known = value if is_known(value) else None
            return Written(write(value, *args, **more), known, str(currency) if unit is None else unit)

        return writer

    return kept


def is_known(value: object) -> bool:
    """True for a finite number; None, NaN, infinities and everything else are unknown."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _grouped(value: float, decimals: int) -> str:
    text = f"{abs(value):,.{decimals}f}"
    negative = value < 0 and text.strip("0.,") != ""
    return (MINUS if negative else "") + text


@_keeping()
def count(value: Number) -> str:
    """A whole number with thousands separators, such as ``10,000``; unknown is ``not found``."""
    return NOT_FOUND if value is None or not is_known(value) else _grouped(round(value), 0)


@_keeping()
def short(value: Number) -> str:
    """A large number in three figures with a suffix, such as ``47.6M`` or ``8.2k``; below 10,000 it is written out."""
    if value is None or not is_known(value):
        return NOT_FOUND
    size, sign = abs(value), MINUS if value < 0 else ""
    if size < 10_000:
        return count(value)
    for limit, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= limit * 0.9995:
            scaled = size / limit
            return f"{sign}{scaled:.{0 if scaled >= 99.95 else 1}f}".removesuffix(".0") + suffix
    return count(value)


@_keeping()
def decimal(value: Number, decimals: int = 2) -> str:
    """A plain decimal with a fixed number of places."""
    return NOT_FOUND if value is None or not is_known(value) else _grouped(value, decimals)


@_keeping(SHARE)
def percent(share: Number, decimals: int = 1) -> str:
    """A share of 0 to 1 as a percentage. Never rounds a trace to ``0.0%`` nor a near miss to ``100%``."""
    if share is None or not is_known(share):
        return NOT_FOUND
    smallest = 10.0**-decimals
    size = abs(share) * 100
    if 0 < size < smallest:
        return f"{'> ' + MINUS if share < 0 else '< '}{smallest:.{decimals}f}%"
    if 100 - smallest < size < 100:
        return f"{'< ' + MINUS if share < 0 else '> '}{100 - smallest:.{decimals}f}%"
    if size in (0, 100):
        return f"{MINUS if share < 0 else ''}{size:.0f}%"
    return f"{_grouped(share * 100, decimals)}%"


@_keeping(DIFFERENCE)
def points(difference: Number, decimals: int = 1) -> str:
    """A difference of two shares in percentage points, signed: ``+14.7 pt``."""
    if difference is None or not is_known(difference):
        return NOT_FOUND
    return f"{signed(difference * 100, decimals)} pt"


@_keeping(RELATIVE)
def relative(change: Number, decimals: int = 1) -> str:
    """A relative change as a signed percentage: ``−1.1%``."""
    return NOT_FOUND if change is None or not is_known(change) else f"{signed(change * 100, decimals)}%"


@_keeping("tokens")
def tokens(value: Number) -> str:
    """A number of tokens with its unit, such as ``47.6M tokens``."""
    return NOT_FOUND if value is None or not is_known(value) else f"{short(value)} tokens"


@_keeping()
def signed(value: Number, decimals: int = 0) -> str:
    """A number with its sign always shown; what rounds to zero carries none."""
    if value is None or not is_known(value):
        return NOT_FOUND
    text = _grouped(value, decimals)
    return text if text.startswith(MINUS) or text.strip("0.,") == "" else f"+{text}"


@_keeping(None)
def money(amount: Number, currency: str = "USD", detail: bool = False) -> str:
    """Money with its currency: whole units from 1 up, two decimals below or in detail; under a cent is said so."""
    if amount is None or not is_known(amount):
        return NOT_FOUND
    size = abs(amount)
    mark = SYMBOLS.get(currency, f"{currency} ")
    if 0 < size < 0.005:
        return f"{'> ' + MINUS if amount < 0 else '< '}{mark}0.01"
    decimals = 2 if (detail or size < 0.995) and size else 0
    text = _grouped(amount, decimals)
    return f"{MINUS}{mark}{text[1:]}" if text.startswith(MINUS) else f"{mark}{text}"


@_keeping(None)
def unit_price(amount: Number, currency: str = "USD") -> str:
    """A price per unit: two decimals from 0.1 up, every digit that matters below (four significant)."""
    if amount is None or not is_known(amount):
        return NOT_FOUND
    mark = SYMBOLS.get(currency, f"{currency} ")
    if amount == 0 or abs(amount) >= 0.1:
        text = _grouped(amount, 2)
    else:
        text = _grouped(amount, 3 - math.floor(math.log10(abs(amount)))).rstrip("0")
    return f"{MINUS}{mark}{text[1:]}" if text.startswith(MINUS) else f"{mark}{text}"


@_keeping(None)
def unit_price_change(amount: Number, currency: str = "USD") -> str:
    """A difference of prices per unit with its sign always shown."""
    text = unit_price(amount, currency)
    return f"+{text}" if amount is not None and is_known(amount) and amount > 0 else text


@_keeping(None)
def money_change(amount: Number, currency: str = "USD", detail: bool = False) -> str:
    """A difference in money with its sign always shown."""
    text = money(amount, currency, detail)
    return f"+{text}" if amount is not None and is_known(amount) and amount > 0 and text[0] not in "<>" else text


@_keeping("seconds")
def seconds(value: Number) -> str:
    """A length of time in the unit a person would choose: ``41 s``, ``5 min``, ``1.2 h``, ``3.4 days``."""
    if value is None or not is_known(value):
        return NOT_FOUND
    if 0 < value < 0.1:
        return "< 0.1 s"
    for limit, divisor, unit in ((60, 1, "s"), (3600, 60, "min"), (172_800, 3600, "h"), (math.inf, 86_400, "days")):
        if abs(value) < limit:
            text = _grouped(value / divisor, 1)
            return f"{text.removesuffix('.0')} {unit}"
    return NOT_FOUND


def span(low: str, high: str) -> str:
    """Two written numbers as an interval: ``3,700 to 4,900``; when either is unknown, ``not found``."""
    if NOT_FOUND in (low, high):
        return NOT_FOUND
    ends = [end.value if isinstance(end, Written) and not isinstance(end.value, tuple) else None for end in (low, high)]
    text = f"{low} to {high}"
    return text if None in ends else Written(text, (ends[0], ends[1]), getattr(low, "unit", ""))


def between(low: str, high: str, units: int | None = None) -> str:
    """Two written ends as ``3,700 to 4,900``; over under ten `units` ``too few sessions for an interval``."""
    return TOO_FEW if units is not None and units < FEWEST_UNITS else span(low, high)


def with_level(low: str, high: str, units: int | None = None) -> str:
    """The same with its level: ``95% interval 3,700 to 4,900``."""
    found = between(low, high, units)
    return found if found == TOO_FEW else f"95% interval {found}"


def visible(text: str) -> str:
    """Text with a visible mark for every control or direction-changing character, which could hide what is written."""
    return _UNSEEN.sub("\ufffd", text)
