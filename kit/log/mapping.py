"""The user's own names: `--map canonical=column`, alone or from a file (TOML or JSON, `canonical = "column"`)."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from kit.formats import Field, Format, LogError, Peek, UnknownNameError
from kit.formats.canonical import NAMES
from kit.formats.kinds import create_macros
from kit.log.reading import reader
from kit.log.rescue import DAMAGE
from kit.log.sources import LONGEST_LINE_BYTES, open_bytes
from kit.log.staging import COLUMNS, WORKING, uses

TARGETS = {"request_id": "source_id", "parent_request_id": "parent_source_id"}
ACCEPTED = tuple(name for name in NAMES if name in COLUMNS or name in WORKING or name in TARGETS)


def read_mapping(path: str | Path) -> dict[str, str]:
    """{canonical: column} from a `.toml` or `.json` file. Raises LogError in one line when it is no such table."""
    source = Path(path)
    try:
        text = source.read_text(encoding="utf-8-sig")
        table = tomllib.loads(text) if source.suffix == ".toml" else json.loads(text)
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error).splitlines()[0]
        raise LogError(f'{source.name}: no mapping file ({why}); write lines such as ts = "when"') from None
    if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
        raise LogError(f'{source.name}: a mapping is a table of text, such as ts = "when"')
    return dict(table)


def mapped(form: Format, column_map: Mapping[str, str] | None, peeks: Sequence[Peek]) -> Format:
    """The format with the user's `canonical=column` mapping laid over it."""
    if not column_map:
        return form
    fields, columns = list(form.fields), dict(form.columns)
    for name, source in column_map.items():
        if name not in ACCEPTED:
            known = ", ".join(ACCEPTED)
            raise UnknownNameError(f"--map {name}={source}: no column is called {name}; accepted are {known}")
        opened = _opened_at(name, source, form, peeks)
        own, target = name if form.name == "canonical" else f"mapped_{name}", TARGETS.get(name, name)
        replaced = form.columns.get(target) or ""
        fields = [
            replace(item, required=item.required and not uses(replaced, item.name))
            for item in fields
            if item.name != own
        ]
        fields.append(Field(own, NAMES[name][0], (source,)))
        if opened is not None:
            fields.append(Field(f"opened_{name}", "json", (opened,)))
        if form.name != "canonical":
            columns[target] = own
    clock = "absolute" if "ts" in column_map else form.clock
    return replace(form, fields=tuple(fields), columns=columns, clock=clock)


def _opened_at(name: str, source: str, form: Format, peeks: Sequence[Peek]) -> str | None:
    """The place above a mapped one whose value is JSON in a text, to be read whole; None where there is none.

    Raises where a mapping names no place (UnknownNameError), or one that no record has (LogError). Files are searched
    to their end when their first records lack the place; of records that the format cuts out of a line nobody knows
    the places beforehand.
    """
    table = peeks[0].container in ("csv", "parquet")
    if any(one.has(source) for one in peeks) and (table or "/" not in source):
        return None
    steps = source.split("/")
    if not all(steps):
        raise UnknownNameError(f"--map {name}={source}: {source!r} is no path; write a column, or column/key in it")
    if form.rows is not None:
        return None
    looked = [depth for one in peeks for record in one.records if (depth := _depth(record, steps)) is not None]
    found = max(looked) if looked else next((depth for one in peeks for depth in _depths(one, steps)), None)
    if found is None and not table and any(one.has(source) for one in peeks):
        raise LogError(f"--map {name}={source}: a slash leads into an object, so a key that has one cannot be named; "
                       "export it under another name")  # fmt: skip
    if found is None and not (table and _is_in_table(form, peeks, source)):
        columns = ", ".join(peeks[0].columns[:12])
        raise LogError(f"--map {name}={source}: {peeks[0].label} has no column {source}; it has {columns}")
    return "/".join(steps[:found]) if found and not table else None


def _depths(one: Peek, steps: Sequence[str]) -> Iterator[int]:
    """For each record of a JSON file that has the place: its `_depth`."""
    if one.container not in ("jsonl", "json"):
        return
    spelled = {json.dumps(steps[0], ensure_ascii=plain).encode() for plain in (True, False)}
    with suppress(*DAMAGE, RecursionError), open_bytes(one.path) as stream:
        for text in stream if one.container == "jsonl" else [stream.read()]:
            if any(key in text for key in spelled):
                with suppress(ValueError, RecursionError):
                    whole = json.loads(text.decode("utf-8-sig"))
                    for record in whole if isinstance(whole, list) else [whole]:
                        if (depth := _depth(record, steps)) is not None:
                            yield depth


def _depth(value: Any, steps: Sequence[str]) -> int | None:
    """Steps to the JSON text that the others lead into (0: to none), None where the keys do not follow each other."""
    text_at = 0
    for taken, step in enumerate(steps):
        if isinstance(value, str):
            text_at = text_at or taken
            with suppress(ValueError, RecursionError):
                value = json.loads(value)
        if not isinstance(value, dict) or step not in value:
            return None
        value = value[step]
    return text_at


def _is_in_table(form: Format, peeks: Sequence[Peek], source: str) -> bool:
    """True when some row of a table has a value at a path inside a column (or cannot be read before it is mended)."""
    con = duckdb.connect()
    try:
        place = Field("place", "text", (source,))
        found = reader(con, form, (place,), peeks, LONGEST_LINE_BYTES)
        query = f"SELECT 1 FROM ({found.relation}) WHERE {found.values[place.name][0]} IS NOT NULL LIMIT 1"
        for statement in create_macros(query):
            con.execute(statement)
        return bool(con.execute(query).fetchall())
    except duckdb.Error:
        return peeks[0].compression is not None
    finally:
        con.close()
