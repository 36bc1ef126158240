"""Seven days of requests in the canonical log format."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from kit.sample import traffic
from kit.sample.traffic import KINDS, NIGHTLY, OWNERS, SCAN_SHARE, START, TRIGGERS, TYPES, Calls, Hot
from kit.sample.tree import paths

PROVIDER, MODEL = "anthropic", "claude-sonnet-4-6"
LIST_COLUMNS = ("path_keys", "path_tokens", "path_types")
REPORTED = ("uncached_tokens", "read_tokens", "write_tokens", "write_long_tokens")


def _names(prefix: np.ndarray, number: np.ndarray) -> list[str]:
    return [f"{word}-{i:05d}" for word, i in zip(prefix.tolist(), number.tolist(), strict=True)]


def _times(ms: np.ndarray) -> pl.Series:
    micros = int(START.timestamp()) * 1_000_000 + ms * 1_000
    return pl.Series(micros).cast(pl.Datetime("us", "UTC"))


def _lists(calls: Calls, hot: Hot) -> tuple[dict[str, pl.Series], np.ndarray]:
    """The three list columns of the paths, and each path's tokens in all."""
    path = paths(calls, hot)
    offsets = pa.array(path.offsets)
    types = pa.DictionaryArray.from_arrays(pa.array(path.types.astype(np.int8)), list(TYPES)).cast(pa.string())
    values = (pa.array(path.keys), pa.array(path.tokens), types)
    lists = {
        name: pl.Series(name, pa.LargeListArray.from_arrays(offsets, flat))
        for name, flat in zip(LIST_COLUMNS, values, strict=True)
    }
    return lists, np.add.reduceat(path.tokens, path.offsets[:-1])


def _frame(calls: Calls, hot: Hot) -> pl.DataFrame:
    lists, input_tokens = _lists(calls, hot)
    session = _names(np.array([*KINDS, NIGHTLY])[calls.kind], calls.session)
    frame = pl.DataFrame(
        {
            "ts": _times(calls.start_ms),
            "ts_end": _times(calls.end_ms),
            "session_id": session,
            "chain_id": session,
            "session_type": np.array([*KINDS, "single"])[calls.kind],
            "trigger": np.array(TRIGGERS)[calls.trigger],
            "turn": calls.turn + 1,
            "owner": np.array(OWNERS)[calls.owner],
            "input_tokens": input_tokens,
            "output_tokens": calls.said_tokens + calls.thought_tokens,
            **lists,
        }
    ).sort("ts", "session_id", maintain_order=True)
    return frame.select(
        pl.format("request-{}", pl.int_range(pl.len()).cast(pl.String).str.zfill(6)).alias("request_id"),
        *("ts", "ts_end", "session_id", "chain_id", "session_type", "trigger", "turn"),
        pl.lit(PROVIDER).alias("provider"),
        pl.lit(MODEL).alias("model"),
        *("owner", *LIST_COLUMNS, "input_tokens"),
        *(pl.lit(None, dtype=pl.Int64).alias(name) for name in REPORTED),
        "output_tokens",
    )


def sample_week(
    seed: int = 1, requests: int = 24_000, mixture: tuple[float, float, float] = (45, 35, 20), scan: bool = True
) -> pl.DataFrame:
    """Seven full UTC days of requests in time order, one row each, in the canonical format with nested prefixes.

    `mixture` is the ratio chat : agent : single of the requests outside the nightly job, `scan=False` leaves that job
    out. The token classes a provider would report are null: nobody billed this week. Raises ValueError for a number or
    mixture that cannot be drawn.
    """
    rng = np.random.default_rng(seed)
    hot = traffic.hot_prompts(rng)
    *wanted, nightly = _counts(requests, mixture, scan)
    parts = [traffic.sessions(rng, hot, kind, n) for kind, n in enumerate(wanted) if n]
    if nightly:
        parts.append(traffic.nightly_scan(rng, nightly))
    return _frame(traffic.join(parts), hot)


def _counts(requests: int, mixture: tuple[float, float, float], scan: bool) -> list[int]:
    """Requests of chat, agent, single and the nightly job; they add up to the wanted number."""
    if requests < 1:
        raise ValueError(f"requests must be 1 or more, got {requests}")
    if len(mixture) != 3 or min(mixture) < 0 or sum(mixture) <= 0:
        raise ValueError(f"mixture must be three shares chat, agent, single, not all of them 0; got {mixture}")
    nightly = round(requests * SCAN_SHARE) if scan else 0
    bounds = np.rint(np.cumsum(mixture) / sum(mixture) * (requests - nightly)).astype(int)
    return [*np.diff(bounds, prepend=0).tolist(), nightly]
