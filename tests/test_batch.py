"""A batch folder over several runs: what is compared with what, resumed, and safe when two runs write it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from kit import cli
from kit.analysis.parameters import from_settings
from kit.cli import batch, history
from kit.cli.batch import Outcome, _time_left, is_current
from tests.conftest import PROJECT


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("week_2026-09-07", "week_*"), ("week_20260914", "week_*"), ("claude_2026q1", "claude_*"), ("2026-09", "*"),
        ("logs-2026-W36", "logs-*"), ("team1", "team1"), ("gpt-4o", "gpt-4o"), ("run_12345", "run_12345"),
    ],
)  # fmt: skip
def test_a_family_is_a_name_without_its_dates(name: str, family: str) -> None:
    assert history.family(name) == family


def row(name: str, end: str | None, sha256: str = "a", status: str = "made", **more: Any) -> dict[str, Any]:
    facts = {"sha256": sha256, "end": end, "rule": 3, "policy": "lru"} if status != "failed" else None
    return {"name": name, "status": status, "report": f"{name}/report.html", "facts": facts, **more}


def compared(folder: Path, rows: list[dict[str, Any]], earlier: list[dict[str, Any]]) -> dict[str, str | None]:
    made = history.joined(folder, rows, {one["name"]: one for one in earlier})
    return {one["name"]: one["previous"] and one["previous"]["name"] for one in made}


def test_a_week_is_compared_with_the_week_before_it(tmp_path: Path) -> None:
    rows = [row(f"w_2026-09-{day:02}", f"2026-09-{day:02}T23:00:00Z", sha256=str(day)) for day in (21, 7, 14)]
    assert compared(tmp_path, rows, []) == {"w_2026-09-21": "w_2026-09-14", "w_2026-09-07": None,
                                            "w_2026-09-14": "w_2026-09-07"}  # fmt: skip


def test_a_replaced_file_is_compared_with_what_its_name_held(tmp_path: Path) -> None:
    assert compared(tmp_path, [row("a", "2026-09-14", "new")], [row("a", "2026-09-07", "old")]) == {"a": "a"}


def test_an_unchanged_log_keeps_what_it_was_compared_with(tmp_path: Path) -> None:
    previous = {"name": "a", "facts": {"rule": 9}}
    before = row("a", "2026-09-07", previous=previous)
    made = history.joined(tmp_path, [row("a", "2026-09-07", status="kept")], {"a": before})
    assert made[0]["previous"] == previous
    again = history.joined(tmp_path, [row("a", "2026-09-07")], {"a": before})  # made again: other parameters
    assert again[0]["previous"]["facts"] == before["facts"]


def test_reports_of_other_runs_stay_in_the_index(tmp_path: Path) -> None:
    """While their report stands; a failed log and a log without an end are compared with nothing."""
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "report.html").write_text("x")
    rows = [row("new", None), row("broken", None, status="failed")]
    made = history.joined(tmp_path, rows, {"old": row("old", "2026-09-07"), "gone": row("gone", "2026-09-07")})
    assert {one["name"]: one["status"] for one in made} == {"new": "made", "broken": "failed", "old": "earlier"}
    assert all(one["previous"] is None for one in made)


def test_a_failed_run_keeps_the_history_of_its_log(tmp_path: Path) -> None:
    """Good, failed, good again: the third run is compared with the first; facts that lack keys are no error."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "report.html").write_text("x")
    first = row("a", "2026-09-07", "old")
    [failed] = history.joined(tmp_path, [row("a", None, status="failed", report=None)], {"a": first})
    assert (failed["status"], failed["report"], failed["facts"]) == ("failed", "a/report.html", first["facts"])
    [again] = history.joined(tmp_path, [row("a", "2026-09-14", "new")], {"a": failed})
    assert again["previous"] == {"name": "a", "facts": first["facts"]}
    bare = {**first, "facts": {"rule": 3}}
    assert history.joined(tmp_path, [row("a", None)], {"a": bare})[0]["previous"]["facts"] == {"rule": 3}
    assert history.joined(tmp_path, [bare], {})[0]["previous"] is None


def test_a_folder_with_a_damaged_index_starts_afresh(tmp_path: Path) -> None:
    for text in ("", "{", "[1]", '{"name": 1}', "[{}]"):
        (tmp_path / history.BATCH_JSON).write_text(text)
        assert history.earlier_rows(tmp_path) == {}


def test_two_runs_that_end_together_lose_no_row(tmp_path: Path) -> None:
    """Eight runs of one log each write the same index; all eight logs stand in it."""
    for n in range(8):
        (tmp_path / f"log{n}").mkdir()
        (tmp_path / f"log{n}" / "report.html").write_text("x")
    made = [Outcome(f"log{n}", f"log{n}.csv", "made", report=f"log{n}/report.html", facts=None) for n in range(8)]
    writers = [threading.Thread(target=batch._write, args=(tmp_path, [one])) for one in made]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    rows = json.loads((tmp_path / "batch.json").read_text())
    assert {one["name"] for one in rows} == {f"log{n}" for n in range(8)}
    assert all(f"log{n}/report.html" in (tmp_path / "index.html").read_text() for n in range(8))
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["batch.json", "index.html"]


def test_the_time_left_is_told() -> None:
    assert _time_left(30.0, 1, 4) == "1 of 4, about 1.5 min left"  # 30 s each, three to go
    assert _time_left(30.0, 4, 4) == "4 of 4"
    assert _time_left(0.1, 1, 4) == "1 of 4"  # kept, not made: nothing to wait for


def small(path: Path, keys: int) -> Path:
    """200 requests 10 s apart over flat keys of 2,000 tokens, of two owners, at a provider with prices."""
    head = "ts,prefix_key,prefix_tokens,input_tokens,provider,model,owner"
    day, model = f"2026-09-{7 + keys % 2:02}", "anthropic,claude-sonnet-4-6"
    lines = [f"{day}T00:{n // 6:02}:{n % 6}0Z,k{n % keys},2000,2200,{model},team-{n % 2}" for n in range(200)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


SETTINGS = ("name_owners=true", "what_if=false", "policies=lru,lfu")


def kit(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kit", "batch", *arguments]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_real_runs_on_one_folder(tmp_path: Path) -> None:
    """Both runs want the same week; whoever comes last finds it done or replaces it whole. Owners are charged back."""
    log = str(small(tmp_path / "logs" / "week_2026-09-07.csv", keys=10))
    options = ["--out", str(tmp_path / "out"), "--jobs", "1", "--json"]
    options += [text for setting in SETTINGS for text in ("--set", setting)]
    both = [kit(log, *options), kit(log, *options)]
    said = [one.communicate(timeout=900) for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    assert sorted(os.listdir(tmp_path / "out")) == ["batch.json", "index.html", "week_2026-09-07"]
    assert is_current(tmp_path / "out" / "week_2026-09-07", log, from_settings(SETTINGS))  # a third would keep it
    [row] = json.loads((tmp_path / "out" / "batch.json").read_text())
    assert "Chargeback by owner, over 1 log" in (tmp_path / "out" / "index.html").read_text()
    charged = row["chargeback"]
    assert sum(owner["cost"] for owner in charged["owners"]) == pytest.approx(charged["total"]["cost"])


def test_an_interrupted_batch_keeps_what_had_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of two logs has ended when the batch is terminated: exit code 143, and its row is in the index."""

    def one_then_stop(logs: Any, out: Any, chosen: Any, parameters: Any, jobs: Any, outcomes: Any) -> None:
        outcomes["a"] = Outcome("a", "a.csv", "failed", reason="no request found")
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(batch, "_all", one_then_stop)
    logs = [str(small(tmp_path / "logs" / name, keys=10)) for name in ("a.csv", "b.csv")]
    assert cli.main(["batch", *logs, "--out", str(tmp_path / "out")]) == 143
    assert [one["name"] for one in json.loads((tmp_path / "out" / "batch.json").read_text())] == ["a"]
    assert (tmp_path / "out" / "index.html").is_file()
