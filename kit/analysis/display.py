"""What a notebook cell shows: a sentence as text and a table with units, the same on every run."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from kit import numbers

LONGEST_TABLE = 60
SHARES = frozenset({"share", "ratio", "overlap", "ks"})  # last words of columns that hold 0 to 1


class Sentence(str):
    """A sentence with its numbers in it; a notebook sets it as prose."""

    def _repr_markdown_(self) -> str:
        return str(self)


def written(column: str, value: Any) -> str:
    """A table cell as a reader wants it; the unit is told by the end of the column's name."""
    if value is None:
        return numbers.ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    unit = column.rsplit("_", 1)[-1]
    if unit in SHARES:
        return numbers.percent(value)
    if unit == "seconds":
        return numbers.seconds(value)
    if isinstance(value, int):
        return numbers.count(value)
    if isinstance(value, float):
        return numbers.decimal(value, 2) if abs(value) >= 1 else f"{value:.4g}"
    return str(value)


@dataclass(frozen=True)
class Table:
    """A frame with a caption: numbers to the right, units in the head, no type row."""

    frame: pl.DataFrame = field(repr=False)
    caption: str

    def __repr__(self) -> str:
        return f"<table: {self.caption}, {self.frame.height} rows>"

    def _repr_html_(self) -> str:
        names = self.frame.columns
        right = {name for name, kind in self.frame.schema.items() if kind.is_numeric()}
        head = "".join(f'<th scope="col">{html.escape(name.replace("_", " "))}</th>' for name in names)
        body = "".join(self._row(row, right) for row in self.frame.head(LONGEST_TABLE).iter_rows(named=True))
        body = body or f"<tr><td colspan={len(names)}>none</td></tr>"
        left = self.frame.height - LONGEST_TABLE
        more = f"<tfoot><tr><td colspan={len(names)}>and {numbers.count(left)} more rows</td></tr></tfoot>"
        caption = f"<caption>{html.escape(self.caption)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody>{more if left > 0 else ''}</table>"

    @staticmethod
    def _row(row: dict[str, Any], right: set[str]) -> str:
        cells = (
            f'<td style="text-align:{"right" if name in right else "left"}">{html.escape(written(name, value))}</td>'
            for name, value in row.items()
        )
        return f"<tr>{''.join(cells)}</tr>"
