"""Raw records to the staging table: every field typed or refused with a reason, then the format's SELECT list.

`staged` holds one row per record: the request columns, `reason` (NULL = good), `excerpt`, `is_request`. It is
temporary:
it never enters the log's file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb

from kit.formats import Field, Format, LogError, Peek
from kit.formats.kinds import create_macros, refusal
from kit.log.reading import LINE_BYTES, LISTS, Reader, column, is_plain, plain_reader, quoted, reader, typed
from kit.log.rescue import Refusal, mended, unpacked
from kit.log.sources import LONGEST_LINE_BYTES

COLUMNS: dict[str, str] = {
    "ts": "TIMESTAMPTZ",
    "ts_end": "TIMESTAMPTZ",
    "session_id": "VARCHAR",
    "chain_id": "VARCHAR",
    "session_type": "VARCHAR",
    "trigger": "VARCHAR",
    "provider": "VARCHAR",
    "model": "VARCHAR",
    "cache_scope": "VARCHAR",
    "replica": "VARCHAR",
    "owner": "VARCHAR",
    "priority": "BIGINT",
    "retention_seconds": "DOUBLE",
    "prefix_key": "VARCHAR",
    "prefix_tokens": "BIGINT",
    "input_tokens": "BIGINT",
    "uncached_tokens": "BIGINT",
    "read_tokens": "BIGINT",
    "write_tokens": "BIGINT",
    "write_long_tokens": "BIGINT",
    "output_tokens": "BIGINT",
    "source_id": "VARCHAR",
}
WORKING: dict[str, str] = {
    "parent_source_id": "VARCHAR",
    "path_keys": "",
    "path_tokens": "BIGINT[]",
    "path_types": "VARCHAR[]",
    "block_tokens": "BIGINT",
    "restart": "BOOLEAN",
    "root_scope": "VARCHAR",
    "resumed": "BOOLEAN",
    "runs": "BIGINT[][]",
    "key_scope": "VARCHAR",
    "lasted": "INTERVAL",
}
ALWAYS = ("ts", "ts_end", "session_id", "source_id", "resumed")
"""What later steps read or write of `staged` even where a format has no such column; the others are left out."""


def uses(expression: str, name: str) -> bool:
    """True when an SQL expression reads a field."""
    return re.search(rf"(?<![\w']){re.escape(name)}(?![\w'])", expression) is not None


def source_columns(form: Format, peeks: Sequence[Peek]) -> dict[str, str]:
    """For each request column the fields of the log it is computed from (`-` = none of them is there)."""
    present = {name for one in peeks for name in one.columns}
    out = {}
    for target in COLUMNS:
        expression = form.columns.get(target, "")
        places = [
            next((p for p in item.paths if p in present or p.split("/")[0] in present), None)
            for item in form.fields
            if uses(expression, item.name)
        ]
        out[target] = ", ".join(dict.fromkeys(place for place in places if place)) or "-"
    return out


WHOLE = r"\s*[0-9]+(\.0+)?\s*"
LIMITS = {
    "count": ("{} > 2147483647", " is above 2,147,483,647"),
    "counts": ("list_max({}) > 2147483647", " holds a number above 2,147,483,647"),
    "time": ("NOT {} BETWEEN TIMESTAMPTZ '1970-01-01 00:00:00Z' AND TIMESTAMPTZ '2100-01-01 00:00:00Z'",
             " is outside the years 1970 to 2099"),
    "decimal": ("NOT {} BETWEEN -1e9 AND 1e9", " is longer than any request takes"),
}  # fmt: skip
"""Values no request has: (condition over the typed column, reason). One of them would drown or break every sum."""


def _place(item: Field, columns: Collection[str]) -> str:
    """What the log itself calls a field."""
    return next((path for path in item.paths if path in columns or path.split("/")[0] in columns), item.paths[0])


def _unfit(item: Field, place: str) -> str:
    """The reason, in SQL, why a value of this field does not fit its kind."""
    value, plain = column("v_" + item.name), quoted(refusal(item.kind, place))
    if item.kind == "count":
        large = quoted(place + LIMITS["count"][1])
        return f"CASE WHEN regexp_full_match({value}::VARCHAR, '{WHOLE}') THEN {large} ELSE {plain} END"
    if item.kind == "time":
        offset = quoted(f"{place} has an offset from UTC that no clock has (accepted: -14:00 to +14:00)")
        hour = quoted(f"{place} is in an hour that the clock of its zone skips or repeats; log the offset")
        text = f"{value}::VARCHAR"
        return f"CASE WHEN no_offset({text}) THEN {offset} WHEN no_hour({text}) THEN {hour} ELSE {plain} END"
    return plain


def _found(items: Sequence[Field], columns: Collection[str]) -> str:
    """The values of fields in SQL: numbers and times as `shown` says them, of lists the length, of text nothing."""
    told = [
        f"CASE WHEN {column(item.name)} IS NOT NULL THEN {quoted(_place(item, columns) + ' of ')} "
        f"|| len({column(item.name)}) || ' values' END"
        if item.kind in LISTS or item.kind == "runs"
        else f"{quoted(_place(item, columns) + '=')} || shown({column('v_' + item.name)}::VARCHAR)"
        for item in items
        if item.kind not in ("text", "json")
    ]
    return f"nullif(concat_ws(', ', {', '.join(told)}), '')" if told else "NULL"


def _refusals(form: Format, columns: Collection[str]) -> list[tuple[str, str, str]]:
    """(condition, reason, what was found), all in SQL, in the order in which they are asked: a record set aside, a
    value that does not fit, a required one that is absent, one beyond all limits, a check of the format."""
    unfit = [item for item in form.fields if item.kind not in ("text", "json")]
    required = [item for item in form.fields if item.required]
    limited = [item for item in form.fields if item.kind in LIMITS]
    return [
        *((condition, quoted(reason), "NULL") for condition, reason in form.aside),
        *(
            (f"{column('v_' + item.name)} IS NOT NULL AND {column(item.name)} IS NULL",
             _unfit(item, _place(item, columns)),
             f"{quoted(_place(item, columns) + '=')} || shown({column('v_' + item.name)}::VARCHAR)")
            for item in unfit
        ),
        *((f"{column(item.name)} IS NULL", quoted(_place(item, columns) + " is missing"), "NULL") for item in required),
        *(
            (LIMITS[item.kind][0].format(column(item.name)), quoted(_place(item, columns) + LIMITS[item.kind][1]),
             _found([item], columns))
            for item in limited
        ),
        *(
            (condition, quoted(reason), _found([item for item in form.fields if uses(condition, item.name)], columns))
            for condition, reason in form.checks
        ),
    ]  # fmt: skip


def _first(cases: Sequence[tuple[str, str]]) -> str:
    """The first text, in SQL, whose condition holds."""
    return f"CASE {' '.join(f'WHEN {condition} THEN {text}' for condition, text in cases)} END" if cases else "NULL"


def _aside(form: Format) -> str:
    """True where the record is a good one that is set aside."""
    return " OR ".join(f"coalesce({condition}, false)" for condition, _ in form.aside) or "false"


def _epoch_unit(form: Format, source: Reader) -> str:
    """The unit that a bare number in the record's first time was taken for; NULL for other times."""
    times = [item for item in form.fields if item.kind == "time" and not source.values[item.name][1].startswith("TIME")]
    return f"epoch_unit_of({column('v_' + times[0].name)}::VARCHAR)" if times else "NULL::VARCHAR"


def _naive(form: Format, source: Reader) -> str:
    """True where a time of this record has no offset (it is then taken as UTC)."""
    times = [item for item in form.fields if item.kind == "time"]
    kinds = {source.values[item.name][1] for item in times}
    if kinds & {"TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP_MS", "TIMESTAMP_S"}:
        return "true"
    times = [item for item in times if source.values[item.name][1] == "VARCHAR"]
    return " OR ".join(f"coalesce(is_naive({column('v_' + item.name)}::VARCHAR), false)" for item in times) or "false"


TYPES = {
    "text": "VARCHAR", "count": "BIGINT", "time": "TIMESTAMPTZ", "ms": "TIMESTAMPTZ", "seconds": "TIMESTAMPTZ",
    "flag": "BOOLEAN", "decimal": "DOUBLE", "json": "VARCHAR", "counts": "BIGINT[]", "keys": "VARCHAR[]",
    "ids": "UBIGINT[]", "texts": "VARCHAR[]", "runs": "BIGINT[][]",
    "segments": "STRUCT(kind VARCHAR, tokens BIGINT)[]",
}  # fmt: skip
WORD = re.compile(r"'(?:[^']|'')*'|(?<![\w.\"])[A-Za-z_]\w*\b(?!\s*\()")
NOTHING = "NULL::VARCHAR"


def _present(form: Format, source: Reader) -> Format:
    """The format without the fields that no file has: NULL stands for them, where DuckDB can reckon with it once."""
    absent = {item.name: TYPES[item.kind] for item in form.fields if source.values[item.name][0] == NOTHING}

    def known(text: str) -> str:
        return WORD.sub(lambda found: f"NULL::{absent[found[0]]}" if found[0] in absent else found[0], text)

    return replace(
        form,
        fields=tuple(item for item in form.fields if item.name not in absent or item.required),
        columns={name: known(text) for name, text in form.columns.items()},
        checks=tuple((known(wrong), reason) for wrong, reason in form.checks),
        aside=tuple((known(wanted), reason) for wanted, reason in form.aside),
        keep=known(form.keep),
    )


def _wanted(form: Format) -> dict[str, str]:
    """Columns of `staged` with their types. Without later steps: only those that the format computes."""
    wanted = {**COLUMNS, **WORKING}
    wanted.update({name: "" for name in form.columns if name not in wanted})
    if form.prompt is not None or (form.after is not None and form.sets is None):
        return wanted
    given = {name for name, text in form.columns.items() if not text.startswith("NULL::")}
    return {name: kind for name, kind in wanted.items() if name in given or name in (*ALWAYS, *(form.sets or ()))}


def _stored(name: str, expression: str, kind: str) -> str:
    """The value of a column as it is staged: of its type, and a key that may be text in words only as its hash."""
    value = f"({expression}){'::' + kind if kind else ''}"
    return f"stored_key({value})" if name == "prefix_key" and not expression.startswith("NULL::") else value


def staging_sql(form: Format, source: Reader, columns: Collection[str] = ()) -> str:
    """The SELECT from raw records to staging columns; `columns` are the names in the log."""
    form = _present(form, source)
    refusals = _refusals(form, columns)
    reason = _first([(condition, text) for condition, text, _ in refusals])
    excerpt = _first([(condition, found) for condition, _, found in refusals])
    values = "".join(f", {source.values[item.name][0]} AS {column('v_' + item.name)}" for item in form.fields)
    casts = "".join(
        f", {typed(item.kind, column('v_' + item.name), source.values[item.name][1])} AS {column(item.name)}"
        for item in form.fields
    )
    selected = "".join(
        f", {_stored(name, form.columns[name], kind)} AS {column(name)}"
        if form.columns.get(name) is not None else f", NULL::{kind or 'VARCHAR[]'} AS {column(name)}"
        for name, kind in _wanted(form).items()
    )  # fmt: skip
    return (
        f"WITH valued AS (SELECT {source.number} AS rn, {source.file} AS filename, {source.damaged} AS damaged, "
        f"{source.blank} AS blank{values} "
        f"FROM ({source.relation})), "
        f"cast_row AS (SELECT *{casts} FROM valued), "
        f"judged AS (SELECT *, coalesce(damaged, {reason}) AS reason FROM cast_row) "
        f"SELECT rn, filename, NOT blank AND (damaged IS NOT NULL OR coalesce({form.keep}, false)) AS is_request, "
        f"reason, CASE WHEN reason IS NOT NULL THEN {excerpt} END AS excerpt, {_naive(form, source)} "
        "AS naive, "
        f"CASE WHEN reason IS NULL THEN false ELSE coalesce({_aside(form)}, false) END AS aside, "
        f"{_epoch_unit(form, source)} AS epoch_unit{selected}{source.beside} FROM judged"
    )


def stage(con: duckdb.DuckDBPyConnection, form: Format, peeks: Sequence[Peek], folder: Path) -> list[Peek]:
    """Fill the temporary table `staged` from the files; the files as they were read (damaged ones as rescued copies).

    `folder` holds copies of damaged files. Lines lost there are in the temporary table `lost(file, line, reason)`.
    Raises LogError when the reader cannot go on.
    """
    con.execute("CREATE OR REPLACE TEMP TABLE lost(file VARCHAR, line BIGINT, reason VARCHAR)")
    checked = [_noted(con, unpacked(one, folder)) for one in peeks]
    checked = [one for one in checked if one.lines != 0]
    if not checked:
        raise LogError(f"{peeks[0].label}: damaged compressed file, no whole line can be read; compress it again")
    _run(con, form, checked, LINE_BYTES)
    kinds = _refused(con)
    unclosed = {path for path, kind in kinds if kind == "UNQUOTED VALUE"}
    long = any(kind == "LINE SIZE OVER MAXIMUM" for _, kind in kinds)
    if unclosed or long:
        checked = [_noted(con, mended(one, folder)) if str(one.path) in unclosed else one for one in checked]
        _run(con, form, checked, LONGEST_LINE_BYTES if long else LINE_BYTES)
    return checked


def _noted(con: duckdb.DuckDBPyConnection, saved: tuple[Peek, list[Refusal]]) -> Peek:
    """Write down what was lost of a rescued file."""
    for gone in saved[1]:
        con.execute("INSERT INTO lost VALUES (?, ?, ?)", list(gone))
    return saved[0]


def _refused(con: duckdb.DuckDBPyConnection) -> set[tuple[str, str]]:
    """(file, kind of error) of every line that the reader could not take apart."""
    return set(
        con.sql(
            "SELECT DISTINCT file_path, error_type::VARCHAR FROM refused_line JOIN refused_scan USING (scan_id, "
            "file_id)"
        ).fetchall()
        if has_table(con, "refused_line")
        else []
    )


def has_table(con: duckdb.DuckDBPyConnection, name: str) -> bool:
    """True when the connection has a table of this name."""
    try:
        con.execute(f"SELECT 1 FROM {column(name)} LIMIT 0")
    except duckdb.CatalogException:
        return False
    return True


def _create(con: duckdb.DuckDBPyConnection, query: str) -> None:
    """`staged` as what a query gives."""
    for statement in create_macros(query):
        con.execute(statement)
    con.execute(f"CREATE OR REPLACE TEMP TABLE staged AS {query}")


def _names(peeks: Sequence[Peek]) -> set[str]:
    """The columns of all files."""
    return {name for one in peeks for name in one.columns}


def _run_fast(con: duckdb.DuckDBPyConnection, form: Format, peeks: Sequence[Peek]) -> bool:
    """Read well-formed JSON lines by DuckDB's own reader; False where a file needs the reader that looks at each line.

    DuckDB parses each line once, but it stops at a damaged one and has no line numbers: what it read counts only when
    every line of the files gave one record with a value.
    """
    if not is_plain(form, peeks):
        return False
    expected = sum(one.lines or 0 for one in peeks)
    query = staging_sql(form, plain_reader(form.fields, peeks), _names(peeks))
    try:
        _create(con, query)
    except (duckdb.InvalidInputException, duckdb.ConversionException, duckdb.IOException, duckdb.ProgrammingError):
        return False
    read = con.sql("SELECT count(*), count(*) FILTER (NOT coalesce(valued, false)) FROM staged").fetchall()[0]
    con.execute("ALTER TABLE staged DROP COLUMN valued")
    return read == (expected, 0)


def _run(con: duckdb.DuckDBPyConnection, form: Format, peeks: Sequence[Peek], longest: int) -> None:
    """Read the files once into `staged`."""
    for name in ("refused_line", "refused_scan"):
        con.execute(f"DROP TABLE IF EXISTS {name}")
    if _run_fast(con, form, peeks):
        return
    source = reader(con, form, form.fields, peeks, longest)
    try:
        _create(con, staging_sql(form, source, _names(peeks)))
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        first = str(error).splitlines()[0]
        raise LogError(f"{peeks[0].label}: cannot be read as {form.name}: {first}") from error
