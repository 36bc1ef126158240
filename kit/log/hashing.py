"""Prompts to block keys while a log is read, and `kit hash`: a log others may have, without a word of any prompt.

The pass streams line by line. Only keys, lengths and types reach DuckDB.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb

from kit.formats import Format, LogError, Peek
from kit.formats.prompts import PROMPT_COLUMNS, Prompt, encoder, hash_prompt, opened
from kit.formats.prompts import Path as Hashed
from kit.log.reading import column, reader
from kit.log.sources import LONGEST_LINE_BYTES, open_bytes

Con = duckdb.DuckDBPyConnection
Progress = Callable[[int, int], None]
BLOCK_TOKENS = 64
BATCH = 2000
TABLES = ("csv", "parquet")


def has_prompts(form: Format, peeks: Sequence[Peek]) -> bool:
    """True when the format can hold prompts and some looked-at record has one."""
    if form.prompt is None:
        return False
    read = form.prompt
    if peeks[0].container == "text":
        return any(read(str(record["text"])) for one in peeks for record in one.records)
    table = peeks[0].container in TABLES
    return any(one.any_record(lambda record: read(opened(record) if table else record) is not None) for one in peeks)


def records(one: Peek) -> Iterator[tuple[int, Any, int]]:
    """(place from 1, record, bytes) of a file: parsed lines, lines of text, or the elements of a document."""
    with open_bytes(one.path) as stream:
        if one.container == "json":
            whole = json.loads(stream.read().decode("utf-8-sig"))
            yield from ((place, item, 0) for place, item in enumerate(whole if isinstance(whole, list) else [whole], 1))
            return
        for place, line in enumerate(stream, 1):
            text = line.decode("utf-8", "replace").lstrip("\ufeff")
            try:
                yield place, text if one.container == "text" else json.loads(text), len(line)
            except (ValueError, RecursionError):
                continue


def rows(con: Con, form: Format, peeks: Sequence[Peek]) -> Iterator[tuple[int, Any]]:
    """(number over all files, record) of tables: the columns that may hold a prompt, JSON in them opened.

    Read by a connection of its own and handed over in batches: no table ever holds them.
    """
    names = [name for name in PROMPT_COLUMNS if any(one.has(name) for one in peeks)]
    source = reader(con, form, (), peeks, LONGEST_LINE_BYTES)
    apart = con.cursor()
    chosen = ", ".join(column(name) for name in names)
    for batch in apart.sql(f"SELECT {source.number} AS rn, {chosen} FROM ({source.relation})").to_arrow_reader(BATCH):
        for record in batch.to_pylist():
            yield record.pop("rn"), opened(record)
    apart.close()


def _prompt(form: Format, record: Any) -> Prompt | None:
    """The prompt of a record; a record of another shape has none."""
    try:
        found: Prompt | None = form.prompt(record) if form.prompt is not None else None
        return found
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def hash_prompts(
    con: Con, form: Format, peeks: Sequence[Peek], *, block_tokens: int = BLOCK_TOKENS, salt: bytes = b"",
    tokenizer: str | None = None, progress: Progress | None = None,
) -> list[str]:  # fmt: skip
    """Fill path_keys, path_tokens and path_types of `staged` from the prompts; statements about what was estimated.

    `progress(bytes done, bytes in all)` is called while reading.
    """
    encode = encoder(tokenizer)
    con.execute(
        "CREATE OR REPLACE TEMP TABLE prompt_path(filename VARCHAR, place BIGINT, keys UBIGINT[], tokens BIGINT[], "
        "types VARCHAR[])"
    )
    if peeks[0].container in TABLES:
        exact = _hash_rows(con, form, peeks, lambda found: hash_prompt(found, block_tokens, salt, encode), progress)
        return _attach(con, block_tokens, exact or tokenizer is not None, PLACED_ROWS)
    sizes = [one.path.stat().st_size for one in peeks]
    exact = True
    for index, one in enumerate(peeks):
        before, seen, batch = sum(sizes[:index]), 0, list[dict[str, Any]]()
        for place, record, size in records(one):
            seen += size
            if (found := _prompt(form, record)) is None:
                continue
            exact = exact and found.ids is not None
            path = hash_prompt(found, block_tokens, salt, encode)
            batch.append({"filename": str(one.path), "place": place, **asdict(path)})
            if len(batch) == BATCH:
                _store(con, batch)
                batch = []
                _tell(progress, before + min(sizes[index], seen), sum(sizes))
        _store(con, batch)
        _tell(progress, before + sizes[index], sum(sizes))
    return _attach(con, block_tokens, exact or tokenizer is not None, PLACED)


def _hash_rows(
    con: Con, form: Format, peeks: Sequence[Peek], hashed: Callable[[Prompt], Hashed], progress: Progress | None
) -> bool:
    """The prompts of a table's rows into `prompt_path`; True when every length is exact."""
    exact, batch = True, list[dict[str, Any]]()
    total = int(con.sql("SELECT count(*) FROM staged").fetchall()[0][0])
    for number, record in rows(con, form, peeks):
        if (found := _prompt(form, record)) is None:
            continue
        exact = exact and found.ids is not None
        batch.append({"filename": "", "place": number, **asdict(hashed(found))})
        if len(batch) == BATCH:
            _store(con, batch)
            batch = []
            _tell(progress, number, total)
    _store(con, batch)
    _tell(progress, total, total)
    return exact


def _tell(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)


def _store(con: Con, batch: list[dict[str, Any]]) -> None:
    if batch:
        import pyarrow as pa  # 25 MB that logs without prompts do not need

        schema = pa.schema(
            [("filename", pa.string()), ("place", pa.int64()), ("keys", pa.list_(pa.uint64())),
             ("tokens", pa.list_(pa.int64())), ("types", pa.list_(pa.string()))]
        )  # fmt: skip
        con.register("hashed", pa.Table.from_pylist(batch, schema))
        con.execute("INSERT INTO prompt_path SELECT * FROM hashed")
        con.unregister("hashed")


PLACED = (
    "(SELECT r, filename, input_tokens, rn - first_rn + first_line AS place FROM "
    "(SELECT rowid AS r, filename, input_tokens, rn FROM staged) ASOF JOIN origin ON rn >= first_rn)"
)


PLACED_ROWS = "(SELECT rowid AS r, '' AS filename, input_tokens, rn AS place FROM staged)"


def _attach(con: Con, block_tokens: int, exact: bool, placed: str) -> list[str]:
    """Join paths to records by line; a path longer than the reported prompt is cut to the full blocks that fit it."""
    ratio = con.sql(
        f"SELECT median(input_tokens / list_sum(tokens)) FROM prompt_path JOIN {placed} USING (filename, place) "
        "WHERE input_tokens > 0 AND len(tokens) > 0"
    ).fetchall()[0][0]
    con.execute(
        "UPDATE staged SET input_tokens = coalesce(staged.input_tokens, whole), path_keys = keys[:fits], "
        "path_tokens = tokens[:fits], path_types = types[:fits], block_tokens = $block FROM (SELECT s.r, p.*, "
        "list_sum(p.tokens) AS whole, CASE WHEN s.input_tokens < list_sum(p.tokens) THEN s.input_tokens // $block "
        f"ELSE len(p.keys) END AS fits FROM prompt_path p JOIN {placed} s USING (filename, place)) WHERE "
        "staged.rowid = r",
        {"block": block_tokens},
    )
    con.execute("UPDATE staged SET path_types = NULL WHERE list_unique(path_types) = 1 AND path_types[1] = ''")
    out = [f"path_keys: prompts are hashed in blocks of {block_tokens} tokens; no prompt text is stored"]
    if not exact:
        known = f"; the log's own totals are {ratio:.2f} times that (median)" if ratio else ""
        out.append(f"path_tokens: estimated at 4 bytes per token{known}")
    return out


def new_salt(text: str | None) -> bytes:
    """The salt's bytes: the given text, else a fresh secret that nobody keeps."""
    return text.encode() if text is not None else secrets.token_bytes(32)


def write_hashed(con: Con, out: Path, salt: bytes) -> int:
    """Write the requests with their paths as canonical Parquet; ids of people and sessions become salted hashes."""
    named = con.sql("SELECT count(path_keys) FROM ordered").fetchall()[0][0]
    if not named:
        raise LogError("no prompt text or token ids in this log: nothing to hash; log the request bodies")
    secret = salt.hex()
    hidden = ", ".join(
        f"CASE WHEN r.{name} IS NOT NULL THEN left(sha256($secret || r.{name}), 16) END AS {target}"
        for name, target in (("source_id", "request_id"), ("session_id", "session_id"), ("chain_id", "chain_id"),
                             ("owner", "owner"), ("cache_scope", "cache_scope"))
    )  # fmt: skip
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    query = (
        f"SELECT r.ts, r.ts_end, {hidden}, r.session_type, r.trigger, r.provider, r.model, r.input_tokens, "
        "r.uncached_tokens, r.read_tokens, r.write_tokens, r.write_long_tokens, r.output_tokens, o.path_keys, "
        "o.path_tokens, "
        "o.path_types, o.block_tokens FROM request r JOIN ordered o USING (request_id) ORDER BY r.request_id"
    ).replace("$secret", f"'{secret}'")
    try:
        con.execute(f"COPY ({query}) TO '{str(part).replace(chr(39), chr(39) * 2)}' (FORMAT parquet, COMPRESSION zstd)")
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    return int(named)
