"""The committed report of the sample week is what a fresh run makes (`make example` writes it again).

Compared are all words, tables and figure data. Masked are the drawings (letters are measured with the machine's fonts)
and digits beyond the sixth of figure data.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from kit import report
from kit.analysis import analyse
from kit.analysis.parameters import Parameters

PROJECT = Path(__file__).resolve().parent.parent
COMMITTED = PROJECT / "reports" / "sample_week.html"


def masked(page: str) -> list[str]:
    """The page's lines without drawings, figure data spelt out with six digits."""
    page = re.sub(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", "DRAWING", page)
    page = re.sub(r'href="data:text/csv[^,]*,([^"]*)"', lambda found: unquote(found[1]), page)
    page = re.sub(r"\d+\.\d{6,}(?:e-?\d+)?", lambda found: f"{float(found[0]):.6g}", page)
    return page.splitlines()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample")
    command = "python -m kit report data/sample_week.parquet"
    made = analyse([PROJECT / "data" / "sample_week.parquet"], Parameters(), folder, command=command)
    made.con.close()
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
