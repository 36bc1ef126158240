"""The committed report of the sample week is what a fresh run makes (`make example` writes it again).

Compared are all words, tables and figure data. Masked are the drawings (letters are measured with the machine's fonts)
and digits beyond the sixth of figure data.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from kit import numbers, report
from kit.analysis import analyse
from kit.analysis.parameters import Parameters
from tests.test_report import Page

PROJECT = Path(__file__).resolve().parent.parent
COMMITTED = PROJECT / "reports" / "sample_week.html"


def masked(page: str) -> list[str]:
    """The page's lines without drawings, figure data spelt out with six digits."""
    page = re.sub(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", "DRAWING", page)
    page = re.sub(r'href="data:text/csv[^,]*,([^"]*)"', lambda found: unquote(found[1]), page)
    page = re.sub(r"\d+\.\d{6,}(?:e-?\d+)?", lambda found: f"{float(found[0]):.6g}", page)
    return page.splitlines()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample")
    command = "python -m kit report data/sample_week.parquet"
    done = analyse([PROJECT / "data" / "sample_week.parquet"], Parameters(), folder, command=command)
    done.con.close()
    return done


@pytest.fixture(scope="module")
def fresh(made):
    return made.results


def test_committed_report_equals_a_fresh_run(fresh):
    now, before = masked(report.render(fresh)), masked(COMMITTED.read_text(encoding="utf-8"))
    changed = [
        (number, one, other) for number, (one, other) in enumerate(zip(before, now, strict=False), 1) if one != other
    ]
    assert changed[:5] == [] and len(now) == len(before), "run: make example"


def test_the_page_says_what_the_results_say(fresh):
    page = report.render(fresh)
    assert f'id="verdict">{fresh["decision"]["sentence"]}</p>' in page
    for said in (
        f"{fresh['log']['requests']:,} requests",
        f"{fresh['log']['sessions']:,} sessions",
        fresh["log"]["sha256"],
    ):
        assert said in page


def test_the_files_beside_the_page_say_what_it_says(made):
    """results.json is the page's source; of the CSV files policies, bill, retention, days, prices and trail."""
    page = Page(report.render(json.loads((made.folder / "results.json").read_text())))
    assert Page(report.render(made.results)).tables == page.tables
    tables = {name: list(csv.DictReader((made.folder / f"{name}.csv").open())) for name in
              ("replay_point", "bill_line", "retention_group", "day", "rate", "policy", "decision_trail")}  # fmt: skip
    title = {row["name"]: row["title"] for row in tables["policy"]}
    bills = {row[0]: row[1:] for row in page.tables["table-bills"][1:]}
    policies = {row[0].removesuffix(" (recommended)"): row[1:] for row in page.tables["table-policies"][1:]}
    here = [row for row in tables["replay_point"] if row["capacity_label"] == "actual"
            and (row["assumption"], row["window"]) == ("neutral", "cold")]  # fmt: skip
    assert len(here) == len(bills) == 8
    for row in here:
        name = title[row["policy"]]
        assert policies[name][0] == numbers.percent(float(row["hit_token_ratio"]))
        assert policies[name][3:5] == [numbers.short(int(row[f"missed_{cause}"])) for cause in ("evicted", "expired")]
        assert bills[name][-1] == numbers.money(float(row["cost"]), detail=True)
        classes = [line for line in tables["bill_line"] if line["policy"] == row["policy"]]
        assert sum(float(line["cost"]) for line in classes) == pytest.approx(float(row["cost"]))
    assert [row[0] for row in page.tables["table-days"][1:]] == [row["day"] for row in tables["day"]]
    assert [row[1] for row in page.tables["table-days"][1:]] == [f"{int(row['requests']):,}" for row in tables["day"]]
    saved = [row[-1].split(" ")[0] for row in page.tables["table-retention"][1:]]
    assert saved == [numbers.money(float(row["saving_value"]), detail=True) for row in tables["retention_group"]]
    assert [row[1] for row in page.tables["table-rates"][1:]] == [
        numbers.unit_price(float(row["input"])) for row in tables["rate"]
    ]
    outcomes = [row[2].split(": ")[0] for row in page.tables["table-decision_trail"][1:]]
    assert outcomes == [row["outcome"] for row in tables["decision_trail"]]
