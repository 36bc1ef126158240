"""How long the diagnostics of turns and reuse take on large logs.

    python bench/bench_turns.py [--sessions 10000] [--requests 1000000] [--gaps 20000000]

Prints seconds for: every session fitted and pooled on its own; the whole turn and reuse diagnosis of a log of that many
requests; all gaps of a log summarised in SQL. Logs are drawn inside DuckDB with a fixed seed and live in memory.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import duckdb

from kit import reuse, turns

GAP = "exp(2.2 + 1.2 * sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()))"
START = "TIMESTAMPTZ '2026-03-02 00:00:00+00'"
LOG = f"""
CREATE TABLE drawn AS
  SELECT i, i // $length AS session, i % $length AS turn, {GAP} AS gap, 200 + (random() * 2000)::BIGINT AS tokens
  FROM range($requests) AS numbers(i);
CREATE TABLE request AS
  WITH timed AS (
    SELECT *, (hash(session) % 518400)::DOUBLE + sum(gap) OVER (PARTITION BY session ORDER BY i) AS seconds,
           8000 + sum(tokens) OVER (PARTITION BY session ORDER BY i) AS prompt FROM drawn)
  SELECT row_number() OVER (ORDER BY seconds, i) - 1 AS request_id, i, session, turn, tokens,
         {START} + to_microseconds((seconds * 1e6)::BIGINT) AS ts,
         {START} + to_microseconds(((seconds + 1) * 1e6)::BIGINT) AS ts_end,
         's' || session AS session_id, 's' || session AS chain_id,
         CASE WHEN session % 3 = 0 THEN 'chat' ELSE 'agent' END AS session_type,
         CASE WHEN session % 3 = 0 OR turn % 9 = 0 THEN 'person' ELSE 'tool' END AS trigger,
         prompt::BIGINT AS input_tokens, NULL::VARCHAR AS prefix_key, NULL::BIGINT AS prefix_tokens
  FROM timed ORDER BY request_id;
CREATE TABLE node AS
  SELECT 0::BIGINT AS node_id, NULL::BIGINT AS parent_id, 8000::BIGINT AS tokens, 0 AS depth, 'system' AS token_type
  UNION ALL
  SELECT i + 1, CASE WHEN turn = 0 THEN 0 ELSE i END, tokens, (turn + 1)::INTEGER,
         CASE WHEN turn % 9 = 0 THEN 'user' ELSE 'tool_result' END FROM request ORDER BY 1;
CREATE TABLE request_node AS SELECT request_id, i + 1 AS node_id FROM request;
"""
VIEW = """
CREATE VIEW inter_turn AS SELECT session_id, session_type, trigger,
  epoch_us(ts) / 1e6 - epoch_us(lag(ts) OVER chain) / 1e6 AS start_to_start_seconds,
  epoch_us(ts) / 1e6 - epoch_us(lag(ts_end) OVER chain) / 1e6 AS end_to_start_seconds
FROM request WINDOW chain AS (PARTITION BY chain_id ORDER BY request_id) QUALIFY lag(ts) OVER chain IS NOT NULL
"""
GAPS = f"""
CREATE TABLE inter_turn AS SELECT CASE WHEN i % 3 = 0 THEN 'chat' ELSE 'agent' END AS session_type,
  CASE WHEN i % 9 = 0 THEN 'person' ELSE 'tool' END AS trigger, {GAP} AS start_to_start_seconds,
  {GAP} AS end_to_start_seconds FROM range($gaps) AS numbers(i)
"""


def drawn_log(requests: int, length: int) -> SimpleNamespace:
    """A log of `requests` requests in sessions of `length` turns behind one shared system prompt."""
    con = duckdb.connect()
    con.execute("SET TimeZone='UTC'; SET threads=1; SELECT setseed(0.25)")
    for statement in LOG.split(";\n"):
        named = {"requests": requests, "length": length}
        con.execute(statement, {name: value for name, value in named.items() if f"${name}" in statement} or None)
    con.execute(VIEW)
    con.execute("RESET threads")
    facts = SimpleNamespace(identity="chain", block_tokens=None, has_clock=True, clock="common", has_sessions=True)
    return SimpleNamespace(con=con, facts=facts)


def timed(label: str, work: Callable[[], Any]) -> Any:
    """Run it once, print its seconds on the clock and of processor time."""
    begin, busy = time.perf_counter(), time.process_time()
    result = work()
    seconds, used = time.perf_counter() - begin, time.process_time() - busy
    print(f"{label:<60} {seconds:8.2f} s {used:8.2f} s CPU", flush=True)
    return result


def main() -> None:
    """Draw the logs and time each figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--gaps", type=int, default=20_000_000)
    wanted = parser.parse_args()
    few = drawn_log(wanted.sessions * 20, 20)
    gaps = timed(f"read the gaps of {wanted.sessions:,} sessions", lambda: turns.read_gaps(few))
    frame = timed(f"fit and pool {wanted.sessions:,} sessions one by one", lambda: turns.per_session(gaps))
    print(f"{'sessions fitted':<60} {frame.height:8,}")
    log = drawn_log(wanted.requests, 50)
    timed(f"turns.diagnose on {wanted.requests:,} requests", lambda: turns.diagnose(log))
    timed(f"reuse.read_trace on {wanted.requests:,} requests", lambda: reuse.read_trace(log))
    timed(f"reuse.diagnose on {wanted.requests:,} requests", lambda: reuse.diagnose(log))
    many = SimpleNamespace(con=duckdb.connect())
    many.con.execute(GAPS, {"gaps": wanted.gaps})
    timed(f"summarise {wanted.gaps:,} gaps on two clocks in SQL", lambda: turns.gap_summary(many))


if __name__ == "__main__":
    main()
