"""The whole analysis on real weeks: the figures everybody can check, and the laws every row has to keep."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import polars as pl
import pytest

from kit import analysis, decide, report
from kit.analysis import Analysis, ParameterError, Parameters, open_analysis
from kit.analysis.parameters import from_settings, from_values, known_names
from kit.analysis.store import RESULTS_JSON, TABLES, clean, tables_of
from kit.log import LogError
from tests.conftest import PROJECT, shared_data

SCHEMA = json.loads((PROJECT / "kit" / "results.schema.json").read_text())
CAUSES = ("cold", "evicted", "expired", "lost", "below_minimum", "in_flight", "oversize")


def refuse(text: str) -> None:
    raise AssertionError(f"{text} is not JSON")


def strict(path: Path) -> Any:
    """A JSON file read by a strict parser: NaN and Infinity are refused."""
    return json.loads(path.read_text(), parse_constant=refuse)


@pytest.fixture(scope="module")
def claude(tmp_path_factory) -> Analysis:
    log = shared_data("claude_agents_week.csv")
    return analysis.analyse([str(log)], Parameters(), tmp_path_factory.mktemp("claude"))


@pytest.fixture(scope="module")
def mooncake(tmp_path_factory) -> Analysis:
    log = shared_data("mooncake_conversation.jsonl")
    return analysis.analyse([str(log)], Parameters(), tmp_path_factory.mktemp("mooncake"))


@pytest.fixture(scope="module")
def flat(tmp_path_factory) -> Analysis:
    """A log of 400 requests, 10 s apart, that reads 20 flat keys in turn: no provider, so an engine without expiry."""
    folder = tmp_path_factory.mktemp("flat")
    return analysis.analyse([str(turns_of_keys(folder))], Parameters(block_tokens=100), folder / "out_of_it")


def turns_of_keys(folder: Path, requests: int = 400, keys: int = 20) -> Path:
    folder.joinpath("out_of_it").mkdir(exist_ok=True)
    rows = [f"{10 * n},k{n % keys},1000,1200" for n in range(requests)]
    path = folder / "turns.csv"
    path.write_text("\n".join(["ts,prefix_key,prefix_tokens,input_tokens", *rows]) + "\n")
    return path


def holds(row: dict[str, Any]) -> None:
    """The laws of one replay row, in tokens."""
    assert row["hit_tokens"] + sum(row["missed"].values()) == row["input_tokens"]
    billed = row["read_tokens"] + row["write_tokens"] + row["write_long_tokens"] + row["uncached_tokens"]
    assert billed == row["input_tokens"]
    assert row["read_tokens"] == row["hit_tokens"]
    assert 0 <= row["hits"] <= row["requests"]


def test_claude_week_is_read_whole(claude: Analysis) -> None:
    log, told = claude.results["log"], claude.results["provider"]["reported"]
    assert (log["requests"], log["sessions"], log["rejected"]) == (5_964, 88, {})
    assert told["read_tokens"] == 524_851_782
    assert told["write_tokens"] == 4_890_078
    assert told["write_long_tokens"] == 16_418_636
    assert told["uncached_tokens"] == 230_418


def test_claude_week_model_is_near_what_was_reported(claude: Analysis) -> None:
    """Reads within 2 %, everything else within 10 %: the residual is named by cause and adds up."""
    told, model = claude.results["provider"]["reported"], claude.results["provider"]["simulated"]
    assert model["read_tokens"] == pytest.approx(told["read_tokens"], rel=0.02)
    rest = sum(told[name] for name in ("write_tokens", "write_long_tokens", "uncached_tokens"))
    assert model["write_tokens"] + model["write_long_tokens"] + model["uncached_tokens"] == pytest.approx(rest, rel=0.1)
    total = claude.results["provider"]["reconciliation"]["total"]
    causes = claude.results["provider"]["reconciliation"]["causes"]
    difference = total["simulated"]["read_tokens"] - total["reported"]["read_tokens"]
    assert sum(row["read_tokens"] for row in causes) == pytest.approx(difference, abs=len(causes))


def test_observed_setting_is_replayed_where_the_log_reports_cached_tokens(claude: Analysis, mooncake: Analysis) -> None:
    assert {row["assumption"] for row in claude.results["replay"]} == {"neutral", "pessimistic", "observed"}
    assert {row["assumption"] for row in mooncake.results["replay"]} == {"neutral", "pessimistic"}


def test_mooncake_hour_is_too_short_and_says_what_it_would_say(mooncake: Analysis) -> None:
    decision = mooncake.results["decision"]
    assert decision["rule"] == 0
    assert decision["provisional"]["rule"] > 0
    assert decision["trail"][0]["outcome"] == "fires"
    assert mooncake.results["log"]["requests"] == 12_031


def test_mooncake_ceiling_is_the_published_one(mooncake: Analysis) -> None:
    """54,063,104 of 144,793,823 input tokens in full blocks of 512: 0.373380."""
    ceiling = mooncake.results["bounds"]["ceiling"]
    assert ceiling["hit_tokens"] == 54_063_104
    assert ceiling["hit_token_ratio"] == pytest.approx(54_063_104 / 144_793_823)
    assert mooncake.results["lru_curve"][-1]["hit_tokens"] == 54_063_104


def test_engine_mode_has_no_money(mooncake: Analysis) -> None:
    assert mooncake.results["settings"]["tier_mode"] == "engine"
    assert mooncake.results["settings"]["ttl_seconds"] is None
    assert all(row["cost"] is None and row["cost_per_request"] is None for row in mooncake.results["replay"])
    assert mooncake.results["money"]["currency"] is None
    assert mooncake.results["decision"]["saving_per_month"] is None


@pytest.mark.parametrize("week", ["claude", "mooncake", "flat"])
def test_every_row_keeps_the_laws(week: str, request: pytest.FixtureRequest) -> None:
    results = request.getfixturevalue(week).results
    assert len(results["replay"]) >= 8 * 3 * 2 * 2  # policies x budgets x assumptions x windows
    for row in results["replay"]:
        holds(row)
    best = {bound["capacity_tokens"]: bound["hit_tokens"] for bound in results["bounds"]["optimal"]}
    for row in results["replay"]:
        if row["assumption"] == "neutral" and row["window"] == "cold":
            assert row["hit_tokens"] <= best[row["capacity_tokens"]] <= results["bounds"]["ceiling"]["hit_tokens"]


@pytest.mark.parametrize("week", ["claude", "mooncake", "flat"])
def test_results_validate_and_are_what_was_stored(week: str, request: pytest.FixtureRequest) -> None:
    found = request.getfixturevalue(week)
    written = strict(found.folder / RESULTS_JSON)
    jsonschema.Draft202012Validator(SCHEMA).validate(written)
    assert written == found.results
    assert json.loads(found.con.sql("select results_json from result").fetchall()[0][0]) == written


@pytest.mark.parametrize("week", ["claude", "mooncake", "flat"])
def test_the_verdict_is_in_the_report_word_for_word(week: str, request: pytest.FixtureRequest) -> None:
    results = request.getfixturevalue(week).results
    assert results["decision"]["sentence"] in report.render(results)


def test_days_add_up(claude: Analysis) -> None:
    days = claude.results["days"]
    lru = next(
        row
        for row in claude.results["replay"]
        if (row["policy"], row["capacity_label"], row["assumption"], row["window"])
        == ("lru", "actual", "neutral", "cold")
    )
    assert len(days) == 7
    assert sum(day["requests"] for day in days) == 5_964
    assert sum(day["input_tokens"] for day in days) == lru["input_tokens"]
    assert sum(day["hit_tokens_lru"] for day in days) == lru["hit_tokens"]


def test_bill_lines_add_up_to_the_cost(claude: Analysis) -> None:
    for row in claude.results["replay"]:
        if (row["capacity_label"], row["assumption"], row["window"]) == ("actual", "neutral", "cold"):
            lines = [line for line in claude.results["bill"] if line["policy"] == row["policy"]]
            assert sum(line["tokens"] for line in lines) == row["input_tokens"]
            assert sum(line["cost"] for line in lines) == pytest.approx(row["cost"], rel=1e-8)


def test_every_step_is_a_table(claude: Analysis) -> None:
    tables = {name for (name,) in claude.con.sql("select table_name from information_schema.tables").fetchall()}
    assert set(TABLES) <= tables
    for name, frame in tables_of(claude.results).items():
        stored = pl.DataFrame(claude.con.sql(f'from "{name}"'))
        assert stored.shape == frame.shape
        if frame.height:
            assert set(TABLES[name][1].split()) <= set(frame.columns), name
        assert (claude.folder / f"{name}.csv").exists()


def test_stored_file_refuses_a_writer_of_another_kind(claude: Analysis) -> None:
    with pytest.raises(duckdb.Error):
        claude.con.execute("create table mine (x INTEGER)")


def test_flat_log_by_hand(flat: Analysis) -> None:
    """20 keys of 1,000 tokens (10 blocks of 100) in turn, 400 requests of 1,200 tokens.

    Without limit every request but the first 20 hits 1,000 tokens: 380 x 1,000 = 380,000 of 480,000.
    Twice the longest prefix is 2,000; LRU's knee is all 20 keys: at 20,000 everything hits, at 10,000 nothing does.
    """
    assert flat.results["bounds"]["ceiling"]["hit_tokens"] == 380_000
    assert flat.results["settings"]["capacity_tokens"] == 20_000
    lru = {
        row["capacity_label"]: row["hit_tokens"]
        for row in flat.results["replay"]
        if (row["policy"], row["assumption"], row["window"]) == ("lru", "neutral", "cold")
    }
    assert lru == {"half": 0, "actual": 380_000, "double": 380_000}
    assert flat.results["log"]["identity"] == "flat"


def test_two_runs_are_equal(flat: Analysis, tmp_path: Path) -> None:
    folder = tmp_path / "again"
    folder.mkdir()
    again = analysis.analyse([str(turns_of_keys(folder))], Parameters(block_tokens=100), folder / "out_of_it")
    assert (again.folder / RESULTS_JSON).read_bytes() == (flat.folder / RESULTS_JSON).read_bytes()


def test_a_threshold_changes_the_verdict(mooncake: Analysis, flat: Analysis, tmp_path: Path) -> None:
    """400 requests on one day: row 0 fires until its thresholds are lowered."""
    assert flat.results["decision"]["rule"] == 0
    settings = ["minimum_days=1", "minimum_requests=100", "minimum_reused_keys=10", "block_tokens=100"]
    lower = analysis.analyse([str(turns_of_keys(tmp_path))], from_settings(settings), tmp_path / "out_of_it")
    assert lower.results["decision"]["rule"] == 3  # LRU reaches the ceiling
    assert lower.results["decision"]["sentence"] != flat.results["decision"]["sentence"]
    assert lower.results["parameters"]["thresholds"] == {
        "minimum_days": 1.0, "minimum_requests": 100.0, "minimum_reused_keys": 10.0,
    }  # fmt: skip


def test_a_log_without_prefix_identity_says_so(tmp_path: Path) -> None:
    log = tmp_path / "lengths.csv"
    log.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "2023-11-16 18:15:46.6805900,100,10\n" * 3)
    done = analysis.analyse([str(log)], Parameters(), tmp_path)
    assert done.results["replay"] == []
    assert done.results["bounds"]["ceiling"]["hit_token_ratio"] is None
    assert done.results["decision"]["rule"] == 0
    assert "missing" in done.results["decision"]["sentence"]
    jsonschema.Draft202012Validator(SCHEMA).validate(strict(tmp_path / RESULTS_JSON))


@pytest.mark.parametrize(
    ("name", "content"),
    [("absent.csv", None), ("empty.csv", ""), ("other.csv", "colour,size\nred,3\n")],
)
def test_a_log_that_cannot_be_read_is_one_line(tmp_path: Path, name: str, content: str | None) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(LogError) as caught:
        analysis.analyse([str(tmp_path / name)], Parameters(), tmp_path)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_a_finished_analysis_is_opened_not_run(tmp_path: Path) -> None:
    log = turns_of_keys(tmp_path)
    first = open_analysis(str(log), tmp_path / "reports", block_tokens=100)
    first.con.close()
    stamp = (first.folder / RESULTS_JSON).stat().st_mtime_ns
    again = open_analysis(str(log), tmp_path / "reports", block_tokens=100)
    assert again.folder == first.folder
    assert (again.folder / RESULTS_JSON).stat().st_mtime_ns == stamp
    other = open_analysis(str(log), tmp_path / "reports", block_tokens=200)
    assert other.folder != first.folder  # other parameters never overwrite
    assert other.results["settings"]["block_tokens"] == 200
    assert [path.name for path in (tmp_path / "reports").glob(".*")] == []


def test_a_policy_of_ones_own(flat: Analysis) -> None:
    """LRU by name at the stored budget gives what the stored row says."""
    tally = flat.replay("lru")
    assert tally.total("cold")["hit_tokens"] == 380_000


# Parameters: case 34 (a NaN would make the notebook file invalid JSON), types, names, ranges.


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers_are_refused_by_name(value: float) -> None:
    with pytest.raises(ParameterError, match="ttl_seconds must be a finite number"):
        from_values({"ttl_seconds": value})
    with pytest.raises(ParameterError, match=r"thresholds\[minimum_days\] must be a finite number"):
        from_values({"thresholds": {"minimum_days": value}})


def test_a_label_that_spells_nan_is_text() -> None:
    assert from_values({"model": "NaN"}).model == "NaN"
    assert from_values({"capacity_tokens": None}).capacity_tokens is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ttl_seconds=nan", "finite"),
        ("capacity_tokens=many", "capacity_tokens must be a whole number or none, got 'many'"),
        ("capacity_tokens=-5", "above 0"),
        ("loss=1.5", "between 0 and 1"),
        ("waive_row_0=perhaps", "true or false"),
        ("tier_mode=mirrored", "mirror, absorb, engine"),
        ("block_tokens", "name=value"),
        ("blok_tokens=16", "did you mean block_tokens"),
        ("minimum_days=inf", "finite"),
    ],
)
def test_a_setting_that_cannot_be_used_says_what_is_accepted(text: str, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        from_settings([text])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ParameterError) as caught:
        from_settings(["nosuch=1"])
    assert all(name in str(caught.value) for name in known_names())


def test_settings_are_typed() -> None:
    made = from_settings(
        [
            "capacity_tokens=400_000",
            "ttl_seconds=none",
            "loss=0",
            "waive_row_0=true",
            "policies=lru, lfu",
            "gain_points=0",
        ]
    )
    assert (made.capacity_tokens, made.ttl_seconds, made.loss, made.waive_row_0) == (400_000, None, 0.0, True)
    assert made.policy_names == ("lru", "lfu")
    assert made.thresholds == {"gain_points": 0.0}
    assert from_settings([f"{name}=1" for name in decide.THRESHOLDS]).thresholds.keys() == decide.THRESHOLDS.keys()


def test_a_block_larger_than_the_budget_is_refused() -> None:
    with pytest.raises(ParameterError, match="at least one block"):
        Parameters(capacity_tokens=8, block_tokens=16)


def test_clean_leaves_nothing_that_json_cannot_hold() -> None:
    assert clean({"a": math.nan, "b": [math.inf, 0.1 + 0.2], "c": (1, None)}) == {
        "a": None,
        "b": [None, 0.3],
        "c": [1, None],
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"settings": "nope"}, "settings must be a table of names and values such as {'seed': 2}, got 'nope'"),
        ({"settings": {"seeds": 2}}, "unknown parameter 'seeds' (did you mean seed?)"),
        ({"settings": {"loss": math.nan}}, "loss must be a finite number, got nan"),
        ({"reading": "boss"}, "reading must be one of both, finance, infra, got 'boss'"),
        ({"log_path": 5}, "log_path must be a path or a list of paths, got 5"),
        ({"log_path": []}, "log_path must be a path or a list of paths, got []"),
        ({"out_dir": None}, "out_dir must be a folder's path, got None"),
        ({"capacity_tokens": "abc"}, "capacity_tokens must be a whole number or none, got 'abc'"),
    ],
)
def test_what_a_notebook_holds_is_checked_before_any_work(given, said, tmp_path):
    """Also before the log is looked for: there is none here."""
    values = {"log_path": str(tmp_path / "none.csv"), "out_dir": str(tmp_path), **given}
    with pytest.raises(ParameterError) as refused:
        open_analysis(**values)
    assert said in str(refused.value)
    assert list(tmp_path.iterdir()) == []
