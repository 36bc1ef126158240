"""Columns as people name them: names that a reader uses itself, names that differ by case, names that lead nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kit.log import LogError, UnknownNameError, load

ROWS: list[dict[str, Any]] = [
    {"ts": f"2026-09-07T00:0{minute}:00Z", "input_tokens": 100, "prefix_key": "k", "prefix_tokens": 50}
    for minute in range(2)
]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The rows as the kind of file that the name asks for."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".csv":
        pl.DataFrame(rows).write_csv(path)
    else:
        pl.DataFrame(rows).write_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("name", ["filename", "FileName", "rn", "text"])
def test_a_column_may_have_any_name(tmp_path: Path, kind: str, name: str) -> None:
    path = written(tmp_path / f"log.{kind}", [{**row, name: f"team {place}"} for place, row in enumerate(ROWS)])
    log = load(path, column_map={"owner": name})
    found = log.con.sql("SELECT owner, file, line FROM request ORDER BY request_id").fetchall()
    first = {"csv": 2, "parquet": 1, "jsonl": 1}[kind]
    assert found == [(f"team {place}", path.name, first + place) for place in range(2)]


def test_keys_that_differ_by_case_are_two_columns(tmp_path: Path) -> None:
    rows = [{**row, "session_id": "s", "Session_ID": "S", "meta": {"a": "x", "A": "y"}} for row in ROWS]
    path = written(tmp_path / "log.jsonl", rows)
    log = load(path, column_map={"chain_id": "Session_ID", "owner": "meta/a", "replica": "meta/A"})
    found = log.con.sql("SELECT DISTINCT session_id, chain_id, owner, replica FROM request").fetchall()
    assert found == [("s", "S", "x", "y")]


@pytest.mark.parametrize("source", ["/tmp", "a//b", "/", "a/", ""])
def test_a_mapping_that_is_no_path_is_wrong_usage(tmp_path: Path, source: str) -> None:
    path = written(tmp_path / "log.jsonl", ROWS)
    with pytest.raises(UnknownNameError, match="is no path; write a column"):
        load(path, column_map={"owner": source})


def test_a_mapping_to_a_key_that_no_record_has_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", [{**row, "meta": {"team": "x"}} for row in ROWS])
    for source in ("prefx", "meta/taem", "owner/x"):
        with pytest.raises(LogError, match=f"has no column {source}; it has ts, input_tokens"):
            load(path, column_map={"owner": source})


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("place", [0, 1, 250])
def test_a_mapping_into_json_in_a_text_is_looked_up_there(tmp_path: Path, kind: str, place: int) -> None:
    # the first look ends after 200 records (20 of Parquet)
    empty, full = '{"team": {}}', '{"team": {"name": "x"}}'
    rows = [{"ts": number, "input_tokens": 1, "meta": full if number == place else empty} for number in range(300)]
    path = written(tmp_path / f"log.{kind}", rows)
    log = load(path, column_map={"owner": "meta/team/name"})
    assert log.con.sql("SELECT request_id, owner FROM request WHERE owner IS NOT NULL").fetchall() == [(place, "x")]
    for source in ("meta/taem", "meta/team/nmae", "ts/x"):
        with pytest.raises(LogError, match=f"has no column {source}; it has ts, input_tokens, meta"):
            load(path, column_map={"owner": source})


def test_a_key_with_a_slash_in_it_cannot_be_mapped(tmp_path: Path) -> None:
    rows = [{**row, "a/b": "x"} for row in ROWS]
    with pytest.raises(LogError, match="a key that has one cannot be named"):
        load(written(tmp_path / "log.jsonl", rows), column_map={"owner": "a/b"})
    assert load(written(tmp_path / "log.csv", rows), column_map={"owner": "a/b"}).facts.kept == 2


def test_a_mapped_column_needs_none_of_the_fields_it_replaces(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("when,Request tokens,Response tokens\n1772407800,10,1\n1772407801,20,1\n")
    log = load(path, format="burstgpt", column_map={"ts": "when"})
    assert log.facts.kept == 2 and log.facts.start.year == 2026


def test_a_mapping_to_a_key_that_comes_late_is_taken(tmp_path: Path) -> None:
    # the first look ends after 200 records; the only team is in the last of 301
    rows = [{"ts": place, "input_tokens": 1} for place in range(300)] + [{"ts": 300, "input_tokens": 1, "team": "x"}]
    log = load(written(tmp_path / "log.jsonl", rows), column_map={"owner": "team"})
    assert log.con.sql("SELECT line, owner FROM request WHERE owner IS NOT NULL").fetchall() == [(301, "x")]


@pytest.mark.parametrize("names", [("ts", "prefix_key", "prefix_tokens"), ("ts", "input_tokens")])
@pytest.mark.parametrize("beside", [[f"extra_{number}" for number in range(10_000)], ["message", "usage", "request"]])
def test_our_own_names_are_known_among_any_number_of_others(
    names: tuple[str, ...], beside: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "log.csv"
    lines = [[*names, *beside], *([row[name] for name in names] + ["x"] * len(beside) for row in ROWS)]
    path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    log = load(path)
    assert (log.facts.format, log.facts.kept, log.facts.rejected) == ("canonical", 2, {})
