"""Before and after a change: the mix is held fixed, and only what the interval carries is accepted."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kit import analysis
from kit.analysis.parameters import ParameterError, Parameters
from kit.analysis.store import clean
from kit.decide.change import Side, judge
from kit.log import LogError
from kit.sample.traffic import START


def table(
    requests: float, hit_share: float, cost: float, blocks: int = 40, noise: float = 0.1, seed: int = 1
) -> np.ndarray:
    """Blocks of a session type: 1,000 input tokens a request, `hit_share` of requests read all of them, `cost` each."""
    rng = np.random.default_rng(seed)
    n = np.ceil(requests / blocks * rng.uniform(0.5, 1.5, blocks))
    hits = n * hit_share
    paid = n * cost * rng.normal(1, noise, blocks)
    return np.stack([n, hits, hits * 1_000, n * 1_000, paid, paid * 1_000, n, hits], axis=1)


def test_a_clear_fall_is_accepted_and_a_clear_rise_reverted() -> None:
    before = Side({"chat": table(4_000, 0.5, 0.010)}, "USD")
    after = Side({"chat": table(4_000, 0.6, 0.008, seed=2)}, "USD")
    found = judge(before, after)
    assert found.verdict == "accept"
    assert found.sentence.startswith("Accept the change: cost per request and billed tokens per hit request fall")
    assert "Within session type chat cost per 1,000 requests $" in found.sentence
    assert judge(after, before).verdict == "revert"
    assert judge(before, before).verdict == "inconclusive"
    json.dumps(found.as_dict(), allow_nan=False)


def test_a_shift_of_the_mix_is_not_a_saving() -> None:
    # Agents cost 10 times as much as chats, before and after alike. A week with more chats looks cheaper (0.055 to
    # 0.019 a request) but nothing was saved: at a fixed mix the figures stand still.
    before = Side({"agent": table(2_000, 0.5, 0.10), "chat": table(2_000, 0.5, 0.01, seed=3)}, "USD")
    after = Side({"agent": table(400, 0.5, 0.10, seed=4), "chat": table(3_600, 0.5, 0.01, seed=5)}, "USD")
    found = judge(before, after)
    cost = found.figures["cost_per_request"]
    assert cost.after == pytest.approx(cost.before, rel=0.05)
    assert found.verdict == "inconclusive"


def test_fixed_mix_by_hand() -> None:
    # 300 + 100 chats and 100 + 300 agents: both weigh 400 / 800. Before (1 + 3) / 2 = 2, after (1 + 2) / 2.
    def side(chats: int, agents: int, agent_cost: float) -> Side:
        rows = {
            "chat": np.array(
                [[chats / 10, chats / 20, 1.0, 10.0, chats / 10 * 1.0, chats / 10, chats / 10, chats / 20]] * 10
            ),
            "agent": np.array(
                [[agents / 10, agents / 20, 1.0, 10.0, agents / 10 * agent_cost, agents / 10, agents / 10, agents / 20]]
                * 10
            ),
        }
        return Side(rows, "USD")

    found = judge(side(300, 100, 3.0), side(100, 300, 2.0))
    assert found.figures["cost_per_request"].before == pytest.approx(2.0)
    assert found.figures["cost_per_request"].after == pytest.approx(1.5)


def test_cheaper_with_fewer_hits_is_not_accepted() -> None:
    before = Side({"chat": table(4_000, 0.6, 0.010)}, "USD")
    after = Side({"chat": table(4_000, 0.5, 0.008, seed=2)}, "USD")
    assert judge(before, after).verdict == "revert"


def test_types_too_rare_are_left_out_and_said() -> None:
    before = Side({"chat": table(4_000, 0.5, 0.010), "batch": table(20, 0.5, 0.5, blocks=4)}, "USD")
    after = Side({"chat": table(4_000, 0.6, 0.008, seed=2)}, "USD")
    found = judge(before, after)
    assert 0 < found.left_out_share < 0.02
    # 5 requests in each of 4 blocks, drawn between half and half more.
    assert re.search(r"; 0\.\d% of requests are left out: batch \(\d\d before, 0 after\)\.$", found.sentence)
    none = judge(Side({"batch": table(20, 0.5, 0.5, blocks=4)}, "USD"), after)
    assert none.verdict == "inconclusive"
    assert none.sentence.startswith(
        "Inconclusive: no session type can be compared, each needs 30 requests from 5 sessions"
    )
    few = judge(Side({"chat": table(400, 0.5, 0.01, blocks=2)}, "USD"), after)
    assert "of 2 sessions only before" in few.sentence


def test_a_verdict_does_not_rest_on_a_minority() -> None:
    """Chats get cheaper, but they are a quarter of the requests; the others are named differently on each side."""
    before = Side({"chat": table(1_000, 0.5, 0.010), "agent": table(3_000, 0.5, 0.05)}, "USD")
    after = Side({"chat": table(1_000, 0.6, 0.008, seed=2), "agents": table(3_000, 0.5, 0.05)}, "USD")
    found = judge(before, after)
    assert found.verdict == "inconclusive" and found.left_out_share == pytest.approx(0.75, abs=0.03)
    assert "more than half of the requests are of session types that cannot be compared" in found.sentence


def test_hits_where_nobody_hit_before_are_a_fall() -> None:
    before = Side({"chat": table(4_000, 0.0, 0.010)}, "USD")
    after = Side({"chat": table(4_000, 0.6, 0.008, seed=2)}, "USD")
    found = judge(before, after)
    assert found.verdict == "accept" and "none before, when nothing was found cached" in found.sentence
    json.dumps(clean(found.as_dict()), allow_nan=False)


def test_days_that_differ_widen_the_interval() -> None:
    """The same sums by day and by session block; one day of seven costs twice as much, which blocks cannot show."""

    def side(seed: int) -> Side:
        blocks = table(4_000, 0.5, 0.01, noise=0.01, seed=seed)
        days = np.array_split(blocks, 7)
        by_day = np.stack([day.sum(axis=0) for day in days])
        by_day[0, 4:6] *= 2
        return Side({"chat": blocks}, "USD", {"chat": by_day})

    narrow = judge(Side(side(1).types, "USD"), Side(side(2).types, "USD")).figures["cost_per_request"].interval
    wide = judge(side(1), side(2)).figures["cost_per_request"].interval
    assert narrow is not None and wide is not None
    assert (narrow.basis, wide.basis) == ("session blocks", "days") and wide.width > 3 * narrow.width


def reported(path: Path, read_share: float) -> str:
    """A week of 60 sessions of 20 requests whose provider reported about `read_share` of tokens as read."""
    rng = np.random.default_rng(int(read_share * 100))
    n = 1_200
    reads = np.clip(rng.normal(read_share, 0.05, n), 0, 1)
    read = (reads * 10_000).astype(int)
    frame = pl.DataFrame(
        {
            "ts": [START + timedelta(seconds=500 * place) for place in range(n)],
            "session_id": [f"s{place % 60}" for place in range(n)],
            "session_type": ["chat" if place % 60 < 40 else "agent" for place in range(n)],
            "provider": ["anthropic"] * n,
            "model": ["claude-sonnet-4-5"] * n,
            "prefix_key": [f"k{place % 60}" for place in range(n)],
            "prefix_tokens": [9_000] * n,
            "input_tokens": [10_000] * n,
            "uncached_tokens": [0] * n,
            "read_tokens": read,
            "write_tokens": 10_000 - read,
            "write_long_tokens": [0] * n,
            "output_tokens": [200] * n,
        },
        schema_overrides={"ts": pl.Datetime("us", "UTC")},
    )
    frame.write_parquet(path)
    return str(path)


def test_two_logs_from_file_to_sentence(tmp_path: Path) -> None:
    before, after = reported(tmp_path / "before.parquet", 0.5), reported(tmp_path / "after.parquet", 0.7)
    found = analysis.compare(before, after, Parameters(replicates=300))
    assert found["verdict"] == "accept"
    # Per million: read 0.30, short write 3.75. Halves: 2.025; 0.7 and 0.3: 1.335. 10,000 tokens: 0.02025 to 0.01335.
    assert found["figures"]["cost_per_request"]["before"] == pytest.approx(0.02025, rel=0.02)
    assert found["figures"]["cost_per_request"]["after"] == pytest.approx(0.01335, rel=0.02)
    assert {row["session_type"] for row in found["mix"]} == {"chat", "agent"}
    assert analysis.compare(after, before, Parameters(replicates=300))["verdict"] == "revert"


def changed(path: str, name: str, *columns: pl.Expr) -> str:
    """A copy of a log beside it with other columns."""
    frame = pl.read_parquet(path).with_columns(*columns)
    made = Path(path).with_name(name)
    frame.write_parquet(made)
    return str(made)


def test_the_same_rows_twice_are_refused(tmp_path: Path) -> None:
    log = reported(tmp_path / "log.parquet", 0.5)
    with pytest.raises(ParameterError, match="hold the same rows"):
        analysis.compare(log, changed(log, "copy.parquet"), Parameters(replicates=100))


def test_session_types_of_two_origins_are_compared_as_one(tmp_path: Path) -> None:
    before, after = reported(tmp_path / "before.parquet", 0.5), reported(tmp_path / "after.parquet", 0.7)
    nameless = changed(after, "nameless.parquet", pl.lit(None, pl.String).alias("session_type"))
    alone = changed(nameless, "alone.parquet", pl.lit(None, pl.String).alias("session_id"))
    for other in (nameless, alone):
        found = analysis.compare(before, other, Parameters(replicates=100))
        assert found["verdict"] == "accept" and [row["session_type"] for row in found["mix"]] == ["all"]
        assert "do not name session types in the same way" in found["notes"][0]
        assert "Over all requests cost per 1,000 requests" in found["sentence"]


def test_the_order_of_the_logs_is_checked(tmp_path: Path) -> None:
    before, after = reported(tmp_path / "before.parquet", 0.5), reported(tmp_path / "after.parquet", 0.7)
    assert analysis.compare(before, after, Parameters(replicates=100))["notes"][0].startswith(
        "the logs overlap in time"
    )
    later = changed(after, "later.parquet", pl.col("ts") + timedelta(days=14))
    assert analysis.compare(before, later, Parameters(replicates=100))["notes"] == []
    turned = analysis.compare(later, before, Parameters(replicates=100))
    assert turned["notes"] == ["AFTER ends before BEFORE begins: were the two given in this order?"]
    assert turned["verdict"] == "revert"


def test_without_a_price_tokens_are_compared(tmp_path: Path) -> None:
    before, after = reported(tmp_path / "before.parquet", 0.5), reported(tmp_path / "after.parquet", 0.7)
    unknown = changed(before, "unknown.parquet", pl.lit("claude-none").alias("model"))
    with pytest.raises(LogError, match=r"unknown.parquet has no price and .* is priced in USD; give both"):
        analysis.compare(unknown, after, Parameters(replicates=100))
    found = analysis.compare(unknown, after, Parameters(replicates=100, tier_mode="engine"))
    assert found["verdict"] == "accept" and found["currency"] is None
    assert "tokens not read from the cache per request 4," in found["sentence"]
    named = analysis.compare(unknown, after, Parameters(replicates=100, model="claude-sonnet-4-5"))
    assert named["currency"] == "USD"


def test_a_log_without_reported_tokens_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plain.parquet"
    ts = [START + timedelta(seconds=place) for place in range(10)]
    pl.DataFrame(
        {"ts": ts, "prefix_key": ["a"] * 10, "prefix_tokens": [10] * 10, "input_tokens": [10] * 10},
        schema_overrides={"ts": pl.Datetime("us", "UTC")},
    ).write_parquet(path)
    with pytest.raises(LogError, match="reports no cached tokens"):
        analysis.compare(str(path), reported(tmp_path / "other.parquet", 0.5), Parameters())


def test_requests_without_reported_tokens_are_left_out_and_said(tmp_path: Path) -> None:
    """Every fourth request after the change reports nothing: billed at 0 they would look like a saving of a quarter."""
    log = reported(tmp_path / "log.parquet", 0.5)
    place = pl.int_range(pl.len())
    classes = ("uncached_tokens", "read_tokens", "write_tokens", "write_long_tokens")
    later = (pl.col("ts") + timedelta(days=14)).alias("ts")

    def silent(every: int) -> list[pl.Expr]:
        return [pl.when(place % every > 0).then(pl.col(name)).alias(name) for name in classes]

    holed = changed(log, "holed.parquet", later, *silent(4))
    found = analysis.compare(log, holed, Parameters(replicates=100))
    cost = found["figures"]["cost_per_request"]
    assert found["verdict"] == "inconclusive" and "more than 5% of the requests" in found["sentence"]
    assert cost["after"] == pytest.approx(cost["before"], rel=0.02)
    assert found["notes"][0].startswith("0% of requests before and 25.0% after report no token classes")
    assert found["left_out_share"] == pytest.approx(300 / 2_400)
    assert "0 before and 300 after without reported token classes" in found["sentence"]
    few = analysis.compare(log, changed(log, "few.parquet", later, *silent(30)), Parameters(replicates=100))
    assert "report no token classes differs between the logs" in few["sentence"]  # 3.3 % against none


def test_requests_without_a_price_are_said_and_priced_alike_before_anything_is_accepted(tmp_path: Path) -> None:
    """The dear 40 % of requests move to a model without a price and find nothing cached: no saving, and a revert."""
    log = reported(tmp_path / "log.parquet", 0.5)
    moved = pl.int_range(pl.len()) % 5 < 2
    later = (pl.col("ts") + timedelta(days=14)).alias("ts")
    model = pl.when(moved).then(pl.lit("claude-none")).otherwise(pl.col("model")).alias("model")
    found = analysis.compare(log, changed(log, "moved.parquet", later, model), Parameters(replicates=100))
    assert found["verdict"] == "inconclusive" and "have a price differs too much" in found["sentence"]
    assert found["notes"][0].startswith("0% of input tokens before and 40.0% after have no price")
    assert found["left_out_share"] == pytest.approx(480 / 2_400)
    lost = [pl.when(moved).then(0).otherwise(pl.col("read_tokens")).alias("read_tokens"),
            pl.when(moved).then(10_000).otherwise(pl.col("write_tokens")).alias("write_tokens")]  # fmt: skip
    worse = analysis.compare(log, changed(log, "worse.parquet", later, model, *lost), Parameters(replicates=100))
    assert worse["verdict"] == "revert"  # 50 % of tokens found cached to 30 %, over all requests
    assert worse["figures"]["hit_token_ratio"]["after"] == pytest.approx(0.3, abs=0.01)
