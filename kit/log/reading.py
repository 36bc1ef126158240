"""Raw records as text: one SQL relation per container, and how a field is found in it.

CSV is read with every column as text, JSON as one text per line that is parsed once into exactly the named fields.
Nothing is inferred. What the reader itself refuses (wrong number of columns, over-long lines) is kept with its line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import duckdb

from kit.formats import Field, Format, Peek
from kit.formats.kinds import NO_VALUE

LINE_BYTES = 16 << 20
REFUSALS = (
    "ignore_errors = true, store_rejects = true, rejects_table = 'refused_line', rejects_scan = 'refused_scan', "
    "rejects_limit = 0"
)
LISTS = ("keys", "ids", "texts", "counts", "segments")
NO_VALUES = NO_VALUE.replace("(", "[").replace(")", "]")
NUMBER, FILE = "(record number)", "(file of the record)"
"""What the number and the file of a record are called beside a log's own columns: names that no log has."""
INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT"}


def quoted(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def column(name: str) -> str:
    """A SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Reader:
    """A relation `record` in SQL, the expression and type of each field in it, the expressions for damaged and blank
    records, what else to stage, and what the number and the file of a record are called in the relation."""

    relation: str
    values: Mapping[str, tuple[str, str]]
    damaged: str = "NULL"
    blank: str = "false"
    beside: str = ""
    number: str = "rn"
    file: str = "filename"


def _paths_sql(paths: Sequence[Any]) -> str:
    return "[" + ", ".join(quoted(str(path)) for path in paths) + "]"


def _spec(paths: Sequence[list[str]]) -> Any:
    """Nested json_transform structure for the wanted paths; a wanted leaf that is also a parent stays whole text."""
    groups: dict[str, list[list[str]]] = {}
    for first, *rest in paths:
        groups.setdefault(first, []).append(rest)
    return {name: _spec(rest) if all(rest) else "VARCHAR" for name, rest in groups.items()}


def _dig(base: str, spec: Any, steps: Sequence[str]) -> str:
    """Expression of one path under a json_transform result (below a whole-text leaf: by JSON path)."""
    expression = base
    for index, step in enumerate(steps):
        if spec == "VARCHAR":
            return f"json_extract_string(TRY_CAST({expression} AS JSON), {_pointer(steps[index:])})"
        expression, spec = f"{expression}.{column(step)}", spec[step]
    return expression


def _structure(spec: Any) -> str:
    if spec == "VARCHAR":
        return '"VARCHAR"'
    return "{" + ", ".join(f"{json.dumps(name)}: {_structure(inner)}" for name, inner in spec.items()) + "}"


def _coalesce(parts: Sequence[str], known: bool = False) -> str:
    """The first part with a value; `known`: texts without one are NULL already."""
    values = list(parts) if known else [f"value_of({part})" for part in parts]
    return values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"


def json_values(base: str, fields: Sequence[Field]) -> tuple[str, dict[str, tuple[str, str]]]:
    """(SQL that parses `base` once into the fields' places, expression per field over that result named `j`)."""
    wanted = [path.split("/") for item in fields for path in item.paths]
    spec = _spec([steps for steps in wanted if not _is_twin(steps, wanted)])
    parse = f"json_transform({base}, {quoted(_structure(spec))})"

    def place(path: str) -> str:
        steps = path.split("/")
        return f"json_extract_string({base}, {_pointer(steps)})" if _is_twin(steps, wanted) else _dig("j", spec, steps)

    return parse, {item.name: (_coalesce([place(path) for path in item.paths]), "VARCHAR") for item in fields}


def _is_twin(steps: Sequence[str], wanted: Sequence[Sequence[str]]) -> bool:
    """True where another wanted path differs by letter case only up to some step: no structure holds them both."""
    return any(
        own != other and own.lower() == other.lower()
        for path in wanted
        for own, other in zip(steps, path, strict=False)
        if [step.lower() for step in path[:1]] == [step.lower() for step in steps[:1]]
    )


def _pointer(steps: Sequence[str]) -> str:
    """The steps as a JSON pointer in SQL."""
    return quoted("".join("/" + step.replace("~", "~0") for step in steps))


def _packing(one: Peek) -> str:
    return quoted(one.compression or "none")


def lines_sql(peeks: Sequence[Peek], longest: int) -> str:
    """Relation (rn, filename, text): one row per physical line, blank lines as NULL, in file order.

    Lines longer than `longest` bytes go to the table `refused_line`.
    """
    parts = [
        f"SELECT filename, text FROM read_csv({_paths_sql([one.path for one in run])}, "
        "columns = {'text': 'VARCHAR'}, "
        "delim = '\x01', quote = '', escape = '', header = false, auto_detect = false, strict_mode = false, "
        f"compression = {packing}, filename = true, max_line_size = {longest}, {REFUSALS})"
        for packing, run in groupby(peeks, key=_packing)
    ]
    return f"SELECT row_number() OVER () AS rn, filename, text FROM ({' UNION ALL '.join(parts)})"


def _json_reader(lines: str, form: Format, fields: Sequence[Field]) -> Reader:
    """Reader over a relation of lines; with `form.rows` a line is first cut into records."""
    parse, values = json_values("doc", fields)
    if form.rows is None:
        records = f"SELECT rn, filename, text, TRY_CAST(text AS JSON) AS doc FROM ({lines})"
    else:
        records = form.rows.replace("{lines}", lines)
    relation = f"SELECT rn, filename, text, doc, {parse} AS j FROM ({records})"
    damaged = (
        "CASE WHEN text IS NULL OR trim(text) = '' THEN NULL WHEN doc IS NULL THEN 'damaged line: not JSON' "
        "WHEN json_type(doc) <> 'OBJECT' THEN 'not a JSON object' END"
    )
    return Reader(relation, values, damaged, "(text IS NULL OR trim(text) = '')")


def is_plain(form: Format, peeks: Sequence[Peek]) -> bool:
    """True for JSON lines, one record each, whose number of lines is known."""
    return peeks[0].container == "jsonl" and form.rows is None and all(one.lines is not None for one in peeks)


def _columns_sql(spec: Any) -> str:
    """A type in SQL of the wanted places: text, or a struct of places."""
    if spec == "VARCHAR":
        return "VARCHAR"
    return f"STRUCT({', '.join(f'{column(name)} {_columns_sql(inner)}' for name, inner in spec.items())})"


def plain_reader(fields: Sequence[Field], peeks: Sequence[Peek]) -> Reader:
    """Reader by DuckDB's own JSON reader, every wanted place as text; `valued` is true where a place has something."""
    spec = _spec([path.split("/") for item in fields for path in item.paths])
    values = {
        item.name: (_coalesce([_dig(column(path.split("/")[0]), spec[path.split("/")[0]], path.split("/")[1:])
                               for path in item.paths]), "VARCHAR")
        for item in fields
    }  # fmt: skip
    columns = ", ".join(f"{quoted(name)}: {quoted(_columns_sql(inner))}" for name, inner in spec.items())
    parts = [
        f"SELECT * FROM read_json({_paths_sql([one.path for one in run])}, format = 'newline_delimited', "
        f"columns = {{{columns}}}, compression = {packing}, filename = {quoted(FILE)}, "
        f"maximum_object_size = {LINE_BYTES})"
        for packing, run in groupby(peeks, key=_packing)
    ]
    relation = _numbered(f"({' UNION ALL '.join(parts)})")
    some = " OR ".join(f"{column('v_' + item.name)} IS NOT NULL" for item in fields)
    return _table_reader(relation, values, f", {some} AS valued")


def _numbered(rows: str) -> str:
    return f"SELECT row_number() OVER () AS {column(NUMBER)}, * FROM {rows}"


def _table_reader(relation: str, values: Mapping[str, tuple[str, str]], beside: str = "") -> Reader:
    """Reader of columns that the log named: ours have names of their own."""
    return Reader(relation, values, beside=beside, number=column(NUMBER), file=column(FILE))


def _document_lines(paths: Sequence[Any]) -> str:
    """Relation (rn, filename, text) of whole JSON documents: the elements of a list, or the one object."""
    return (
        "SELECT row_number() OVER () AS rn, filename, text::VARCHAR AS text FROM (SELECT filename, unnest("
        "CASE WHEN left(ltrim(content), 1) = '[' THEN from_json(content, '[\"JSON\"]') ELSE [content::JSON] END) "
        "AS text "
        f"FROM (SELECT filename, ltrim(content, chr(65279)) AS content FROM read_text({_paths_sql(paths)})))"
    )


def _table_values(
    names: Mapping[str, str], fields: Sequence[Field], known: bool = False
) -> dict[str, tuple[str, str]]:
    """Expression and type per field over a table's columns; absent fields are NULL text. `known`: see `_coalesce`."""
    values = {}
    for item in fields:
        parts, kind, nested = [], "VARCHAR", False
        for path in item.paths:
            first, *rest = path.split("/")
            if path in names:
                parts.append(column(path))
                kind = names[path] if len(parts) == 1 else "VARCHAR"
            elif rest and first in names:
                nested = True
                parts.append(_inside(_as_json(column(first), names[first]), rest))
        if len(parts) > 1 or kind in ("VARCHAR", "DOUBLE", "FLOAT"):
            parts = [f"{part}::VARCHAR" for part in parts]
            values[item.name] = (_coalesce(parts, known and not nested) if parts else "NULL::VARCHAR", "VARCHAR")
        else:
            values[item.name] = (parts[0], kind)
    return values


def _as_json(name: str, kind: str) -> str:
    """A column as JSON: text that may hold it, or a nested value."""
    return f"TRY_CAST({name} AS JSON)" if kind in ("VARCHAR", "JSON") else f"to_json({name})"


def _inside(whole: str, steps: Sequence[str]) -> str:
    """A path inside a JSON value (or inside JSON text in a JSON string)."""
    pointer = quoted("".join("/" + step for step in steps))
    inner = f"CASE WHEN json_type({whole}) = 'VARCHAR' THEN TRY_CAST({whole} ->> '$' AS JSON) ELSE {whole} END"
    return f"json_extract_string({inner}, {pointer})"


def _csv_relation(peeks: Sequence[Peek], longest: int) -> str:
    """One read per distinct header, joined by name, in file order."""
    parts = []
    for one in peeks:
        columns = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in one.columns)
        parts.append(
            f"SELECT * FROM read_csv({quoted(str(one.path))}, columns = {{{columns}}}, delim = "
            f"{quoted(one.delimiter)}, "
            f"quote = '\"', escape = '\"', header = true, auto_detect = false, nullstr = {NO_VALUES}, "
            f"filename = {quoted(FILE)}, compression = {_packing(one)}, max_line_size = {longest}, {REFUSALS})"
        )
    return _numbered(f"({' UNION ALL BY NAME '.join(parts)})")


def reader(
    con: duckdb.DuckDBPyConnection, form: Format, fields: Sequence[Field], peeks: Sequence[Peek], longest: int
) -> Reader:
    """The reader for these files, all of one container and format; lines over `longest` bytes are refused."""
    paths = [one.path for one in peeks]
    container = peeks[0].container
    if container == "csv":
        names = {name: "VARCHAR" for one in peeks for name in one.columns}
        return _table_reader(_csv_relation(peeks, longest), _table_values(names, fields, True))
    if container == "parquet":
        scan = f"read_parquet({_paths_sql(paths)}, filename = {quoted(FILE)}, union_by_name = true)"
        described = con.sql(f"DESCRIBE SELECT * FROM {scan}").fetchall()
        names = {row[0]: row[1] for row in described}
        return _table_reader(_numbered(scan), _table_values(names, fields))
    if container == "json":
        return _json_reader(_document_lines(paths), form, fields)
    return _json_reader(lines_sql(peeks, longest), form, fields)  # JSON lines, or text that the format takes apart


def typed(kind: str, value: str, source_type: str) -> str:
    """The typed value of a field: NULL where the value does not fit its kind."""
    if source_type in INTEGERS and kind == "count":
        return f"CASE WHEN {value} >= 0 THEN TRY_CAST({value} AS BIGINT) END"
    if source_type.startswith("TIMESTAMP") and kind == "time":
        return f"{value}::TIMESTAMPTZ" if "TIME ZONE" in source_type else f"{value}::TIMESTAMP::TIMESTAMPTZ"
    if source_type.endswith("[]") and kind in LISTS:
        return _typed_list(kind, value, source_type.removesuffix("[]"))
    text = value if source_type == "VARCHAR" else f"{value}::VARCHAR"
    return f"{kind}_of({text})"


def _typed_list(kind: str, value: str, element: str) -> str:
    """A list of a table: whole numbers and text stay as they are, all else is judged by its JSON text."""
    if kind in ("keys", "texts") and element in (*INTEGERS, "VARCHAR"):
        return f"whole_list({value})" if kind == "keys" else value
    if kind in ("ids", "counts") and element in INTEGERS:
        kept = f"TRY_CAST({value} AS BIGINT[])" if kind == "counts" else value
        return f"CASE WHEN len({value}) = 0 OR list_min({value}) >= 0 THEN whole_list({kept}) END"
    return f"{kind}_of(to_json({value})::VARCHAR)"
