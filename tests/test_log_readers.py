"""Two readers of JSON lines, one result: DuckDB's own where every line is well formed, else the one that looks at each.

The texts of values are the hard part: what is a count, a time or a list must not depend on how the line was read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.formats import LogError
from kit.formats.kinds import KINDS, create_macros
from kit.log import load, staging

GOOD = '{"timestamp": 1, "input_length": 600, "output_length": 3, "hash_ids": [1, 2]}'


def tables(path: Path, fast: bool) -> tuple[Any, list[bool]]:
    """Requests, rejected rows and nodes (or the error), and whether the fast reader was taken."""
    taken: list[bool] = []
    own = staging._run_fast

    def tried(*given: Any) -> bool:
        taken.append(own(*given) if fast else False)
        return taken[-1]

    with patch.object(staging, "_run_fast", tried):
        try:
            con = load(path, format="mooncake").con
        except LogError as error:
            return str(error), taken
        return [con.sql(f"FROM {name} ORDER BY ALL").fetchall() for name in ("request", "rejected", "node")], taken


@pytest.mark.parametrize(
    ("text", "fast"),
    [
        (GOOD + "\n" + GOOD, True),
        ("\ufeff" + GOOD + "\r\n" + GOOD + "\r\n", True),
        (GOOD + "\n" + GOOD.replace("3", "3.5"), True),
        (GOOD + "\n" + GOOD.replace("3", "true"), True),
        (GOOD + "\n" + GOOD.replace("3", '"3"'), True),
        (GOOD + "\n" + GOOD.replace("[1, 2]", "[1.5, 2]"), True),
        (GOOD + "\n" + GOOD.replace("[1, 2]", "[1, null]"), True),
        (GOOD + "\n" + GOOD.replace("[1, 2]", "[18446744073709551614, 9007199254740993]"), True),
        (GOOD + "\n" + GOOD.replace("3", "NaN"), True),
        (GOOD + "\n\n" + GOOD, False),
        (GOOD + GOOD + "\n\n" + GOOD, False),
        (GOOD + "\nnull\n", False),
        (GOOD + "\n{}\n", False),
        (GOOD + "\n[1]\n", False),
        (GOOD + "\n" + GOOD[:40], False),
        (GOOD + " x\n" + GOOD, False),
        (GOOD + "\n" + GOOD.upper(), False),
    ],
)
def test_both_readers_agree(text: str, fast: bool, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(text, newline="")
    found, taken = tables(path, fast=True)
    assert taken == [fast] and found == tables(path, fast=False)[0]


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 10**6), st.floats(allow_nan=False), st.text(max_size=6),
    st.lists(st.integers(0, 3), max_size=3), st.just({"a": 1}),
)  # fmt: skip


@given(rows=st.lists(st.fixed_dictionaries({}, optional={
    "timestamp": VALUES, "input_length": VALUES, "output_length": VALUES, "hash_ids": VALUES, "other": VALUES,
}), min_size=1, max_size=5))  # fmt: skip
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_both_readers_agree_on_any_values(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join([GOOD, *map(json.dumps, rows)]) + "\n")
    assert tables(path, fast=True)[0] == tables(path, fast=False)[0]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("count", "12", 12), ("count", " 12 ", 12), ("count", "12.0", 12), ("count", "1e3", 1000),
        ("count", "007", 7), ("count", "12.5", None), ("count", "-1", None), ("count", "+5", None),
        ("count", "0x10", None), ("count", "true", None), ("count", "9007199254740993", 9_007_199_254_740_993),
        # one moment, 2026-03-01T10:00:00Z = 1,772,359,200 s, in every spelling and unit
        ("time", "2026-03-01T10:00:00Z", 1_772_359_200_000_000),
        ("time", "2026-03-01 10:00:00", 1_772_359_200_000_000),
        ("time", "2026-03-01T12:00:00+02:00", 1_772_359_200_000_000),
        ("time", "2026-03-01 05:00:00 -0500", 1_772_359_200_000_000),
        ("time", "2026-03-01 10:00:00.1234567", 1_772_359_200_123_456),
        ("time", "2026-03-01T10:00:00,5Z", 1_772_359_200_500_000),
        # offsets end at 14 hours either way, and at 59 minutes
        ("time", "2026-03-02T00:00:00+14:00", 1_772_359_200_000_000),
        ("time", "2026-02-28T22:30:00-1130", 1_772_359_200_000_000),
        ("time", "2026-03-01T10:00:00+99:00", None), ("time", "2026-03-01T10:00:00+14:01", None),
        ("time", "2026-03-01 10:00:00-15", None), ("time", "2026-03-01T10:00:00.5-9900", None),
        ("time", "2026-03-01 10:00 +05:60", None),
        # the clock of Berlin skips 02:00 to 03:00 on 29 March, and has that hour twice on 25 October
        ("time", "2026-03-29 03:00:00 Europe/Berlin", 1_774_746_000_000_000),
        ("time", "2026-03-29 02:30:00 Europe/Berlin", None), ("time", "2026-10-25T02:30:00 Europe/Berlin", None),
        ("time", "2026-10-25 03:00 Europe/Berlin", 1_792_893_600_000_000),
        ("time", "2026-07-01T12:00:00 PST", None), ("time", "2026-07-01T12:00:00 Moon/Base", None),
        ("time", "1772359200", 1_772_359_200_000_000), ("time", "1772359200000", 1_772_359_200_000_000),
        ("time", "1772359200.1234567", 1_772_359_200_123_456), ("time", "1772359200123456", 1_772_359_200_123_456),
        ("time", "1772359200123456789", 1_772_359_200_123_456), ("time", "1.7723592e9", 1_772_359_200_000_000),
        ("time", "1772359200000.5", 1_772_359_200_000_500), ("time", "-5.5", None), ("time", "yesterday", None),
        ("ms", "1500", 1_500_000), ("ms", "0.5", 500), ("ms", "-1", None),
        ("seconds", "61.114", 61_114_000), ("seconds", "61", 61_000_000), ("seconds", "-0.1", None),
    ],
)  # fmt: skip
def test_the_value_of_a_text(kind: str, text: str, value: int | None) -> None:
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    query = f"SELECT {kind}_of($text)" if kind == "count" else f"SELECT epoch_us({kind}_of($text))"
    for statement in create_macros(query):
        con.execute(statement)
    assert con.sql(query, params={"text": text}).fetchall() == [(value,)]


@pytest.mark.parametrize(
    ("text", "naive"),
    [("2026-03-01 10:00:00", True), ("2026-03-01T10:00:00.123", True), ("2026-03-01", True), ("1772359200", False),
     ("2026-03-01T10:00:00Z", False), ("2026-03-01T10:00:00+02:00", False), ("2026-03-01 10:00:00-05", False),
     ("2026-01-01 10:00+02", False), ("2026-1-1 1:00+02:00", False), ("2026-03-01 10:00:00 Europe/Berlin", False)],
)  # fmt: skip
def test_a_time_without_a_zone_is_told(text: str, naive: bool) -> None:
    con = duckdb.connect()
    for statement in create_macros("SELECT is_naive($text)"):
        con.execute(statement)
    assert con.sql("SELECT is_naive($text)", params={"text": text}).fetchall() == [(naive,)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_brings_the_macros_it_needs_and_no_others(kind: str) -> None:
    con = duckdb.connect()
    for statement in create_macros(f"SELECT {kind}_of(x)"):
        con.execute(statement)
    assert con.sql(f"SELECT {kind}_of(NULL::VARCHAR)").fetchall() == [(None,)]
    assert not create_macros("SELECT count(*) FROM request")


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ('["a", 1]', ["a", "1"]), ("[-1, 2]", ["-1", "2"]), ("[]", []), ('["1.5", 2]', ["1.5", "2"]),
        ('["a\\"b,1.5", "["]', ['a"b,1.5', "["]), (f"[{2**200}]", [str(2**200)]),
        ("[1.0, 2]", None), ("[1e3]", None), ('["a", 1.5]', None), ("[NaN]", None), ("[true]", None),
        ('["a", false]', None), ('["a", null]', None), ("[[1]]", None), ('[{"a": 1}]', None), ('{"a": 1}', None),
    ],
)  # fmt: skip
def test_keys_are_whole_numbers_or_text(text: str, keys: list[str] | None) -> None:
    con = duckdb.connect()
    for statement in create_macros():
        con.execute(statement)
    assert con.sql("SELECT keys_of($text)", params={"text": text}).fetchall() == [(keys,)]


@pytest.mark.parametrize(
    ("keys", "tokens"),
    [
        ([["a", "b"], ["a", "c"]], [[1.5, 2.5], [3.0, 4.0]]),
        ([["a", "b"], ["a", "c"]], [[10, None], [3, 4]]),
        ([["a", "b"], ["a", "c"]], [["x", "y"], ["3", "4"]]),
        ([["a", "b"], ["a", "c"]], [[[1], [2]], [[3], [4]]]),
        ([["a", "b"], ["a", "c"]], [[1, -2], [3, 4]]),
        ([[1, None], [3, 4]], [[10, 10], [10, 10]]),
        ([[1.5, 2.5], [3.0, 4.0]], [[10, 10], [10, 10]]),
        ([[[1], [2]], [[3], [4]]], [[10, 10], [10, 10]]),
    ],
)
def test_lists_of_a_table_are_judged_as_lists_in_json(keys: Any, tokens: Any, tmp_path: Path) -> None:
    # a third row without lists is good in every file
    rows = [{"ts": place, "input_tokens": 100, "path_keys": key, "path_tokens": size}
            for place, (key, size) in enumerate(zip(keys, tokens, strict=True))]  # fmt: skip
    rows.append({"ts": 2, "input_tokens": 100, "path_keys": None, "path_tokens": None})
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")

    def verdicts(path: Path) -> Any:
        con = load(path, format="canonical").con
        parts = ("line, reason FROM rejected", "line, input_tokens FROM request", "tokens, depth FROM node")
        return [con.sql(f"SELECT {part} ORDER BY ALL").fetchall() for part in parts]

    assert verdicts(tmp_path / "log.parquet") == verdicts(tmp_path / "log.jsonl")
