"""Time to the next turn: hand-worked gaps, the closed-form fit, recovery on simulated gaps, and the public traces."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import anderson, expon, gamma, kstest, lognorm, lomax, weibull_min

from kit import sample, turns
from kit.log import load
from kit.turns.families import compare
from kit.turns.goodness import anderson_darling, incidence, ks_distance, p_values
from kit.turns.lognormal import plain
from kit.turns.redraw import block_sums, fit_redrawn, span
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


def made(
    seconds: np.ndarray[Any, Any], watched: np.ndarray[Any, Any], kind: np.ndarray[Any, Any] | None = None
) -> turns.Batch:
    """A batch of simulated turns, each its own session: a gap longer than it was watched is an open turn."""
    seen, number = seconds <= watched, np.arange(len(seconds), dtype=np.int32)
    kinds = np.zeros(len(seconds), dtype=np.int32) if kind is None else kind.astype(np.int32)
    return turns.Batch(
        session_type="chat",
        clock="start_to_start",
        seconds=seconds[seen],
        kind=kinds[seen],
        session=number[seen],
        day=number[seen],
        tokens=number[seen].astype(np.int64),
        open_seconds=watched[~seen],
        open_session=number[~seen],
        zero_kind=kinds[:0],
        zero_session=number[:0],
        tick_seconds=1e-6,
        negative=np.zeros(3, dtype=np.int64),
    )


def recovered(mu: float, sigma: float, watch: float | None, cured: bool, seeds: int = 200) -> tuple[Any, Any, Any]:
    """Mean estimates, share of seeds whose 95 % interval holds the truth, mean estimates without the open turns."""
    found, covered, dropped = [], [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        x = np.exp(rng.normal(mu, sigma, 400))
        x = np.where(rng.random(400) < 0.6, x, np.inf) if cured else x
        simulated = made(x, rng.uniform(0, 7200, 400) if watch is None else np.full(400, watch))
        one, many = fit_redrawn(block_sums(simulated), True, replicates=60, seed=seed, cured=cured)
        spans = [span(part) or {} for part in (many.mu, many.sigma, many.continues)]
        truth = (mu, sigma, 0.6 if cured else 1.0)
        covered.append([edge["low"] <= true <= edge["high"] for edge, true in zip(spans, truth, strict=True)])
        found.append([one.mu[0, 0], one.sigma[0, 0], one.continues[0, 0]])
        dropped.append(plain(simulated.seconds))
    return np.mean(found, axis=0), np.mean(covered, axis=0), np.mean(dropped, axis=0)


@pytest.mark.parametrize(("mu", "sigma", "watch"), [(4.82, 1.25, 300.0), (4.50, 1.30, 199.6)])
def test_censored_gaps_recover_the_truth_and_dropping_them_does_not(mu: float, sigma: float, watch: float) -> None:
    # ln 300 is 0.707 deviations above 4.82: 24 % are still open; ln 199.6 is 0.613 above 4.50: 27 %.
    found, covered, dropped = recovered(mu, sigma, watch, cured=False)
    assert found[:2] == pytest.approx([mu, sigma], abs=0.02)
    assert (covered[:2] >= 0.90).all()  # 95 % nominal; 200 seeds: 0.95 +- 0.03
    assert dropped[0] < mu - 0.4
    assert dropped[1] < sigma - 0.2


def test_turns_that_never_come_are_told_from_open_ones() -> None:
    # 40 % of turns end their session for good; the rest are watched for up to two hours.
    found, covered, _ = recovered(4.82, 1.25, None, cured=True)
    assert found == pytest.approx([4.82, 1.25, 0.60], abs=0.02)
    assert (covered >= 0.90).all()
    rng = np.random.default_rng(1)
    x = np.where(rng.random(5000) < 0.6, np.exp(rng.normal(4.82, 1.25, 5000)), np.inf)
    simulated = made(x, rng.uniform(0, 7200, 5000))
    without, _ = fit_redrawn(block_sums(simulated), True, replicates=5, cured=False)
    assert without.mu[0, 0] > 6.0  # taking every ended session for a very long gap is far off


def test_kinds_that_compete_for_one_open_turn_are_fitted_together() -> None:
    # 70 % tool turns (median 8 s), 20 % person turns (median 150 s), 10 % never: all watched for up to ten minutes.
    rng = np.random.default_rng(7)
    kind = rng.choice(3, size=20_000, p=[0.2, 0.7, 0.1])  # person, tool, never
    x = np.exp(np.where(kind == 0, rng.normal(5, 1.5, 20_000), rng.normal(2, 1, 20_000)))
    x = np.where(kind == 2, np.inf, x)
    one, _ = fit_redrawn(block_sums(made(x, rng.uniform(0, 600, 20_000), np.minimum(kind, 1))), False, replicates=5)
    assert one.mu[0, :2] == pytest.approx([5, 2], abs=0.1)
    assert one.sigma[0, :2] == pytest.approx([1.5, 1], abs=0.06)
    assert one.continues[0, :2] == pytest.approx([0.2, 0.7], abs=0.015)


def test_a_coarse_clock_does_not_bias_the_fit() -> None:
    # Stamps cut to whole seconds: gaps of 0 appear (3 %); leaving them out shifts mu by 0.1, sigma by -0.1.
    rng = np.random.default_rng(6)
    ends = np.cumsum(np.exp(rng.normal(1.6, 1.2, (400, 60))), axis=1) + rng.random((400, 1))
    rows = [{"ts": float(t), "session_id": f"s{n}"} for n, starts in enumerate(np.floor(ends)) for t in starts]
    found = turns.inter_turn(hand_log(rows, has_clock=False), replicates=20)[0]
    assert (found["mu"], found["sigma"]) == (pytest.approx(1.6, abs=0.03), pytest.approx(1.2, abs=0.03))
    assert found["mu_observed"] > 1.67
    assert found["zeros"] + found["n"] == 400 * 59
    assert found["zeros"] > 500
    assert turns.diagnose(hand_log(rows, has_clock=False))["counts"]["start_to_start"]["tick_seconds"] == 1.0


def test_incidence_by_hand() -> None:
    # Gaps 1 (tool), 2 (person), 4 (tool); one turn open at 3. At risk 4, 3, then 1 at time 4.
    # tool: 1/4, then waiting 3/4 x 2/3 = 1/2 times 1/1 = 1/2 more -> 3/4. person: waiting 3/4 times 1/3 = 1/4.
    seconds, tool = np.array([1.0, 2.0, 4.0]), np.array([True, False, True])
    times, come = incidence(seconds, tool, np.array([3.0]))
    assert (times.tolist(), come.tolist()) == ([1.0, 2.0, 4.0], pytest.approx([0.25, 0.25, 0.75]))
    assert incidence(seconds, ~tool, np.array([3.0]))[1] == pytest.approx([0.0, 0.25, 0.25])
    # One more turn, answered by a tool within the clock's step: 1/5 at once, the other four as before.
    assert incidence(seconds, tool, np.array([3.0]), 1, 1)[1] == pytest.approx(
        [0.2 + 0.8 * p for p in (0.25, 0.25, 0.75)]
    )


def test_anderson_darling_equals_scipy() -> None:
    y = np.random.default_rng(4).normal(3, 2, 150)
    fitted = (y - y.mean()) / y.std(ddof=1)
    assert anderson_darling(fitted) == pytest.approx(anderson(y, "norm", method="interpolate").statistic)


def test_bootstrap_p_rejects_at_the_nominal_rate_and_the_naive_one_does_not() -> None:
    rng = np.random.default_rng(11)
    logs = rng.normal(2.0, 1.3, (400, 60))
    told = [p_values(np.exp(row)) for row in logs]
    for name in ("ks_p", "ad_p"):
        assert 0.02 <= np.mean([row[name] < 0.05 for row in told]) <= 0.085  # 5 % +- 3 deviations of 1.1 %
    naive = [kstest(row, "norm", args=(row.mean(), row.std())).pvalue < 0.05 for row in logs]
    assert np.mean(naive) < 0.01
    assert p_values(rng.exponential(60, 400))["ad_p"] == 0.001


def test_every_family_reaches_the_likelihood_of_scipy() -> None:
    x = np.exp(np.random.default_rng(2).normal(2.28, 1.34, 500))
    peers = {"lognormal": lognorm, "exponential": expon, "weibull": weibull_min, "gamma": gamma, "lomax": lomax}
    found = compare(x, np.array([]))
    for name, peer in peers.items():
        parameters = 1 if name == "exponential" else 2
        best = 2 * parameters - 2 * peer.logpdf(x, *peer.fit(x, floc=0)).sum()
        assert found["aic"][name] == pytest.approx(best, abs=0.05), name
    assert found["best"] == "lognormal"
    assert sum(found["aic_weights"].values()) == pytest.approx(1.0)


def test_a_mixture_is_found_where_there_is_one_and_many_gaps_are_compressed() -> None:
    rng = np.random.default_rng(5)
    x = np.exp(np.concatenate([rng.normal(1, 0.5, 20_000), rng.normal(5, 1, 5_000)]))
    found = compare(x, np.array([1e6] * 50))
    assert found["best"] == "lognormal_mixture"
    exact = 4 + 2 * (len(x) * (np.log(np.log(x).std()) + 0.5 * np.log(2 * np.pi) + 0.5) + np.log(x).sum())
    exact += 2 - 2 * (len(x) * np.log(25_000 / 25_050) + 50 * np.log(50 / 25_050))  # 50 turns never followed
    assert found["aic"]["lognormal"] == pytest.approx(exact, abs=1.0)


def test_pooled_sessions_recover_their_means_better_than_alone() -> None:
    errors, alone, covered = [], [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        count = rng.integers(5, 30, 60).astype(float)
        true, deviation = rng.normal(3, 0.4, 60), np.sqrt(1.2**2 * 12 / rng.chisquare(12, 60))
        mean = true + deviation / np.sqrt(count) * rng.normal(size=60)
        found = turns.pool(count, mean, deviation**2 * rng.chisquare(count - 1) / (count - 1))
        errors.append(np.mean((found.mu - true) ** 2))
        alone.append(np.mean((mean - true) ** 2))
        covered.append(np.mean(np.abs(found.mu - true) <= 1.96 * found.mu_error))
    assert np.mean(covered) == pytest.approx(0.95, abs=0.02)
    assert np.mean(errors) < 0.8 * np.mean(alone)


def test_pooling_of_alike_and_of_very_different_sessions() -> None:
    # Equal means and variances: chance alone would spread more, so everything is pulled to the type.
    alike = turns.pool(np.full(5, 10.0), np.full(5, 2.0), np.full(5, 1.0))
    assert alike.mu_shrinkage.tolist() == alike.sigma_shrinkage.tolist() == [1.0] * 5
    assert alike.between == 0.0
    # Means 0 and 100 with errors of 1/1000: the sessions keep their own.
    apart = turns.pool(np.full(4, 1000.0), np.array([0.0, 100, 0, 100]), np.full(4, 1.0))
    assert apart.mu == pytest.approx([0, 100, 0, 100], abs=1e-3)


def test_sessions_below_five_gaps_get_no_row_and_below_eight_none_alone() -> None:
    rng = np.random.default_rng(9)
    rows = [
        {"ts": t, "session_id": f"s{n}"}
        for n, gaps in enumerate((4, 5, 6, 8, 20))
        for t in np.concatenate([[0.0], np.cumsum(np.exp(rng.normal(2, 1, gaps)))])
    ]
    frame = turns.per_session(hand_log(rows))
    assert frame["gaps"].to_list() == [5, 6, 8, 20]
    assert frame["mu_alone"].is_null().to_list() == [True, True, False, False]
    assert frame["session_type"].to_list() == ["chat"] * 4
    summary = turns.session_summary(frame)
    assert (summary["types"][0]["fitted_sessions"], summary["types"][0]["stand_alone_sessions"]) == (4, 2)
    assert [row["rank"] for row in summary["sessions"]] == [1, 2, 3, 4]
    assert [row["mu"] for row in summary["sessions"]] == sorted(frame["mu"])


def test_ttl_outlook_by_hand() -> None:
    # Gaps 100 and 400 s; prompts 1000, 1200, 900: at stake min(1000, 1200) = 1000, then min(1200, 900) = 900.
    # With 300 s the second comes too late: 900 tokens rewritten, 450 a turn, 900 of 1900. One turn of three is last.
    rows = [{"ts": t, "session_id": "s", "input_tokens": n} for t, n in ((0, 1000), (100, 1200), (500, 900))]
    rows.append({"ts": 9000, "session_id": "t", "input_tokens": 5})
    found = next(row for row in turns.ttl_outlook(hand_log(rows)) if row["ttl_seconds"] == 300)
    assert (found["n"], found["p_within"], found["rewrite_tokens"]) == (2, 0.5, 900)
    assert (found["rewrite_tokens_per_turn"], found["rewrite_token_share"]) == (450, pytest.approx(900 / 1900))
    assert found["p_next_within"] == pytest.approx(1 / 3)
    assert found["interval"] is None  # one session cannot speak for others


def test_a_day_that_leaves_the_week_is_flagged() -> None:
    rng = np.random.default_rng(3)
    rows = []
    for day in range(5):
        for session in range(30):
            steps = np.exp(rng.normal(5.0 if day == 4 else 2.0, 0.8, 6))
            starts = day * 86_400 + session * 60 + np.concatenate([[0.0], np.cumsum(steps)])
            rows += [{"ts": t, "session_id": f"{day}-{session}"} for t in starts]
    found = [row for row in turns.drift(hand_log(sorted(rows, key=lambda row: row["ts"]))) if row["trigger"] == "all"]
    assert [row["left_the_week"] for row in found][4] is True
    assert found[4]["day"] == "2026-03-06"
    assert sum(row["n"] for row in found) == 5 * 30 * 6


def test_diagnosis_is_plain_finite_json_and_the_same_twice() -> None:
    rng = np.random.default_rng(8)
    starts = [np.cumsum(np.exp(rng.normal(2, 1, 12))) for _ in range(8)]
    rows = [{"ts": t, "ts_end": t + 0.5, "session_id": f"s{n}"} for n, part in enumerate(starts) for t in part]
    log = hand_log(sorted(rows, key=lambda row: row["ts"]))
    first = json.dumps(turns.diagnose(log), allow_nan=False)
    assert first == json.dumps(turns.diagnose(log), allow_nan=False)
    silent = turns.diagnose(hand_log([{"ts": 0}, {"ts": 1}]))
    assert silent["inter_turn"] == []
    assert "cannot be told" in silent["cannot_tell"]


def test_six_weeks_of_agents_known_figures() -> None:
    rows = turns.inter_turn(load([shared_data("claude_agents_2026q1.csv")]))
    found = {r["trigger"]: r for r in rows if r["session_type"] == "all" and r["clock"] == "start_to_start"}
    tool, person, every = found["tool"], found["person"], found["all"]
    assert (tool["n"], person["n"]) == (18_826, 1_643)
    assert (round(tool["median_seconds"], 1), round(person["median_seconds"])) == (6.3, 134)
    assert [round(tool[k], 2) for k in ("mu", "sigma")] == [2.09, 0.97]
    assert [round(person[k], 2) for k in ("mu", "sigma")] == [5.02, 1.58]
    assert [round(every[k], 2) for k in ("mu", "sigma")] == [2.33, 1.31]
    assert [round(row["ks"], 3) for row in (tool, person, every)] == [0.152, 0.059, 0.186]
    assert [row["mu"] - row["mu_observed"] for row in (tool, every)] == pytest.approx([0, 0], abs=1e-6)
    assert all(row["best"] == "lognormal_mixture" for row in (tool, person, every))  # no single curve fits agents
    assert found["tool"]["ks_p"] == 0.001


def test_a_log_without_times_has_no_gaps_and_one_without_a_common_clock_no_open_turns() -> None:
    made_up = turns.diagnose(load([shared_data("taubench_gpt4o_airline.jsonl")]))
    assert made_up["inter_turn"] == []
    assert "no times" in made_up["cannot_tell"]
    rows = [{"ts": t, "session_id": s} for s in "ab" for t in np.cumsum(np.exp(np.linspace(1, 3, 12)))]
    relative = turns.diagnose(hand_log(rows, has_clock=False))
    assert [row["censored"] for row in relative["inter_turn"]] == [0] * 4
    assert all(row["continues"] is None and row["mu"] is not None for row in relative["inter_turn"])
    assert relative["ttl_outlook"][0]["p_next_within"] is None
    assert relative["drift"] == []
    assert "relative to each session" in relative["note"]


def test_the_sample_week_gives_back_the_gaps_it_was_drawn_with(tmp_path: Path) -> None:
    # Drawn: end of the answer to the next call, chat after a person 4.4 and 1.2, agent after a tool 1.6 and 1.2.
    week = sample.sample_week(seed=1, requests=20_000)
    rows = turns.inter_turn(load([sample.write(week, tmp_path / "week.parquet")]), replicates=100)
    found = {(row["session_type"], row["trigger"]): row for row in rows if row["clock"] == "end_to_start"}
    for (kind, trigger), gap in sample.answers(week).gaps.items():
        row = found[kind, trigger]
        error = gap.sigma / np.sqrt(row["n"])
        assert row["mu"] == pytest.approx(gap.mu, abs=3 * error), (kind, trigger)
        assert row["sigma"] == pytest.approx(gap.sigma, abs=3 * error), (kind, trigger)
        assert row["ks"] < 0.04
