"""Prompts in columns of tables, doubtful parents and headers, and what the user may name wrongly."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kit.cli import main
from kit.formats import LogError
from kit.log import inspect, load

SECRET = "SECRETWORD"
HEAD = ["request_id", "startTime", "endTime", "model", "custom_llm_provider", "prompt_tokens", "completion_tokens",
        "metadata", "cache_hit", "session_id", "status", "messages"]  # fmt: skip


def spoken(turns: int) -> list[dict[str, str]]:
    """A system prompt of 600 bytes (150 tokens at 4 bytes), then so many turns with commas, quotes and line breaks."""
    system = {"role": "system", "content": (SECRET + " x ") * 46}
    return [system] + [{"role": "user", "content": f'turn {turn}, "{SECRET}"\n' * 30} for turn in range(turns)]


def spend(path: Path, prompts: list[Any]) -> Path:
    """A LiteLLM SpendLogs export with these `messages`."""
    with path.open("w", newline="", encoding="utf-8") as out:
        rows = csv.writer(out)
        rows.writerow(HEAD)
        for i, messages in enumerate(prompts):
            rows.writerow([f"r{i}", f"2026-03-01 10:0{i}:00", f"2026-03-01 10:0{i}:05", "m", "openai", 2000, 5, "{}",
                           "None", "s", "success", json.dumps(messages)])  # fmt: skip
    return path


def nodes(log: Any) -> list[tuple[Any, ...]]:
    return log.con.sql("SELECT parent_id, tokens, token_type FROM node ORDER BY node_id").fetchall()


def leaves(log: Any) -> list[Any]:
    query = "SELECT node_id FROM request LEFT JOIN request_node USING (request_id) ORDER BY request_id"
    return [node for (node,) in log.con.sql(query).fetchall()]


def test_prompts_in_a_csv_are_hashed_like_those_of_json_lines(tmp_path: Path) -> None:
    prompts: list[Any] = [spoken(1), spoken(2), {}, spoken(1)]
    table = load(spend(tmp_path / "spend.csv", prompts))
    assert table.facts.format == "litellm_spend" and table.facts.identity == "blocks"
    assert leaves(table)[2] is None and leaves(table)[0] == leaves(table)[3]  # {} is no prompt; equal prompts are equal
    dump = [
        {"ts": f"2026-03-01T10:0{i}:00Z", "model": "m", "id": f"r{i}", "messages": messages or None,
         "usage": {"prompt_tokens": 2000}}
        for i, messages in enumerate(prompts)
    ]  # fmt: skip
    path = tmp_path / "dump.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in dump))
    lines = load(path)
    assert lines.facts.format == "raw_dump"
    assert nodes(table) == nodes(lines) and leaves(table) == leaves(lines)


def test_prompt_text_of_a_table_never_enters_the_file(tmp_path: Path) -> None:
    log = load(spend(tmp_path / "spend.csv", [spoken(turns) for turns in (1, 2, 3)]), tmp_path / "log.duckdb")
    log.con.close()
    assert SECRET.encode() not in (tmp_path / "log.duckdb").read_bytes()


def test_prompts_behind_a_damaged_row_keep_their_row(tmp_path: Path) -> None:
    path = spend(tmp_path / "spend.csv", [spoken(1), spoken(2), spoken(1)])
    text = path.read_text().split("\n", 1)
    path.write_text(text[0] + "\ntoo,few,columns\n" + text[1])
    log = load(path)
    assert log.facts.rejected == {"damaged line: too few columns": 1}
    first, second, third = leaves(log)
    assert first == third != second


def test_a_home_made_table_with_messages_is_a_dump(tmp_path: Path) -> None:
    path, table = tmp_path / "home.csv", tmp_path / "home.parquet"
    with path.open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["ts", "model", "session_id", "messages", "prompt_tokens", "completion_tokens"])
        rows.writerows([f"2026-03-01 10:0{i}:00", "m", "s", json.dumps(spoken(1)), 700, 5] for i in range(3))
    duckdb.sql(f"COPY (FROM read_csv('{path}', all_varchar = true)) TO '{table}'")
    for source in (path, table):
        log = load(source)
        assert log.facts.format == "raw_dump" and log.facts.identity == "blocks" and len(set(leaves(log))) == 1
        assert log.con.sql("SELECT DISTINCT input_tokens, output_tokens FROM request").fetchall() == [(700, 5)]


CHAIN = "request_id,ts,input_tokens,parent_request_id\n"


def test_doubtful_parents_are_told(tmp_path: Path) -> None:
    """b names itself; c and d name each other, so c's parent comes after it; e extends d."""
    path = tmp_path / "chain.csv"
    rows = ("a,1772359200,10,", "b,1772359201,20,b", "c,1772359202,30,d", "d,1772359203,40,c", "e,1772359204,50,d")
    path.write_text(CHAIN + "\n".join(rows) + "\n")
    told = inspect(path)["warnings"]
    assert "1 requests name themselves as their parent; each starts a chain of its own" in told
    assert any(line.startswith("1 requests name a parent that comes after them (a cycle") for line in told)
    # a, b and c start chains; d grows c by 10, e grows d by 10
    assert nodes(load(path)) == [(None, 10, None), (None, 20, None), (None, 30, None), (2, 10, None), (3, 10, None)]


def test_a_header_that_names_a_column_twice_is_told(tmp_path: Path) -> None:
    path = tmp_path / "twice.csv"
    path.write_text("ts,input_tokens,model,input_tokens\n2026-03-01T10:00:00Z,10,m,99\n")
    told = inspect(path)
    assert told["rows"] == 1 and any("names a column twice: input_tokens" in line for line in told["warnings"])


@pytest.mark.parametrize("wrong", [["--format", "nosuch"], ["--map", "nosuch=ts"]])
def test_names_that_do_not_exist_are_usage_errors(wrong: list[str], tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "log.csv"
    path.write_text("ts,input_tokens,model\n2026-03-01T10:00:00Z,10,m\n")
    assert main(["inspect", str(path), *wrong]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "nosuch" in said and ("canonical" in said or "input_tokens" in said)


def test_codex_lines_without_published_counts_are_refused(tmp_path: Path) -> None:
    meta = {"timestamp": "2026-03-01T12:00:00Z", "type": "session_meta", "payload": {"id": "t"}}
    newer = {"timestamp": "2026-03-01T12:00:05Z", "type": "token_usage_record", "payload": {"input_tokens": 5}}
    known = {"timestamp": "2026-03-01T12:00:09Z", "type": "event_msg", "payload": {"type": "token_count", "info": {
        "total_token_usage": {"input_tokens": 1000, "cached_input_tokens": 800, "output_tokens": 100}}}}  # fmt: skip
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (meta, newer)))
    with pytest.raises(LogError, match=r"only token_usage_record lines.*give a rollout with token_count events"):
        load(path)
    path.write_text("".join(json.dumps(row) + "\n" for row in (meta, newer, known)))
    log = load(path)
    assert log.facts.requests == 1
    assert "request: 1 token_usage_record lines are not read, token_count events are" in log.facts.derived


def test_codex_exec_output_is_refused_with_what_to_give(tmp_path: Path) -> None:
    path = tmp_path / "exec.jsonl"
    events = ({"type": "thread.started", "thread_id": "t"},
              {"type": "turn.completed", "usage": {"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": 2}})
    path.write_text("".join(json.dumps(row) + "\n" for row in events))
    assert inspect(path)["format"] == "codex_exec" and inspect(path)["kept"] == 0
    with pytest.raises(LogError, match=r"has no times.*give the rollout"):
        load(path)
