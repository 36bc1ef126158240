"""The pieces a report is made of: tables, figures, lists and words, as plain values that a template lays out.

Every cell is already written text (see `kit.numbers`); escaping is the template's, spreadsheet safety is here. In a CSV
file a written number is the number itself, and its unit is in the head.
"""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kit import numbers

_LONGEST_CELL = 300
SHORT_ROWS = 12
_FORMULA_START = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


Cell = str | tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table: caption with its unit, heads, rows of written cells (the first names the row), and a note.

    A cell is a text, or a list of texts that stand below each other.

    `text_columns` are left-aligned words, all others right-aligned figures. `marked` rows stand out (with words too),
    `muted` ones recede. `narrow` says what a phone does: "stack" each row, or "scroll" the table inside its own frame.
    """

    name: str
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    text_columns: frozenset[int] = frozenset({0})
    marked: frozenset[int] = frozenset()
    muted: frozenset[int] = frozenset()
    narrow: str = "stack"
    kind: str = "table"
    records: tuple[Mapping[str, Any], ...] = ()

    @property
    def csv_href(self) -> str:
        """The same cells as a `data:` link to a CSV file: numbers as numbers, their units in the head.

        `records` stand there instead, where a cell holds more than a file's column may.
        """
        if self.records:
            return csv_link(self.records)
        columns: dict[str, list[Any]] = {}
        for place, head in enumerate(self.head):
            columns |= csv_columns(head, [row[place] for row in self.rows])
        return csv_link([dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)])

    @property
    def short(self) -> bool:
        """Whether it fits a part of a page, so that print does not break it."""
        return len(self.rows) <= SHORT_ROWS and not any(isinstance(cell, tuple) for row in self.rows for cell in row)


def csv_columns(head: str, cells: Sequence[Cell]) -> dict[str, list[Any]]:
    """The columns of a file for one column of a table, by their heads.

    Written numbers become numbers: one column with its unit in the head, or where units differ from row to row one more
    for the unit; an interval two, low and high. A column with numbers is empty where the table has none.
    """
    units = {cell.unit for cell in cells if isinstance(cell, numbers.Written)}
    if not units:
        return {head: [_one_line(cell) for cell in cells]}
    unit = next(iter(units)) if len(units) == 1 else ""
    name = f"{head} ({unit})" if unit and unit not in head else head
    if any(isinstance(cell, numbers.Written) and isinstance(cell.value, tuple) for cell in cells):
        made = {f"{name}, {end}": [_raw(cell, place) for cell in cells] for place, end in enumerate(("low", "high"))}
    else:
        made = {name: [_raw(cell, 0) for cell in cells]}
    return made if len(units) == 1 else made | {f"{head}, unit": [getattr(cell, "unit", "") for cell in cells]}


def _raw(cell: Cell, end: int) -> Any:
    """The number of a cell (of an interval that end) with nine figures; None where there is none or it is unknown."""
    if not isinstance(cell, numbers.Written):
        return None
    value = cell.value[end] if isinstance(cell.value, tuple) else cell.value
    return float(f"{value:.9g}") if isinstance(value, float) else value


def units(interval: Mapping[str, Any] | None) -> int | None:
    """How many sessions or stretches an interval rests on; None where it rests on days or that is not known."""
    found = interval or {}
    return None if "day" in str(found.get("basis") or "").split("(")[0] else found.get("units")


def _one_line(cell: Cell) -> str:
    return cell if isinstance(cell, str) else "; ".join(cell)


@dataclass(frozen=True)
class Picture:
    """A figure ready for the page: two drawings (wide, and narrow for a phone) and its data as a link.

    `budgets` is what the script needs for a slider (see `kit.report.interactive`); empty where there is none.
    """

    name: str
    finding: str
    alt: str
    caption: str
    wide: str
    narrow: str
    csv_href: str
    budgets: str = ""
    kind: str = "picture"


@dataclass(frozen=True)
class Text:
    """A paragraph; `style` is "note" for small print."""

    text: str
    style: str = ""
    kind: str = "text"


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    items: tuple[str, ...]
    kind: str = "items"


@dataclass(frozen=True)
class Words:
    """Pairs of a word and what it says."""

    pairs: tuple[tuple[str, str], ...]
    kind: str = "words"


Part = Table | Picture | Text | Items | Words


@dataclass(frozen=True)
class Section:
    """One heading of the report with its parts; `readers` says who it is for."""

    name: str
    title: str
    parts: tuple[Part, ...]
    readers: frozenset[str] = frozenset({"finance", "infra"})


def plain(value: Any, longest: int | None = _LONGEST_CELL) -> str:
    """A value from a log as one line of text: control and direction-changing characters become a visible mark.

    Such characters can hide or reorder what a reader sees; HTML is escaped later, by the template.
    """
    text = numbers.visible(" ".join(str(value).replace("\t", " ").splitlines()))
    return text if longest is None or len(text) <= longest else text[: longest - 1] + "…"


def written(value: Any) -> str:
    """Any value of the results as text: numbers by rule, None as not found, an empty one as absent, the rest plain."""
    if value is None:
        return numbers.NOT_FOUND
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return numbers.count(value)
    if isinstance(value, float):
        return numbers.count(value) if value.is_integer() else numbers.decimal(value, 4 if abs(value) < 1 else 2)
    if isinstance(value, Mapping):
        return ", ".join(f"{plain(key)}: {written(item)}" for key, item in value.items()) or numbers.ABSENT
    if isinstance(value, (list, tuple)):
        return ", ".join(written(item) for item in value) or numbers.ABSENT
    return plain(value) or numbers.ABSENT


def csv_cell(value: Any) -> Any:
    """A cell no spreadsheet takes for a formula: text that starts like one gets an apostrophe; numbers stay."""
    if value is None:
        return ""
    if isinstance(value, (int, float)):
        return value
    text = plain(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA_START) and text != numbers.ABSENT else text


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as RFC 4180 CSV; columns in order of first appearance, null is an empty cell."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([csv_cell(column) for column in columns])
    writer.writerows([csv_cell(row.get(column)) for column in columns] for row in rows)
    return out.getvalue()


def csv_link(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a `data:` link, so that the numbers travel inside the one HTML file."""
    return "data:text/csv;charset=utf-8," + quote(csv_text(rows), safe="")


def svg_link(svg: str) -> str:
    """An SVG as a `data:` link for an image."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
