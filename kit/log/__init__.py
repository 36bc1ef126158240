"""A log -> one DuckDB file: requests, prefix nodes, rejected rows with reasons, and what the log cannot tell.

`load` reads any known layout, `open_log` opens what `load` wrote, `inspect` says what a log is without keeping it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from kit.formats import REGISTRY, Format, LogError, Peek, UnknownNameError, kv_events, recognise
from kit.formats.kinds import HASHED_KEY, LONGEST_KEY
from kit.log import describe, hashing, identity, lines, requests, rescue, sources, staging
from kit.log import facts as facts_of
from kit.log.facts import LogFacts, calendar_days
from kit.log.mapping import mapped, read_mapping
from kit.log.sources import Sources, resolve

__all__ = [
    "Log",
    "LogError",
    "LogFacts",
    "UnknownNameError",
    "calendar_days",
    "hash_log",
    "inspect",
    "load",
    "open_log",
    "read_mapping",
    "residency",
]


MEMORY_LIMIT = "4GB"
LEAN_LIMIT = "512MB"
"""What loading into a file may use before DuckDB moves tables out of memory; a log that needs more gets the other."""
LOOKED_AT_CLOSELY = 20


@dataclass(frozen=True)
class Log:
    """A loaded log: the DuckDB connection, where its file is (None = in memory), and its measured facts."""

    con: duckdb.DuckDBPyConnection
    db_path: Path | None
    facts: LogFacts


def connect(
    path: str = ":memory:", read_only: bool = False, memory_limit: str = MEMORY_LIMIT
) -> duckdb.DuckDBPyConnection:
    """A connection whose session zone is UTC."""
    con = duckdb.connect(path, read_only=read_only)
    con.execute("SET TimeZone = 'UTC'")
    with suppress(duckdb.InvalidInputException):  # Jupyter without widgets: it has no bar to turn off
        con.execute("SET enable_progress_bar = false")
    con.execute(f"SET memory_limit = '{memory_limit}'")
    return con


def look(
    given: Sources, format_name: str | None = None, mapped: bool = False
) -> tuple[Format, float, list[Peek], sources.Files, list[str]]:
    """Recognise the files: (format, confidence, first looks, files, warnings). Raises LogError in one line.

    With the user's own names of columns (`mapped`) a layout nobody knows is read as the kit's own table.
    """
    files = sources.fingerprint(sources.resolve(given))
    warnings = [f"{name}: same bytes as another file; read once" for name in files.repeated]
    warnings += [f"{name}: empty file left out" for name in files.empty] + sources.dangling(given)
    if format_name is not None and format_name not in REGISTRY:
        raise UnknownNameError(f"no format is called {format_name}; known are {', '.join(REGISTRY)}")
    chosen: list[tuple[Format, float, Peek]] = []
    for place, path in enumerate(files.paths):
        try:
            form, confidence, one = _recognised(path, format_name, mapped, brief=place >= LOOKED_AT_CLOSELY)
        except LogError as error:
            if len(files.paths) == 1:
                raise
            warnings.append(f"left out: {error}")
            continue
        if one.compression is None:
            one = replace(one, lines=files.lines[path])
        chosen.append((form, confidence, one))
    if not chosen:
        raise LogError(f"none of the {len(files.paths)} files is a log; first: {warnings[-len(files.paths)]}")
    _one_layout(chosen)
    warnings += [note for _, _, one in chosen for note in one.notes]
    return chosen[0][0], min(item[1] for item in chosen), [item[2] for item in chosen], files, warnings


def _recognised(path: Path, format_name: str | None, mapped: bool, brief: bool) -> tuple[Format, float, Peek]:
    """(format, confidence, first look) of one file; a brief look that shows nothing is followed by a close one."""
    one = sources.peek(path, brief=brief)
    if format_name is not None:
        return REGISTRY[format_name], 1.0, one
    try:
        return *recognise(one), one
    except LogError:
        if brief:
            return _recognised(path, format_name, mapped, brief=False)
        if mapped:
            return REGISTRY["canonical"], 0.5, one
        raise


def _one_layout(chosen: Sequence[tuple[Format, float, Peek]]) -> None:
    kinds = {(form.name, one.container): one.path.name for form, _, one in chosen}
    if len(kinds) > 1:
        listed = "; ".join(f"{name} is {form} as {container}" for (form, container), name in kinds.items())
        raise LogError(f"the files are not one log: {listed}; name one kind of file")


def load(
    sources: Sources,
    db_path: str | Path | None = None,
    *,
    format: str | None = None,
    column_map: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Log:
    """Read a log into DuckDB: a file at `db_path` (written beside it and renamed when whole), else in memory.

    `sources` is a file, folder, glob or a list of them. `format` forces a layout, `column_map` maps canonical names to
    columns of the log. `settings`: `surrogate` = `session` (default: without prefix identity a session's prompts are
    taken to grow)
    or `none`. Raises LogError (one line: what was found, what is accepted, what to do next).
    """
    if db_path is None:
        con = connect()
        return Log(con, None, _fill(con, sources, format, column_map, settings or {}))
    target = Path(db_path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        _write(partial, LEAN_LIMIT, sources, format, column_map, settings or {})
    except duckdb.OutOfMemoryException:
        _write(partial, MEMORY_LIMIT, sources, format, column_map, settings or {})
    os.replace(partial, target)
    return open_log(target)


def _write(partial: Path, memory_limit: str, *given: Any) -> None:
    """The log as a whole file at `partial`; nothing is left there when it cannot be made."""
    try:
        con = connect(str(partial), memory_limit=memory_limit)
        try:
            _fill(con, *given)
            con.execute("CHECKPOINT")
        finally:
            con.close()
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    finally:
        partial.with_name(partial.name + ".wal").unlink(missing_ok=True)
        rmtree(partial.with_name(partial.name + ".tmp"), ignore_errors=True)


def open_log(db_path: str | Path) -> Log:
    """Open, read only, what `load` wrote. Raises LogError when the file is absent or not a loaded log."""
    path = Path(db_path)
    if not path.is_file():
        raise LogError(f"{path}: no such file; load a log first")
    try:
        con = connect(str(path), read_only=True)
        return Log(con, path, facts_of.read(con))
    except (duckdb.Error, KeyError, TypeError) as error:
        raise LogError(
            f"{path.name}: not a log that kit wrote ({str(error).splitlines()[0]}); load the log again"
        ) from error


def hash_log(
    sources: Sources,
    out: str | Path,
    *,
    salt: str | None = None,
    block_tokens: int = hashing.BLOCK_TOKENS,
    tokenizer: str | None = None,
    format: str | None = None,
    progress: hashing.Progress | None = None,
) -> dict[str, Any]:
    """`kit hash`: raw prompts -> a canonical Parquet log of salted keys that holds no prompt text, streaming.

    Returns {requests, hashed, rejected, block_tokens, out, derived}. Without `salt` a fresh secret is used and
    forgotten:
    two runs then share no key. `progress(bytes done, bytes in all)` is called per file. Raises LogError.
    """
    secret = hashing.new_salt(salt)
    if Path(out).resolve() in resolve(sources):
        raise LogError(f"{out}: this is the dump itself, which would be replaced; name another file for the hashed log")
    con = connect()
    options = {"block_tokens": block_tokens, "salt": secret, "tokenizer": tokenizer, "progress": progress}
    try:
        facts = _fill(con, sources, format, None, {"hashing": options})
        named = hashing.write_hashed(con, Path(out), secret)
    except ValueError as error:
        raise LogError(str(error)) from error
    finally:
        con.close()
    return {"requests": facts.requests, "hashed": named, "rejected": facts.rejected, "block_tokens": block_tokens,
            "out": str(out), "derived": list(facts.derived)}  # fmt: skip


def residency(given: Sources) -> dict[str, Any]:
    """What KV events say about a cache: see `kit.formats.kv_events.residency`. Raises LogError for other files."""
    form, _, peeks, _, _ = look(given)
    if form.name != "vllm_kv_events":
        raise LogError(f"{peeks[0].label}: recognised as {form.name}, not as KV events; use load")
    return kv_events.residency(event for one in peeks for _, event, _ in hashing.records(one) if isinstance(event,
    dict))


def inspect(
    sources: Sources, *, format: str | None = None, column_map: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What a log is, as plain values for `kit inspect`: every fact of `LogFacts` plus recognition and columns.

    Keys beside the facts: confidence (0 to 1), container, columns (found in the log), mapped (request column ->
    column of the log), not_used, units, coverage (share of kept rows with a value), identity_rule, token_rule,
    possible (questions the log can answer) and unlock (question -> what to log). Raises LogError as `load` does.
    """
    form, confidence, peeks, files, _ = look(sources, format, bool(column_map))
    if form.refuses is not None:
        return {
            "format": form.name, "title": form.title, "confidence": confidence, "sha256": files.sha256,
            "files": [one.label for one in peeks], "columns": list(peeks[0].columns),
            "rows": 0, "kept": 0, "rejected": {},
            "missing": [], "cannot_tell": [form.refuses], "units": dict(form.units),
            **({"residency": residency(sources)} if form.name == "vllm_kv_events" else {}),
        }  # fmt: skip
    log = load(sources, format=format, column_map=column_map)
    facts = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in
    asdict(log.facts).items()}
    facts = {name: list(value) if isinstance(value, tuple) else value for name, value in facts.items()}
    filled, found = facts_of.coverage(log.con), _keys(log.con, peeks)
    log.con.close()
    return describe.description(mapped(form, column_map, peeks), confidence, found, facts, filled, peeks)


def _keys(con: duckdb.DuckDBPyConnection, peeks: Sequence[Peek]) -> list[str]:
    """The columns of all files; of damaged ones as far as they can be read."""
    with TemporaryDirectory(prefix="log-") as folder:
        return describe.keys_of(con, [rescue.unpacked(one, Path(folder))[0] for one in peeks])


def _fill(
    con: duckdb.DuckDBPyConnection, given: Sources, format_name: str | None,
    column_map: Mapping[str, str] | None, settings: Mapping[str, Any],
) -> LogFacts:  # fmt: skip
    """Every step from files to facts on one connection."""
    form, _, peeks, files, warnings = look(given, format_name, bool(column_map))
    form = mapped(form, column_map, peeks)
    if form.refuses is not None:
        raise LogError(f"{peeks[0].label}: {form.refuses}")
    with TemporaryDirectory(prefix="log-") as folder:
        peeks = staging.stage(con, form, peeks, Path(folder))
        lines.number_lines(con, peeks)
        followed = _follow(con, form, peeks, settings)
    sources.check_unchanged(files)
    clock = requests.set_clock(con, form)
    warnings += requests.mark_repeats(con)
    set_aside = requests.write_rejected(con)
    warnings += requests.order_records(con, peeks[0].label)
    sessions, chains = requests.write_requests(con)
    kind, derived, doubts = identity.identify(con, settings.get("surrogate", "session"))
    empty = kind is not None and not requests.count(con, "SELECT count(*) FROM node")
    warnings += doubts
    requests.write_views(con)
    filled = facts_of.write_coverage(con, staging.source_columns(form, peeks))
    notes = [*followed, *_clock_note(clock), *derived, *_key_note(con), *_session_note(con)]
    measured = facts_of.measure(
        con,
        {"sha256": files.sha256, "format": form.name, "files": tuple(one.label for one in peeks),
         "identity": None if empty else kind, "empty": empty, "clock": clock, "units": dict(form.units),
         "derived": notes, "filled": filled, "sessions": sessions, "chains": chains},
        warnings,
        set_aside,
    )  # fmt: skip
    facts_of.store(con, measured)
    return measured


def _follow(
    con: duckdb.DuckDBPyConnection, form: Format, peeks: list[Peek], settings: Mapping[str, Any]
) -> list[str]:
    """The format's own step and the hashing of prompts, while the files are at hand; what they derived."""
    followed = form.after(con) if form.after is not None else []
    if hashing.has_prompts(form, peeks):
        followed += hashing.hash_prompts(con, form, peeks, **settings.get("hashing", {}))
    return followed


def _clock_note(clock: str) -> list[str]:
    return {
        "session": ["ts: times are relative to each session; sessions start at a seeded draw within 7 days"],
        "none": ["ts: the log has no times; requests follow each other 10 s apart in file order"],
    }.get(clock, [])


def _key_note(con: duckdb.DuckDBPyConnection) -> list[str]:
    hashed = requests.count(con, f"SELECT count(*) FROM request WHERE starts_with(prefix_key, '{HASHED_KEY}')")
    rule = f"prefix_key: with white space or over {LONGEST_KEY} characters (it may be a prompt) stored as its SHA-256"
    return [rule] if hashed else []


def _session_note(con: duckdb.DuckDBPyConnection) -> list[str]:
    given = requests.count(con, "SELECT count(session_type) FROM ordered")
    made = requests.count(con, "SELECT count(session_type) FROM request")
    rule = (
        "session_type: agent when a tool triggers a request of the session, chat when it has more than one, else single"
    )
    return [rule] if made and not given else []
