"""Public bug cases about reading logs: each input gives its expected answer, and so do its relatives."""

from __future__ import annotations

import json
import random
import runpy
from pathlib import Path
from typing import Any

import pytest

from kit.log import Log, LogError, calendar_days, inspect, load
from tests.conftest import shared_case


def rows(log: Log, query: str) -> list[tuple[Any, ...]]:
    return log.con.sql(query).fetchall()


def expected(case: Path) -> Any:
    return json.loads((case / "expected.json").read_text(encoding="utf-8"))


def reported(log: Log) -> dict[str, int | None]:
    names = ("input_tokens", "uncached_tokens", "read_tokens", "write_tokens", "write_long_tokens", "output_tokens")
    sums = ", ".join(f"sum({name})::BIGINT" for name in names)
    return dict(zip(names, rows(log, f"SELECT {sums} FROM request")[0], strict=True))


def shuffled(source: Path, target: Path, seed: int = 1) -> Path:
    lines = source.read_text(encoding="utf-8").splitlines()
    random.Random(seed).shuffle(lines)
    target.write_text("\n".join(lines), encoding="utf-8")
    return target


# 01: a resumed attempt is no new request ------------------------------------------------------------------------


def test_01_resumed_attempts_are_left_out(tmp_path: Path) -> None:
    case = shared_case("01-preempted-recompute-is-not-a-hit")
    want = expected(case)
    for source in (case / "input.jsonl", shuffled(case / "input.jsonl", tmp_path / "shuffled.jsonl")):
        log = load(source)
        sums = reported(log)
        assert log.facts.requests == want["requests"] and log.facts.resumed_lookups == want["resumed_lookups"]
        assert (sums["input_tokens"], sums["read_tokens"]) == (want["query_tokens"], want["hit_tokens"])
        assert log.facts.damaged == 0 and log.facts.rows == log.facts.kept + sum(log.facts.rejected.values())


def test_01_a_repeated_id_without_an_attempt_number_counts_once(tmp_path: Path) -> None:
    source = tmp_path / "log.jsonl"
    source.write_text('{"ts":1,"request_id":"a","tokens":64,"hit_tokens":0}\n{"ts":2,"request_id":"a","tokens":80,"hit_tokens":64}\n')
    assert reported(load(source))["input_tokens"] == 64


# 07: units ------------------------------------------------------------------------------------------------------

GAPS = "SELECT start_to_start_seconds FROM inter_turn ORDER BY request_id"
ALL_GAPS = "SELECT epoch(ts) - epoch(lag(ts) OVER (ORDER BY request_id)) AS gap FROM request QUALIFY gap IS NOT NULL"


def test_07_units_belong_to_the_format() -> None:
    case = shared_case("07-trace-time-units")
    want = expected(case)
    mooncake, bailian = load(case / "mooncake.jsonl"), load(case / "bailian.jsonl")
    assert [gap for (gap,) in rows(mooncake, ALL_GAPS)] == want["mooncake"]["gaps_s"]
    assert [gap for (gap,) in rows(bailian, GAPS)] == want["bailian"]["gaps_s"]
    assert "milliseconds" in mooncake.facts.units["timestamp"] and "seconds" in bailian.facts.units["timestamp"]


def test_07_epochs_by_size(tmp_path: Path) -> None:
    case = shared_case("07-trace-time-units")
    values = [line.split(",") for line in (case / "epochs.csv").read_text().splitlines()[1:]]
    text = "request_id,ts,input_tokens\n" + "".join(f"{label},{value},1\n" for label, value in values)
    log = load(_write(tmp_path, text))
    found = rows(log, "SELECT source_id, strftime(ts, '%Y-%m-%dT%H:%M:%SZ') FROM request")
    assert dict(found) == expected(case)["epochs"]


def test_07_the_same_epochs_in_json_and_as_text(tmp_path: Path) -> None:
    source = tmp_path / "log.jsonl"
    lines = ['{"ts":1772407800.25,"input_tokens":1}', '{"ts":"1772407800250","input_tokens":1}',
             '{"ts":1772407800250000123,"input_tokens":1}',
             '{"ts":"2026-03-01T23:30:00.25Z","input_tokens":1}']  # fmt: skip
    source.write_text("\n".join(lines))
    assert rows(load(source), "SELECT DISTINCT epoch_us(ts) FROM request") == [(1_772_407_800_250_000,)]


# 10: a key has one length ---------------------------------------------------------------------------------------


def test_10_varying_lengths_are_warned_of() -> None:
    case = shared_case("10-growing-entry-reserves-only-the-growth")
    log = load(case / "input.csv")
    varying = rows(
        log, "SELECT prefix_key FROM request GROUP BY prefix_key HAVING count(DISTINCT prefix_tokens) > 1"
    )
    assert [key for (key,) in varying] == expected(case)["key_length_varies"]
    assert any(text.startswith("key_length_varies: 1 ") for text in log.facts.warnings)
    # b grows from 3 to 7: a node of 3 and one of 4 under it, so growth reserves 4.
    assert sorted(rows(log, "SELECT depth, tokens FROM node")) == [(0, 3), (0, 3), (1, 4)]


# 12: three rates ------------------------------------------------------------------------------------------------


def test_12_reported_rates_from_the_tables() -> None:
    case = shared_case("12-hit-rate-is-token-weighted")
    want = expected(case)
    # 3 of 4 requests hit; (96 + 96 + 0 + 4096) / 40,200 tokens; mean of .96, .96, 0, .2048.
    request_rate, token_rate, mean = rows(
        load(case / "input.csv"),
        "SELECT avg((read_tokens > 0)::INTEGER), sum(read_tokens) / sum(input_tokens), avg(read_tokens / input_tokens) "
        "FROM request",
    )[0]
    assert request_rate == want["request_hit_rate"]
    assert token_rate == pytest.approx(want["token_hit_rate"])
    assert mean == pytest.approx(want["mean_request_ratio"], abs=5e-5)


# 14: cached tokens are inside the total -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["chat.jsonl", "responses.jsonl"])
def test_14_cached_tokens_are_a_part(name: str) -> None:
    case = shared_case("14-openai-cached-tokens-are-a-subset")
    log = load(case / name)
    names = "input_tokens, uncached_tokens, read_tokens, write_tokens, output_tokens"
    found = rows(log, f"SELECT source_id, {names} FROM request")
    want = {item["id"]: item for item in expected(case)}
    for source_id, *counts in found:
        item = want[source_id]
        assert [value or 0 for value in counts] == [
            item[key] for key in ("input_total", "uncached", "cache_read", "cache_write", "output")
        ]
        assert (counts[2] is not None) == item["cache_fields_present"]


def test_14_more_cached_than_input_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "log.jsonl"
    good = '{"id":"a","created":1772407800,"usage":{"prompt_tokens":10,"completion_tokens":1}}'
    bad = '{"id":"b","created":1772407801,"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":11}}}'
    source.write_text(good + "\n" + bad + "\n")
    assert load(source).facts.rejected == {"cached tokens are more than the prompt": 1}


# 16: agent spans repeat usage -----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["as is", "shuffled"])
def test_16_only_leaf_calls_are_requests(tmp_path: Path, order: str) -> None:
    case = shared_case("16-agent-span-repeats-its-children")
    want = expected(case)
    source = case / "input.jsonl" if order == "as is" else shuffled(case / "input.jsonl", tmp_path / "spans.jsonl")
    log = load(source)
    found = rows(log, "SELECT split_part(source_id, '/', 2), session_id FROM request")
    assert [name for name, _ in found] == want["requests"] and dict(found) == want["session"]
    sums = reported(log)
    assert (sums["input_tokens"], sums["output_tokens"]) == (want["input_tokens"], want["output_tokens"])


def test_16_the_same_spans_as_one_otlp_export(tmp_path: Path) -> None:
    case = shared_case("16-agent-span-repeats-its-children")
    spans = [json.loads(line) for line in (case / "input.jsonl").read_text().splitlines()]
    for span in spans:
        span["startTimeUnixNano"] = str(span.pop("start_ns"))
        span["attributes"] = [
            {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
            for key, value in span["attributes"].items()
        ]
    source = tmp_path / "export.json"
    source.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}, indent=1))
    assert reported(load(source))["input_tokens"] == expected(case)["input_tokens"]


# 19 and 21: one message, many lines -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_19_one_request_per_message(tmp_path: Path, seed: int | None) -> None:
    case = shared_case("19-streaming-writes-one-message-many-times")
    want = expected(case)
    source = case / "session.jsonl"
    log = load(source if seed is None else shuffled(source, tmp_path / "s.jsonl", seed))
    sums = reported(log)
    assert log.facts.requests == want["requests"] and log.facts.rejected == {}
    times = rows(log, "SELECT strftime(ts, '%Y-%m-%dT%H:%M:%S.%gZ') FROM request ORDER BY ts")
    assert [time for (time,) in times] == want["timestamps"]
    assert sums["uncached_tokens"] == want["uncached"] and sums["read_tokens"] == want["cache_read"]
    assert (sums["write_tokens"] or 0) + (sums["write_long_tokens"] or 0) == want["cache_write"]
    assert sums["output_tokens"] == want["output"]


@pytest.mark.parametrize("names", [("sub.jsonl", "zmain.jsonl"), ("z.jsonl", "a.jsonl")])
def test_21_side_conversations_do_not_count_twice(tmp_path: Path, names: tuple[str, str]) -> None:
    case = shared_case("21-sidechain-replays-parent-messages")
    want = expected(case)
    for name, own in zip(("sub.jsonl", "zmain.jsonl"), names, strict=True):
        (tmp_path / own).write_bytes((case / name).read_bytes())
    log = load(tmp_path)
    sums = reported(log)
    assert log.facts.requests == len(want["kept"])
    assert (sums["read_tokens"], sums["output_tokens"]) == (want["cache_read"], want["output"])
    own_session = rows(log, "SELECT source_id, session_id LIKE 's1/%' FROM request ORDER BY ts")
    assert own_session == [("msg_P", False), ("msg_S", True)]


# 22: cumulative counters ----------------------------------------------------------------------------------------


def test_22_requests_are_steps_of_the_totals() -> None:
    case = shared_case("22-codex-cumulative-counters")
    want = expected(case)
    log = load(case / "rollout.jsonl")
    found = rows(log, "SELECT input_tokens, read_tokens, output_tokens, uncached_tokens FROM request")
    assert [list(row[:3]) for row in found] == want["requests"]
    assert sum(row[0] for row in found) == want["input_total"] and sum(row[3] for row in found) == want["uncached"]
    assert log.facts.rejected == {"damaged line: not JSON": want["unparsable_lines"]}


def event(second: int, total: tuple[int, int, int] | None, last: tuple[int, int, int]) -> str:
    names = ("input_tokens", "cached_input_tokens", "output_tokens")
    info = {"last_token_usage": dict(zip(names, last, strict=True))}
    if total is not None:
        info["total_token_usage"] = dict(zip(names, total, strict=True))
    payload = {"type": "token_count", "info": info}
    return json.dumps({"timestamp": f"2026-03-01T12:00:{second:02}Z", "type": "event_msg", "payload": payload})


def meta(own: str, fork: str | None = None) -> str:
    payload = {"id": own, **({"forked_from_id": fork} if fork else {})}
    return json.dumps({"timestamp": "2026-03-01T12:00:00Z", "type": "session_meta", "payload": payload})


def test_22_without_totals_every_event_is_a_request(tmp_path: Path) -> None:
    lines = [meta("a"), event(1, None, (100, 0, 1)), event(2, None, (100, 0, 1))]
    source = tmp_path / "r.jsonl"
    source.write_text("\n".join(lines))
    assert reported(load(source))["input_tokens"] == 200


def test_22_a_fork_does_not_replay_its_parent(tmp_path: Path) -> None:
    parent = [meta("a"), event(1, (100, 0, 1), (100, 0, 1)), event(2, (300, 90, 3), (200, 90, 2))]
    fork = [meta("b", "a"), *parent[1:], event(9, (600, 300, 4), (300, 210, 1))]
    (tmp_path / "a.jsonl").write_text("\n".join(parent))
    (tmp_path / "b.jsonl").write_text("\n".join(fork))
    log = load(tmp_path)
    # 100 and 200 once, and the fork's own step 600 - 300 = 300.
    assert rows(log, "SELECT session_id, input_tokens FROM request ORDER BY ts") == [("a", 100), ("a", 200), ("b", 300)]


# 25: days need a zone -------------------------------------------------------------------------------------------


def test_25_days_of_a_stated_zone(tmp_path: Path) -> None:
    case = shared_case("25-day-buckets-need-an-explicit-time-zone")
    want = expected(case)
    lines = (case / "input.csv").read_text().splitlines()
    log = load(_write(tmp_path, "\n".join([lines[0] + ",input_tokens", *(line + ",1" for line in lines[1:])])))
    zone = json.loads((case / "config.json").read_text())["report_timezone"]
    local = {item["day"]: item for item in calendar_days(log.con, zone)}
    assert {day: item["requests"] for day, item in local.items()} == want["report"]
    assert {item["day"]: item["requests"] for item in calendar_days(log.con)} == want["utc"]
    assert log.facts.naive_timestamps == want["naive_timestamps"] and log.facts.days == len(want["utc"])
    assert local["2026-03-08"]["hours"] == want["hours_in_2026_03_08"]


# 26: late keys and types ----------------------------------------------------------------------------------------


def test_26_late_keys_and_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = shared_case("26-late-keys-and-late-types")
    want = expected(case)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(case / "make_input.py"))
    log = load(tmp_path / "generated.jsonl")
    kept, with_cached, cached, seconds = rows(
        log,
        "SELECT count(*), count(read_tokens), sum(read_tokens)::BIGINT, sum(epoch_us(ts_end) - epoch_us(ts)) / "
        "1e6 FROM request",
    )[0]
    assert (kept, with_cached, cached) == (want["rows"], want["rows_with_cached_tokens"], want["cached_tokens"])
    assert seconds == want["duration_s_sum"]
    assert [line for (line,) in rows(log, "SELECT line FROM rejected")] == want["rejected_lines"]
    assert rows(log, "SELECT rows_with_value FROM column_coverage WHERE column_name = 'read_tokens'") == [(119,)]


BAD = ["1.5", "true", "-1", '"1,000"', "[1]", "Infinity", "1e400"]


@pytest.mark.parametrize("value", BAD)
def test_26_a_count_is_a_whole_number_or_the_row_goes(tmp_path: Path, value: str) -> None:
    source = tmp_path / "log.jsonl"
    source.write_text('{"ts":1,"input_tokens":10}\n{"ts":2,"input_tokens":' + value + "}\n")
    log = load(source)
    assert log.facts.kept == 1 and sum(log.facts.rejected.values()) == 1
    reason, excerpt, line = rows(log, "SELECT reason, excerpt, line FROM rejected")[0]
    assert (reason, line) == ("input_tokens is not a whole number, 0 or more", 2)
    assert excerpt.startswith("input_tokens=")


def test_26_a_late_key_that_nobody_knows_is_listed(tmp_path: Path) -> None:
    source = tmp_path / "log.jsonl"
    lines = [f'{{"ts":{i},"input_tokens":1}}' for i in range(1000)] + ['{"ts":1000,"input_tokens":1,"colour":"red"}']
    source.write_text("\n".join(lines))
    assert inspect(source)["not_used"] == ["colour"]


def test_26_large_ids_keep_every_digit(tmp_path: Path) -> None:
    ids = (2**53 + 1, 2**64 - 2)
    source = tmp_path / "log.jsonl"
    source.write_text("\n".join(f'{{"ts":{i},"request_id":{n},"input_tokens":1}}' for i, n in enumerate(ids)))
    assert rows(load(source), "SELECT source_id FROM request") == [(str(n),) for n in ids]


# 28: BOM, CRLF, no final newline --------------------------------------------------------------------------------


def test_28_exports_as_they_come() -> None:
    case = shared_case("28-bom-crlf-missing-final-newline")
    want = expected(case)
    log = load(case / "azure.csv")
    times = rows(log, "SELECT ts FROM request")
    assert [time.isoformat() for (time,) in times] == want["timestamps"]
    sums = reported(log)
    assert (sums["input_tokens"], sums["output_tokens"]) == (want["context_tokens"], want["generated_tokens"])
    assert inspect(case / "azure.csv")["columns"] == want["columns"]
    json_sums = reported(load(case / "log.jsonl"))
    assert json_sums["input_tokens"] == want["jsonl_tokens"]
    assert load(case / "log.jsonl").facts.requests == want["jsonl_rows"]


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_28_every_combination(tmp_path: Path, bom: bytes, newline: bytes, last: bool, kind: str) -> None:
    lines = {
        "csv": [b"ts,input_tokens,model", b"1,10,a", b"2,20,b", b"3,30,c"],
        "jsonl": [b'{"ts":%d,"input_tokens":%d,"model":"%c"}' % (i, 10 * i, 96 + i) for i in (1, 2, 3)],
    }[kind]
    source = tmp_path / f"log.{kind}"
    source.write_bytes(bom + newline.join(lines) + (newline if last else b""))
    log = load(source)
    assert rows(log, "SELECT input_tokens, model FROM request") == [(10, "a"), (20, "b"), (30, "c")]
    assert log.facts.rejected == {}


@pytest.mark.parametrize("time", ["2026-03-01", "2026-03-01 10:00:00 +0200", "2026-03-01T10:00:00,5Z"])
def test_28_other_spellings_of_a_time_are_read(tmp_path: Path, time: str) -> None:
    assert load(_write(tmp_path, f'ts,input_tokens\n"{time}",1\n')).facts.start.year == 2026


@pytest.mark.parametrize("time", ["03/01/2026 10:00", "01.03.2026", "yesterday", "infinity", "2026-13-01", "10:00:00"])
def test_28_ambiguous_times_are_refused(tmp_path: Path, time: str) -> None:
    with pytest.raises(LogError, match="ts is not an ISO time or an epoch"):
        load(_write(tmp_path, f"ts,input_tokens\n{time},1\n"))


def _write(folder: Path, text: str) -> Path:
    path = folder / "log.csv"
    path.write_text(text, encoding="utf-8")
    return path
