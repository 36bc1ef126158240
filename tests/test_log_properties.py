"""Laws of reading: packing, splitting and shuffling change nothing, repeats count once, rows are conserved."""

from __future__ import annotations

import gzip
import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.log import Log, load

START = datetime(2026, 3, 1, tzinfo=UTC)
FEW = settings(max_examples=6, deadline=None)
COLUMNS = "ts, session_id, chain_id, session_type, turn, model, prefix_key, prefix_tokens, input_tokens, source_id"

BAD = ["{", "", '{"ts":"x","input_tokens":1}', "[]", '{"input_tokens":-1}']
row = st.fixed_dictionaries(
    {
        "prefix_key": st.sampled_from(["a", "b", "c", None]),
        "extra": st.integers(0, 500),
        "session_id": st.sampled_from(["s1", "s2", None]),
        "model": st.sampled_from(["m1", "m2"]),
    }
)


def records(drawn: list[dict[str, Any]], gap: float = 1.0) -> list[dict[str, Any]]:
    """Requests with unique times and ids; a key has one length per model."""
    out = []
    for index, item in enumerate(drawn):
        length = {"a": 100, "b": 250, "c": 40}.get(item["prefix_key"] or "")
        out.append({
            "request_id": f"r{index}", "ts": (START + timedelta(seconds=index * gap)).isoformat(), **item,
            "prefix_tokens": length, "input_tokens": (length or 0) + item["extra"] + 1,
        })  # fmt: skip
        del out[-1]["extra"]
    return out


def text(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(item) + "\n" for item in rows)


def tables(log: Log) -> tuple[Any, ...]:
    """Everything a reader of the log can see, except where a row stood."""
    return (
        log.con.sql(f"SELECT {COLUMNS} FROM request ORDER BY request_id").fetchall(),
        log.con.sql("SELECT * FROM node ORDER BY node_id").fetchall(),
        log.con.sql("SELECT * FROM request_node ORDER BY request_id").fetchall(),
        log.con.sql("SELECT reason, count(*) FROM rejected GROUP BY ALL ORDER BY ALL").fetchall(),
    )


def read(files: dict[str, bytes]) -> Log:
    with tempfile.TemporaryDirectory() as name:
        for file, data in files.items():
            (Path(name) / file).write_bytes(data)
        return load(name)


@FEW
@given(st.lists(row, min_size=1, max_size=30), st.data())
def test_packing_and_splitting_change_nothing(drawn: list[dict[str, Any]], data: st.DataObject) -> None:
    lines = text(records(drawn)).encode().splitlines(keepends=True)
    cut = data.draw(st.integers(0, len(lines)))
    whole = tables(read({"log": b"".join(lines)}))
    assert tables(read({"log.gz": gzip.compress(b"".join(lines))})) == whole
    assert tables(read({"log.zst": pa.compress(b"".join(lines), codec="zstd", asbytes=True)})) == whole
    parts = {"1": b"".join(lines[:cut]), "2": gzip.compress(b"".join(lines[cut:]))}
    assert tables(read({name: part for name, part in parts.items() if lines[cut:] or name == "1"})) == whole


@FEW
@given(st.lists(row, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_shuffling_lines_changes_nothing_where_times_are_unique(drawn: list[dict[str, Any]], random: Any) -> None:
    rows = records(drawn)
    whole = tables(read({"log": text(rows).encode()}))
    random.shuffle(rows)
    assert tables(read({"log": text(rows).encode()})) == whole


@FEW
@given(st.lists(row, min_size=2, max_size=20), st.integers(2, 5))
def test_ties_keep_the_order_of_the_file(drawn: list[dict[str, Any]], size: int) -> None:
    rows = records(drawn, gap=0)
    for index, item in enumerate(rows):
        item["ts"] = (START + timedelta(seconds=-(index // size))).isoformat()
    log = read({"log": text(rows).encode()})
    found = [name for (name,) in log.con.sql("SELECT source_id FROM request ORDER BY request_id").fetchall()]
    want = sorted(range(len(rows)), key=lambda index: (rows[index]["ts"], index))
    assert found == [f"r{index}" for index in want]


@FEW
@given(st.lists(row, min_size=1, max_size=20), st.data())
def test_repeats_count_once_and_are_said(drawn: list[dict[str, Any]], data: st.DataObject) -> None:
    rows = records(drawn)
    again = data.draw(st.lists(st.sampled_from(rows), max_size=10))
    once = read({"log": text(rows).encode()})
    twice = read({"log": text(rows + again).encode()})
    assert tables(twice)[:3] == tables(once)[:3]
    assert twice.facts.rejected == ({"repeats a request id": len(again)} if again else {})
    assert twice.facts.rows == twice.facts.kept + len(again)


def test_the_same_file_twice_is_read_once() -> None:
    data = b"TIMESTAMP,ContextTokens,GeneratedTokens\n2026-03-01 10:00:00,5,1\n2026-03-01 10:00:00,5,1\n"
    log = read({"a.csv": data, "b.csv": data})
    assert log.facts.kept == 2 and any("b.csv: same bytes" in said for said in log.facts.warnings)


@FEW
@given(st.lists(st.one_of(row, st.sampled_from(BAD)), min_size=1, max_size=30))
def test_rows_are_conserved(drawn: list[Any]) -> None:
    plain = {"prefix_key": None, "extra": 1, "session_id": None, "model": "m1"}
    good = records([item for item in drawn if isinstance(item, dict)] or [plain])
    bad = [item for item in drawn if isinstance(item, str)]
    log = read({"log": (text(good) + "\n".join(bad)).encode()})
    facts = log.facts
    assert facts.kept == len(good) and facts.rows == facts.kept + sum(facts.rejected.values())
    assert sum(facts.rejected.values()) == sum(1 for item in bad if item)


@FEW
@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=25))
def test_paths_have_the_lengths_of_the_log(paths: list[list[int]]) -> None:
    rows = [
        {"ts": index, "path_keys": [str(key) for key in path], "path_tokens": [10 * (key + 1) for key in path],
         "input_tokens": sum(10 * (key + 1) for key in path) + 1}
        for index, path in enumerate(paths)
    ]  # fmt: skip
    log = read({"log": text(rows).encode()})
    found = log.con.sql(
        "WITH RECURSIVE path AS (SELECT node_id, tokens AS total, 1 AS steps FROM node WHERE parent_id IS NULL "
        "UNION ALL "
        "SELECT n.node_id, n.tokens + p.total, p.steps + 1 FROM node n JOIN path p ON n.parent_id = p.node_id) "
        "SELECT total, steps FROM request_node JOIN path USING (node_id) ORDER BY request_id"
    ).fetchall()
    assert found == [(sum(10 * (key + 1) for key in path), len(path)) for path in paths]
    prefixes = {tuple(path[: i + 1]) for path in paths for i in range(len(path))}
    assert log.facts.keys == len(prefixes)
    assert log.con.sql("SELECT count(*) FROM node WHERE parent_id >= node_id").fetchall() == [(0,)]
