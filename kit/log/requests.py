"""Staged records to the `request` and `rejected` tables: one row per request, in time order, every loss with a
reason."""

from __future__ import annotations

import duckdb
import numpy as np
import polars as pl

from kit.formats import Format, LogError
from kit.log.staging import COLUMNS

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
    con.execute(
        f"UPDATE staged SET reason = '{RESUMED}', aside = true WHERE is_request AND reason IS NULL AND "
        "coalesce(resumed, false)"
    )
    good = "FROM staged WHERE is_request AND reason IS NULL"
    if not count(con, f"SELECT count(source_id) - count(DISTINCT source_id) {good}"):
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


def order_records(con: Con) -> None:
    """`ordered`: good records with their dense `request_id` in (time, file) order; a view where they already are.

    Raises LogError with the commonest reason when no record is good.
    """
    good = "FROM staged WHERE is_request AND reason IS NULL"
    back = count(con, f"SELECT count(*) FROM (SELECT ts < lag(ts) OVER () AS back {good}) WHERE back")
    number = "ORDER BY ts, rn, rowid" if back else ""
    con.execute(
        f"CREATE OR REPLACE TEMP {'TABLE' if back else 'VIEW'} ordered AS SELECT row_number() OVER ({number}) - 1 AS "
        f"request_id, coalesce(chain_id, session_id) AS chain, staged.* {good} {'ORDER BY request_id' if back else ''}"
    )
    if back:
        con.execute("DROP TABLE staged")
    if not count(con, "SELECT count(*) FROM ordered"):
        worst = con.sql("SELECT reason, count(*), min(line) FROM rejected GROUP BY ALL ORDER BY 2 DESC, 1 LIMIT 1")
        found = [f"all rows were refused, most often because: {reason} (first on line {line})"
                 for reason, _, line in worst.fetchall()]  # fmt: skip
        why = found[0] if found else "no rows"
        raise LogError(f"no request found: {why}; export the log again or map columns with --map")


def _beside(con: Con) -> pl.DataFrame:
    """Per record of `ordered`: turn in its chain, the derived session type, file and line."""
    tool = "coalesce(trigger = 'tool', false) AS tool"
    frame = pl.DataFrame(con.sql(f"SELECT chain, session_id, {tool}, rn FROM ordered"))
    origin = pl.DataFrame(con.sql("SELECT * FROM origin ORDER BY first_rn"))
    stretch = pl.Series(np.searchsorted(origin["first_rn"].to_numpy(), frame["rn"].to_numpy(), side="right") - 1)
    shift = (origin["first_line"] - origin["first_rn"]).gather(stretch)
    kind = (
        pl.when(pl.col("session_id").is_null()).then(None)
        .when(pl.col("tool").any().over("session_id")).then(pl.lit("agent"))
        .when(pl.len().over("session_id") > 1).then(pl.lit("chat"))
        .otherwise(pl.lit("single"))
    )  # fmt: skip
    turn = pl.when(pl.col("chain").is_not_null()).then(pl.int_range(1, pl.len() + 1).over("chain"))
    return frame.select(
        turn.alias("turn"), kind.alias("kind"), origin["file"].gather(stretch).alias("file"),
        (pl.col("rn") + shift).alias("line"),
    )  # fmt: skip


def write_requests(con: Con) -> None:
    """The `request` table from `ordered`, with derived turn and session type."""
    rest = ", ".join(list(COLUMNS)[list(COLUMNS).index("trigger") + 1 : -1])
    con.register("beside", _beside(con))
    con.execute(
        "CREATE TABLE request AS SELECT request_id::BIGINT AS request_id, ts, coalesce(ts_end, ts + lasted) AS ts_end, "
        "session_id, chain AS chain_id, coalesce(session_type, b.kind) AS session_type, trigger, "
        f"b.turn::INTEGER AS turn, {rest}, source_id, b.file AS file, b.line::BIGINT AS line "
        "FROM ordered POSITIONAL JOIN beside b"
    )
    con.unregister("beside")


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
