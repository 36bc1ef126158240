"""Damaged files: the good rows stay, every loss has a line and a reason, nothing fails silently."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import os
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kit.log import LogError, inspect, load, staging

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


@pytest.mark.parametrize(
    ("row", "reason", "found"),
    [
        ({"output_tokens": -5}, "output_tokens is not a whole number, 0 or more", "output_tokens=-5"),
        ({"input_tokens": 2**63}, "input_tokens is above 2,147,483,647", "input_tokens=9223372036854775808"),
        ({"input_tokens": 2**31}, "input_tokens is above 2,147,483,647", "input_tokens=2147483648"),
        ({"input_tokens": 5, "duration_s": 1e20}, "duration_s is longer than any request takes", "duration_s=1e+20"),
        ({"input_tokens": 5, "prefix_key": "my prompt", "prefix_tokens": 9},
         "prefix_tokens is more than input_tokens", "prefix_tokens=9, input_tokens=5"),
        ({"uncached_tokens": 5, "prefix_key": "k", "prefix_tokens": 9},
         "prefix_tokens is more than input_tokens", "prefix_tokens=9, uncached_tokens=5"),
        ({"input_tokens": 5, "read_tokens": 3, "uncached_tokens": 3},
         "token classes do not add up to input_tokens", "input_tokens=5, uncached_tokens=3, read_tokens=3"),
        # two blocks of 512 are at least 513 tokens
        ({"input_tokens": 512, "path_keys": [1, 2], "block_tokens": 512},
         "path_keys are blocks of more than input_tokens",
         "input_tokens=512, path_keys of 2 values, block_tokens=512"),
        ({"input_tokens": 512, "path_keys": [1, 2], "block_tokens": 0},
         "block_tokens is 0", "path_keys of 2 values, block_tokens=0"),
        ({"input_tokens": 9, "path_keys": [1, 2], "path_tokens": [5, 5]},
         "path_tokens add up to more than input_tokens", "input_tokens=9, path_tokens of 2 values"),
        ({"ts": "2026-03-29 02:30:00 Europe/Berlin", "input_tokens": 9},
         "ts is in an hour that the clock of its zone skips or repeats; log the offset", "ts=text of 33 characters"),
    ],
)  # fmt: skip
def test_a_refused_row_says_what_was_found(tmp_path: Path, row: dict[str, Any], reason: str, found: str) -> None:
    good = {"ts": 1_772_407_800, "input_tokens": 513, "path_keys": [1, 2], "block_tokens": 512}
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(good) + "\n" + json.dumps({"ts": 1_772_407_800} | row) + "\n")
    log = load(path, format="canonical")
    assert log.facts.kept == 1 and log.facts.damaged == 1
    assert log.con.sql("SELECT line, reason, excerpt FROM rejected").fetchall() == [(2, reason, found)]
    path.write_text(json.dumps({"ts": 1_772_407_800} | row) + "\n")
    with pytest.raises(LogError) as caught:
        load(path, format="canonical")
    assert f"because: {reason} (first in log.jsonl on line 1, {found})" in str(caught.value)


def test_a_refused_value_is_named_as_the_log_names_it(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("timestamp,prompt_tokens\n1772407800,many\nsoon,5\n1772407800,5\n")
    log = load(tmp_path / "log.csv", format="canonical")
    assert log.con.sql("SELECT line, reason, excerpt FROM rejected ORDER BY line").fetchall() == [
        (2, "prompt_tokens is not a whole number, 0 or more", "prompt_tokens=text of 4 characters"),
        (3, "timestamp is not an ISO time or an epoch", "timestamp=text of 4 characters"),
    ]


def test_ends_before_their_starts_are_left_out_and_said(tmp_path: Path) -> None:
    rows = [{"ts": 100, "ts_end": 90}, {"ts": 200, "ts_end": 200}, {"ts": 300, "duration_s": -5}, {"ts": 400,
            "duration_s": 5}]  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps({"input_tokens": 1, **row}) + "\n" for row in rows))
    log = load(tmp_path / "log.jsonl")
    assert log.con.sql("SELECT epoch(ts_end) FROM request ORDER BY ts").fetchall() == [(None,), (200,), (None,), (405,)]
    assert "2 requests end before they start; their ends are left out" in log.facts.warnings


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("ts,input_tokens\n".encode("utf-16"), "UTF-16 text; save it as UTF-8"),
        ("ts,input_tokens\n".encode("utf-16-le"), "UTF-16 text; save it as UTF-8"),
        ("ts,input_tokens\n".encode("utf-32"), "UTF-32 text; save it as UTF-8"),
        (bz2.compress(b"ts,input_tokens\n1,1\n"), "packed by bzip2; accepted are Parquet"),
        (lzma.compress(b"ts,input_tokens\n1,1\n"), "packed by xz; accepted are Parquet"),
        (b"SQLite format 3\x00\x10\x00\x01\x01\xff", "binary content that is no log"),
        (b"TS,Input Tokens\n1,1\n", "or name columns with --map ts=TS --map 'input_tokens=Input Tokens'"),
    ],
)
def test_other_kinds_of_files_are_named_with_what_to_do(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "log").write_bytes(content)
    with pytest.raises(LogError, match=re.escape(said)):
        load(tmp_path / "log")


@pytest.mark.parametrize("line", [3, 2000])
def test_a_stray_nul_costs_a_row_at_most_wherever_it_stands(tmp_path: Path, line: int) -> None:
    lines = text("csv").splitlines()
    lines[line - 1] = "\0" + lines[line - 1]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    log = load(tmp_path / "log.csv")
    assert log.facts.kept == ROWS - 1 and rejected(log) == [(line, "ts is not an ISO time or an epoch")]


def test_links_are_followed_once_and_dangling_ones_are_named(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "logs").mkdir()
    (tmp_path / "there" / "a.csv").write_text("ts,input_tokens\n1,1\n")
    (tmp_path / "logs" / "b.csv").write_text("ts,input_tokens\n2,2\n")
    (tmp_path / "logs" / "linked").symlink_to(tmp_path / "there")
    (tmp_path / "logs" / "self").symlink_to(tmp_path / "logs")
    (tmp_path / "logs" / "gone.csv").symlink_to(tmp_path / "absent")
    log = load(tmp_path / "logs")
    assert log.facts.files == ("a.csv", "b.csv")
    assert f"left out: gone.csv: a link to {tmp_path / 'absent'}, which is not there" in log.facts.warnings
    with pytest.raises(LogError, match=r"gone\.csv: a link to .*absent, which is not there"):
        load(tmp_path / "logs" / "gone.csv")


def test_a_log_that_is_written_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, read = tmp_path / "log.csv", staging.stage
    path.write_text("ts,input_tokens\n1,1\n")

    def and_written(*given: Any) -> Any:
        found = read(*given)
        with path.open("a") as out:
            out.write("2,2\n")
        return found

    monkeypatch.setattr(staging, "stage", and_written)
    with pytest.raises(LogError, match=r"log\.csv: was written while it was read"):
        load(path, tmp_path / "log.duckdb")
    assert [one.name for one in tmp_path.iterdir()] == ["log.csv"]


def test_a_folder_that_cannot_be_listed_is_no_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any, onerror: Any, **options: Any) -> Any:
        onerror(PermissionError(13, "Permission denied", str(tmp_path / "inner")))

    monkeypatch.setattr(os, "walk", refuse)
    with pytest.raises(LogError, match=r"inner: the folder cannot be listed \(Permission denied\)"):
        load(tmp_path)


def test_a_pipe_is_named_as_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(LogError, match=r"pipe\.csv: neither a file nor a folder"):
        load(tmp_path / "pipe.csv")


def test_parents_that_the_log_lacks_are_counted(tmp_path: Path) -> None:
    rows = [{"ts": 1, "request_id": "a", "parent_request_id": "zz", "input_tokens": 5},
            {"ts": 2, "request_id": "b", "parent_request_id": "a", "input_tokens": 9}]  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = "1 requests name a parent that is not among the requests; each starts a chain of its own"
    assert said in load(tmp_path / "log.jsonl").facts.warnings


def test_an_empty_name_is_not_the_folder_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.csv").write_text("ts,input_tokens\n1,1\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LogError, match="named by an empty text"):
        load("")
    assert load(".").facts.kept == 1


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_hints_that_no_policy_can_use_are_counted(tmp_path: Path, kind: str) -> None:
    rows = [(1, 50, 9), (2, 101, 9), (3, "high", 9), (4, 0, -1), (5, 100, 0)]
    path = tmp_path / f"log.{kind}"
    if kind == "csv":
        lines = [f"{ts},7,{priority},{kept}" for ts, priority, kept in rows]
        path.write_text("\n".join(["ts,input_tokens,priority,retention_seconds", *lines]) + "\n")
    else:
        names = ("ts", "priority", "retention_seconds")
        lines = [json.dumps({"input_tokens": 7, **dict(zip(names, row, strict=True))}) for row in rows]
        path.write_text("\n".join(lines) + "\n")
    log = load(path)
    assert log.facts.kept == 5 and any(said.startswith("priority: 3 rows have") for said in log.facts.derived)
    found = log.con.sql("SELECT priority, retention_seconds FROM request ORDER BY ts").fetchall()
    assert found == [(50, 9.0), (None, 9.0), (None, 9.0), (0, None), (100, 0.0)]
