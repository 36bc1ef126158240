"""Which line of which file a record came from, also behind lines that the reader could not take apart.

Records are numbered over all files (`rn`). `origin(first_rn, file, first_line)` says for stretches of records where
they
begin: inside a stretch line = rn - first_rn + first_line. A new stretch begins with each file and behind refused lines.
In a CSV a line is a record: one with a line break inside a quoted value counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np

from kit.formats import Peek
from kit.log.staging import has_table

Con = duckdb.DuckDBPyConnection
REASONS = {
    "MISSING COLUMNS": "too few columns",
    "TOO MANY COLUMNS": "too many columns",
    "UNQUOTED VALUE": "a quote is never closed",
    "LINE SIZE OVER MAXIMUM": "longer than 100 MB",
    "INVALID ENCODING": "not UTF-8",
}
Unread = tuple[str, int, str]


def number_lines(con: Con, peeks: Sequence[Peek]) -> None:
    """Write the temporary tables `origin` and `unread(file, line, reason)` for the records in `staged`."""
    first_line = 2 if peeks[0].container == "csv" else 1
    begins = dict(con.sql("SELECT filename, min(rn) FROM staged GROUP BY ALL").fetchall())
    unread = _lost(con)
    refused = _refused(con)
    stretches: list[tuple[int, str, int]] = []
    for one in peeks:
        gone = sorted(line for file, line, _ in unread if file == one.label)
        for line, kind in refused.get(str(one.path), []):
            place = _in_original(line, gone)
            unread.append((one.label, place, f"damaged line: {REASONS.get(kind, kind.lower())}"))
        if str(one.path) in begins:
            lines = sorted({line for file, line, _ in unread if file == one.label})
            stretches += _stretches(begins[str(one.path)], one.label, first_line, lines)
    _write(con, "origin", {"first_rn": np.int64, "file": object, "first_line": np.int64}, stretches)
    _write(con, "unread", {"file": object, "line": np.int64, "reason": object}, sorted(unread))


def _write(con: Con, name: str, kinds: dict[str, type], rows: Sequence[tuple[Any, ...]]) -> None:
    """A temporary table of rows whose columns are whole numbers or text."""
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    con.register("written", {key: np.array(columns[at], kinds[key]) for at, key in enumerate(kinds)})
    typed = ", ".join(f"{key}::{'VARCHAR' if kind is object else 'BIGINT'} AS {key}" for key, kind in kinds.items())
    con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {typed} FROM written")
    con.unregister("written")


def _lost(con: Con) -> list[Unread]:
    """Lines that a rescue gave up."""
    return con.sql("SELECT file, line, reason FROM lost").fetchall()


def _refused(con: Con) -> dict[str, list[tuple[int, str]]]:
    """(line, kind of error) per path, each line once."""
    found: dict[str, list[tuple[int, str]]] = {}
    if has_table(con, "refused_line"):
        rows = con.sql(
            "SELECT file_path, line, min(error_type::VARCHAR) FROM refused_line "
            "JOIN (SELECT DISTINCT scan_id, file_id, file_path FROM refused_scan) USING (scan_id, file_id) "
            "GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        for path, line, kind in rows:
            found.setdefault(path, []).append((line, kind))
    return found


def _in_original(line: int, gone: Sequence[int]) -> int:
    """Line of the original file for a line of its copy, which lacks the lines in `gone`."""
    for missing in gone:
        if missing > line:
            break
        line += 1
    return line


def _stretches(first_rn: int, file: str, first_line: int, unread: Sequence[int]) -> list[tuple[int, str, int]]:
    """Stretches of one file: record i is on line first_line + i + number of unread lines before it."""
    found = {first_rn: (first_rn, file, first_line)}
    for index, line in enumerate(line for line in unread if line >= first_line):
        record = line - first_line - index
        found[first_rn + record] = (first_rn + record, file, first_line + record + index + 1)
    return list(found.values())
