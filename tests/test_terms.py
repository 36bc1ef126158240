"""The dictionary explains every name once, with a sentence."""

from __future__ import annotations

import pytest

from kit.terms import COLUMNS, RESULTS, TERMS, WORDS, term, title


def test_groups_do_not_overlap() -> None:
    assert len(TERMS) == len(WORDS) + len(COLUMNS) + len(RESULTS)


@pytest.mark.parametrize("name", sorted(TERMS))
def test_every_term_has_a_title_and_one_sentence(name: str) -> None:
    found = term(name)
    assert found.name == name and found.title
    assert found.sentence.endswith(".") and ". " not in found.sentence


def test_title_carries_the_unit() -> None:
    assert title("input_tokens") == "Input tokens [tokens]"
    assert title("model") == "Model"


def test_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError, match="no such word"):
        term("no such word")
