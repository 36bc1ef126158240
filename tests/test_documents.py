"""Tables in the documents say what the code says; `python -m tests.documents` writes them."""

from __future__ import annotations

import re

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


def test_the_map_of_the_readme_names_every_module():
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    modules = {path.name.removesuffix(".py") for path in (PROJECT / "kit").iterdir() if path.suffix in ("", ".py")}
    modules -= {"__init__", "__main__", "__pycache__"}
    named = re.findall(r"^\| `(\w+)` \|", readme.split("## Map of `kit/`")[1].split("\n## ")[0], re.M)
    assert sorted(named) == sorted(modules)
