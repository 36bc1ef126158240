"""Figures: they say their numbers, fit any number of policies, draw the same every time and without a network."""

from __future__ import annotations

import copy
import itertools
import math
import re

import altair as alt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit import charts
from kit.charts.capacity import _ticks
from kit.charts.labels import spread, thin
from kit.charts.theme import _ORDER, COLOURS, TEXT_ON_WHITE, Look, look_of
from kit.charts.turns import within
from kit.policies import REGISTRY
from tests import report_fixture

NAMES = [draw.__name__ for draw in charts.FIGURES]


@pytest.fixture(scope="module")
def results():
    return report_fixture.results()


def luminance(colour: str) -> float:
    """Relative luminance of a hex colour (WCAG 2.2)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast_on_white(colour: str) -> float:
    return 1.05 / (luminance(colour) + 0.05)


@pytest.mark.parametrize("draw", charts.FIGURES, ids=NAMES)
def test_every_figure_has_finding_alt_data_and_a_drawing(draw, results):
    figure = draw(results)
    assert figure.name == draw.__name__
    assert figure.rows and figure.caption
    assert any(sign.isdigit() for sign in figure.finding) and any(sign.isdigit() for sign in figure.alt)
    svg = figure.svg()
    assert svg.startswith("<svg") and "NaN" not in svg and "undefined" not in svg
    assert "<image" not in svg and "<script" not in svg
    assert re.findall(r'(?:href|src)="', svg) == []


@pytest.mark.parametrize("draw", charts.FIGURES, ids=NAMES)
def test_nothing_is_drawn_from_nothing(draw):
    assert draw({}) is None


@pytest.mark.parametrize("draw", charts.FIGURES, ids=NAMES)
def test_a_figure_is_the_same_on_every_run(draw, results):
    assert draw(results).spec == draw(copy.deepcopy(results)).spec
    assert draw(results).svg() == draw(results).svg()


@pytest.mark.parametrize("draw", charts.FIGURES, ids=NAMES)
def test_a_phone_gets_a_drawing_that_fits(draw, results):
    width = float(re.search(r'width="([\d.]+)"', draw(results, 340).svg()).group(1))
    assert width <= 360


def test_alt_text_of_the_curve_is_made_from_its_numbers(results):
    # HITS at the actual budget: decay .46, LFU .44, GDSF .43, LRU .33, FIFO .29, Length .17; bounds .52 and .72.
    said = charts.capacity_curve(results).alt
    expected = "LFU with decay 46.0%, LFU 44.0%, GDSF 43.0%, LRU 33.0%, FIFO 29.0%, Length 17.0%"
    assert expected in said and "Best possible there 52.0%" in said and "Ceiling without any limit 72.0%" in said


def test_lru_is_one_line_the_exact_one(results):
    """No second, straight line between LRU's replayed budgets: the line's points are those of its whole curve."""
    layers = charts.capacity_curve(results).spec["layer"]
    drawn = [layer for layer in layers if layer["mark"].get("description") == "LRU: line"]
    assert len(drawn) == 1 and len(results["lru_curve"]) > 1
    sizes = {point["capacity_tokens"] for point in drawn[0]["data"]["values"]}
    assert sizes <= {point["capacity_tokens"] for point in results["lru_curve"]} and len(sizes) > 1
    assert not [layer for layer in layers if layer["mark"]["type"] == "line" and "description" not in layer["mark"]]


def test_a_line_hidden_under_another_is_said(results):
    alike = copy.deepcopy(results)
    lru = {row["capacity_tokens"]: row["hit_tokens"] for row in alike["replay"] if row["policy"] == "lru"}
    for row in alike["replay"]:
        if row["policy"] in ("fifo", "length"):
            row["hit_tokens"] = lru[row["capacity_tokens"]]
    assert "FIFO and Length find what LRU finds." in charts.capacity_curve(alike).caption
    assert "finds what" not in charts.capacity_curve(results).caption


def test_the_budget_axis_is_marked_to_its_ends():
    # 16,000 to 885,000: 20k, 50k, 100k, 200k, 500k; between 110 and 180 only the drawing itself knows better.
    assert _ticks(16_000, 885_000) == {"values": [20_000, 50_000, 100_000, 200_000, 500_000]}
    assert _ticks(110, 180) == {"tickCount": 6}


def test_finding_of_the_curve(results):
    # 0.33 / 0.72 = 45.8 % of the ceiling; 0.46 - 0.33 = 13 points.
    finding = charts.capacity_curve(results).finding
    assert finding == "LRU reaches 45.8% of the ceiling at this budget; LFU with decay adds 13.0 pt"


def test_changes_are_relative_to_lru_in_money_or_in_points(results):
    # cost(0.33) = (66 x 0.30 + 124 x 3.75 + 10 x 3.00) = 514.8; cost(0.46) = 27.6 + 367.5 + 30 = 425.1 -> -17.4 %.
    priced = charts.policy_change(results)
    best = priced.rows[0]
    assert best["policy"] == "lfu_decay" and best["change"] == pytest.approx(425.1 / 514.8 - 1)
    assert best["low"] == pytest.approx(best["change"] - 8 / 514.8)
    unpriced = charts.policy_change(report_fixture.results(priced=False))
    assert unpriced.rows[0]["measure"] == "hit_token_ratio"
    assert unpriced.rows[0]["change"] == pytest.approx(0.13)


def test_an_interval_across_zero_is_too_close_to_call(results):
    close = copy.deepcopy(results)
    for row in close["replay"]:
        if row["interval"]:
            row["interval"]["cost_per_request"] = {"value": -0.001, "low": -0.009, "high": 0.002}
    assert charts.policy_change(close).finding.endswith("too close to call")


def test_miss_causes_add_up(results):
    figure = charts.miss_causes(results)
    row = next(r for r in results["replay"] if r["policy"] == "lru" and r["capacity_label"] == "actual")
    # 40M cold, 78M evicted, 6M expired at 3.75 and 10M below the minimum at 3.00 per million: 150 + 292.5 + 22.5 + 30.
    assert sum(line["tokens"] for line in figure.rows) == row["requests"] * 20_000 - row["hit_tokens"]
    assert figure.finding == "Of $495 paid for misses, 59% went to tokens evicted for room"


def test_miss_causes_without_prices_are_in_tokens():
    figure = charts.miss_causes(report_fixture.results(priced=False))
    assert all(line["cost"] is None for line in figure.rows)
    assert figure.finding == "Of 134M missed tokens, 58% were evicted for room"  # 78 of 134
    assert "Missed tokens" in figure.svg()


@pytest.mark.parametrize("count", [1, 2, 9, 20])
def test_legible_with_one_policy_and_with_twenty(count, results):
    hits = {"lru": (0.2, 0.3, 0.4)}
    hits |= {f"policy_{k}": (0.2 + k / 200, 0.3 + k / 200, 0.4 + k / 200) for k in range(1, count)}
    many = {**results, "replay": report_fixture.replay(hits), "decision": {**results["decision"], "policy": "lru"}}
    many["policies"] = [{"name": name, "title": name.replace("_", " ")} for name in hits]
    curve = charts.capacity_curve(many)
    marks = [layer["mark"] for layer in curve.spec["layer"] if layer["mark"]["type"] == "text"]
    assert len(marks) == min(count, 8) + 3  # the policies named, this budget, ceiling, best possible
    assert ("thin grey lines" in curve.caption) == (count > 8)
    change = charts.policy_change(many)
    assert (change is None) if count == 1 else (len(change.rows) == count - 1)


def test_a_long_curve_stays_small(results):
    points = [{"capacity_tokens": 100 * k, "hit_tokens": k, "hit_token_ratio": k / 1e5} for k in range(1, 50_001)]
    figure = charts.capacity_curve({**results, "lru_curve": points})
    assert len(figure.svg()) < 60_000
    assert len(figure.rows) < 300


def test_gap_curves_pass_through_their_medians():
    # The median of a log-normal is exp(mu), whatever sigma: half of the gaps are shorter.
    assert within(4.8, 1.3, math.exp(4.8)) == pytest.approx(0.5)
    assert within(2.3, 1.0, 300) == pytest.approx(0.99967, abs=2e-5)  # (ln 300 - 2.3) / 1 = 3.404 -> Phi = 0.99967


def test_gap_fits_skip_what_could_not_be_fitted(results):
    rows = copy.deepcopy(results["inter_turn"])
    rows[0] |= {"mu": None, "sigma": None}
    rows.append({**rows[2], "session_type": "odd", "sigma": 0.0})
    figure = charts.gap_fits({**results, "inter_turn": rows})
    assert "agent" not in figure.alt and "odd" not in figure.alt and "chat, person" in figure.alt


def test_hostile_words_from_a_log_stay_words(results):
    rows = copy.deepcopy(results["inter_turn"])
    for row in rows:
        row["session_type"] = '</text><script>alert(1)</script>"&\u202e' + "x" * 500
    svg = charts.gap_fits({**results, "inter_turn": rows}).svg()
    assert "<script" not in svg and "\u202e" not in svg and "x" * 40 not in svg


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_labels_keep_their_distance_and_order(wanted):
    placed = spread(wanted, 0.05, 0.0, 1.0)
    ranked = [placed[place] for place in sorted(range(len(wanted)), key=lambda k: (wanted[k], k))]
    assert all(later - earlier >= 0.05 - 1e-9 for earlier, later in itertools.pairwise(ranked))
    assert max(placed) <= 1 + 1e-9 and min(placed) >= -1e-9


def test_thin_keeps_both_ends():
    points = [{"k": k} for k in range(1000)]
    kept = thin(points, 10)
    assert len(kept) == 10 and kept[0] == points[0] and kept[-1] == points[-1]
    assert thin(points[:5], 10) == points[:5]


def test_every_known_policy_has_its_own_look():
    looks = [look_of(name) for name in _ORDER]
    assert len({(look.colour, look.dash) for look in looks}) == len(_ORDER)
    assert len({(look.colour, look.shape) for look in looks}) == len(_ORDER)
    assert len({(look.dash, look.shape) for look in looks}) == len(_ORDER)  # told apart in grey print
    assert set(_ORDER) == set(REGISTRY)
    assert look_of("my own policy") == look_of("my own policy")
    assert isinstance(look_of("my own policy"), Look)


def test_the_key_shows_each_line_as_it_is_drawn(results):
    """Beside each name stands a sample with the line's own dash and the mark of its points."""
    layers = charts.capacity_curve(results).spec["layer"]
    for policy in ("lru", "lfu", "gdsf", "lfu_decay"):
        title = next(row["title"] for row in results["policies"] if row["name"] == policy)
        mine = [layer["mark"] for layer in layers if layer["mark"].get("description", "").startswith(f"{title}: ")]
        drawn = {mark["type"]: mark for mark in mine if not mark["description"].endswith("key")}
        key = {mark["type"]: mark for mark in mine if mark["description"].endswith("key")}
        assert key["rule"]["strokeDash"] == drawn["line"]["strokeDash"] == list(look_of(policy).dash)
        assert key["point"]["shape"] == drawn["point"]["shape"] == look_of(policy).shape


def test_points_say_their_numbers(results):
    """What the report shows on hover is written by the kit: GDSF's cost at the budget against LRU's, with its band."""
    svg = charts.policy_change(results).svg()
    assert 'aria-label="LFU with decay −17.4% (−19.0% to −15.9%)"' in svg
    assert re.search(r'aria-label="top 5.00% of keys: [\d.]+% requests"', charts.concentration(results).svg())


def test_colours_are_seen_and_labels_read_on_white():
    assert all(contrast_on_white(colour) >= 2.9 for colour in COLOURS)  # graphical objects; dash and shape go with it
    assert all(contrast_on_white(TEXT_ON_WHITE.get(colour, colour)) >= 4.5 for colour in COLOURS)


def test_notebook_output_draws_offline_in_lab_and_stays_in_the_file(results):
    output = charts.capacity_curve(results)._repr_mimebundle_()
    assert set(output) == {"application/vnd.vegalite.v5+json", "image/svg+xml", "text/plain"}
    assert output["application/vnd.vegalite.v5+json"]["$schema"].endswith("/v5.json")
    assert "text/html" not in output  # JupyterLab would prefer it to its own Vega


def test_enable_gives_plain_altair_charts_the_same_output():
    before = alt.renderers.active, alt.theme.active, alt.data_transformers.active
    try:
        charts.enable()
        chart = alt.Chart(alt.Data(values=[{"x": 1}])).mark_point().encode(x="x:Q")
        with pytest.raises(ValueError, match="description"):
            chart._repr_mimebundle_()
        output = chart.properties(description="One point at 1.")._repr_mimebundle_()
        assert output["text/plain"] == "<figure: One point at 1.>"
    finally:
        alt.renderers.enable(before[0])
        alt.theme.enable(before[1])
        alt.data_transformers.enable(before[2])
