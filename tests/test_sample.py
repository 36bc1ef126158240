"""The sample week is what it says it is, the worked example adds up, and both come out of a file as they went in."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kit import sample
from kit.sample.week import LIST_COLUMNS

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def week() -> pl.DataFrame:
    return sample.sample_week()


@pytest.fixture(scope="module")
def nodes(week: pl.DataFrame) -> pl.DataFrame:
    """One row per node on a path, with its parent on that path (null for a root)."""
    rows = week.select("request_id", *LIST_COLUMNS).explode(list(LIST_COLUMNS))
    return rows.with_columns(parent=pl.col("path_keys").shift(1).over("request_id"))


def test_seven_full_days_in_time_order(week: pl.DataFrame):
    assert week.height == 24_000
    assert week["ts"].dt.date().n_unique() == 7
    assert week["ts"].is_sorted()
    assert (week["ts_end"] > week["ts"]).all()
    assert week["request_id"].n_unique() == 24_000


def test_the_committed_file_is_the_week_of_seed_1(week: pl.DataFrame):
    """The same rows on every machine and Python: a seed that gave other rows would show here."""
    assert pl.read_parquet(PROJECT / "data" / "sample_week.parquet").equals(week)


def test_a_seed_is_all_there_is(week: pl.DataFrame):
    small = sample.sample_week(seed=3, requests=500)
    assert small.equals(sample.sample_week(seed=3, requests=500))
    assert not small.equals(sample.sample_week(seed=4, requests=500))


def test_prompts_are_as_long_as_their_paths(week: pl.DataFrame):
    assert (week["path_tokens"].list.sum() == week["input_tokens"]).all()
    assert week["input_tokens"].min() >= 1_500
    assert week["input_tokens"].max() <= 60_000


def test_paths_form_one_forest(nodes: pl.DataFrame):
    """A key has one size, one type and one parent wherever it appears."""
    per_key = nodes.group_by("path_keys").agg(
        pl.col("path_tokens", "path_types").n_unique(), pl.col("parent").n_unique()
    )
    assert per_key.select("path_tokens", "path_types", "parent").max().row(0) == (1, 1, 1)
    assert nodes["path_tokens"].min() > 0


def test_a_turn_extends_the_turn_before(week: pl.DataFrame):
    """But for the output that only one call reads, the path of a turn begins with the path of the turn before."""
    paths = week.filter(pl.col("session_type") == "agent").sort("session_id", "turn")
    before: dict[str, list[int]] = {}
    for session, keys in paths.select("session_id", "path_keys").iter_rows():
        last = before.get(session, [])
        shared = sum(a == b for a, b in zip(last, keys, strict=False))
        assert shared >= len(last) - 1
        before[session] = keys


def test_gaps_follow_the_stated_log_normals(week: pl.DataFrame):
    """Mean and deviation of ln(gap) within 4 standard errors, sigma / sqrt(n) and sigma / sqrt(2 n).

    A session ends early where its prompt or the week is full, which shortens long gaps a little: hence 4 and not 2.
    """
    turns = week.sort("session_id", "turn").with_columns(before=pl.col("ts_end").shift(1).over("session_id"))
    for (kind, trigger), stated in sample.GAPS.items():
        some = turns.filter(pl.col("before").is_not_null(), session_type=kind, trigger=trigger)
        ln = np.log(
            some.select((pl.col("ts") - pl.col("before")).dt.total_milliseconds()).to_series().to_numpy() / 1_000
        )
        assert abs(ln.mean() - stated.mu) < 4 * stated.sigma / np.sqrt(len(ln)), (kind, trigger)
        assert abs(ln.std() - stated.sigma) < 4 * stated.sigma / np.sqrt(2 * len(ln)), (kind, trigger)


def test_known_answers(week: pl.DataFrame, nodes: pl.DataFrame):
    """24,000 requests: 960 nightly (4 %), the rest 45 : 35 : 20 = 10,368 chat, 8,064 agent, 4,608 single."""
    known = sample.answers(week)
    assert known.scan_requests == 960
    assert known.request_share == {"agent": 8_064 / 24_000, "chat": 10_368 / 24_000, "single": (4_608 + 960) / 24_000}
    assert known.hot_prompts == 30
    assert known.input_tokens == nodes["path_tokens"].sum()
    first_seen = nodes.unique("path_keys")["path_tokens"].sum()
    assert known.seen_before_tokens == known.input_tokens - first_seen
    assert (
        known.reuse_by_type["system"] > 0.99 > 0.95 > known.reuse_by_type["tool_result"] > known.reuse_by_type["user"]
    )


def test_the_nightly_job_meets_no_prefix_twice(week: pl.DataFrame, nodes: pl.DataFrame):
    nightly = week.filter(pl.col("session_id").str.starts_with("nightly"))
    assert nightly["ts"].dt.hour().unique().to_list() == [sample.answers(week).scan_hour]
    assert nightly["ts"].dt.date().n_unique() == 7
    carried = nodes.group_by("path_keys").len()
    assert nightly.select(pl.col("path_keys").list.first()).join(carried, on="path_keys")["len"].unique().to_list() == [
        1
    ]


def test_nobody_billed_this_week(week: pl.DataFrame):
    reported = week.select("uncached_tokens", "read_tokens", "write_tokens", "write_long_tokens")
    assert reported.null_count().row(0) == (24_000,) * 4


@pytest.mark.parametrize("mixture", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (3, 1, 0), (2, 3, 5)])
def test_mixture(mixture: tuple[int, int, int]):
    week = sample.sample_week(seed=2, requests=1_000, mixture=mixture, scan=False)
    count = dict(week["session_type"].value_counts().iter_rows())
    assert [count.get(kind, 0) * sum(mixture) for kind in ("chat", "agent", "single")] == [
        1_000 * part for part in mixture
    ]


@pytest.mark.parametrize(
    "wrong", [{"requests": 0}, {"mixture": (0, 0, 0)}, {"mixture": (1, -1, 1)}, {"mixture": (1, 1)}]
)
def test_what_cannot_be_drawn_is_refused(wrong: dict):
    with pytest.raises(ValueError, match="must be"):
        sample.sample_week(**wrong)


def test_worked_example_adds_up():
    """6,000 requests of 50 keys at 8,000 tokens + 4,000 keys once at 20,000: 10,000 requests, 128 M tokens."""
    example = sample.worked_example()
    hot = example.filter(pl.col("prefix_key").str.starts_with("h"))
    once = example.filter(pl.col("prefix_key").str.starts_with("o"))
    assert (example.height, hot.height, once.height) == (10_000, 6_000, 4_000)
    assert (hot["prefix_key"].n_unique(), once["prefix_key"].n_unique()) == (50, 4_000)
    assert (hot["prefix_tokens"].unique().to_list(), once["prefix_tokens"].unique().to_list()) == ([8_000], [20_000])
    assert example["prefix_tokens"].sum() == 6_000 * 8_000 + 4_000 * 20_000 == 128_000_000
    assert example["ts"].diff().drop_nulls().dt.total_seconds().unique().to_list() == [60]
    assert example["ts"].dt.date().n_unique() == 7  # 9,999 minutes = 6.94 days


def test_worked_example_in_another_order_is_the_same_requests():
    mixed, shuffled = sample.worked_example(), sample.worked_example("shuffled")
    keys = ["prefix_key", "prefix_tokens"]
    assert mixed.select(keys).sort(keys).equals(shuffled.select(keys).sort(keys))
    assert not mixed.select(keys).equals(shuffled.select(keys))


def test_worked_example_with_one_long_hot_key():
    """Only h0 differs, by 32,000 tokens each time it is asked."""
    plain, long = sample.worked_example(), sample.worked_example(one_hot_40k=True)
    asked = plain.filter(prefix_key="h0").height
    assert long["prefix_tokens"].sum() - plain["prefix_tokens"].sum() == 32_000 * asked
    assert long.filter(prefix_key="h0")["prefix_tokens"].unique().to_list() == [40_000]


def test_worked_example_knows_two_orders():
    with pytest.raises(ValueError, match="order must be 'seed' or 'shuffled', got 'sorted'"):
        sample.worked_example("sorted")  # type: ignore[arg-type]


def _read_text(path: Path) -> list[dict]:
    text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
    if ".jsonl" in path.name:
        return [json.loads(line) for line in text.splitlines()]
    rows = pl.read_csv(text.encode(), infer_schema=False).to_dicts()
    return [{name: json.loads(v) if name in LIST_COLUMNS else v for name, v in row.items()} for row in rows]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".csv.gz", ".jsonl.gz"])
def test_text_files_hold_the_same_week(tmp_path: Path, suffix: str):
    small = sample.sample_week(seed=5, requests=200)
    rows = _read_text(sample.write(small, tmp_path / f"week{suffix}"))
    assert [row["path_keys"] for row in rows] == small["path_keys"].to_list()
    assert [row["path_types"] for row in rows] == small["path_types"].to_list()
    assert [int(row["input_tokens"]) for row in rows] == small["input_tokens"].to_list()
    assert [row["ts"] for row in rows] == small["ts"].dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_list()
    assert {row["read_tokens"] for row in rows} <= {None, ""}


def test_parquet_holds_the_same_week(tmp_path: Path):
    for frame in (sample.sample_week(seed=5, requests=200), sample.worked_example()):
        assert pl.read_parquet(sample.write(frame, tmp_path / "frame.parquet")).equals(frame)


def test_files_are_the_same_bytes_each_time(tmp_path: Path):
    small = sample.sample_week(seed=5, requests=200)
    for suffix in (".parquet", ".csv.gz", ".jsonl"):
        paths = [sample.write(small, tmp_path / name / f"week{suffix}") for name in ("one", "two")]
        assert len({hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}) == 1


@pytest.mark.parametrize("name", ["week.xlsx", "week", "week.gz", "week.parquet.gz"])
def test_another_suffix_is_refused(tmp_path: Path, name: str):
    with pytest.raises(ValueError, match="name it"):
        sample.write(sample.worked_example(), tmp_path / name)


@pytest.mark.parametrize("name", ["week.csv", "week.jsonl.gz", "week.parquet"])
def test_a_full_disk_leaves_no_part_and_names_the_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object) -> None:
        Path(str(given[0])).write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left") as caught:
        sample.write(sample.worked_example(), tmp_path / name)
    assert caught.value.filename == str(tmp_path / name) and list(tmp_path.iterdir()) == []
