"""Intervals: exact values by hand, pairing, the widening for few units, and laws that hold for any columns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit import intervals


def test_value_is_ratio_of_sums_not_mean_of_ratios() -> None:
    # A: (1 + 30) / (10 + 100) = 31/110; B: (2 + 20) / 110 = 22/110; the difference is 9/110.
    # Mean of ratios would be (0.1 + 0.3)/2 - (0.2 + 0.2)/2 = 0.
    found = intervals.paired_ratio([1, 30], [10, 100], [2, 20], [10, 100])
    assert found is not None
    assert found.value == pytest.approx(9 / 110)


def test_replicates_agree_with_every_possible_draw_of_three_units() -> None:
    # Three units can be drawn in 3^3 = 27 ways; the mean over many replicates must be near the mean over all 27.
    num, den = np.array([1.0, 5.0, 9.0]), np.array([10.0, 10.0, 20.0])
    exact = np.mean([num[list(d)].sum() / den[list(d)].sum() for d in itertools.product(range(3), repeat=3)])
    drawn = intervals.ratio_replicates(num, den, replicates=20_000, seed=3)
    assert drawn.mean() == pytest.approx(exact, rel=0.01)


def test_weights_are_a_multinomial_draw_and_repeat_with_the_seed() -> None:
    weights = intervals.block_weights(7, 500, 5)
    assert weights.shape == (500, 7)
    assert (weights.sum(axis=1) == 7).all()
    assert weights.mean() == 1.0
    # Each unit is drawn Binomial(7, 1/7) times: variance 7 * 1/7 * 6/7 = 0.857.
    assert weights.var(axis=0).mean() == pytest.approx(6 / 7, rel=0.1)
    intervals.block_weights.cache_clear()
    assert (intervals.block_weights(7, 500, 5) == weights).all()
    assert not (intervals.block_weights(7, 500, 6) == weights).all()


def test_pairing_cancels_what_policies_share() -> None:
    # Cost varies 100-fold between blocks, yet A costs exactly 1 a request less in every block: no width.
    cost = np.array([100.0, 5000.0, 300.0, 9000.0])
    requests = np.array([10.0, 10.0, 10.0, 10.0])
    found = intervals.paired_ratio(cost - requests, requests, cost, requests)
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((-1.0, -1.0, -1.0))
    assert found.excludes_zero


def test_few_units_widen_the_interval_by_student_t() -> None:
    # Seven days: sqrt(7/6) * t(0.025, 6 df) = 1.0801 * 2.4469 = 2.6430; the normal tail beyond it is 0.0041, not 0.025.
    low, high = intervals.quantiles(7)
    assert low == pytest.approx(0.0041, abs=0.0001)
    assert high == pytest.approx(1 - low)
    # Two hundred blocks: sqrt(200/199) * 1.9720 = 1.9769, tail 0.0240: nearly the plain percentile.
    assert intervals.quantiles(200)[0] == pytest.approx(0.0240, abs=0.0001)


def test_empty_units_are_not_units() -> None:
    full = intervals.paired_ratio([1, 4, 2], [5, 5, 5], [1, 1, 1], [5, 5, 5])
    padded = intervals.paired_ratio([1, 0, 4, 2, 0], [5, 0, 5, 5, 0], [1, 0, 1, 1, 0], [5, 0, 5, 5, 0])
    assert full == padded
    assert padded is not None and padded.units == 3


@pytest.mark.parametrize(
    "columns", [([1], [2], [1], [2]), ([1, 2], [0, 0], [1, 1], [1, 1]), ([0, 0], [0, 0], [0, 0], [0, 0])]
)
def test_what_cannot_be_told_is_none(columns: tuple[list[int], ...]) -> None:
    assert intervals.paired_ratio(*columns) is None


def test_a_denominator_that_is_mostly_absent_is_none() -> None:
    # Only one of four units has hits: a draw misses it with probability (3/4)^4 = 32 %, over the tenth that is allowed.
    assert intervals.paired_ratio([5, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]) is None


def test_columns_of_different_shapes_are_refused() -> None:
    with pytest.raises(intervals.IntervalError, match=r"found \(2,\), \(3,\)"):
        intervals.ratio_replicates([1, 2], [1, 2, 3])


def test_grid_equals_one_by_one() -> None:
    rng = np.random.default_rng(2)
    num, den = rng.integers(0, 1000, (4, 30)), rng.integers(1000, 2000, (4, 30))
    grid = intervals.paired_ratios(num, den, base=1)
    for row, found in enumerate(grid):
        alone = intervals.paired_ratio(num[row], den[row], num[1], den[1])
        assert found is not None and alone is not None
        assert (found.value, found.low, found.high) == pytest.approx((alone.value, alone.low, alone.high))


def test_wider_is_the_headline() -> None:
    blocks, days = intervals.Interval(-1, -2, -0.5), intervals.Interval(-1, -4, 0.5, basis=intervals.DAYS)
    assert intervals.wider(blocks, None, days) is days
    assert intervals.wider(None, None) is None


def test_standings_by_hand() -> None:
    # Over equal blocks a costs 1, b costs 2 everywhere: a is always best, b always 1 behind.
    found = intervals.standings(["a", "b"], [[1, 1, 1], [2, 2, 2]], [[1, 1, 1], [1, 1, 1]], lower_is_better=True)
    assert [(row.policy, row.probability_best, row.regret) for row in found] == [("a", 1.0, 0.0), ("b", 0.0, 1.0)]
    higher = intervals.standings(["a", "b"], [[1, 1, 1], [2, 2, 2]], [[1, 1, 1], [1, 1, 1]], lower_is_better=False)
    assert [row.probability_best for row in higher] == [0.0, 1.0]
    # Twins are one policy: they do not take each other's chance.
    twins = intervals.standings(["a", "b"], [[1, 2, 3]] * 2, [[1, 1, 1]] * 2, lower_is_better=True)
    assert [row.probability_best for row in twins] == [1.0, 1.0]
    assert [row.identical for row in twins] == [("b",), ("a",)]
    # Beside twins, another that is best in half of the draws keeps its half; a tie of others is shared.
    three = intervals.standings(["a", "b", "c"], [[1, 1], [1, 1], [2, 0]], [[1, 1]] * 3, lower_is_better=True)
    assert three[0].probability_best == three[1].probability_best == pytest.approx(1 - three[2].probability_best)


def test_interval_round_trip_and_scaling() -> None:
    found = intervals.Interval(-2.0, -3.0, -1.0, basis=intervals.DAYS, units=7)
    assert intervals.from_dict(found.as_dict()) == found
    assert found.scaled(-10).as_dict() | {} == {
        "value": 20.0, "low": 10.0, "high": 30.0, "level": 0.95, "basis": "days", "units": 7,
    }  # fmt: skip
    assert intervals.from_dict(None) is None
    assert intervals.from_dict({"value": 1.0, "low": None, "high": 2.0}) is None


blocks = st.lists(
    st.tuples(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(1, 10**4)), min_size=2, max_size=40
)


@settings(max_examples=60, deadline=None)
@given(blocks)
def test_laws(rows: list[tuple[int, int, int]]) -> None:
    a, b, n = (np.array(column) for column in zip(*rows, strict=True))
    found = intervals.paired_ratio(a, n, b, n, replicates=200)
    back = intervals.paired_ratio(b, n, a, n, replicates=200)
    assert found is not None and back is not None
    assert found.low <= found.high
    # Swapping the sides mirrors the interval; a policy against itself has no width.
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low), abs=1e-6)
    same = intervals.paired_ratio(a, n, a, n, replicates=200)
    assert same is not None and (same.value, same.low, same.high) == (0, 0, 0)
    # A unit of money does not matter.
    larger = intervals.paired_ratio(a * 7, n, b * 7, n, replicates=200)
    assert larger is not None
    assert (larger.low, larger.high) == pytest.approx((7 * found.low, 7 * found.high), rel=1e-9, abs=1e-6)
