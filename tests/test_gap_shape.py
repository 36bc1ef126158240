"""The figures behind the gap fits: drawn from results alone, with their numbers in words, the same every time."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest

from kit import charts, turns
from tests.hand_log import hand_log

FIGURES = (charts.gap_survival, charts.gap_quantiles, charts.session_fits)


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """Results of 30 chat sessions that wait about a minute, as results.json would hold them."""
    rng = np.random.default_rng(2)
    starts = [day * 7000.0 + np.cumsum(np.exp(rng.normal(4, 0.8, 11))) for day in range(30)]
    rows = [{"ts": t, "session_id": f"s{n}", "trigger": "person"} for n, part in enumerate(starts) for t in part]
    made = turns.diagnose(hand_log(sorted(rows, key=lambda row: row["ts"])), replicates=50)
    made = json.loads(json.dumps(made, allow_nan=False))
    return {"inter_turn": made.pop("inter_turn"), "turns": made}


@pytest.mark.parametrize("draw", FIGURES, ids=lambda draw: draw.__name__)
def test_a_figure_says_its_numbers_and_draws_offline(draw: Any, results: dict[str, Any]) -> None:
    figure = draw(results)
    assert figure.name == draw.__name__
    assert figure.rows
    assert figure.caption
    assert any(sign.isdigit() for sign in figure.finding)
    assert any(sign.isdigit() for sign in figure.alt)
    svg = figure.svg()
    assert svg.startswith("<svg")
    assert "NaN" not in svg
    assert "undefined" not in svg
    assert figure.spec == draw(copy.deepcopy(results)).spec


@pytest.mark.parametrize("draw", FIGURES, ids=lambda draw: draw.__name__)
def test_nothing_is_drawn_from_nothing(draw: Any) -> None:
    assert draw({}) is None


def test_survival_is_of_the_turns_that_come() -> None:
    # Half of the turns are followed. Of all, 75 % are still without a next turn at 10 s: 25 % came, half of the 50 %.
    fit = {"session_type": "all", "trigger": "all", "clock": "start_to_start", "n": 40, "mu": 2.0, "sigma": 1.0}
    point = {"session_type": "all", "trigger": "all", "seen": 0.75, "fitted": 0.7}
    rows = [{**point, "seconds": 10.0}, {**point, "seconds": 100.0, "seen": 0.5, "fitted": 0.5}]
    figure = charts.gap_survival({"inter_turn": [{**fit, "continues": 0.5}], "turns": {"survival": rows}})
    assert figure is not None
    assert [row["seen"] for row in figure.rows] == [0.5, 0.0]
    assert figure.rows[0]["fitted"] == pytest.approx(0.4)
    assert "10" in figure.finding
