"""Before and after a change: the mix is held fixed, and only what the interval carries is accepted."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kit import analysis
from kit.analysis.parameters import Parameters
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
    return np.stack([n, hits, hits * 1_000, n * 1_000, paid, paid * 1_000], axis=1)


def test_a_clear_fall_is_accepted_and_a_clear_rise_reverted() -> None:
    before = Side({"chat": table(4_000, 0.5, 0.010)}, "USD")
    after = Side({"chat": table(4_000, 0.6, 0.008, seed=2)}, "USD")
    found = judge(before, after)
    assert found.verdict == "accept"
    assert found.sentence.startswith("Accept the change: cost per request and billed tokens per hit request fall")
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
            "chat": np.array([[chats / 10, chats / 20, 1.0, 10.0, chats / 10 * 1.0, chats / 10]] * 10),
            "agent": np.array([[agents / 10, agents / 20, 1.0, 10.0, agents / 10 * agent_cost, agents / 10]] * 10),
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
    assert "of requests are of session types too rare to compare" in found.sentence
    none = judge(Side({"batch": table(20, 0.5, 0.5, blocks=4)}, "USD"), after)
    assert none.verdict == "inconclusive"


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


def test_a_log_without_reported_tokens_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plain.parquet"
    ts = [START + timedelta(seconds=place) for place in range(10)]
    pl.DataFrame(
        {"ts": ts, "prefix_key": ["a"] * 10, "prefix_tokens": [10] * 10, "input_tokens": [10] * 10},
        schema_overrides={"ts": pl.Datetime("us", "UTC")},
    ).write_parquet(path)
    with pytest.raises(LogError, match="reports no cached tokens"):
        analysis.compare(str(path), str(path), Parameters())
