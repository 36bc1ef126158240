"""Damaged files: the good rows stay, every loss has a line and a reason, nothing fails silently."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kit.log import LogError, inspect, load

ROWS = 12_000


def text(kind: str) -> str:
    draw = random.Random(1)
    values = [(1_772_407_800 + i, draw.randint(1, 99_999), f"s{draw.randint(1, 10**9)}") for i in range(ROWS)]
    if kind == "csv":
        return "ts,input_tokens,session_id\n" + "".join(f"{a},{b},{c}\n" for a, b, c in values)
    return "".join(f'{{"ts":{a},"input_tokens":{b},"session_id":"{c}"}}\n' for a, b, c in values)


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


def rejected(log: Any) -> list[tuple[Any, ...]]:
    return log.con.sql("SELECT line, reason FROM rejected ORDER BY line").fetchall()


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gz", "zst"])
def test_a_cut_compressed_file_keeps_its_whole_lines(tmp_path: Path, kind: str, pack: Any) -> None:
    whole = pack(text(kind).encode())
    (tmp_path / "log").write_bytes(whole[: len(whole) * 3 // 4])
    log = load(tmp_path / "log")
    (line, reason), first = rejected(log)[0], 2 if kind == "csv" else 1
    assert reason.startswith("the compressed file is cut short") and 0 < log.facts.kept < ROWS
    assert line == first + log.facts.kept and log.facts.damaged == 1


def test_a_damaged_compressed_file_is_inspected_as_it_is_loaded(tmp_path: Path) -> None:
    whole = gzip.compress(text("jsonl").encode())
    (tmp_path / "a.jsonl.gz").write_bytes(whole)
    (tmp_path / "b.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    alone, both = inspect(tmp_path / "b.jsonl.gz"), inspect(tmp_path)
    assert 0 < alone["kept"] < ROWS and both["kept"] == ROWS + alone["kept"]
    assert list(both["rejected"].values()) == [1] and both["columns"] == ["ts", "input_tokens", "session_id"]


@pytest.mark.parametrize("forced", [None, "canonical"])
def test_a_compressed_file_without_a_whole_line_costs_only_itself(tmp_path: Path, forced: str | None) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text("csv").encode()))
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"ts,input_tokens,session_id") + b"stray")
    log, found = load(tmp_path, format=forced), inspect(tmp_path, format=forced)
    assert log.facts.kept == found["kept"] == ROWS and log.facts.damaged == 1
    assert log.con.sql("SELECT file, line FROM rejected").fetchall() == [("b.csv.gz", 1)]
    with pytest.raises(LogError, match=r"b\.csv\.gz: damaged compressed file, no whole line"):
        load(tmp_path / "b.csv.gz", format=forced)


def test_stray_bytes_behind_a_compressed_file_cost_no_line(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(gzip.compress(b'{"ts":1,"input_tokens":1}\n{"ts":2,"input_tokens":2}\n') + b"stray")
    log = load(tmp_path / "log")
    ((line, reason),) = rejected(log)
    assert (log.facts.kept, line) == (2, 3) and reason.startswith("the compressed file is cut short or corrupt")


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"one\rtwo\rthree\r", "bare carriage return"), (b"x" * 200_000 + b"\n", "longer than 131,072 characters")],
    ids=["cr", "long"],
)
def test_a_foreign_text_file_is_named_and_left_out(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "a.csv").write_text("ts,input_tokens\n1,1\n")
    (tmp_path / "notes.txt").write_bytes(content)
    log = load(tmp_path)
    assert log.facts.kept == 1 and any(said.startswith("left out: notes.txt: ") for said in log.facts.warnings)
    with pytest.raises(LogError, match=f"notes.txt: .*{why}"):
        load(tmp_path / "notes.txt")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_compressed_members_one_after_another_are_one_file(tmp_path: Path, kind: str) -> None:
    whole = text(kind).encode()
    (tmp_path / "log").write_bytes(gzip.compress(whole[:50_001]) + gzip.compress(whole[50_001:]))
    assert load(tmp_path / "log").facts.kept == ROWS


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_cut_plain_file_loses_only_its_last_line(tmp_path: Path, kind: str) -> None:
    whole = text(kind)
    end = whole.index("\n", len(whole) // 2) + 8
    (tmp_path / "log").write_text(whole[:end])
    log = load(tmp_path / "log")
    assert len(rejected(log)) == 1 and log.facts.kept == whole[:end].count("\n") - (kind == "csv")


def test_a_quote_that_never_closes_costs_one_row(tmp_path: Path) -> None:
    lines = ["ts,input_tokens,model"] + [f"{i},{i},m" for i in range(1, 1501)]
    lines[100] = '100,100,"m'
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    log = load(tmp_path / "log.csv")
    assert log.facts.kept == 1499 and rejected(log) == [(101, "damaged line: a quote is never closed")]
    assert log.facts.files == ("log.csv",)
    assert log.con.sql("SELECT line FROM request WHERE input_tokens = 1500").fetchall() == [(1501,)]


def test_line_breaks_inside_quotes_are_no_damage(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        'ts,input_tokens,model\n1,10,"a\nb"\n2,20,"say ""x"""\n3,30\n4,40,m\n5,50,m,more\n6,60,m\n'
    )
    log = load(tmp_path / "log.csv")
    assert [row[0] for row in log.con.sql("SELECT model FROM request").fetchall()] == ["a\nb", 'say "x"', "m", "m"]
    assert [reason for _, reason in rejected(log)] == [
        "damaged line: too few columns",
        "damaged line: too many columns",
    ]
    assert log.con.sql("SELECT line FROM request WHERE input_tokens = 60").fetchall() == [(7,)]


def test_damaged_json_lines_of_every_kind(tmp_path: Path) -> None:
    lines = [
        b'{"ts":1,"input_tokens":1}', b"", b"{", b"[1,2]", b'"text"', b"null", b'{"ts":2,"input_tokens":2}{}',
        b'{"ts":2,"input_tokens":2,"model":"\xff"}', b'{"ts":3,"input_tokens":3}', b'{"ts":"soon","input_tokens":3}',
        b'{"ts":4}', b'{"ts":5,"input_tokens":NaN}',
    ]  # fmt: skip
    (tmp_path / "log.jsonl").write_bytes(b"\n".join(lines))
    log = load(tmp_path / "log.jsonl")
    assert [row[0] for row in log.con.sql("SELECT line FROM request").fetchall()] == [1, 9]
    assert rejected(log) == [
        (3, "damaged line: not JSON"), (4, "not a JSON object"), (5, "not a JSON object"), (6, "not a JSON object"),
        (7, "damaged line: not JSON"), (8, "damaged line: not UTF-8"), (10, "ts is not an ISO time or an epoch"),
        (11, "input_tokens is missing"), (12, "input_tokens is missing"),
    ]  # fmt: skip
    assert log.facts.rows == log.facts.kept + sum(log.facts.rejected.values()) == 11


def test_a_line_of_many_megabytes_is_read(tmp_path: Path) -> None:
    long = '{"ts":2,"input_tokens":2,"note":"' + "y" * 17_000_000 + '"}'
    (tmp_path / "log.jsonl").write_text(f'{{"ts":1,"input_tokens":1}}\n{long}\n{{"ts":3,"input_tokens":3}}\n')
    log = load(tmp_path / "log.jsonl")
    assert log.facts.kept == 3 and log.facts.rejected == {}


def test_an_over_long_line_is_refused_and_the_rest_stays(tmp_path: Path) -> None:
    with (tmp_path / "log.jsonl").open("wb") as out:
        out.write(b'{"ts":1,"input_tokens":1}\n{"ts":2,"input_tokens":2,"note":"')
        for _ in range(106):
            out.write(b"y" * 1_000_000)
        out.write(b'"}\n{"ts":3,"input_tokens":3}\n')
    log = load(tmp_path / "log.jsonl")
    assert rejected(log) == [(2, "damaged line: longer than 100 MB")]
    assert log.con.sql("SELECT line FROM request").fetchall() == [(1,), (3,)]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("word " * 50, "text of 250 characters"),
        ("x", "text of 1 character"),
        ("teeth", "text of 5 characters"),
        ({"role": "user"}, "an object of 15 characters"),
        (["the", 1], "a list of 9 characters"),
        (-1, "-1"),
        ("1,000", "1,000"),
        ([1, None], "[1,null]"),
        ("2026-03-01T10:00:00Z", "2026-03-01T10:00:00Z"),
        ("1 " * 50, "1 " * 20),
    ],
)
def test_excerpts_are_short_and_never_text(tmp_path: Path, value: Any, shown: str) -> None:
    rows = [{"ts": 1, "input_tokens": 1}, {"ts": 2, "input_tokens": value}]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    log = load(tmp_path / "log.jsonl")
    assert log.con.sql("SELECT excerpt FROM rejected").fetchall() == [(f"input_tokens={shown}",)]


def test_a_key_that_may_be_a_prompt_is_stored_as_its_hash(tmp_path: Path) -> None:
    # three keys and each comes twice: 3 nodes; the one of 256 characters without white space stays as it is
    keys = ["you are kind", "a" * 257, "b" * 256] * 2
    lines = [f"{place},{key},10,10" for place, key in enumerate(keys)]
    (tmp_path / "log.csv").write_text("\n".join(["ts,prefix_key,prefix_tokens,input_tokens", *lines]))
    log = load(tmp_path / "log.csv")
    hashed = ["sha256:" + hashlib.sha256(key.encode()).hexdigest()[:32] for key in keys[:2]]
    found = [key for (key,) in log.con.sql("SELECT DISTINCT prefix_key FROM request ORDER BY ALL").fetchall()]
    assert found == sorted([*hashed, keys[2]]) and log.facts.keys == 3
    assert any(said.startswith("prefix_key: with white space or over 256") for said in log.facts.derived)


def test_a_folder_with_other_files_says_what_it_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,input_tokens\n1,1\n")
    (tmp_path / "b.csv").write_text("ts,input_tokens,model\n2,2,m\n")
    (tmp_path / "notes.txt").write_text("hello, this is no log\n")
    (tmp_path / "copy.csv").write_text("ts,input_tokens\n1,1\n")
    (tmp_path / "empty.csv").write_text("")
    log = load(tmp_path)
    assert log.facts.kept == 2 and log.facts.files == ("a.csv", "b.csv")
    said = " ".join(log.facts.warnings)
    assert "notes.txt" in said and "copy.csv: same bytes" in said and "empty.csv: empty" in said
    assert log.con.sql("SELECT model FROM request").fetchall() == [(None,), ("m",)]


def test_two_layouts_are_not_one_log(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,input_tokens\n1,1\n")
    (tmp_path / "b.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2026-03-01 10:00:00,1,1\n")
    with pytest.raises(LogError, match="not one log"):
        load(tmp_path)


def test_columns_can_be_named_by_the_user(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("when,who,size,length\n2026-03-01T10:00:00Z,k,5,9\n")
    with pytest.raises(LogError, match="not a log layout"):
        load(tmp_path / "own.csv")
    names = {"ts": "when", "prefix_key": "who", "prefix_tokens": "size", "input_tokens": "length"}
    log = load(tmp_path / "own.csv", column_map=names)
    assert log.con.sql("SELECT prefix_key, prefix_tokens, input_tokens FROM request").fetchall() == [("k", 5, 9)]
    assert inspect(tmp_path / "own.csv", column_map=names)["mapped"]["prefix_key"] == "who"
    with pytest.raises(LogError, match="no column colour; it has when"):
        load(tmp_path / "own.csv", column_map={**names, "model": "colour"})
    with pytest.raises(LogError, match="no column is called colour"):
        load(tmp_path / "own.csv", column_map={"colour": "when"})


def test_a_mapping_adds_to_a_known_layout(tmp_path: Path) -> None:
    header = "ts_start,session_id,trigger,input_tokens,cache_read_tokens,client_id\n"
    (tmp_path / "a.csv").write_text(header + "2026-03-01T10:00:00Z,s,user,5,9,team-1\n")
    log = load(tmp_path / "a.csv", column_map={"owner": "client_id"})
    assert log.facts.format == "agent_usage"
    assert log.con.sql("SELECT owner, input_tokens FROM request").fetchall() == [("team-1", 14)]


def test_a_first_line_larger_than_the_first_look(tmp_path: Path) -> None:
    long = '{"ts":1,"input_tokens":1,"note":"' + "y" * 3_000_000 + '"}'
    (tmp_path / "log.jsonl").write_text(f'{long}\n{{"ts":2,"input_tokens":2}}\n')
    assert load(tmp_path / "log.jsonl").facts.kept == 2


def test_a_folder_of_many_small_files(tmp_path: Path) -> None:
    for index in range(60):
        (tmp_path / f"{index:03}.jsonl").write_text(f'{{"ts":{index},"input_tokens":1,"request_id":"r{index // 2}"}}\n')
    log = load(tmp_path)
    assert (log.facts.kept, len(log.facts.files)) == (30, 60) and log.facts.rejected == {"repeats a request id": 30}
    assert log.con.sql("SELECT DISTINCT line FROM request").fetchall() == [(1,)]


def test_a_value_no_request_has_costs_its_row_and_no_other(tmp_path: Path) -> None:
    # four good rows; one above 2^31 - 1 tokens, one in the year 9999, one in the year 1, each refused by its reason
    lines = ["ts,prefix_key,prefix_tokens,input_tokens"]
    lines += [f"2026-03-0{day}T00:00:00Z,k,100,120" for day in range(1, 5)]
    lines += ["2026-03-05T00:00:00Z,big,2147484672,2147488648", "9999-12-31T00:00:00Z,k,100,120",
              "0001-01-01T00:00:00Z,k,100,120"]  # fmt: skip
    path = tmp_path / "week.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    facts = load(path).facts
    assert (facts.rows, facts.kept, facts.damaged) == (7, 4, 3)
    assert sum(count for reason, count in facts.rejected.items() if "above 2,147,483,647" in reason) == 1
    assert sum(count for reason, count in facts.rejected.items() if "1970 to 2099" in reason) == 2


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_refused_offsets_and_keys_are_told_from_other_refusals(tmp_path: Path, kind: str) -> None:
    rows = [
        ["2026-03-01T10:00:00Z", "[1,2]"],
        ["2026-03-01T10:00:00+99:00", "[1,2]"],
        ["tomorrow+99:00", "[1,2]"],
        ["2026-03-01T10:00:00Z", "[1.5,2]"],
    ]
    head = "ts,path_keys,block_tokens,input_tokens\n"
    as_json = [{"ts": ts, "path_keys": json.loads(keys), "block_tokens": 1, "input_tokens": 2} for ts, keys in rows]
    if kind == "csv":
        (tmp_path / "log").write_text(head + "".join(f'{ts},"{keys}",1,2\n' for ts, keys in rows))
    else:
        (tmp_path / "log").write_text("".join(json.dumps(row) + "\n" for row in as_json))
    log, first = load(tmp_path / "log"), 2 if kind == "csv" else 1
    assert log.facts.kept == 1 and rejected(log) == [
        (first + 1, "ts has an offset from UTC that no clock has (accepted: -14:00 to +14:00)"),
        (first + 2, "ts is not an ISO time or an epoch"),
        (first + 3, "path_keys is not a list of ids (whole numbers or text)"),
    ]
