"""Ledger, invoices, spreadsheet files and an engine's work: by hand, and adding up on the public traces."""

from __future__ import annotations

import csv

import pytest

from kit import log as logs
from kit.billing import bill, check_invoices, effective_price, ledger, prefill_work, safe_cell, write_books, write_csv
from kit.billing.bill import BillingError
from kit.prefix import load_paths
from kit.prices import parse_overlay, rate_table
from kit.providers import CLASSES, reported, rule_for
from kit.replay import Setting, ceiling
from tests.chain_log import chain_log, told
from tests.conftest import shared_data

CLAUDE = rule_for("anthropic", "claude-sonnet-4-6")
OWN = {"input": 3.0, "read": 0.3, "write_short": 3.75, "write_long": 6.0, "output": 15.0}
SONNET = parse_overlay({"price": [OWN]}, "own.toml")
OWNERS = [
    told(0, "a", 0, short=2_000, uncached=10, owner="search", output_tokens=100),
    told(100, "a", 2_000, short=300, uncached=20, owner="search", output_tokens=50),
    told(1_000, "a", 0, short=2_500, uncached=5, owner="chat", output_tokens=10),
    told(1_010, "a", 0, long=2_600, owner="chat", output_tokens=10),
    told(1_020, "b", 0, uncached=500, owner="chat", output_tokens=1),
]


def test_ledger_by_hand():
    """3.00 / 0.30 / 3.75 / 6.00 per million, TTL 300 s, minimum 1,024.

    search: 2,000 + 300 short, 30 uncached, 2,000 read: 8,625 + 90 + 600 = 9,315; all new tokens cold.
    chat, 1,000 s: 2,320 of its 2,505 tokens were there before and had expired: written at 3.75, avoidable 2,320 x 3.45.
    chat, 1,010 s: 2,505 of 2,600 should have been there: lost, written long at 6.00, avoidable 2,505 x 5.70.
    chat, 1,020 s: 500 under the minimum at 3.00.
    """
    log = chain_log(OWNERS)
    made = ledger(log, rate_table(log, SONNET), rule=CLAUDE)
    causes = {(row["owner"], row["cause"]): row for row in made["causes"]}
    money = {key: (row["tokens"], round(row["cost"] * 1e6, 6), round(row["avoidable_cost"] * 1e6, 6))
             for key, row in causes.items() if row["tokens"]}  # fmt: skip
    assert money == {
        ("search", "cold"): (2_330, 2_300 * 3.75 + 30 * 3.0, 0.0),
        ("chat", "cold"): (280, 180 * 3.75 + 5 * 3.0 + 95 * 6.0, 0.0),
        ("chat", "expired"): (2_320, 2_320 * 3.75, 2_320 * 3.45),
        ("chat", "lost"): (2_505, 2_505 * 6.0, 2_505 * 5.7),
        ("chat", "below_minimum"): (500, 1_500.0, 0.0),
    }
    chat, search = made["chargeback"]
    assert (search["owner"], search["requests"], search["read_tokens"], search["avoidable_tokens"]) == (
        "search",
        2,
        2_000,
        0,
    )
    assert search["cost"] * 1e6 == pytest.approx(9_315) and search["output_cost"] * 1e6 == pytest.approx(2_250)
    assert chat["avoidable_tokens"] == 4_825
    assert chat["avoidable_cost"] * 1e6 == pytest.approx(2_320 * 3.45 + 2_505 * 5.7)
    lines = {row["token_class"]: row["tokens"] for row in made["bill"]}
    assert lines == {"uncached": 535, "read": 2_000, "write": 4_800, "write_long": 2_600, "output": 171}
    assert {row["label"] for row in made["bill"]} == {"CONTRACT"} and {row["basis"] for row in made["bill"]} == {
        "reported"
    }


def test_without_reported_classes_the_ledger_is_simulated_and_says_so():
    """Two turns 10 s apart: 2,000 written, then 2,000 read and 500 written."""
    turns = [{"at": 0, "chain": "a", "input_tokens": 2_000}, {"at": 10, "chain": "a", "input_tokens": 2_500}]
    log = chain_log(turns)
    made = ledger(log, rate_table(log, SONNET), rule=CLAUDE)
    assert {row["basis"] for row in made["bill"]} == {"simulated"}
    [line] = made["chargeback"]
    assert (line["owner"], line["read_tokens"], line["write_tokens"], line["output_cost"]) == (
        None,
        2_000,
        2_500,
        None,
    )


def test_a_model_without_a_price_has_tokens_and_no_money():
    log = chain_log(OWNERS, provider=None, model="house")
    made = ledger(log, rate_table(log))
    assert (
        all(row["cost"] is None for row in made["chargeback"])
        and sum(row["read_tokens"] for row in made["chargeback"]) == 2_000
    )
    assert all(row["cost"] is None and row["price_per_million"] is None for row in made["bill"])


@pytest.mark.parametrize("name", ["claude_agents_week.csv", "pi_sessions.csv"])
def test_every_table_of_the_ledger_adds_up_to_the_reported_bill(name):
    log = logs.load(shared_data(name))
    rates = rate_table(log)
    made, whole = ledger(log, rates), reported(log, rates)
    charged = made["chargeback"]
    assert sum(row["cost"] for row in charged) == pytest.approx(whole["cost"], rel=1e-12)
    assert sum(row["cost"] for row in made["bill"] if row["token_class"] != "output") == pytest.approx(
        whole["cost"], rel=1e-12
    )
    for token_class in CLASSES:
        assert sum(row[token_class] for row in charged) == (whole[token_class] or 0)
    new = sum(whole[name] or 0 for name in CLASSES if name != "read_tokens")
    assert sum(row["tokens"] for row in made["causes"]) == new
    reads = sum(row["cost"] for row in made["bill"] if row["token_class"] == "read")
    assert sum(row["cost"] for row in made["causes"]) == pytest.approx(whole["cost"] - reads, rel=1e-9)
    avoidable = sum(row["avoidable_cost"] for row in made["causes"])
    assert sum(row["avoidable_cost"] for row in charged) == pytest.approx(avoidable, rel=1e-9)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", " =cmd", "|calc", "%x"])
def test_no_cell_starts_a_formula(text):
    assert safe_cell(text) == f"'{text}"


def test_numbers_stay_numbers_and_unknown_is_empty(tmp_path):
    assert [safe_cell(value) for value in (-1.5, 0, None, "team a", "a=b")] == [-1.5, 0, "", "team a", "a=b"]
    assert safe_cell(0.1 + 0.2) == 0.3
    path = write_csv(tmp_path / "x.csv", [{"=owner": '=HYPERLINK("x")', "n": None}, {"=owner": 'a "b", c', "n": 3}])
    with path.open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["'=owner", "n"], ['\'=HYPERLINK("x")', ""], ['a "b", c', "3"]]
    assert write_csv(tmp_path / "empty.csv", [], ["owner"]).read_text(encoding="utf-8") == "owner\n"


def test_books_are_two_files_with_fixed_columns(tmp_path):
    log = chain_log([{**turn, "owner": "=cmd|' /C calc'!A0"} for turn in OWNERS])
    paths = write_books(tmp_path, ledger(log, rate_table(log, SONNET), rule=CLAUDE))
    assert [path.name for path in paths] == ["bill.csv", "chargeback.csv"]
    text = (tmp_path / "chargeback.csv").read_text()
    assert text.startswith("owner,model,day,requests,") and "'=cmd" in text and "\n=cmd" not in text


def test_an_invoice_is_held_against_a_whole_month_only():
    """One request a day in February: 28 x 1,000 uncached at 3.00 = 0.084. 0.085 agrees, 0.10 does not."""
    days = [told(86_400 * day, f"s{day}", 0, uncached=1_000, output_tokens=0) for day in range(-1, 27)]
    overlay = parse_overlay(
        {"price": [OWN], "invoice": [
            {"provider": "anthropic", "month": "2026-02", "amount": 0.085},
            {"provider": "anthropic", "month": "2026-02", "amount": 0.10, "note": "wrong"},
            {"provider": "openai", "month": "2026-02", "amount": 1.0},
        ]},
        "own.toml",
    )  # fmt: skip
    log = chain_log(days)
    good, wrong, absent = check_invoices(log, rate_table(log, overlay))
    assert (good["agrees"], wrong["agrees"], absent["agrees"]) == (True, False, None)
    assert good["priced"] == pytest.approx(0.084) and good["effective_rate"] == pytest.approx(0.085 / 0.084)
    assert (good["days_covered"], good["days_in_month"], good["label"]) == (28, 28, "INVOICED")
    assert wrong["note"] == "wrong" and "no request of this provider" in absent["note"]
    part = chain_log(days[:7])
    [short, *_] = check_invoices(part, rate_table(part, overlay))
    assert short["agrees"] is None and short["note"] == "the log covers 7 of 28 days"
    assert check_invoices(log, rate_table(log, SONNET)) == []


def test_engine_work_in_tokens_operations_and_gpu_time():
    """a: 2,000 then 2,500 (2,000 reused): 2,500 prefilled, 2,000 saved; 2 x 7e9 operations each, 5,000 tokens/s."""
    turns = [{"at": 0, "chain": "a", "input_tokens": 2_000}, {"at": 10, "chain": "a", "input_tokens": 2_500}]
    log = chain_log(turns, provider=None, model="house-7b")
    drawn = bill(ceiling(load_paths(log), Setting()), None, "engine")
    work = prefill_work(drawn, 7e9, 5_000)
    assert (work["prefill_tokens"], work["saved_tokens"]) == (2_500, 2_000)
    assert (work["prefill_flops"], work["saved_flops"]) == (2_500 * 14e9, 2_000 * 14e9)
    assert (work["gpu_seconds"], work["saved_gpu_seconds"]) == (0.5, 0.4)
    assert prefill_work(drawn)["prefill_flops"] is None and prefill_work(drawn)["gpu_seconds"] is None
    with pytest.raises(BillingError, match="model_parameters is 0; accepted is a number above 0"):
        prefill_work(drawn, 0)


def test_a_log_without_prefix_identity_still_has_its_reported_bill():
    """The same five requests, prefixes unknown: classes as reported, nothing can be called avoidable."""
    with_paths, without = chain_log(OWNERS), chain_log(OWNERS, identity=None)
    without.con.execute("DELETE FROM node")
    without.con.execute("DELETE FROM request_node")
    made, bare = (ledger(log, rate_table(log, SONNET), rule=CLAUDE) for log in (with_paths, without))
    assert bare["bill"] == made["bill"]
    assert sum(row["avoidable_tokens"] for row in bare["chargeback"]) == 0


def test_the_effective_price_beside_the_formula_by_hand():
    """85 of 100 tokens read at 0.1, 15 written at 1.25: (15 x 1.25 + 85 x 0.1) / 100 = 0.2725, saving 72.75 %."""
    log = chain_log([told(0, "a", 0, short=15_000), told(10, "a", 85_000)])
    found = effective_price(log, rate_table(log, SONNET))
    assert found["paid"] == pytest.approx(0.2725) and found["formula"] == pytest.approx(0.2725)
    assert found["saving"] == pytest.approx(0.7275) and found["formula_error"] == pytest.approx(0, abs=1e-12)
    assert (found["read_share"], found["request_share"]) == (0.85, 0.5)
    assert found["request_formula"] == pytest.approx(0.5 * 1.25 + 0.5 * 0.1)
    assert found["share_for_75"] == pytest.approx(0.8695652)
    assert found["limits"] == ["output tokens are on top and are not cached"]


def test_the_formula_is_off_where_tokens_stay_uncached_or_are_written_long():
    """Of 100: 50 read, 20 uncached, 10 short, 20 long: paid 5 + 20 + 12.5 + 40 = 77.5; formula .5 x 1.25 + .5 x .1."""
    log = chain_log([told(0, "a", 5_000, short=1_000, long=2_000, uncached=2_000)])
    found = effective_price(log, rate_table(log, SONNET))
    assert found["paid"] == pytest.approx(0.775) and found["formula"] == pytest.approx(0.675)
    assert found["formula_error"] == pytest.approx(0.675 / 0.775 - 1)
    assert found["limits"][:2] == [
        "20.00% of input tokens are neither written nor read",
        "66.7% of written tokens have the long retention's price",
    ]  # fmt: skip
    bare = chain_log([{"at": 0, "chain": "a", "input_tokens": 10}])
    assert effective_price(bare, rate_table(bare, SONNET))["paid"] is None
