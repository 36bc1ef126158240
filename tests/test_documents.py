"""Tables in the documents say what the code says; `python -m tests.documents` writes them."""

from __future__ import annotations

import hashlib
import re
from html import escape
from xml.etree import ElementTree

import pytest

from tests.documents import PARTS, PROJECT, filled


@pytest.mark.parametrize("file", sorted(PARTS))
def test_tables_are_those_of_the_code(file: str):
    text = (PROJECT / file).read_text(encoding="utf-8")
    assert filled(text, PARTS[file]) == text


@pytest.mark.parametrize(
    "file", ["README.md", "data/README.md", "reports/README.md", "bench/README.md", "CHANGELOG.md"]
)
def test_links_lead_somewhere(file: str):
    path = PROJECT / file
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (path.parent / link).exists()] == []


def test_the_example_is_the_report_of_the_bundled_week():
    """`make example` makes both from one run; README and picture quote the sentence of the report."""
    report = (PROJECT / "reports" / "sample_week.html").read_text(encoding="utf-8")
    picture = ElementTree.parse(PROJECT / "reports" / "verdict.svg").getroot()
    sentence = picture.findtext("{http://www.w3.org/2000/svg}title") or ""
    assert escape(sentence, quote=False) in report
    assert f"[{sentence}](reports/verdict.svg)" in (PROJECT / "README.md").read_text(encoding="utf-8")
    log = (PROJECT / "data" / "sample_week.parquet").read_bytes()
    assert hashlib.sha256(log).hexdigest()[:12] in report


def test_the_map_of_the_readme_names_every_module():
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    modules = {path.name.removesuffix(".py") for path in (PROJECT / "kit").iterdir() if path.suffix in ("", ".py")}
    modules -= {"__init__", "__main__", "__pycache__"}
    named = re.findall(r"^\| `(\w+)` \|", readme.split("## Map of `kit/`")[1].split("\n## ")[0], re.M)
    assert sorted(named) == sorted(modules)
