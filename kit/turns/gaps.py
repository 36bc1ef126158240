"""Time to the next turn, read from the log: every gap inside a message chain, and every last turn left open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kit.reuse.trace import codes

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]

CLOCKS = ("start_to_start", "end_to_start")
NO_TIMES = "none"
TICK_GAPS = 10_000
TRIGGERS = ("person", "tool", "other")
TYPE_RULE = "sessions without a type: agent where a tool result triggered a turn, single with one request, else chat"

TURNS = """
WITH typed AS (
  SELECT request_id, session_id, coalesce(chain_id, session_id) AS chain_id, ts, ts_end, input_tokens,
         coalesce(trigger, 'other') AS trigger, (timezone($zone, ts))::DATE - DATE '1970-01-01' AS day,
         coalesce(session_type, CASE WHEN bool_or(trigger = 'tool') OVER whole THEN 'agent'
                                     WHEN count(*) OVER whole = 1 THEN 'single' ELSE 'chat' END) AS session_type
  FROM request WHERE session_id IS NOT NULL OR chain_id IS NOT NULL
  WINDOW whole AS (PARTITION BY coalesce(session_id, chain_id)))
SELECT request_id, coalesce(session_id, chain_id) AS session_id, chain_id, session_type, trigger, day,
       epoch_us(ts) AS ts_us, epoch_us(ts_end) AS end_us,
       epoch_us(ts) - epoch_us(lag(ts) OVER chain) AS start_us,
       epoch_us(ts) - epoch_us(lag(ts_end) OVER chain) AS idle_us,
       least(input_tokens, lag(input_tokens) OVER chain) AS stake,
       lead(request_id) OVER chain IS NULL AS is_last
FROM typed WINDOW chain AS (PARTITION BY session_id, chain_id ORDER BY request_id) ORDER BY request_id
"""


@dataclass(frozen=True)
class Gaps:
    """Gaps and open last turns of one log.

    Per gap: ``seconds`` by clock (NaN where that clock is not in the log),
    ``session``, ``session_type``, ``trigger`` (codes), ``day`` (of the zone), ``tokens`` (the smaller of its prompt and
    the prompt before it: the prefix at stake). Per last turn of a chain: ``tail_*`` with the seconds from it to the
    last request of the log. ``session_names`` and ``type_names`` translate codes back.
    """

    seconds: dict[str, Floats]
    session: Codes
    session_type: Codes
    trigger: Codes
    day: Codes
    tokens: NDArray[np.int64]
    tail_seconds: dict[str, Floats]
    tail_session: Codes
    tail_type: Codes
    session_names: tuple[str, ...]
    type_names: tuple[str, ...]
    has_clock: bool
    zone: str
    batches: dict[tuple[str, str], Batch] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Batch:
    """Positive gaps of one session type on one clock, and the last turns of its chains, still open when the log ends.

    Gaps rise. Per gap ``seconds``, ``kind`` (trigger code), ``session``, ``day``, ``tokens`` (prefix at stake: what the
    turn could read of the turn before it). Per open turn ``open_seconds`` (how long it was watched), ``open_session``.
    Per gap of 0: ``zero_kind``, ``zero_session``; its true length is below the clock's step ``tick_seconds``. Negative
    gaps (answers that overlap, clocks set back) are only counted, per kind.
    """

    session_type: str
    clock: str
    seconds: Floats
    kind: Codes
    session: Codes
    day: Codes
    tokens: NDArray[np.int64]
    open_seconds: Floats
    open_session: Codes
    zero_kind: Codes
    zero_session: Codes
    tick_seconds: float
    negative: NDArray[np.int64]

    def of_kind(self, trigger: str) -> Mask:
        """Mask of the gaps that this trigger ended (all of them for ``all``)."""
        return np.ones(len(self.seconds), dtype=bool) if trigger == "all" else self.kind == TRIGGERS.index(trigger)

    def zeros(self, trigger: str) -> int:
        """Gaps of 0 that this trigger ended (all of them for ``all``)."""
        return len(self.zero_kind) if trigger == "all" else int((self.zero_kind == TRIGGERS.index(trigger)).sum())

    def only(self, trigger: str) -> Batch:
        """The batch with the gaps of one trigger alone (``all``: as it is)."""
        mine = self.of_kind(trigger)
        named = ("seconds", "kind", "session", "day", "tokens")
        return replace(self, **{name: getattr(self, name)[mine] for name in named})


def _seconds(column: pl.Series) -> Floats:
    return (column.cast(pl.Float64) / 1e6).fill_null(float("nan")).to_numpy()


def read_gaps(log: Any, zone: str = "UTC") -> Gaps:
    """Every gap of a loaded log, and its last turns; ``Gaps`` come back as they are.

    A gap lies between two neighbouring requests of one message chain (session and agent), in log order. It belongs to
    the trigger of the request that ends it. A log without sessions or without times gives no gaps; one whose times are
    relative to each session gives no open turns, because how long they were watched is not in it.
    """
    if isinstance(log, Gaps):
        return log
    turns = log.con.sql(TURNS, params={"zone": zone}).pl()
    if log.facts.clock == NO_TIMES:
        turns = turns.clear()
    session, kind = codes(turns["session_id"]), codes(turns["session_type"])
    trigger = turns["trigger"].replace_strict(dict(zip(TRIGGERS, range(3), strict=True)), default=2).to_numpy()
    day = turns["day"].cast(pl.Int32).to_numpy()
    follows = turns["start_us"].is_not_null().to_numpy()
    last = turns["is_last"].to_numpy() & log.facts.has_clock
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
        tokens=turns["stake"].cast(pl.Int64).fill_null(0).to_numpy()[follows],
        tail_seconds={
            "start_to_start": _seconds(log_end - turns["ts_us"])[last],
            "end_to_start": _seconds(log_end - turns["end_us"])[last],
        },
        tail_session=session[last],
        tail_type=kind[last],
        session_names=tuple(sorted(turns["session_id"].unique())),
        type_names=tuple(sorted(turns["session_type"].unique())),
        has_clock=log.facts.has_clock,
        zone=zone,
    )


def batch(gaps: Gaps, session_type: str = "all", clock: str = "start_to_start") -> Batch:
    """The gaps of one session type (or all) on one clock; made once, then kept with the gaps."""
    made = gaps.batches
    if (session_type, clock) not in made:
        made[session_type, clock] = _sorted_batch(gaps, session_type, clock)
    return made[session_type, clock]


def _sorted_batch(gaps: Gaps, session_type: str, clock: str) -> Batch:
    seconds = gaps.seconds[clock]
    keep = np.ones(len(gaps.session), dtype=bool)
    left_open = gaps.tail_seconds[clock] > 0
    if session_type != "all":
        keep = gaps.session_type == gaps.type_names.index(session_type)
        left_open = left_open & (gaps.tail_type == gaps.type_names.index(session_type))
    zero = np.flatnonzero(keep & (seconds == 0))
    positive = np.flatnonzero(keep & (seconds > 0))
    positive = positive[np.argsort(seconds[positive], kind="stable")]
    return Batch(
        session_type=session_type,
        clock=clock,
        seconds=seconds[positive],
        kind=gaps.trigger[positive],
        session=gaps.session[positive],
        day=gaps.day[positive],
        tokens=gaps.tokens[positive],
        open_seconds=gaps.tail_seconds[clock][left_open],
        open_session=gaps.tail_session[left_open],
        zero_kind=gaps.trigger[zero],
        zero_session=gaps.session[zero],
        tick_seconds=tick(seconds),
        negative=np.bincount(gaps.trigger[keep & (seconds < 0)], minlength=len(TRIGGERS)),
    )


def tick(seconds: Floats) -> float:
    """The step of the clock that stamped these gaps: their greatest common divisor, from 1 us up (the first 10,000)."""
    steps = np.abs(np.round(seconds[:TICK_GAPS][~np.isnan(seconds[:TICK_GAPS])] * 1e6)).astype(np.int64)
    return max(int(np.gcd.reduce(steps)), 1) / 1e6 if len(steps) else 1e-6


def batches(gaps: Gaps, clocks: Sequence[str] = CLOCKS) -> Iterator[tuple[Batch, tuple[str, ...]]]:
    """Every clock and session type (all types first) that has a gap, with the names it goes by.

    A log of one session type gives the same batch for it and for all: it comes once, under both names.
    """
    kinds = ("all", *gaps.type_names) if len(gaps.type_names) > 1 else ("all",)
    for kind in kinds:
        names = ("all", *gaps.type_names) if len(kinds) == 1 else (kind,)
        for clock in clocks:
            found = batch(gaps, kind, clock)
            if len(found.seconds):
                yield found, names
