"""Gaps summarised inside DuckDB: for logs whose gaps one would rather not hold in memory."""

from __future__ import annotations

from typing import Any

import polars as pl

from kit.turns.gaps import CLOCKS

SUMMARY = """
WITH gap AS (SELECT coalesce(session_type, 'all') AS session_type, coalesce(trigger, 'other') AS trigger,
                    {clock}_seconds AS seconds FROM inter_turn WHERE {clock}_seconds IS NOT NULL)
SELECT session_type, trigger, '{clock}' AS clock, count_if(seconds > 0)::BIGINT AS n,
       count_if(seconds = 0)::BIGINT AS zeros, count_if(seconds < 0)::BIGINT AS negative,
       avg(ln(seconds)) FILTER (seconds > 0) AS mu, stddev_pop(ln(seconds)) FILTER (seconds > 0) AS sigma,
       approx_quantile(seconds, 0.5) FILTER (seconds > 0) AS median_seconds,
       avg((seconds <= 300)::INTEGER) FILTER (seconds > 0) AS p_within_300,
       avg((seconds <= 3600)::INTEGER) FILTER (seconds > 0) AS p_within_3600
FROM gap GROUP BY ALL ORDER BY ALL
"""


def gap_summary(log: Any) -> pl.DataFrame:
    """Per session type (as the log names it), trigger and clock: gaps, zeros, negatives, mu, sigma, median, shares.

    Straight from the `inter_turn` view: mean and population deviation of ln seconds of positive gaps, an approximate
    median, shares within 300 s and 3600 s. Open turns are left out, so prefer `inter_turn` where memory allows.
    """
    return pl.concat([log.con.sql(SUMMARY.format(clock=clock)).pl() for clock in CLOCKS])
