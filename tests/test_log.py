"""A log becomes tables: totals of the public traces, how values are read, and every refusal in one line."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kit.log import Log, LogError, load, open_log
from tests.conftest import shared_data


def rows(log: Log, query: str) -> list[tuple[Any, ...]]:
    return log.con.sql(query).fetchall()


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_week_of_agent_sessions_adds_up() -> None:
    log = load(shared_data("claude_agents_week.csv"))
    facts = log.facts
    assert (facts.format, facts.requests, facts.sessions, facts.chains) == ("agent_usage", 5964, 88, 147)
    assert facts.rejected == {} and facts.rows == facts.kept == 5964 and facts.days == 7
    reported = rows(
        log,
        "SELECT sum(read_tokens)::BIGINT, sum(write_tokens)::BIGINT, sum(write_long_tokens)::BIGINT, "
        "sum(uncached_tokens)::BIGINT, sum(input_tokens)::BIGINT FROM request",
    )[0]
    assert reported[:4] == (524_851_782, 4_890_078, 16_418_636, 230_418)
    assert sum(reported[:4]) == reported[4]
    assert facts.output_is_placeholder and facts.identity == "chain"


def test_every_path_of_the_week_is_as_long_as_its_prompt() -> None:
    log = load(shared_data("claude_agents_week.csv"))
    longest = rows(
        log,
        "WITH RECURSIVE path AS (SELECT node_id, tokens FROM node WHERE parent_id IS NULL UNION ALL "
        "SELECT n.node_id, n.tokens + p.tokens FROM node n JOIN path p ON n.parent_id = p.node_id) "
        "SELECT count(*), count(*) FILTER (path.tokens = input_tokens) FROM request "
        "JOIN request_node USING (request_id) JOIN path USING (node_id)",
    )[0]
    assert longest == (5964, 5964)
    assert rows(log, "SELECT count(*) FROM node WHERE parent_id >= node_id") == [(0,)]


def test_mooncake_blocks() -> None:
    log = load(shared_data("mooncake_conversation.jsonl"))
    facts = log.facts
    assert (facts.requests, facts.keys, facts.block_tokens, facts.identity) == (12_031, 182_790, 512, "blocks")
    assert facts.has_clock and not facts.has_sessions and any("relative" in text for text in facts.warnings)
    assert (facts.end - facts.start).total_seconds() == pytest.approx(3537, abs=1)
    total, output = rows(log, "SELECT sum(input_tokens)::BIGINT, sum(output_tokens)::BIGINT FROM request")[0]
    assert (total, output) == (144_793_823, 4_122_048)
    full, partial = rows(log, "SELECT count(*) FILTER (tokens = 512), count(*) FILTER (tokens < 512) FROM node")[0]
    assert full + partial == 182_790 and full >= 170_899


def test_a_file_on_disk_is_whole_or_absent(tmp_path: Path) -> None:
    source = write(tmp_path, "log.csv", "ts,prefix_key,prefix_tokens\n2026-03-01T00:00:00Z,a,10\n")
    log = load(source, tmp_path / "out" / "log.duckdb")
    assert log.db_path is not None and log.facts.requests == 1
    assert open_log(log.db_path).facts == log.facts
    log.con.close()
    with pytest.raises(LogError):
        load(write(tmp_path, "bad.csv", "ts,prefix_key,prefix_tokens\nnever,a,x\n"), tmp_path / "out" / "bad.duckdb")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["log.duckdb"]


def test_flat_keys_grow_in_steps(tmp_path: Path) -> None:
    # a is seen with 10 and then 14 tokens: node 10, then a node of 4 under it. b is one node of 7.
    text = "ts,prefix_key,prefix_tokens,input_tokens\n1,a,10,20\n2,b,7,7\n3,a,14,20\n4,a,10,20\n"
    log = load(write(tmp_path, "flat.csv", text))
    assert rows(log, "SELECT parent_id, tokens FROM node ORDER BY node_id") == [(None, 10), (None, 7), (0, 4)]
    assert rows(log, "SELECT node_id FROM request_node ORDER BY request_id") == [(0,), (1,), (2,), (0,)]
    assert any("key_length_varies" in text for text in log.facts.warnings)


def test_paths_are_not_shared_across_models(tmp_path: Path) -> None:
    lines = [
        '{"ts":"2026-03-01T00:00:00Z","model":"m1","input_tokens":30,"path_keys":["s","u"],"path_tokens":[10,20],'
        '"path_types":["system","user"]}',
        '{"ts":"2026-03-01T00:00:01Z","model":"m1","input_tokens":15,"path_keys":["s","v"],"path_tokens":[10,5],'
        '"path_types":["system","user"]}',
        '{"ts":"2026-03-01T00:00:02Z","model":"m2","input_tokens":10,"path_keys":["s"],"path_tokens":[10],'
        '"path_types":["system"]}',
    ]
    log = load(write(tmp_path, "paths.jsonl", "\n".join(lines)))
    found = rows(log, "SELECT parent_id, tokens, token_type FROM node ORDER BY node_id")
    assert found == [(None, 10, "system"), (0, 20, "user"), (0, 5, "user"), (None, 10, "system")]


def test_chains_grow_and_restart(tmp_path: Path) -> None:
    # r1 100 tokens; r2 grows it to 150 (node of 50); r3 shrinks to 60 (new chain); r4 repeats r2's prompt (same node).
    text = "ts,request_id,parent_request_id,input_tokens\n1,r1,,100\n2,r2,r1,150\n3,r3,r2,60\n4,r4,r2,150\n"
    log = load(write(tmp_path, "chain.csv", text))
    assert log.facts.identity == "chain"
    assert rows(log, "SELECT parent_id, tokens FROM node ORDER BY node_id") == [(None, 100), (0, 50), (None, 60)]
    assert rows(log, "SELECT node_id FROM request_node ORDER BY request_id") == [(0,), (1,), (2,), (1,)]


@pytest.mark.parametrize("packed", ["plain", "gz", "zst"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_containers_and_compression_give_the_same_log(tmp_path: Path, kind: str, packed: str) -> None:
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    table = (
        "SELECT TIMESTAMPTZ '2026-03-01 10:00:00+00' + to_seconds(i) AS ts, 'k' || (i % 3) AS prefix_key, "
        "100 + (i % 3) AS prefix_tokens, 200 AS input_tokens, 's' || (i % 2) AS session_id FROM range(20) t(i)"
    )
    name = tmp_path / f"log.{kind}"
    target = {"csv": "FORMAT csv, HEADER", "jsonl": "FORMAT json", "parquet": "FORMAT parquet"}[kind]
    if packed != "plain" and kind != "parquet":
        target += f", COMPRESSION {'gzip' if packed == 'gz' else 'zstd'}"
    con.execute(f"COPY ({table}) TO '{name}' ({target})")
    log = load(name)
    assert (log.facts.requests, log.facts.keys, log.facts.sessions) == (20, 3, 2)
    assert log.facts.start == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert rows(log, "SELECT sum(prefix_tokens)::BIGINT FROM request") == [(20 * 100 + 0 * 7 + 1 * 7 + 2 * 6,)]


ERRORS = [
    ("empty.csv", b"", "empty"),
    ("blank.csv", b"\n\n", "blank lines"),
    ("utf16.csv", "ts,a".encode("utf-16"), "UTF-16"),
    ("log.zip", b"PK\x03\x04" + b"\x00" * 20, "zip"),
    ("log.pkl", b"\x80\x04\x95", "pickle"),
    ("cut.parquet", b"PAR1\x00\x01", "cut short"),
    ("other.csv", b"colour,shape\nred,round\n", "not a log layout"),
    ("cut.json", b'[{"a":1},', "cannot be parsed"),
    ("bad.gz", b"\x1f\x8b\x08\x00", "damaged compressed"),
    ("none.csv", b"ts,prefix_key,prefix_tokens\n", "no request found"),
]


@pytest.mark.parametrize(("name", "content", "says"), ERRORS, ids=[name for name, *_ in ERRORS])
def test_what_is_no_log_is_refused_in_one_line(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LogError, match=says) as caught:
        load(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(LogError, match=r"nowhere\.csv: no such file"):
        load("nowhere.csv")


def test_a_wrong_name_does_not_matter(tmp_path: Path) -> None:
    text = "ts,prefix_key,prefix_tokens\n2026-03-01T00:00:00Z,a,10\n"
    (tmp_path / "log.parquet").write_bytes(gzip.compress(text.encode()))
    assert load(tmp_path / "log.parquet").facts.requests == 1


def test_rows_that_repeat_an_id_count_once(tmp_path: Path) -> None:
    text = "ts,request_id,input_tokens\n1,a,10\n2,b,10\n1,a,10\n"
    log = load(write(tmp_path, "twice.csv", text))
    assert (log.facts.rows, log.facts.kept, log.facts.rejected) == (3, 2, {"repeats a request id": 1})
    assert log.facts.damaged == 0 and any("counted once" in text for text in log.facts.warnings)
    assert rows(log, "SELECT line FROM rejected") == [(4,)]


def test_parquet_with_nested_floats_and_zones(tmp_path: Path) -> None:
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    con.execute(
        f"COPY (SELECT * FROM (VALUES (TIMESTAMP '2026-03-01 10:00:00', 5.0::DOUBLE, 2::INTEGER, ['a', 'b'], [2, 3]), "
        "(TIMESTAMP '2026-03-01 10:00:01', 'NaN'::DOUBLE, 3, ['a'], [2]), "
        "(TIMESTAMP '2026-03-01 10:00:02', 7.5::DOUBLE, -3, ['a'], [2])) "
        f"t(ts, output_tokens, input_tokens, path_keys, path_tokens)) TO '{tmp_path / 'log.parquet'}' (FORMAT parquet)"
    )
    log = load(tmp_path / "log.parquet")
    # 2 + 3 tokens of path are more than 2 of input, -3 and 7.5 are no counts; NaN means that nothing is known.
    assert log.facts.rejected == {
        "input_tokens is not a whole number, 0 or more": 1,
        "path_tokens add up to more than input_tokens": 1,
    }
    assert rows(log, "SELECT output_tokens, input_tokens FROM request") == [(None, 3)]
    assert log.facts.naive_timestamps == 1


def test_parquet_with_a_usage_structure(tmp_path: Path) -> None:
    con = duckdb.connect()
    con.execute(
        "COPY (SELECT 'a' AS id, 'GENERATION' AS type, '2026-03-01T10:00:00Z' AS start_time, "
        f"MAP {{'input': 86, 'input_cached_tokens': 900}} AS usage_details) TO '{tmp_path / 'l.parquet'}' (FORMAT "
        "parquet)"
    )
    assert rows(load(tmp_path / "l.parquet"), "SELECT input_tokens, read_tokens FROM request") == [(986, 900)]


def test_repeated_and_empty_column_names(tmp_path: Path) -> None:
    log = load(write(tmp_path, "log.csv", "ts,input_tokens,Model,model,,\n1,10,x,m,,\n2,NaN,x,m,,\n3,12,None,,,\n"))
    assert rows(log, "SELECT input_tokens, model FROM request") == [(10, None), (12, None)]
    assert log.facts.rejected == {"input_tokens is missing": 1}


def test_units_of_bare_numbers_are_said(tmp_path: Path) -> None:
    one = load(write(tmp_path, "one.csv", "ts,input_tokens\n1772407800000,1\n1772407801000,1\n"))
    assert one.facts.units["start times"] == "epoch milliseconds, by the size of the numbers"
    mixed = "ts,input_tokens\n1772407800000,1\n1772407801,1\n2026-03-01T23:30:02Z,1\n"
    two = load(write(tmp_path, "two.csv", mixed))
    assert any("milliseconds and seconds" in text for text in two.facts.warnings)
    iso = load(write(tmp_path, "iso.csv", "ts,input_tokens\n2026-03-01T23:30:02Z,1\n"))
    assert "start times" not in iso.facts.units


def test_without_identity_sessions_grow_and_the_log_says_so(tmp_path: Path) -> None:
    # Session a: 100, 150 (extends it), 90 (shrank: new chain). Session b shares nothing with a.
    text = "ts,session_id,input_tokens\n1,a,100\n2,b,100\n3,a,150\n4,a,90\n"
    log = load(write(tmp_path, "log.csv", text))
    assert rows(log, "SELECT parent_id, tokens FROM node ORDER BY node_id") == [
        (None, 100),
        (None, 100),
        (0, 50),
        (None, 90),
    ]
    assert any("session-local reuse only" in text for text in log.facts.derived)
    assert log.facts.cannot_tell[0].startswith("which prompts sessions share")
    assert load(write(tmp_path, "same.csv", text), settings={"surrogate": "none"}).facts.identity is None


def test_triggers_have_three_words(tmp_path: Path) -> None:
    text = "ts,session_id,trigger,input_tokens\n" + "".join(
        f"{i},s,{word},1\n" for i, word in enumerate(["user", "person", "tool_result", "cron", ""])
    )
    log = load(write(tmp_path, "log.csv", text))
    assert [word for (word,) in rows(log, "SELECT trigger FROM request")] == ["person", "person", "tool", "other", None]
    assert rows(log, "SELECT DISTINCT session_type FROM request") == [("agent",)]


def test_ids_that_are_not_unique_are_warned_of(tmp_path: Path) -> None:
    log = load(write(tmp_path, "ids.csv", "ts,session_id,request_id,input_tokens\n1,a,r1,10\n2,b,r1,20\n"))
    assert log.facts.kept == 1 and any("if ids are not unique" in text for text in log.facts.warnings)
