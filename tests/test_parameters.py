"""What a user may set: a value out of its range is refused by name before any work starts, with what is accepted."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from kit import cli
from kit.analysis.parameters import ParameterError, Parameters, from_settings, known_names, threshold_names
from kit.analysis.run import only_replay, read_log, run_steps
from kit.log import LogError
from kit.sample.traffic import START

NO_NUMBERS = ("nan", "inf", "-inf", "1e30", "some", "")
FREE_TEXT = {"model"}  # known only together with a log
REFUSED = {
    **dict.fromkeys(("capacity_tokens", "block_tokens", "replicates"), ("-1", "0", "1.5")),
    "replicas": ("-1", "0", "1.5", "1025"),
    **dict.fromkeys(("capacity_gib", "model_parameters"), ("-1", "0")),
    "kv_bytes_per_token": ("-1", "0", "1e-300"),
    "prefill_tokens_per_second": ("-1", "0"),
    "ttl_seconds": ("-1", "0", "1e15"),
    **dict.fromkeys(("minimum_tokens", "seed"), ("-1", "1.5")),
    **dict.fromkeys(("loss", "top_fraction"), ("-1", "1.5")),
    "sample": ("-1", "0", "1.5"),
    "visible_after_seconds": ("-1", "1e12"),
    **dict.fromkeys(("waive_row_0", "counters_trustworthy", "what_if", "name_owners"), ("-1", "2")),
}


def requests(path: Path, provider: str | None = None, model: str | None = None, lengths: int = 1) -> str:
    """200 requests, a minute apart, of ten keys of 1,000 tokens (the first of `lengths` different lengths)."""
    ts = [START + timedelta(minutes=place) for place in range(200)]
    tokens = [1_000 + (place // 10 % lengths if place % 10 == 0 else 0) for place in range(200)]
    frame = pl.DataFrame(
        {"ts": ts, "prefix_key": [f"k{place % 10}" for place in range(200)], "prefix_tokens": tokens},
        schema_overrides={"ts": pl.Datetime("us", "UTC")},
    ).with_columns(input_tokens="prefix_tokens", provider=pl.lit(provider, pl.String), model=pl.lit(model, pl.String))
    frame.write_parquet(path)
    return str(path)


@pytest.mark.parametrize("name", known_names())
def test_every_parameter_refuses_what_it_cannot_use(name: str) -> None:
    """NaN, infinities, text and numbers out of range: one line that begins with or holds the parameter's name."""
    wrong = list(REFUSED.get(name, ()))
    wrong += [] if name in FREE_TEXT else NO_NUMBERS
    if name in threshold_names():
        wrong += ["-2"]
    for text in wrong:
        with pytest.raises(ParameterError) as caught:
            from_settings([f"{name}={text}"])
        assert name in str(caught.value) or name == "policies", (name, text)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("minimum_days=-1", "minimum_days must be 0 or more"),
        ("ceiling_share=1.2", "ceiling_share must be a share between 0 and 1, got 1.2"),
        ("gain_points=2", "between 0 and 1 (0.02 = 2 points)"),
        ("room_lift=0.5", "room_lift must be a factor of at least 1"),
        ("length_correlation=-1.1", "between -1 and 1"),
        ("replicates=10", "replicates must be at least 100, got 10"),
        ("service_class=bach", "did you mean batch?); accepted: standard, batch, flex, priority, fast"),
        ("provider_rule=anthropic", "did you mean anthropic/api?); accepted: anthropic/api"),
        ("provider=antropic", "(did you mean anthropic?); accepted: anthropic"),
        ("key_cut=rot", "did you mean root?"),
        ("format=mooncak", "did you mean mooncake?"),
        ("kv_number=fp4", "accepted: bf16, fp16, fp8, int8, fp32"),
        ("price_overlay=nowhere.toml", "nowhere.toml is not a file"),
        ("price_overlay=pyproject.toml", "price_overlay cannot be used: price overlay pyproject.toml: unknown key"),
        ("replicates=100001", "replicates must be at most 100,000, got 100,001"),
        ("top_fraction=0", "top_fraction must be a share above 0 and at most 1, got 0.0"),
    ],
)
def test_the_range_or_the_nearest_name_is_said(text: str, accepted: str) -> None:
    with pytest.raises(ParameterError) as caught:
        from_settings([text])
    assert accepted in str(caught.value)


def test_what_is_known_is_accepted() -> None:
    for text in (
        "provider=bedrock",
        "provider=kimi",
        "key_cut=first_4",
        "service_class=batch",
        "provider_rule=deepseek",
    ):
        name, _, value = text.partition("=")
        assert getattr(from_settings([text]), name) == value
    # Nobody lists prices for an engine of one's own, and an overlay may price any name.
    assert Parameters(provider="house", tier_mode="engine").provider == "house"


def test_a_model_without_a_price_is_refused_with_the_nearest(tmp_path: Path) -> None:
    log = requests(tmp_path / "log.parquet", provider="anthropic", model="claude-sonnet-4-5")
    with pytest.raises(
        ParameterError, match=r"'claude-sonet-4-5' has no list price .*did you mean claude-sonnet-4-5\?"
    ):
        read_log(log, Parameters(model="claude-sonet-4-5"), None)
    named = read_log(log, Parameters(model="claude-haiku-4-5"), None)
    assert named.con.sql("select distinct model from request").fetchall() == [("claude-haiku-4-5",)]
    named.con.close()


@pytest.mark.parametrize(
    "text", ["service_class=foo", "provider_rule=foo", "provider=foo", "model=foo", "minimum_days=-1"]
)
def test_wrong_values_end_with_code_2(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = requests(tmp_path / "log.parquet", provider="anthropic", model="claude-sonnet-4-5")
    assert cli.main(["replay", log, "--set", text]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("kit: ") and text.split("=")[0] in error


def test_a_block_longer_than_every_prefix_is_told_as_that(tmp_path: Path) -> None:
    log = read_log(requests(tmp_path / "log.parquet"), Parameters(), None)
    with pytest.raises(ParameterError, match=r"block_tokens is 5,000 tokens, longer than every prefix .* has 1,000"):
        run_steps(log, Parameters(block_tokens=5_000), None)
    with pytest.raises(ParameterError, match=r"at least two blocks of 512 tokens, 1,024 tokens in all .* got 600"):
        run_steps(log, Parameters(block_tokens=512, capacity_tokens=600), None)
    log.con.close()


def test_warnings_of_page_one(tmp_path: Path) -> None:
    settings = Parameters(what_if=False, policies="lru,lfu_decay", replicates=100)
    found = {}
    for name, model, lengths in (("plain", "claude-sonnet-4-5", 1), ("odd", "claude-sonnet-99", 2)):
        log = read_log(requests(tmp_path / f"{name}.parquet", "anthropic", model, lengths), settings, None)
        found[name] = run_steps(log, settings, None)["warnings"]
        log.con.close()
    assert found["plain"] == []
    doubtful, unpriced = found["odd"]
    assert "1 keys have more than one length" in doubtful
    assert unpriced.startswith("No cost can be given: no price is known for anthropic / claude-sonnet-99.")


def test_a_budget_beyond_whole_numbers_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """10^15 GiB at 0.001 bytes a token are 10^27 tokens; a typed budget of 20 digits is no better."""
    with pytest.raises(ParameterError, match="capacity_gib must hold at most 1,000,000,000,000,000 tokens"):
        from_settings(["capacity_gib=1e15", "kv_bytes_per_token=0.001"])
    assert cli.main(["replay", "x.csv", "--capacities", "99999999999999999999"]) == 2
    assert "--capacities takes whole tokens from 1 to 1,000,000,000,000,000" in capsys.readouterr().err


def test_prefixes_that_are_all_empty_are_a_log_without_identity(tmp_path: Path) -> None:
    """prefix_tokens 0 in every row: the analysis stands, nothing is replayed, and the message says why."""
    path = tmp_path / "zero.csv"
    rows = [f"{10 * place},k{place % 3},0,100" for place in range(40)]
    path.write_text("\n".join(["ts,prefix_key,prefix_tokens,input_tokens", *rows]) + "\n")
    parameters = Parameters(policies="lru", what_if=False, replicates=100)
    results = run_steps(read_log([str(path)], parameters, None), parameters, None)
    assert results["log"]["identity"] is None and results["replay"] == []
    assert any("all prefix_tokens are 0" in text for text in results["log"]["cannot_tell"])
    with pytest.raises(LogError, match=r"nothing can be replayed.*all prefix_tokens are 0"):
        only_replay([str(path)], parameters, None)
