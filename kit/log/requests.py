"""Staged records to the `request` and `rejected` tables: one row per request, in time order, every loss with a
reason."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np

from kit.formats import Format, LogError
from kit.log.codes import code_sql, numbered, turns
from kit.log.reading import quoted
from kit.log.staging import COLUMNS, WORKING

Con = duckdb.DuckDBPyConnection
REPEATED = "repeats a request id"
RESUMED = "later attempt of a request"
SPREAD_US = 7 * 86_400 * 1_000_000
TURN_US = 10 * 1_000_000


def count(con: Con, query: str) -> int:
    """The single number a query gives."""
    return int(con.sql(query).fetchall()[0][0] or 0)


def set_clock(con: Con, form: Format) -> str:
    """Give every staged record an absolute time; the clock in force: absolute, relative, session or none.

    Session-relative times start at a seeded draw within 7 days. Without any time, records follow each other 10 s apart.
    """
    timed = count(con, "SELECT count(ts) FROM staged WHERE is_request AND reason IS NULL")
    if not timed and form.clock != "relative":
        con.execute(f"UPDATE staged SET ts = make_timestamp((rn - 1) * {TURN_US})::TIMESTAMPTZ WHERE is_request")
        return "none"
    if form.clock == "session":
        con.execute(
            "UPDATE staged SET ts = ts + to_microseconds(start), ts_end = ts_end + to_microseconds(start) FROM ("
            f"SELECT session_id AS s, (md5_number_lower(coalesce(session_id, '')) % {SPREAD_US})::BIGINT AS start "
            "FROM staged GROUP BY ALL) WHERE session_id IS NOT DISTINCT FROM s"
        )
        return "session"
    con.execute("UPDATE staged SET reason = 'time is missing' WHERE is_request AND reason IS NULL AND ts IS NULL")
    if form.clock == "absolute" and count(con, "SELECT count(*) FROM staged WHERE ts >= TIMESTAMPTZ '2000-01-01'") == 0:
        return "relative"
    return form.clock


def mark_repeats(con: Con) -> list[str]:
    """Rows that repeat a request id count once (the first in file order); later attempts of a request not at all.

    Returns a warning where repeated ids stand at other times: such ids may not be unique.
    """
    if count(con, "SELECT count(*) FROM staged WHERE resumed"):
        con.execute(
            f"UPDATE staged SET reason = '{RESUMED}', aside = true WHERE is_request AND reason IS NULL AND "
            "coalesce(resumed, false)"
        )
    good = "FROM staged WHERE is_request AND reason IS NULL"
    if not _has_repeats(con, good):
        return []
    con.execute(
        "CREATE OR REPLACE TEMP TABLE repeat AS SELECT rowid AS r, ts <> first(ts) OVER same AS moved, "
        f"row_number() OVER same AS place {good} AND source_id IS NOT NULL "
        "WINDOW same AS (PARTITION BY source_id ORDER BY rn, rowid)"
    )
    con.execute(
        f"UPDATE staged SET reason = '{REPEATED}', aside = true WHERE rowid IN (SELECT r FROM repeat WHERE place > 1)"
    )
    moved = count(con, "SELECT count(*) FROM repeat WHERE place > 1 AND moved")
    if not moved:
        return []
    return [f"{moved:,} rows repeat a request id at another time; if ids are not unique, map another column to it"]


def _has_repeats(con: Con, good: str) -> bool:
    """True when two good records have the same request id (or, never seen, the same code of one)."""
    if not count(con, f"SELECT count(source_id) {good}"):
        return False
    codes = column(con, f"SELECT {code_sql('source_id')} AS code {good}")
    return numbered(codes)[1].size < int(np.count_nonzero(codes))


def column(con: Con, query: str) -> Any:
    """One result column as a numpy array (NULL must not occur)."""
    (only,) = con.sql(query).fetchnumpy().values()
    return np.asarray(only)


def write_rejected(con: Con) -> int:
    """The `rejected` table: refused records, and what the reader could not take apart. Number of rows only set
    aside."""
    con.execute(
        "CREATE TABLE rejected AS SELECT file, line, reason, excerpt FROM (SELECT file, "
        "(rn - first_rn + first_line)::BIGINT AS line, reason, CASE WHEN NOT aside THEN excerpt END AS excerpt "
        "FROM (SELECT * FROM staged WHERE is_request AND reason IS NOT NULL) ASOF JOIN origin ON rn >= first_rn "
        "UNION ALL SELECT file, line, reason, NULL FROM unread) ORDER BY file, line"
    )
    return count(con, "SELECT count(*) FROM staged WHERE is_request AND reason IS NOT NULL AND aside")


def _absent(con: Con) -> str:
    """The request and working columns that `staged` does not have, as NULL of their type."""
    here = {row[0] for row in con.sql("DESCRIBE staged").fetchall()}
    wanted = {**COLUMNS, **WORKING}
    return "".join(f", NULL::{kind or 'VARCHAR[]'} AS {name}" for name, kind in wanted.items() if name not in here)


def order_records(con: Con, label: str) -> list[str]:
    """`ordered`: good records with their dense `request_id` in (time, file) order; a view where they already are.

    What is doubtful about their ends comes back. Raises LogError with the commonest reason, and the value it was first
    found in, when no record is good; `label` names the log's first file.
    """
    good = "FROM staged WHERE is_request AND reason IS NULL"
    back = count(con, f"SELECT count(*) FROM (SELECT ts < lag(ts) OVER () AS back {good}) WHERE back")
    if back:
        con.execute(f"CREATE OR REPLACE TEMP TABLE sorted AS SELECT * {good} ORDER BY ts, rn, rowid")
        con.execute("DROP TABLE staged")
        con.execute("ALTER TABLE sorted RENAME TO staged")
    con.execute(
        "CREATE OR REPLACE TEMP VIEW ordered AS SELECT row_number() OVER () - 1 AS request_id, "
        f"coalesce(chain_id, session_id) AS chain, * FROM (SELECT *{_absent(con)} {good})"
    )
    if not count(con, "SELECT count(*) FROM staged WHERE is_request AND reason IS NULL"):
        raise LogError(_nothing(con, label))
    early = count(con, "SELECT count(*) FROM ordered WHERE coalesce(ts_end, ts + lasted) < ts")
    return [f"{early:,} requests end before they start; their ends are left out"] if early else []


def _nothing(con: Con, label: str) -> str:
    """Why there is no request: the commonest reason, where it stands first, and what was found there."""
    rows = con.sql(
        "SELECT reason, count(*) AS times, arg_min(file, (file, line)), arg_min(line, (file, line)), "
        "arg_min(coalesce(excerpt, ''), (file, line)), (SELECT count(*) FROM rejected) FROM rejected GROUP BY reason "
        "ORDER BY times DESC, reason LIMIT 1"
    ).fetchall()
    if not rows:
        return f"{label}: no request found: there are no rows; export the log again"
    reason, times, file, line, excerpt, refused = rows[0]
    found = f", {excerpt}" if excerpt else ""
    many = "" if times == refused else f", {times:,} of {refused:,}"
    return (
        f"no request found: every row was refused{many} because: {reason} (first in {file} on line {line}{found}); "
        "export the log again or map columns with --map"
    )


KINDS = ("single", "chat", "agent")


def _sessions(con: Con) -> tuple[dict[str, Any], int, int]:
    """Per record of `ordered` its turn and derived kind of session, where there are any; numbers of sessions, chains.

    A session is an agent's when a tool triggers a request of it, a chat when it has more than one, else single.
    """
    have = con.sql("SELECT count(chain), count(session_id), count(chain_id) FROM ordered").fetchall()[0]
    if not have[0]:
        return {}, 0, 0
    chain, names = numbered(column(con, f"SELECT {code_sql('chain')} AS code FROM ordered"))
    chains = names.size
    out: dict[str, Any] = {"turn": turns(chain, chains)}
    if not have[1]:
        return out, 0, chains
    session, sessions = chain, chains
    if have[2]:
        session, names = numbered(column(con, f"SELECT {code_sql('session_id')} AS code FROM ordered"))
        sessions = names.size
    known = session >= 0
    kind = (np.bincount(session[known], minlength=sessions) > 1).astype(np.int8)
    if count(con, "SELECT count(*) FROM ordered WHERE trigger = 'tool'"):
        tool = column(con, "SELECT coalesce(trigger = 'tool', false) AS tool FROM ordered")
        kind[session[known & tool]] = 2
    out["kind"] = np.where(known, kind[np.maximum(session, 0)], np.int8(-1))
    return out, sessions, chains


def _places(con: Con) -> tuple[str, str, dict[str, Any]]:
    """SQL of the file and the line of each record of `ordered`, and the columns beside it that they read."""
    origin = con.sql("SELECT file, first_rn, first_line - first_rn FROM origin ORDER BY first_rn").fetchall()
    files, first, shift = zip(*origin, strict=True)
    if len(files) == 1:
        return quoted(files[0]), f"rn + ({shift[0]})", {}
    record = column(con, "SELECT rn FROM ordered")
    stretch = np.searchsorted(np.array(first), record, side="right") - 1
    return "b.file", "b.line", {"file": np.array(files, object)[stretch], "line": record + np.array(shift)[stretch]}


def write_requests(con: Con) -> tuple[int, int]:
    """The `request` table from `ordered`, with derived turn and session type; numbers of sessions and chains."""
    beside, sessions, chains = _sessions(con)
    file, line, placed = _places(con)
    turn = "nullif(b.turn, 0)" if "turn" in beside else "NULL"
    kind = "CASE b.kind" + "".join(f" WHEN {code} THEN '{word}'" for code, word in enumerate(KINDS)) + " END"
    rest = ", ".join(list(COLUMNS)[list(COLUMNS).index("trigger") + 1 : -1])
    columns = beside | placed
    if columns:
        con.register("beside", columns)
    con.execute(
        "CREATE TABLE request AS SELECT request_id::BIGINT AS request_id, ts, "
        "CASE WHEN coalesce(ts_end, ts + lasted) >= ts THEN coalesce(ts_end, ts + lasted) END AS ts_end, "
        f"session_id, chain AS chain_id, coalesce(session_type, {kind if 'kind' in beside else 'NULL::VARCHAR'}) AS "
        f"session_type, trigger, {turn}::INTEGER AS turn, {rest}, source_id, {file} AS file, ({line})::BIGINT AS line "
        f"FROM ordered{' POSITIONAL JOIN beside b' if columns else ''}"
    )
    if columns:
        con.unregister("beside")
    return sessions, chains


def write_views(con: Con) -> None:
    """The views `prefix_key` (one row per flat key) and `inter_turn` (one row per gap inside a chain)."""
    con.execute(
        "CREATE VIEW prefix_key AS SELECT prefix_key, count(*) AS requests, count(DISTINCT session_id) AS sessions, "
        "max(prefix_tokens) AS prefix_tokens, min(ts) AS first_seen, max(ts) AS last_seen, "
        "count(DISTINCT timezone('UTC', ts)::DATE) AS days_seen FROM request WHERE prefix_key IS NOT NULL GROUP "
        "BY prefix_key"
    )
    con.execute(
        "CREATE VIEW inter_turn AS SELECT session_id, chain_id, session_type, trigger, "
        "epoch_us(ts) / 1e6 - epoch_us(lag(ts) OVER chain) / 1e6 AS start_to_start_seconds, "
        "epoch_us(ts) / 1e6 - epoch_us(lag(ts_end) OVER chain) / 1e6 AS end_to_start_seconds, request_id "
        "FROM request WHERE chain_id IS NOT NULL WINDOW chain AS (PARTITION BY chain_id ORDER BY request_id) "
        "QUALIFY lag(ts) OVER chain IS NOT NULL"
    )
