"""Cells of a notebook's table: the unit is the last word of a column's name, and a count is written as a count."""

from __future__ import annotations

import polars as pl
import pytest

from kit.analysis.display import SHARES, Table, written
from kit.analysis.store import TABLES

COUNTS = ("breaks", "chunks", "blocks", "banks", "weeks", "forks", "different", "lost_tokens", "n", "requests")


@pytest.mark.parametrize("column", COUNTS)
def test_a_count_is_written_as_a_count(column: str) -> None:
    # `breaks` ends with the letters of `ks`, the distance of a fit, but it is no share: 1 is 1, not 100%.
    assert [written(column, value) for value in (0, 1, 2, 1234)] == ["0", "1", "2", "1,234"]


def test_a_share_is_told_by_the_last_word() -> None:
    assert [written(column, 0.25) for column in ("ks", "overlap", "token_share", "hit_token_ratio")] == ["25.0%"] * 4
    assert written("share_of_all", 1) == "1" and written("idle_to_seconds", 90.0) == "1.5 min"


def test_no_stored_column_ends_like_a_share_by_accident() -> None:
    columns = {column.split(":")[0] for _, names in TABLES.values() for column in names.split()}
    assert "breaks" in columns and "token_share" in columns
    alike = {column for column in columns if column.endswith(tuple(SHARES)) and column.rsplit("_", 1)[-1] not in SHARES}
    assert all(written(column, 1) == "1" for column in alike)


def test_a_table_without_rows_says_so() -> None:
    assert "<td colspan=2>none</td>" in Table(pl.DataFrame(schema={"a": pl.Int64, "b": pl.Int64}), "c")._repr_html_()
