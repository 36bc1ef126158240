"""Columns as people name them: names that a reader uses itself, names that differ by case, names that lead nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kit.log import load

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
