"""Helpers of the format tests: write an example, load it, read its normalised rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kit.log import Log, load

TOKENS = "input_tokens, uncached_tokens, read_tokens, write_tokens, write_long_tokens, output_tokens"


def lines(records: Iterable[dict[str, Any]]) -> str:
    """Records as JSON lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


def load_text(folder: Path, text: str, name: str = "example") -> Log:
    """A log from text; the name says nothing about the layout."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return load(path)


def tokens(log: Log) -> list[tuple[Any, ...]]:
    """Token classes of every request in order: input, uncached, read, write, write_long, output."""
    return log.con.sql(f"SELECT {TOKENS} FROM request ORDER BY request_id").fetchall()


def column(log: Log, name: str) -> list[Any]:
    """One request column in order."""
    return [row[0] for row in log.con.sql(f"SELECT {name} FROM request ORDER BY request_id").fetchall()]


def adds_up(log: Log) -> bool:
    """Where classes are known they add up to the input."""
    wrong = log.con.sql(
        "SELECT count(*) FROM request WHERE uncached_tokens IS NOT NULL AND uncached_tokens + coalesce(read_tokens, 0) "
        "+ coalesce(write_tokens, 0) + coalesce(write_long_tokens, 0) <> input_tokens"
    ).fetchall()[0][0]
    return bool(wrong == 0)
