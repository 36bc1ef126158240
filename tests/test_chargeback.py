"""Who pays: owners add up to the bill and to the saving, and are named only where the parameter asks for it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kit import analysis, report
from kit.analysis.chargeback import SUMS, chargeback
from kit.analysis.parameters import from_settings
from kit.analysis.run import read_log
from kit.analysis.scene import set_the_scene

SECRET = "=TEAM('payments')<b>"
SETTINGS = ("capacity_tokens=2000", "minimum_tokens=0", "replicates=100", "what_if=false", "policies=lru,lfu")


def week(folder: Path, rows: str = "AABCA") -> Path:
    """Requests 10 s apart, a key of 1,000 tokens each; A is of the secret owner, B of team-b, C of nobody."""
    owner = {"A": SECRET, "B": "team-b", "C": ""}
    head = "ts,prefix_key,prefix_tokens,input_tokens,provider,model,owner"
    lines = [
        f'2026-09-07T00:{n * 10 // 60:02}:{n * 10 % 60:02}Z,{key},1000,1000,anthropic,claude-sonnet-4-6,"{owner[key]}"'
        for n, key in enumerate(rows)
    ]
    path = folder / "week.csv"
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def parts(log: Path, *settings: str) -> SimpleNamespace:
    parameters = from_settings([*SETTINGS, *settings])
    loaded = read_log([str(log)], parameters, None)
    return SimpleNamespace(
        log=loaded, parameters=parameters, scene=set_the_scene(loaded, parameters, progress=lambda step: None)
    )


def test_owners_are_not_told_unless_asked(tmp_path: Path) -> None:
    """Neither the results, nor a table, nor the report holds an owner's name."""
    made = analysis.analyse([str(week(tmp_path, "AABCA" * 20))], from_settings(SETTINGS), tmp_path / "out")
    assert made.results["chargeback"] is None
    report.write(made.results, tmp_path / "out" / "report.html")
    shared = [path for path in (tmp_path / "out").iterdir() if path.suffix != ".duckdb"]
    assert {"results.json", "report.html", "bill.csv", "retention_group.csv"} <= {path.name for path in shared}
    for path in shared:
        assert "payments" not in path.read_text() and "team-b" not in path.read_text(), path.name
    assert not (tmp_path / "out" / "chargeback.csv").exists()


def test_asked_for_they_are_in_every_table_and_cannot_act(tmp_path: Path) -> None:
    settings = from_settings([*SETTINGS, "name_owners=true"])
    made = analysis.analyse([str(week(tmp_path, "AABCA" * 20))], settings, tmp_path / "out")
    page = report.render(made.results)
    assert "=TEAM('payments')&lt;b&gt;" in page.replace("&#39;", "'") and "<b>" not in page
    for name in ("chargeback.csv", "owner_bill.csv", "retention_group.csv"):
        text = (tmp_path / "out" / name).read_text()
        assert "'=TEAM('payments')<b>" in text, name


def test_the_ledger_per_owner_adds_up(tmp_path: Path) -> None:
    """A A B C A with room for all: A is written once and read twice, B and C are written.

    secret: 1,000 x 3.75 + 2,000 x 0.30 = 4,350; team-b 3,750; nobody 3,750; all 11,850 (millionths of a dollar).
    """
    found = chargeback(parts(week(tmp_path), "name_owners=true"), "lru", {"groups": [], "choice": None})
    assert found is not None
    rows = {row["owner"]: row for row in found["owners"]}
    assert {name: row["cost"] for name, row in rows.items()} == pytest.approx(
        {SECRET: 0.00435, "team-b": 0.00375, None: 0.00375}
    )
    assert rows[SECRET]["read_tokens"] == 2_000 and rows[SECRET]["write_tokens"] == 1_000
    assert found["total"]["cost"] == pytest.approx(0.01185) and found["total"]["requests"] == 5
    assert found["saving_of"] is None and found["total"]["saving"] is None
    assert sum(row["cost_share"] for row in rows.values()) == pytest.approx(1)


def test_the_saving_of_a_policy_belongs_to_whom_it_serves(tmp_path: Path) -> None:
    """Room for two keys. LRU evicts A for C, so the last A is written; LFU evicts B and reads it: 3.75 - 0.30."""
    found = chargeback(parts(week(tmp_path), "name_owners=true"), "lfu", {"groups": []})
    assert found is not None and found["saving_of"] == "policy"
    saving = {row["owner"]: row["saving"] for row in found["owners"]}
    assert saving == pytest.approx({SECRET: 0.00345, "team-b": 0.0, None: 0.0})
    assert found["total"]["saving"] == pytest.approx(0.00345)


@pytest.mark.parametrize("verdict", ["lru", "lfu"])
def test_owners_named_like_a_row_merge_with_nothing(tmp_path: Path, verdict: str) -> None:
    """ "not found", "total" and "all others" are owners like any other; nobody is None; the total is none of them."""
    path = week(tmp_path, "AABCA" * 4)
    path.write_text(path.read_text().replace(SECRET, "not found").replace("team-b", "total"))
    found = chargeback(parts(path, "name_owners=true"), verdict, {"groups": [], "choice": None})
    assert found is not None
    assert {row["owner"]: row["requests"] for row in found["owners"]} == {"not found": 12, "total": 4, None: 4}
    assert found["total"]["requests"] == 20


def test_without_prices_tokens_are_charged_back(tmp_path: Path) -> None:
    found = chargeback(parts(week(tmp_path), "name_owners=true", "tier_mode=engine"), "lfu", {"groups": []})
    assert found is not None and found["currency"] is None and found["saving_of"] is None
    rows = {row["owner"]: row for row in found["owners"]}
    assert rows[SECRET]["read_tokens"] == 1_000 and rows[SECRET]["cost"] is None  # LRU: only the second A is found
    assert sum(row["input_tokens"] for row in rows.values()) == found["total"]["input_tokens"] == 5_000


def test_the_sample_week_adds_up_to_its_bill_and_its_saving(tmp_path: Path) -> None:
    from tests.conftest import PROJECT

    settings = from_settings(["name_owners=true", "what_if=false", "policies=lru,lfu", "replicates=100"])
    results = analysis.analyse([str(PROJECT / "data" / "sample_week.parquet")], settings, tmp_path / "out").results
    found: dict[str, Any] = results["chargeback"]
    for name in (*SUMS, "saving"):
        assert sum(row[name] for row in found["owners"]) == pytest.approx(found["total"][name]), name
    assert found["total"]["input_tokens"] == sum(day["input_tokens"] for day in results["days"])
    assert found["total"]["saving"] == pytest.approx(results["ttl_verdict"]["saving"]["value"])
    assert json.loads((tmp_path / "out" / "results.json").read_text())["chargeback"] == found
