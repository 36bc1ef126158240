"""The report's section on what breaks a prefix: the figures of `prefix_breaks`, what stands there and what to do."""

from __future__ import annotations

from typing import Any

from kit.report.breaks import breaks

FOUND: dict[str, Any] = {
    "basis": "chain", "pairs": 200, "extended": 150, "broken": 50, "lost_tokens": 100_000,
    "by_type": [
        {"token_type": "system", "content": "new", "breaks": 30, "lost_tokens": 80_000, "median_position_tokens": 64.0},
        {"token_type": None, "content": "again", "breaks": 19, "lost_tokens": 19_950, "median_position_tokens": 512.0},
        {"token_type": "user", "content": "cut", "breaks": 1, "lost_tokens": 50, "median_position_tokens": 9.0},
    ],
    "worst": [{"position_tokens": 64, "token_type": "system", "breaks": 30, "different": 30, "lost_tokens": 80_000,
               "content": "new"}],
}  # fmt: skip


def test_says_what_was_lost_and_what_to_do() -> None:
    section = breaks({"prefix_breaks": FOUND})
    assert section is not None
    said, types, worst = section.parts
    # 50 of 200 = 25 %
    assert "50 of 200 requests (25.0%)" in said.text and "100,000 tokens" in said.text  # type: ignore[union-attr]
    # the cut of 50 tokens is under 0.1 % of 100,000 and left out; 80,000 of 100,000 = 80 %
    assert [row[:5] for row in types.rows] == [  # type: ignore[union-attr]
        ("system", "new content", "30", "80,000", "80.0%"),
        ("not told apart", "same content missed again", "19", "19,950", "20.0%"),
    ]
    assert types.rows[0][6].startswith("fix the prompt") and types.rows[1][6].startswith("buy capacity")  # type: ignore[union-attr]
    assert worst.rows == (("64", "system", "new content", "30", "30", "80,000"),)  # type: ignore[union-attr]


def test_nothing_broken_and_nothing_to_compare() -> None:
    whole = {**FOUND, "broken": 0, "extended": 200, "lost_tokens": 0, "by_type": [], "worst": []}
    section = breaks({"prefix_breaks": whole})
    assert section is not None and len(section.parts) == 1 and "nothing breaks" in section.parts[0].text  # type: ignore[union-attr]
    assert breaks({"prefix_breaks": None}) is None
    assert breaks({"prefix_breaks": {**FOUND, "pairs": 0}}) is None


def test_what_was_taken_out_is_not_the_prompts_fault() -> None:
    one = {
        "token_type": "tool_result",
        "content": "removed",
        "breaks": 3,
        "lost_tokens": 90,
        "median_position_tokens": 7,
    }
    section = breaks({"prefix_breaks": {**FOUND, "broken": 3, "lost_tokens": 90, "by_type": [one], "worst": []}})
    assert section is not None
    _, types, worst = section.parts
    assert types.rows[0][:3] == ("tool_result", "something was taken out", "3")  # type: ignore[union-attr]
    assert "fix the prompt" not in types.rows[0][6] and "clock" not in types.rows[0][6]  # type: ignore[union-attr]
    assert "Taken out: what stood there never comes again" in types.note  # type: ignore[union-attr]
    assert worst.text.startswith("No place breaks twice")  # type: ignore[union-attr]


def test_without_chains_there_is_no_advice() -> None:
    counts = dict.fromkeys(("basis", "pairs", "extended", "broken", "lost_tokens"))
    section = breaks({"prefix_breaks": {**counts, "by_type": [], "worst": []}})
    assert section is not None and len(section.parts) == 1
    assert section.parts[0].text.startswith("This log cannot tell")  # type: ignore[union-attr]
