"""Time to the next turn, read from the log: every gap inside a message chain, and every last turn left open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kit.reuse.trace import codes

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]

CLOCKS = ("start_to_start", "end_to_start")
TRIGGERS = ("person", "tool", "other")
TYPE_RULE = "sessions without a type: agent where a tool result triggered a turn, single with one request, else chat"

TURNS = """
WITH typed AS (
  SELECT request_id, session_id, coalesce(chain_id, session_id) AS chain_id, ts, ts_end,
         coalesce(trigger, 'other') AS trigger, (timezone($zone, ts))::DATE - DATE '1970-01-01' AS day,
         coalesce(session_type, CASE WHEN bool_or(trigger = 'tool') OVER whole THEN 'agent'
                                     WHEN count(*) OVER whole = 1 THEN 'single' ELSE 'chat' END) AS session_type
  FROM request WHERE session_id IS NOT NULL OR chain_id IS NOT NULL
  WINDOW whole AS (PARTITION BY coalesce(session_id, chain_id)))
SELECT request_id, coalesce(session_id, chain_id) AS session_id, chain_id, session_type, trigger, day,
       epoch_us(ts) AS ts_us, epoch_us(ts_end) AS end_us,
       epoch_us(ts) - epoch_us(lag(ts) OVER chain) AS start_us,
       epoch_us(ts) - epoch_us(lag(ts_end) OVER chain) AS idle_us,
       lead(request_id) OVER chain IS NULL AS is_last
FROM typed WINDOW chain AS (PARTITION BY session_id, chain_id ORDER BY request_id) ORDER BY request_id
"""


@dataclass(frozen=True)
class Gaps:
    """Gaps and open last turns of one log.

    Per gap (named by the request that ended it): ``seconds`` by clock (NaN where that clock is not in the log),
    ``session``, ``session_type``, ``trigger`` (codes), ``day`` (of the zone). Per last turn of a chain: ``tail_*`` with
    the seconds from it to the end of the log. ``request_id``, ``session_names``, ``type_names`` translate back.
    """

    seconds: dict[str, Floats]
    session: Codes
    session_type: Codes
    trigger: Codes
    day: Codes
    request_id: NDArray[np.int64]
    tail_seconds: dict[str, Floats]
    tail_session: Codes
    tail_type: Codes
    tail_day: Codes
    session_names: tuple[str, ...]
    type_names: tuple[str, ...]
    has_clock: bool
    zone: str


@dataclass(frozen=True)
class Group:
    """Gaps of one session type, trigger and clock, positive ones only, and the last turns that were at risk of one."""

    session_type: str
    trigger: str
    clock: str
    seconds: Floats
    session: Codes
    day: Codes
    zeros: int
    negative: int
    tails: Floats
    tail_session: Codes
    tail_day: Codes


def _seconds(column: pl.Series) -> Floats:
    return (column.cast(pl.Float64) / 1e6).fill_null(float("nan")).to_numpy()


def read_gaps(log: Any, zone: str = "UTC") -> Gaps:
    """Every gap of a loaded log, and its last turns; ``Gaps`` come back as they are.

    A gap lies between two neighbouring requests of one message chain (session and agent), in log order. It belongs to
    the trigger of the request that ends it. A log without sessions gives no gaps.
    """
    if isinstance(log, Gaps):
        return log
    turns = log.con.sql(TURNS, params={"zone": zone}).pl()
    session, kind = codes(turns["session_id"]), codes(turns["session_type"])
    trigger = turns["trigger"].replace_strict(dict(zip(TRIGGERS, range(3), strict=True)), default=2).to_numpy()
    day = turns["day"].cast(pl.Int32).to_numpy()
    follows = turns["start_us"].is_not_null().to_numpy()
    last = turns["is_last"].to_numpy()
    log_end = turns["ts_us"].max() or 0
    return Gaps(
        seconds={
            "start_to_start": _seconds(turns["start_us"])[follows],
            "end_to_start": _seconds(turns["idle_us"])[follows],
        },
        session=session[follows],
        session_type=kind[follows],
        trigger=trigger.astype(np.int32)[follows],
        day=day[follows],
        request_id=turns["request_id"].to_numpy()[follows],
        tail_seconds={
            "start_to_start": _seconds(log_end - turns["ts_us"])[last],
            "end_to_start": _seconds(log_end - turns["end_us"])[last],
        },
        tail_session=session[last],
        tail_type=kind[last],
        tail_day=day[last],
        session_names=tuple(sorted(turns["session_id"].unique())),
        type_names=tuple(sorted(turns["session_type"].unique())),
        has_clock=log.facts.has_clock,
        zone=zone,
    )


def select(gaps: Gaps, session_type: str = "all", trigger: str = "all", clock: str = "start_to_start") -> Group:
    """The gaps of a session type and a trigger on a clock; zero and negative gaps are counted, not kept."""
    keep = np.ones(len(gaps.session), dtype=bool)
    tails = gaps.tail_seconds[clock] > 0
    if session_type != "all":
        keep &= gaps.session_type == gaps.type_names.index(session_type)
        tails &= gaps.tail_type == gaps.type_names.index(session_type)
    if trigger != "all":
        keep &= gaps.trigger == TRIGGERS.index(trigger)
    seconds = gaps.seconds[clock]
    positive = keep & (seconds > 0)
    return Group(
        session_type=session_type,
        trigger=trigger,
        clock=clock,
        seconds=seconds[positive],
        session=gaps.session[positive],
        day=gaps.day[positive],
        zeros=int((seconds[keep] == 0).sum()),
        negative=int((seconds[keep] < 0).sum()),
        tails=gaps.tail_seconds[clock][tails],
        tail_session=gaps.tail_session[tails],
        tail_day=gaps.tail_day[tails],
    )


def groups(gaps: Gaps) -> Iterator[Group]:
    """Every session type (and all), trigger (and all) and clock that has a gap; all types together come first."""
    for session_type in ("all", *gaps.type_names):
        for trigger in ("all", *TRIGGERS):
            for clock in CLOCKS:
                group = select(gaps, session_type, trigger, clock)
                if len(group.seconds):
                    yield group
