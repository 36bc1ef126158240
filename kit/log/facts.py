"""What a loaded log is and what it cannot tell: measured once, stored as `log_fact`, read back by `open_log`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import duckdb

from kit.log.identity import SURROGATE
from kit.log.requests import REPEATED, RESUMED, count
from kit.log.staging import COLUMNS

Con = duckdb.DuckDBPyConnection
PLACEHOLDER_TOKENS = 3
PLACEHOLDER_SHARE = 0.3
DAY_US = 86_400_000_000


@dataclass(frozen=True)
class LogFacts:
    """Measured properties of a log. Times are UTC; `days` counts the UTC calendar days the log touches.

    rows = kept + all of `rejected`. `damaged` counts the rejected rows that could not be read: without repeated ids,
    later attempts, failed calls and answers from a gateway's own cache, which are good rows set aside.
    `derived` says which columns the kit computed, `cannot_tell` which questions the log leaves open and why.
    """

    sha256: str
    format: str
    files: tuple[str, ...]
    rows: int
    kept: int
    rejected: dict[str, int]
    start: datetime
    end: datetime
    days: int
    requests: int
    sessions: int
    chains: int
    keys: int
    block_tokens: int | None
    identity: str | None
    clock: str
    has_clock: bool
    has_sessions: bool
    has_cached_tokens: bool
    output_is_placeholder: bool
    naive_timestamps: int
    resumed_lookups: int
    damaged: int
    units: dict[str, str]
    missing: tuple[str, ...]
    cannot_tell: tuple[str, ...]
    warnings: tuple[str, ...]
    derived: tuple[str, ...]


HINTS = ("priority", "retention_seconds")
"""Columns that only policies made for them read; a log without them misses nothing."""

CANNOT: tuple[tuple[str, str], ...] = (
    ("identity", "which prefixes repeat (concentration, rotation, value rank, replay): no prefix_key, path_keys or "
     "parent_request_id"),
    ("times", "when anything happened (gaps, hours, days): no times"),
    ("clock", "how long prefixes live and rotate (TTL, day overlap): no common clock"),
    ("session_id", "inter-turn gaps: no session_id"),
    ("ts_end", "gaps from the end of an answer: no ts_end"),
    ("read_tokens", "what the provider really read and wrote: no cached-token counts"),
    ("model", "money: no model"),
    ("output_tokens", "the output side of the bill: no output_tokens"),
    ("token_type", "reuse by token type: no token types"),
    ("owner", "who pays (chargeback): no owner"),
)  # fmt: skip


def coverage(con: Con) -> dict[str, int]:
    """Number of kept rows with a value, per request column."""
    counts = ", ".join(f"count({name})::BIGINT AS {name}" for name in COLUMNS)
    row = con.sql(f"SELECT {counts} FROM request").fetchall()[0]
    return dict(zip(COLUMNS, row, strict=True))


def write_coverage(con: Con, sources: Mapping[str, str]) -> dict[str, int]:
    """The `column_coverage` table: column, where it was taken from, kept rows with a value. Those numbers."""
    filled = coverage(con)
    _write(con, "column_coverage(column_name VARCHAR, source_column VARCHAR, rows_with_value BIGINT)",
           [(name, sources.get(name, "-"), number) for name, number in filled.items()])  # fmt: skip
    return filled


def _write(con: Con, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """A small table written by one statement."""
    con.execute(f"CREATE TABLE {table}")
    places = ", ".join(f"({', '.join('?' * len(row))})" for row in rows)
    con.execute(f"INSERT INTO {table.split('(')[0]} VALUES {places}", [value for row in rows for value in row])


EMPTY = (
    "which prefixes repeat (concentration, rotation, value rank, replay): all prefix_tokens are 0 in this log; log how "
    "many tokens each prefix_key stands for"
)
SHARED = "which prompts sessions share: no prefix identity, only the growth inside each session is taken from lengths"


def _seen(con: Con) -> tuple[list[str], int, int | None]:
    """(units that bare numbers among the start times were taken for by their size, times without a zone, block size).

    The block size is the one the log fixes: one size in every row that has one.
    """
    units, naive, least, most = con.sql(
        "SELECT list_sort(list(DISTINCT epoch_unit) FILTER (epoch_unit IS NOT NULL)), count(*) FILTER (naive), "
        "min(block_tokens), max(block_tokens) FROM ordered"
    ).fetchall()[0]
    return units or [], naive, least if least == most else None


def _cannot_tell(
    con: Con, identity: str | None, clock: str, filled: Mapping[str, int], surrogate: bool, empty: bool
) -> list[str]:
    """The questions that the log leaves open; `empty`: it names prefixes, all of them 0 tokens long."""
    known = {name for name, rows in filled.items() if rows}
    if identity:
        known.add("identity")
    if clock in ("absolute", "relative"):
        known.add("clock")
    if clock != "none":
        known.add("times")
    if count(con, "SELECT count(token_type) FROM node"):
        known.add("token_type")
    told = {**dict(CANNOT), **({"identity": EMPTY} if empty else {})}
    return ([SHARED] if surrogate else []) + [sentence for name, sentence in told.items() if name not in known]


def _warnings(con: Con, rejected: Mapping[str, int], clock: str, units: Sequence[str], naive: int) -> list[str]:
    out = []
    if number := rejected.get(REPEATED):
        out.append(f"{number:,} rows repeat a request id already read; each request is counted once")
    if number := rejected.get(RESUMED):
        out.append(f"{number:,} later attempts of a request (resumed lookups) are left out")
    if len(units) > 1:
        out.append(f"start times are numbers of different sizes, taken as {' and '.join(units)}")
    if clock == "relative":
        out.append("times are relative to the start of the log: days and hours are counted from it")
    if naive:
        out.append(f"{naive:,} rows have times without a zone; they are taken as UTC")
    if not count(con, "SELECT count(replica) FROM request"):
        out.append("no replica column: one cache is assumed")
    varying = count(
        con, "SELECT count(*) FROM (SELECT prefix_key FROM request WHERE prefix_key IS NOT NULL "
        "GROUP BY prefix_key, model, cache_scope HAVING count(DISTINCT prefix_tokens) > 1)"
    )  # fmt: skip
    if varying:
        out.append(f"key_length_varies: {varying:,} keys have more than one length; a hash of exact bytes has one")
    return out


def calendar_days(con: Con, zone: str = "UTC") -> list[dict[str, Any]]:
    """Requests per calendar day of a time zone: [{day, requests, hours}]; a day of a clock change has 23 or 25
    hours."""
    rows = con.sql(
        "SELECT day::VARCHAR, requests, (epoch(timezone($zone, (day + 1)::TIMESTAMP)) - epoch(timezone($zone, "
        "day::TIMESTAMP))) / 3600 FROM (SELECT timezone($zone, ts)::DATE AS day, count(*) AS requests FROM request "
        "GROUP BY ALL) ORDER BY day",
        params={"zone": zone},
    ).fetchall()
    return [{"day": day, "requests": requests, "hours": hours} for day, requests, hours in rows]


def _decided(units: Sequence[str]) -> dict[str, str]:
    """The unit of start times that were bare numbers, with the reason."""
    return {"start times": f"epoch {' and '.join(units)}, by the size of the numbers"} if units else {}


def _placeholder(con: Con) -> bool:
    share = con.sql(
        f"SELECT avg((output_tokens <= {PLACEHOLDER_TOKENS})::INTEGER) FROM request WHERE output_tokens IS NOT NULL"
    ).fetchall()[0][0]
    return share is not None and share >= PLACEHOLDER_SHARE


def measure(con: Con, given: Mapping[str, Any], extra_warnings: Sequence[str], set_aside: int) -> LogFacts:
    """All facts of the log just written; `given` holds what only the loader knows (sha256, format, clock ...)."""
    rejected = dict(con.sql("SELECT reason, count(*)::BIGINT FROM rejected GROUP BY ALL ORDER BY 2 DESC, 1").fetchall())
    start, end, days, requests = con.sql(
        f"SELECT min(ts), max(ts), count(DISTINCT epoch_us(ts) // {DAY_US}), count(*) FROM request"
    ).fetchall()[0]
    refused = sum(rejected.values())
    filled, sessions, chains = given["filled"], given["sessions"], given["chains"]
    clock, identity = given["clock"], given["identity"]
    units, naive, block_tokens = _seen(con)
    warnings = [*extra_warnings, *_warnings(con, rejected, clock, units, naive)]
    placeholder = _placeholder(con)
    if placeholder:
        warnings.append("output_tokens look like placeholders (3 or fewer in 30 % or more of the rows): not priced")
    return LogFacts(
        **{key: given[key] for key in ("sha256", "format", "files", "identity", "clock")},
        units={**given["units"], **_decided(units)},
        rows=requests + refused, kept=requests, rejected=rejected, start=start, end=end, days=days,
        requests=requests, sessions=sessions, chains=chains, keys=_keys(con, identity, chains),
        block_tokens=block_tokens, has_clock=clock in ("absolute", "relative"), has_sessions=sessions > 0,
        has_cached_tokens=filled["read_tokens"] > 0, output_is_placeholder=placeholder,
        naive_timestamps=naive,
        resumed_lookups=rejected.get(RESUMED, 0),
        damaged=refused - set_aside,
        missing=tuple(name for name, rows in filled.items() if not rows and name not in HINTS),
        cannot_tell=tuple(_cannot_tell(con, identity, clock, filled, SURROGATE in given["derived"], given["empty"])),
        warnings=tuple(warnings),
        derived=tuple(given["derived"]),
    )  # fmt: skip


def _keys(con: Con, identity: str | None, chains: int) -> int:
    """Distinct flat keys (per model and scope), distinct blocks, or chains."""
    if identity == "flat":
        return count(
            con, "SELECT count(DISTINCT (prefix_key, model, cache_scope)) FROM request WHERE prefix_key IS NOT NULL"
        )
    if identity == "chain":
        return chains
    return count(con, "SELECT count(*) FROM node")


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def store(con: Con, facts: LogFacts) -> None:
    """Write the facts as `log_fact(fact, value)`, each value JSON."""
    rows = [(item.name, json.dumps(_plain(getattr(facts, item.name)))) for item in fields(facts)]
    _write(con, "log_fact(fact VARCHAR, value VARCHAR)", rows)


def read(con: Con) -> LogFacts:
    """The facts back from `log_fact`."""
    found = {name: json.loads(value) for name, value in con.sql("SELECT fact, value FROM log_fact").fetchall()}
    for name in ("start", "end"):
        found[name] = datetime.fromisoformat(found[name])
    known = {item.name for item in fields(LogFacts)}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in found.items() if name in known
    }
    return LogFacts(**values)
