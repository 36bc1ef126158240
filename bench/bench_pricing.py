"""How long pricing takes: a rate for every request, the reported bill, and the bill of a replay.

    python bench/bench_pricing.py [--rows 10000000] [--checked 500]

Requests of six models over dates, sizes and hours are drawn inside DuckDB with fixed hashes and live in memory. Prints
seconds, peak MiB, and how far the total of a sample is from pricing it request by request with the price package.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import duckdb
from genai_prices import Usage, calc_price

from kit.prices import rate_table
from kit.providers import reported

MODELS = (
    ("anthropic", "claude-sonnet-4-6"), ("anthropic", "claude-opus-4-6"), ("anthropic", "claude-haiku-4-5-20251001"),
    ("openai", "gpt-5.6-sol"), ("deepseek", "deepseek-flash"), ("google", "gemini-2.5-pro"),
)  # fmt: skip
LOG = """
CREATE TABLE request AS
SELECT i AS request_id, TIMESTAMPTZ '2026-01-01 00:00:00+00' + to_seconds((hash(i) % 25920000)::DOUBLE) AS ts,
  ($providers)[1 + (hash(i, 1) % 6)::BIGINT] AS provider, ($models)[1 + (hash(i, 1) % 6)::BIGINT] AS model,
  (hash(i, 2) % 1000)::BIGINT AS uncached_tokens, (hash(i, 3) % 250000)::BIGINT AS read_tokens,
  (hash(i, 4) % 20000)::BIGINT AS write_tokens,
  CASE WHEN hash(i, 1) % 6 < 3 THEN (hash(i, 5) % 9000)::BIGINT ELSE 0 END AS write_long_tokens,
  (hash(i, 6) % 2000)::BIGINT AS output_tokens
FROM range($rows) AS numbers(i)
"""


def drawn_log(rows: int) -> SimpleNamespace:
    """A log-like object with `rows` reported requests."""
    con = duckdb.connect()
    con.execute("SET TimeZone='UTC'")
    providers, models = [list(column) for column in zip(*MODELS, strict=True)]
    con.execute(LOG, {"rows": rows, "providers": providers, "models": models})
    con.execute("ALTER TABLE request ADD COLUMN input_tokens BIGINT")
    con.execute("UPDATE request SET input_tokens = uncached_tokens + read_tokens + write_tokens + write_long_tokens")
    return SimpleNamespace(con=con, facts=SimpleNamespace(output_is_placeholder=False))


def one_by_one(log: SimpleNamespace, rows: int) -> float:
    """Money of the first `rows` requests, priced one at a time by the package."""
    query = "SELECT * FROM request ORDER BY request_id LIMIT $n"
    total = 0.0
    for row in log.con.sql(query, params={"n": rows}).pl().iter_rows(named=True):
        usage = Usage(
            input_tokens=row["input_tokens"], cache_read_tokens=row["read_tokens"],
            cache_write_tokens=row["write_tokens"] + row["write_long_tokens"],
            cache_write_1h_tokens=row["write_long_tokens"], output_tokens=row["output_tokens"],
        )  # fmt: skip
        priced = calc_price(usage, row["model"], provider_id=row["provider"], genai_request_timestamp=row["ts"])
        total += float(priced.total_price)
    return total


def timed(work: Callable[[], Any]) -> tuple[Any, tuple[float, float]]:
    """(what `work` returns, (seconds on the clock, seconds of processor time))."""
    begun, used = time.perf_counter(), time.process_time()
    made = work()
    return made, (time.perf_counter() - begun, time.process_time() - used)


def main() -> None:
    """Print the three timings and the check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="requests to price")
    parser.add_argument("--checked", type=int, default=500, help="requests also priced one by one by the package")
    given = parser.parse_args()
    log = drawn_log(given.rows)
    rates, rating = timed(lambda: rate_table(log))
    bill, billing = timed(lambda: reported(log, rates))
    wall, cpu = rating[0] + billing[0], rating[1] + billing[1]
    print(
        f"{given.rows:,} requests, {len(rates.rows)} rates; seconds on the clock, and of processor time over all cores"
    )
    print(f"  a rate for every request  {rating[0]:7.2f} s {rating[1]:7.2f} s")
    print(
        f"  the reported bill         {billing[0]:7.2f} s {billing[1]:7.2f} s  {bill['cost']:,.2f} {bill['currency']}"
    )
    print(f"  together                  {wall:7.2f} s {cpu:7.2f} s  {wall / given.rows * 1e9:.0f} ns a request")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  peak memory               {peak:7.0f} MiB (with the drawn log)")
    check(log, given.checked)


def check(log: SimpleNamespace, rows: int) -> None:
    """The first requests once more, as the kit prices them and as the package does, one by one."""
    log.con.execute("DELETE FROM request WHERE request_id >= $n", {"n": rows})
    ours = reported(log, rate_table(log))
    begun = time.perf_counter()
    theirs = one_by_one(log, rows)
    took = time.perf_counter() - begun
    difference = abs(ours["cost"] + ours["output_cost"] - theirs) / theirs
    print(f"  one by one                {took / rows * 1e6:7.0f} us a request; totals differ by {difference:.1e}")


if __name__ == "__main__":
    main()
