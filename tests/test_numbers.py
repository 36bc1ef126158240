"""How a number is written: each rule by example."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit import numbers

UNKNOWN = [None, math.nan, math.inf, -math.inf]
WRITERS = [
    numbers.count, numbers.short, numbers.decimal, numbers.percent, numbers.points, numbers.signed, numbers.money,
    numbers.unit_price, numbers.money_change, numbers.seconds,
]  # fmt: skip


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("value", UNKNOWN)
def test_unknown_is_not_found_and_never_zero(write, value):
    assert write(value) == "not found"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0%"), (1, "100%"), (0.5, "50.0%"), (0.0004, "< 0.1%"), (0.9996, "> 99.9%"), (0.001, "0.1%"),
        (0.999, "99.9%"), (-0.0004, "> −0.1%"), (-0.25, "−25.0%"), (-1, "−100%"), (1.25, "125.0%"), (0.373380, "37.3%"),
    ],
)  # fmt: skip
def test_percent(share, text):
    assert numbers.percent(share) == text


def test_percent_without_decimals_still_tells_a_trace_from_nothing():
    assert [numbers.percent(share, 0) for share in (0, 0.004, 0.05, 0.997, 1)] == ["0%", "< 1%", "5%", "> 99%", "100%"]


@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_percent_of_a_part_never_reads_none_or_all(share):
    assert numbers.percent(share) not in ("0%", "0.0%", "100%", "100.0%")


@pytest.mark.parametrize(
    ("amount", "summary", "detail"),
    [
        (0, "$0", "$0"), (4300.4, "$4,300", "$4,300.40"), (-992, "−$992", "−$992.00"), (0.43, "$0.43", "$0.43"),
        (0.004, "< $0.01", "< $0.01"), (-0.004, "> −$0.01", "> −$0.01"), (1.5, "$2", "$1.50"), (0.996, "$1", "$1.00"),
    ],
)  # fmt: skip
def test_money(amount, summary, detail):
    assert (numbers.money(amount), numbers.money(amount, detail=True)) == (summary, detail)


def test_money_of_other_currencies():
    assert numbers.money(12, "EUR") == "€12"
    assert numbers.money(-12, "CHF") == "−CHF 12"


def test_money_change_has_its_sign():
    changes = [numbers.money_change(amount) for amount in (5, -5, 0, 0.001)]
    assert changes == ["+$5", "−$5", "$0", "< $0.01"]


def test_unit_price_keeps_the_digits_that_matter():
    prices = [numbers.unit_price(amount) for amount in (3, 0.3, 0.1, 0.0375, 0.05148, 0.0000123, 0, -0.00897)]
    assert prices == ["$3.00", "$0.30", "$0.10", "$0.0375", "$0.05148", "$0.0000123", "$0.00", "−$0.00897"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (9_999, "9,999"), (10_000, "10k"), (472_000, "472k"), (47_600_000, "47.6M"), (999_960, "1M"),
     (46_816_000, "46.8M"), (123_400_000, "123M"), (-2_500_000, "−2.5M"), (1_500_000_000, "1.5G")],
)  # fmt: skip
def test_short(value, text):
    assert numbers.short(value) == text


def test_count_and_points_and_span():
    assert numbers.count(524_851_782) == "524,851,782"
    assert numbers.points(0.147) == "+14.7 pt"
    assert numbers.points(-0.0004) == "0.0 pt"  # rounds to nothing: no sign
    assert numbers.span("3,700", "4,900") == "3,700 to 4,900"
    assert numbers.span("3,700", numbers.NOT_FOUND) == "not found"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.02, "< 0.1 s"), (41, "41 s"), (59.96, "60 s"), (300, "5 min"), (4320, "1.2 h"), (3600, "1 h"),
     (293_760, "3.4 days")],
)  # fmt: skip
def test_seconds(seconds, text):
    assert numbers.seconds(seconds) == text
