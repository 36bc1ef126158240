"""Time to the next turn: hand-worked gaps, the closed-form fit, recovery on simulated gaps, and the public traces."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest, lognorm

from kit import turns
from kit.turns.goodness import ks_distance
from kit.turns.lognormal import plain
from tests.conftest import shared_case, shared_data
from tests.hand_log import hand_log


def test_gaps_on_both_clocks_by_hand() -> None:
    # Session s: starts 0, 10, 40, each answered in 4 s. Start to start 10, 30; end to start 6, 26. The last turn
    # (start 40, end 44) stays open; the log ends with the request at 100 (session t, its only one: nothing watched).
    rows = [{"ts": t, "ts_end": t + 4, "session_id": "s", "trigger": "tool"} for t in (0, 10, 40)]
    rows += [{"ts": 100, "ts_end": 104, "session_id": "t", "trigger": "person"}]
    found = {(row["session_type"], row["trigger"], row["clock"]): row for row in turns.inter_turn(hand_log(rows))}
    assert found["agent", "tool", "start_to_start"]["median_seconds"] == 20.0
    assert found["agent", "tool", "end_to_start"]["median_seconds"] == 16.0
    assert found["agent", "tool", "start_to_start"]["n"] == 2
    assert found["agent", "tool", "start_to_start"]["censored"] == 1
    assert found["agent", "tool", "start_to_start"]["mu"] is None  # below 8 gaps no curve is fitted
    assert ("single", "all", "start_to_start") not in found  # no gap, no row


def test_ties_and_clock_steps_are_counted_not_fitted() -> None:
    rows = [{"ts": t, "session_id": "s"} for t in (0, 5, 5, 9)]
    row = turns.inter_turn(hand_log(rows))[0]
    assert (row["n"], row["zeros"], row["negative"]) == (2, 1, 0)
    rows = [{"ts": t, "ts_end": e, "session_id": "s"} for t, e in ((0, 7), (5, 6), (9, 10))]
    idle = next(row for row in turns.inter_turn(hand_log(rows)) if row["clock"] == "end_to_start")
    assert (idle["n"], idle["negative"]) == (1, 1)  # 5 - 7 is negative (streams overlap), 9 - 6 = 3


def test_chains_of_one_session_do_not_mix() -> None:
    rows = [{"ts": t, "session_id": "s", "chain_id": c} for t, c in ((0, "a"), (1, "b"), (10, "a"), (21, "b"))]
    assert sorted(turns.batch(turns.read_gaps(hand_log(rows))).seconds) == [10.0, 20.0]


def test_case_35_location_is_fixed_at_zero() -> None:
    folder = shared_case("35-lognormal-fit-with-free-loc")
    gaps = np.array([float(row["gap_s"]) for row in csv.DictReader((folder / "gaps.csv").open())])
    expected = json.loads((folder / "expected.json").read_text())
    mu, sigma = plain(gaps) or (0.0, 0.0)
    assert (len(gaps), mu, sigma) == (expected["n"], pytest.approx(expected["mu"]), pytest.approx(expected["sigma"]))
    shape, _, scale = lognorm.fit(gaps, floc=0)
    assert (mu, sigma) == (pytest.approx(np.log(scale), abs=1e-4), pytest.approx(shape, abs=1e-4))
    assert np.exp(mu) == pytest.approx(expected["median_s"])


def test_no_curve_below_eight_gaps_or_without_spread() -> None:
    assert plain(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])) is None
    assert plain(np.full(20, 5.0)) is None


def test_ks_distance_equals_scipy() -> None:
    x = np.exp(np.random.default_rng(1).normal(2, 1, 300))
    assert ks_distance(x, 2.1, 0.9) == pytest.approx(kstest(np.log(x), "norm", args=(2.1, 0.9)).statistic)


@cache
def claude_rows(name: str) -> list[dict[str, Any]]:
    """The agent usage layout as rows: only times, sessions, chains and triggers."""
    kinds = {"user": "person", "meta": "person", "tool_result": "tool"}
    zero = datetime.fromisoformat("2026-03-02T00:00:00+00:00").timestamp()
    entries = sorted(csv.DictReader(shared_data(name).open()), key=lambda entry: entry["ts_start"])
    return [
        {
            "ts": datetime.fromisoformat(entry["ts_start"]).timestamp() - zero,
            "ts_end": datetime.fromisoformat(entry["ts_last"]).timestamp() - zero,
            "session_id": entry["session_id"],
            "chain_id": f"{entry['session_id']} {entry['agent_id']}",
            "trigger": kinds.get(entry["trigger"], "other"),
        }
        for entry in entries
    ]


def test_six_weeks_of_agents_known_figures() -> None:
    rows = turns.inter_turn(hand_log(claude_rows("claude_agents_2026q1.csv"), identity="chain"))
    found = {r["trigger"]: r for r in rows if r["session_type"] == "all" and r["clock"] == "start_to_start"}
    tool, person, every = found["tool"], found["person"], found["all"]
    assert (tool["n"], person["n"]) == (18_826, 1_643)
    assert (round(tool["median_seconds"], 1), round(person["median_seconds"])) == (6.3, 134)
    assert [round(tool[k], 2) for k in ("mu", "sigma")] == [2.09, 0.97]
    assert [round(person[k], 2) for k in ("mu", "sigma")] == [5.02, 1.58]
    assert [round(every[k], 2) for k in ("mu", "sigma")] == [2.33, 1.31]
    assert [round(row["ks"], 3) for row in (tool, person, every)] == [0.152, 0.059, 0.186]
