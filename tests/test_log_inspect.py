"""`inspect` says what a log is, what it cannot tell, and what to log to unlock the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit.formats import REGISTRY
from kit.formats.kinds import KINDS
from kit.log import LogError, inspect, load
from kit.terms import COLUMNS
from tests.conftest import shared_data


def test_a_log_of_lengths_only(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2026-03-01 10:00:00.1234567,374,44\n2026-03-01 10:00:01,x,4\n"
    )
    found = inspect(tmp_path / "log.csv")
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert (found["format"], found["confidence"], found["rows"], found["kept"]) == ("azure", 0.95, 2, 1)
    assert found["rejected"] == {"ContextTokens is not a whole number, 0 or more": 1}
    assert found["mapped"] == {"ts": "TIMESTAMP", "input_tokens": "ContextTokens", "output_tokens": "GeneratedTokens"}
    assert found["coverage"]["input_tokens"] == 1.0 and found["coverage"]["model"] == 0.0
    assert "model" in found["missing"] and found["units"]["TIMESTAMP"].startswith("time without a zone")
    replay = "concentration, rotation, value rank and policy replay"
    assert replay not in found["possible"] and "prefix_key" in found["unlock"][replay]
    assert "time to live and day overlap" in found["possible"]


def test_prefixes_without_tokens_are_no_identity(tmp_path: Path) -> None:
    path = tmp_path / "zero.csv"
    path.write_text("ts,prefix_key,prefix_tokens,input_tokens\n" + "".join(f"{n},k{n % 3},0,100\n" for n in range(9)))
    found, log = inspect(path), load(path, tmp_path / "log.duckdb")
    assert found["identity"] is log.facts.identity is None
    assert any("all prefix_tokens are 0 in this log" in text for text in found["cannot_tell"])
    assert "concentration, rotation, value rank and policy replay" in found["unlock"]
    assert found["cannot_tell"] == list(log.facts.cannot_tell)


def test_the_week_can_tell_nearly_everything() -> None:
    found = inspect(shared_data("claude_agents_week.csv"))
    assert (found["format"], found["rows"], found["kept"], found["rejected"]) == ("agent_usage", 5964, 5964, {})
    assert set(found["unlock"]) == {"reuse by token type", "chargeback"}
    assert {"source", "client_id", "stop_reason"} <= set(found["not_used"])


def test_files_folders_and_globs_name_the_same_log(tmp_path: Path) -> None:
    inner = tmp_path / "day=1"
    inner.mkdir()
    for name, second in (("a.jsonl", 1), ("b.jsonl", 2)):
        (inner / name).write_text(f'{{"ts":{second},"input_tokens":{second}}}\n')
    (inner / ".hidden").write_text("no log")
    logs = [load(tmp_path), load(tmp_path / "day=1" / "*.jsonl"), load([inner / "b.jsonl", inner / "a.jsonl"])]
    assert {log.facts.sha256 for log in logs} == {logs[0].facts.sha256}
    assert all(log.facts.files == ("a.jsonl", "b.jsonl") and log.facts.kept == 2 for log in logs)
    for nothing in (tmp_path / "*.csv", []):
        with pytest.raises(LogError, match=r"no such file|no log was named"):
            load(nothing)


def test_unknown_format_names_are_refused(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("ts,input_tokens\n1,1\n")
    with pytest.raises(LogError, match="no format is called nothing; known are canonical"):
        load(tmp_path / "log.csv", format="nothing")
    assert load(tmp_path / "log.csv", format="canonical").facts.kept == 1


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_format_explains_itself(name: str) -> None:
    form = REGISTRY[name]
    assert form.title and form.identity_rule and form.token_rule and form.units and form.source and form.containers
    assert len({item.name for item in form.fields}) == len(form.fields)
    assert all(item.kind in KINDS and item.paths for item in form.fields)
    assert {item for item in form.columns if item in COLUMNS} or form.refuses
