"""Prices: list cells, overlay, the rate of every request; what is not listed is said, never priced at 0."""

from __future__ import annotations

import random
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import polars as pl
import pytest
from genai_prices import Usage, calc_price

from kit.prices import LOCK_DATE, LOCKED_VERSION, PriceError, Rate, list_cells, load_overlay, parse_overlay, rate_table
from kit.prices.book import installed_version

PROJECT = Path(__file__).resolve().parent.parent


def priced_log(rows):
    """A log-like object: rows of (ts, provider, model, input_tokens, write_long_tokens)."""
    con = duckdb.connect()
    con.execute("SET TimeZone='UTC'")
    frame = pl.DataFrame(
        [(n, *row) for n, row in enumerate(rows)],
        schema={
            "request_id": pl.Int64, "ts": pl.Datetime("us", "UTC"), "provider": pl.String, "model": pl.String,
            "input_tokens": pl.Int64, "write_long_tokens": pl.Int64,
        },
        orient="row",
    )  # fmt: skip
    con.register("frame", frame)
    con.execute("CREATE TABLE request AS SELECT * FROM frame ORDER BY request_id")
    return SimpleNamespace(con=con)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("provider", "model", "prices"),
    [
        ("anthropic", "claude-opus-4-5-20251101", (5, 0.5, 6.25, 10, 25)),
        ("anthropic", "claude-haiku-4-5-20251001", (1, 0.1, 1.25, 2, 5)),
        ("anthropic", "claude-sonnet-4-5", (3, 0.3, 3.75, 6, 15)),
        ("aws", "us.anthropic.claude-sonnet-4-6", (3.3, 0.33, 4.125, 6.6, 16.5)),
        ("openai", "gpt-5.4", (2.5, 0.25, 2.5, None, 15)),
        ("moonshotai", "kimi-k3", (3, 0.3, 3, 6, 15)),
        ("google", "gemini-2.5-pro", (1.25, 0.125, 1.25, None, 10)),
        ("deepseek", "deepseek-flash", (0.3, 0.006, 0.3, None, 1.2)),
    ],
)
def test_golden_list_prices(provider, model, prices):
    """Prices at the lock, per million tokens: a silent upstream edit fails here. Read of the package 2026-11-29."""
    moment, tokens = at("2026-11-25T02:00"), 1000
    cells = [c for c in list_cells(provider, model) if c.tier_above == 0 and c.minute_from <= 120 < c.minute_to]
    [cell] = [c for c in cells if (c.valid_from or date.min) <= moment.date() < (c.valid_to or date.max)]
    assert (cell.input, cell.read, cell.write_short, cell.write_long, cell.output) == pytest.approx(prices)
    assert tokens > cell.tier_above


def test_the_lock_names_the_version_the_code_was_dated_with():
    pinned = re.search(r"^genai-prices==(\S+)", (PROJECT / "requirements.lock").read_text(), re.MULTILINE)
    assert pinned and pinned[1].rstrip("\\").strip() == LOCKED_VERSION == installed_version()


def test_dates_tiers_and_hours_become_cells_that_never_overlap():
    for provider, model in [
        ("anthropic", "claude-sonnet-4-6"),
        ("openai", "gpt-5.6-sol"),
        ("deepseek", "deepseek-flash"),
    ]:
        cells = list_cells(provider, model)
        for day in (date(2026, 1, 1), date(2026, 3, 12), date(2026, 3, 13), date(2026, 8, 21), date(2027, 6, 1)):
            for minute in (0, 59, 60, 239, 240, 400, 1439):
                for tokens in (1, 200_000, 200_001, 272_001):
                    hits = [
                        c for c in cells
                        if (c.valid_from or date.min) <= day < (c.valid_to or date.max)
                        and c.minute_from <= minute < c.minute_to
                        and c.tier_above < tokens <= (c.tier_to or 10**12)
                    ]  # fmt: skip
                    assert len(hits) == 1, (model, day, minute, tokens)


def test_every_request_gets_the_price_the_package_would_charge():
    """Random requests over dates, sizes and hours: flat table x tokens = the package's own total, to rounding."""
    draw = random.Random(3)
    pairs = [("anthropic", "claude-sonnet-4-6"), ("anthropic", "claude-opus-4-6"), ("openai", "gpt-5.6-sol"),
             ("deepseek", "deepseek-flash"), ("google", "gemini-4-argon"), ("moonshotai", "kimi-k3")]  # fmt: skip
    rows, uses = [], []
    for _ in range(300):
        provider, model = draw.choice(pairs)
        total = draw.randint(1, 400_000)
        read = draw.randint(0, total)
        write = draw.randint(0, total - read)
        long = draw.randint(0, write) if provider in ("anthropic", "moonshotai") else 0
        ts = at("2026-01-01") + timedelta(minutes=draw.randint(0, 500 * 1440))
        rows.append((ts, provider, model, total, long))
        uses.append((total, read, write, long, draw.randint(0, 4000)))
    rates = rate_table(priced_log(rows))
    for row, use, index in zip(rows, uses, rates.rate_of_request, strict=True):
        rate, (total, read, write, long, output) = rates.rows[index], use
        money = (total - read - write) * rate.input + read * rate.read + (write - long) * rate.write_short
        money += long * (rate.write_long or 0) + output * rate.output
        usage = Usage(input_tokens=total, cache_read_tokens=read, cache_write_tokens=write, cache_write_1h_tokens=long,
                      output_tokens=output)  # fmt: skip
        listed = calc_price(usage, row[2], provider_id=row[1], genai_request_timestamp=row[0]).total_price
        assert money / 1e6 == pytest.approx(float(listed), abs=1e-12)
    assert rates.priced_token_share == 1.0
    assert (rates.currency, rates.label) == ("USD", "LIST")


def test_a_tier_is_a_cliff_on_the_whole_request():
    """Sonnet 4.6 before 2026-03-13: over 200,000 input tokens every token pays the upper price."""
    log = priced_log([(at("2026-03-01"), "anthropic", "claude-sonnet-4-6", tokens, 0) for tokens in (200_000, 200_001)])
    rates = rate_table(log)
    assert [rates.rows[n].input for n in rates.rate_of_request] == [3.0, 6.0]


def test_an_unknown_model_is_not_found_and_never_free():
    log = priced_log([
        (at("2026-02-01"), "anthropic", "claude-haiku-4-5", 300, 0),
        (at("2026-02-02"), None, "house-model-7b", 100, 0),
        (at("2026-02-03"), None, None, 600, 0),
    ])  # fmt: skip
    rates = rate_table(log)
    unknown = [rates.rows[n] for n in rates.rate_of_request[1:]]
    assert [(rate.found, rate.input, rate.output, rate.source) for rate in unknown] == [
        (False, None, None, "not found")
    ] * 2
    assert rates.priced_token_share == 300 / 1000
    assert any("house-model-7b not found: 100 input tokens" in text for text in rates.warnings)
    assert rates.rate_of_request.dtype == np.int32


def test_a_missing_long_write_price_is_said_and_not_replaced_by_the_short_one():
    log = priced_log([(at("2026-09-01"), "openai", "gpt-5.6-sol", 5000, 4000)])
    rates = rate_table(log)
    [rate] = rates.rows
    assert rate.write_short == 5.0 and rate.write_long is None
    assert any("long-write price of openai / gpt-5.6-sol not found: 4,000" in text for text in rates.warnings)


def test_a_model_without_cache_prices_bills_cached_tokens_as_input():
    [rate] = list_cells("groq", "llama-3.1-8b-instant")
    assert rate.read == rate.write_short == rate.input
    assert "billed as input" in rate.note


def test_a_log_much_newer_than_the_price_lock_warns():
    fresh = rate_table(priced_log([(at("2026-12-01"), "anthropic", "claude-haiku-4-5", 1, 0)]))
    newest = datetime.combine(LOCK_DATE, datetime.min.time(), UTC) + timedelta(days=61)
    stale = rate_table(priced_log([(newest, "anthropic", "claude-haiku-4-5", 1, 0)]))
    assert not any("60 days" in text for text in fresh.warnings)
    assert any("more than 60 days after the price list was locked" in text for text in stale.warnings)


def test_batch_prices_come_by_parameter_and_a_wrong_class_is_refused():
    """Claude Sonnet 4.6 in batches costs half: 1.50 instead of 3.00."""
    assert list_cells("anthropic", "claude-sonnet-4-6", "batch")[-1].input == 1.5
    with pytest.raises(PriceError, match="service class 'cheap' is not known; accepted: standard, batch"):
        list_cells("anthropic", "claude-sonnet-4-6", "cheap")


def test_the_overlay_changes_prices_from_its_date_on(tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text(
        '[[price]]\nprovider = "anthropic"\nmodel = "claude-opus-4-5*"\nvalid_from = 2026-02-10\nmultiplier = 0.8\n'
        'note = "contract A"\n[[price]]\nmodel = "house-*"\ninput = 1.5\noutput = 4\n'
    )
    rows = [(at(f"2026-02-{day:02d}"), "anthropic", "claude-opus-4-5-20251101", 1000, 0) for day in (9, 10)]
    rates = rate_table(priced_log([*rows, (at("2026-02-11"), None, "house-7b", 500, 0)]), path)
    before, after, house = (rates.rows[n] for n in rates.rate_of_request)
    assert (before.input, before.label) == (5.0, "LIST")
    assert (after.input, after.read, after.write_long, after.label) == (4.0, 0.4, 8.0, "CONTRACT")
    assert (
        after.valid_from == date(2026, 2, 10) and after.source == "prices.toml entry 1" and after.note == "contract A"
    )
    assert (house.input, house.read, house.write_short, house.write_long) == (1.5, 1.5, 1.5, None)
    assert rates.label == "CONTRACT" and rates.priced_token_share == 1.0


def test_overlay_precedence_is_exact_model_then_later_start_then_later_entry():
    overlay = parse_overlay(
        {"price": [
            {"model": "*", "multiplier": 0.5, "valid_from": date(2026, 2, 1)},
            {"model": "claude-opus-4-5", "multiplier": 0.9},
            {"model": "claude-opus-4-5", "multiplier": 0.7, "valid_from": date(2026, 2, 5)},
        ]},
        "o.toml",
    )  # fmt: skip
    days = [("claude-opus-4-5", "2026-01-31"), ("claude-opus-4-5", "2026-02-03"), ("claude-opus-4-5", "2026-02-05"),
            ("claude-haiku-4-5", "2026-01-31"), ("claude-haiku-4-5", "2026-02-01")]  # fmt: skip
    rates = rate_table(priced_log([(at(day), "anthropic", model, 10, 0) for model, day in days]), overlay)
    assert [round(rates.rows[n].input, 9) for n in rates.rate_of_request] == [4.5, 4.5, 3.5, 1.0, 0.5]


def test_a_multiplier_without_a_list_price_stays_not_found():
    overlay = parse_overlay({"price": [{"multiplier": 0.5}]}, "o.toml")
    [rate] = rate_table(priced_log([(at("2026-02-01"), None, "house", 10, 0)]), overlay).rows
    assert not rate.found and "no list price" in rate.note


def test_two_currencies_in_one_log_are_refused():
    overlay = parse_overlay({"currency": "EUR", "price": [{"model": "house", "input": 1.0}]}, "o.toml")
    log = priced_log(
        [(at("2026-02-01"), None, "house", 1, 0), (at("2026-02-01"), "anthropic", "claude-haiku-4-5", 1, 0)]
    )
    with pytest.raises(PriceError, match="EUR and USD are mixed"):
        rate_table(log, overlay)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[price]]\nmodel = "a"\nmultiplyer = 1', "entry 1: unknown key 'multiplyer'; accepted: input, model"),
        ('[[price]]\nmodel = "a"', "entry 1: give either multiplier or prices"),
        ('[[price]]\ninput = -1', "entry 1: input is -1; accepted is a number of at least 0"),
        ('[[price]]\ninput = 1\nvalid_from = "2026"', "valid_from is '2026'; accepted is a day without quotes"),
        ('[[invoice]]\nmonth = "Feb"\namount = 1', "month is 'Feb'; accepted is \"YYYY-MM\""),
        ('[[invoice]]\nmonth = "2026-02"', "amount is missing"),
        ("prices = 1", "unknown key 'prices'; accepted: currency"),
        ("= 1", "not valid TOML"),
        ("", "no [[price]] and no [[invoice]] in it"),
        ("price = 5", "price is no list of tables; write [[price]] above each entry"),
        ("[invoice]\namount = 1", "invoice is no list of tables; write [[invoice]]"),
        ("[[price]]\ninput = 1\nvalid_from = 2026-03-01\nvalid_to = 2026-02-01", "entry 1: valid_to 2026-02-01 is not "
         "after valid_from 2026-03-01"),
        ("[[price]]\ninput = 1\ntier_above = 1.5", "tier_above is 1.5; accepted is a whole number of tokens"),
    ],
)  # fmt: skip
def test_a_wrong_overlay_says_what_to_change(tmp_path, text, message):
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(PriceError) as caught:
        load_overlay(path)
    assert message in str(caught.value) and "wrong.toml" in str(caught.value) and "\n" not in str(caught.value)


def test_list_prices_in_another_currency_are_not_taken_over():
    """Input in EUR beside cached reads in USD, both called EUR, would be a wrong bill."""
    log = priced_log([(at("2026-02-01"), "anthropic", "claude-haiku-4-5", 1, 0)])
    overlay = parse_overlay({"currency": "EUR", "price": [{"provider": "anthropic", "input": 1.0}]}, "o.toml")
    with pytest.raises(PriceError, match=r"entry 1 gives no read, .* whose list is in USD; give each in EUR"):
        rate_table(log, overlay)


def test_an_entry_that_names_nothing_of_the_log_is_said():
    log = priced_log([(at("2026-02-01"), "anthropic", "claude-haiku-4-5", 1, 0)])
    overlay = parse_overlay({"price": [{"provider": "antropic", "multiplier": 0.5}, {"multiplier": 0.9}]}, "o.toml")
    said = [text for text in rate_table(log, overlay).warnings if "overlay" in text]
    assert said == [
        "price overlay o.toml entry 1 (antropic / *) names no provider and model of this log, so it changes no price"
    ]


def test_the_example_overlay_is_valid_and_prices_its_models():
    overlay = load_overlay(PROJECT / "data" / "price_overlay_example.toml")
    assert overlay.entries and overlay.invoices


def test_rows_for_results_json_are_plain_values():
    row = Rate(0, "p", "m", valid_from=date(2026, 1, 1), input=1.0).as_row()
    assert row["valid_from"] == "2026-01-01" and row["valid_to"] is None and row["read"] is None
