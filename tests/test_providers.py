"""Provider rules, the default setting of a log, and what the provider reported."""

from __future__ import annotations

import csv
from datetime import UTC, date, datetime
from types import SimpleNamespace

import duckdb
import polars as pl
import pytest

from kit import log as logs
from kit.prices import rate_table
from kit.providers import RuleError, default_setting_facts, reported, rule_for, rule_named, rule_names
from tests.conftest import shared_data

CLASSES = ["uncached_tokens", "read_tokens", "write_tokens", "write_long_tokens"]


def small_log(rows, placeholder=False):
    """A log-like object; rows of (provider, model, uncached, read, write, write_long, output)."""
    con = duckdb.connect()
    con.execute("SET TimeZone='UTC'")
    columns = ["provider", "model", *CLASSES, "output_tokens"]
    schema = {name: pl.String if name in ("provider", "model") else pl.Int64 for name in columns}
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_row_index("request_id").with_columns(
        pl.col("request_id").cast(pl.Int64),
        pl.lit(datetime(2026, 2, 9, tzinfo=UTC)).alias("ts"),
        pl.sum_horizontal([pl.col(name).fill_null(0) for name in CLASSES]).alias("input_tokens"),
    )  # fmt: skip
    con.register("frame", frame)
    con.execute("CREATE TABLE request AS SELECT * FROM frame ORDER BY request_id")
    return SimpleNamespace(con=con, facts=SimpleNamespace(output_is_placeholder=placeholder))


@pytest.mark.parametrize(
    ("provider", "model", "rule", "minimum", "block", "ttl", "usage"),
    [
        ("anthropic", "claude-opus-4-6", "anthropic/api", 4096, 1, 300, "exclusive"),
        ("anthropic", "claude-opus-4-5-20251101", "anthropic/api", 4096, 1, 300, "exclusive"),
        ("anthropic", "claude-opus-4-1", "anthropic/api", 1024, 1, 300, "exclusive"),
        ("anthropic", "claude-sonnet-4-5-20250929", "anthropic/api", 1024, 1, 300, "exclusive"),
        ("anthropic", "claude-sonnet-5-5", "anthropic/api", 512, 1, 300, "exclusive"),
        (None, "claude-haiku-4-5-20251001", "anthropic/api", 4096, 1, 300, "exclusive"),
        ("aws", "us.anthropic.claude-opus-4-7-v1:0", "anthropic/bedrock", 4096, 1, 300, "exclusive"),
        ("google", "claude-opus-4-7", "anthropic/vertex", 2048, 1, 300, "exclusive"),
        ("openai", "gpt-5.6-sol", "openai/written", 1024, 1, 1800, "inclusive"),
        ("openai", "gpt-5.5", "openai/implicit", 1024, 2048, 300, "inclusive"),
        (None, "gpt-4o", "openai/implicit", 1024, 128, 300, "inclusive"),
        ("azure", "gpt-4o", "azure/implicit", 1024, 128, 300, "inclusive"),
        ("google", "gemini-2.5-pro", "google/implicit", 2048, None, None, "inclusive"),
        ("deepseek", "deepseek-flash", "deepseek", 64, 64, 3600, "inclusive"),
        ("x-ai", "grok-4.6", "xai", None, None, None, "inclusive"),
        ("moonshotai", "kimi-k3", "moonshot/written", None, None, 300, "inclusive"),
        ("mistral", "mistral-large", "mistral", 64, 64, None, "inclusive"),
        (None, "house-model", None, None, None, None, None),
        ("nobody", "claude-opus-4-6", None, None, None, None, None),
        (None, None, None, None, None, None, None),
    ],
)
def test_a_model_finds_its_rule(provider, model, rule, minimum, block, ttl, usage):
    found = rule_for(provider, model)
    choice = found.choice("short")
    assert (found.id, found.minimum_tokens, found.block_tokens) == (rule, minimum, block)
    assert (choice.seconds if choice else None, found.usage_convention) == (ttl, usage)


def test_write_classes_are_the_first_and_second_retention_and_their_multipliers():
    claude, openai = rule_for("anthropic", "claude-opus-4-6"), rule_for("openai", "gpt-6.1")
    assert [(c.seconds, c.write_multiplier) for c in claude.ttl] == [(300, 1.25), (3600, 2.0)]
    assert [(c.seconds, c.write_multiplier) for c in openai.ttl] == [(1800, 1.25), (43200, 2.5)]
    assert rule_for("deepseek", "deepseek-chat").choice("long") is None
    assert rule_for("moonshotai", "kimi-k2.7").choice("long").write_multiplier == 1.0


def test_every_rule_is_dated_and_names_its_sources():
    for name in rule_names():
        rule = rule_named(name)
        assert rule.as_of == "2026-11-29" and rule.sources, name
        assert all(
            set(source) == {"url", "date", "read"} and source["url"].startswith("https://") for source in rule.sources
        )
        assert [c.seconds for c in rule.ttl if c.seconds] == sorted(c.seconds for c in rule.ttl if c.seconds)
    with pytest.raises(RuleError, match="accepted: anthropic/api"):
        rule_named("gemini")


def test_explicit_cache_storage_is_priced_by_model_and_day():
    """Gemini 2.5 Pro 4.50 USD per million tokens and hour; 3.8 Flash 0.50, from 2027 1.00."""
    explicit = rule_named("google/explicit")
    assert explicit.storage_per_mtok_hour("gemini-2.5-pro") == 4.5
    assert explicit.storage_per_mtok_hour("gemini-3.8-flash", date(2026, 12, 31)) == 0.5
    assert explicit.storage_per_mtok_hour("gemini-3.8-flash", date(2027, 1, 1)) == 1.0
    assert explicit.storage_per_mtok_hour("gemini-1.5-pro") is None
    assert rule_for("anthropic", "claude-opus-4-6").storage_per_mtok_hour("claude-opus-4-6") == 0.0
    assert explicit.ttl[0].refresh_on_read is False


def test_a_known_provider_gives_mirror_with_its_short_retention():
    log = small_log([
        ("anthropic", "claude-opus-4-6", 10, 900, 90, 0, 5),
        ("anthropic", "claude-haiku-4-5", 10, 0, 90, 0, 5),
    ])  # fmt: skip
    facts = default_setting_facts(log)
    assert (facts["tier_mode"], facts["model"], facts["provider_rule"]) == (
        "mirror",
        "claude-opus-4-6",
        "anthropic/api",
    )
    assert (facts["ttl_seconds"], facts["minimum_tokens"], facts["write_class"]) == (300, 4096, "short")
    assert facts["token_share"] == 1000 / 1100
    assert any("90.9%" in text for text in facts["reasons"])


def test_an_unknown_provider_gives_engine_without_a_ttl():
    facts = default_setting_facts(small_log([(None, None, None, None, None, None, 3)]))
    assert (facts["tier_mode"], facts["ttl_seconds"], facts["minimum_tokens"]) == ("engine", None, 0)
    assert "own engine" in facts["reasons"][0]


def test_an_explicit_cache_is_chosen_by_its_rule():
    log = small_log([("google", "gemini-2.5-pro", 100, 900, None, None, 5)])
    assert default_setting_facts(log)["provider_rule"] == "google/implicit"
    explicit = default_setting_facts(log, "google/explicit")
    assert (explicit["provider_rule"], explicit["ttl_seconds"]) == ("google/explicit", 3600)
    with pytest.raises(RuleError, match="'gemini' is not known"):
        default_setting_facts(log, "gemini")


def test_reported_tokens_and_money_by_hand():
    """Opus 4.5: 5 input, 0.5 read, 6.25 and 10 write, 25 output per million.

    uncached 100 x 5 + read 1000 x 0.5 + short 200 x 6.25 + long 300 x 10 = 500 + 500 + 1250 + 3000 = 5250 -> 0.00525
    """
    log = small_log([
        ("anthropic", "claude-opus-4-5", 60, 1000, 0, 300, 8),
        ("anthropic", "claude-opus-4-5", 40, 0, 200, 0, 2),
    ])  # fmt: skip
    told = reported(log, rate_table(log))
    assert [told[name] for name in CLASSES] == [100, 1000, 200, 300]
    assert told["cost"] == pytest.approx(0.00525, abs=1e-15)
    assert told["output_cost"] == pytest.approx(10 * 25 / 1e6)
    assert (told["requests"], told["output_tokens"], told["priced_token_share"]) == (2, 10, 1.0)


def test_placeholder_output_is_not_priced():
    log = small_log([("anthropic", "claude-opus-4-5", 60, 1000, 0, 300, 1)], placeholder=True)
    told = reported(log, rate_table(log))
    assert told["output_tokens"] is None and told["output_cost"] is None and told["cost"] is not None


def test_a_log_without_cached_token_figures_reports_none_not_zero():
    log = small_log([(None, None, 500, None, None, None, 3)])
    told = reported(log, rate_table(log))
    assert (told["requests"], told["read_tokens"], told["cost"], told["priced_token_share"]) == (0, None, None, None)


def test_tokens_without_a_price_lower_the_priced_share_only():
    """Half of the tokens on a model nobody lists: cost covers 1,000 of 2,000 tokens."""
    log = small_log([("anthropic", "claude-opus-4-5", 1000, 0, 0, 0, 0), (None, "house", 600, 400, 0, 0, 0)])
    told = reported(log, rate_table(log))
    assert told["cost"] == pytest.approx(0.005) and told["priced_token_share"] == 0.5


def test_the_bill_of_pi_sessions_equals_what_the_client_wrote_down():
    """910 requests, Opus 4.5 and Sonnet 4.5: list price of reported tokens against the client's own cost_usd."""
    path = shared_data("pi_sessions.csv")
    log = logs.load(path)
    told = reported(log, rate_table(log))
    with path.open(encoding="utf-8") as lines:
        client = sum(float(row["cost_usd"]) for row in csv.DictReader(lines))
    assert told["cost"] + told["output_cost"] == pytest.approx(client, rel=1e-3)
    assert told["cost"] + told["output_cost"] == pytest.approx(72.9261052, abs=1e-6)


def test_reported_tokens_of_the_claude_week():
    log = logs.load(shared_data("claude_agents_week.csv"))
    told = reported(log, rate_table(log))
    assert [told[name] for name in CLASSES] == [230_418, 524_851_782, 4_890_078, 16_418_636]
    assert told["priced_token_share"] == 1.0 and told["output_cost"] is None
