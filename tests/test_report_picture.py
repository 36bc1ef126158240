"""The verdict's picture says what the results say, to those who see it and to those who do not."""

from __future__ import annotations

import copy
from xml.etree import ElementTree

from kit.report.picture import picture
from tests import report_fixture

SVG = "{http://www.w3.org/2000/svg}"


def drawn(results: dict) -> ElementTree.Element:
    return ElementTree.fromstring(picture(results))


def test_the_sentence_is_title_and_text():
    results = report_fixture.results()
    root = drawn(results)
    sentence = results["decision"]["sentence"]
    assert root.findtext(f"{SVG}title") == sentence
    heading = root.find(f"{SVG}text")
    assert heading is not None and " ".join(heading.itertext()) == sentence


def test_the_description_holds_the_figures():
    description = drawn(report_fixture.results()).findtext(f"{SVG}desc") or ""
    assert "%" in description.removeprefix(report_fixture.results()["decision"]["sentence"])


def test_without_a_figure_the_sentence_stands_alone():
    results = copy.deepcopy(report_fixture.results())
    results["replay"], results["lru_curve"] = [], []
    root = drawn(results)
    assert root.findtext(f"{SVG}title") == results["decision"]["sentence"]
    assert root.find(f"{SVG}svg") is None


def test_nothing_is_fetched_and_nothing_runs():
    text = picture(report_fixture.results())
    assert "<script" not in text and "href=" not in text and "url(http" not in text
