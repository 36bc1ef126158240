"""Holding prefixes until requests end, inside an analysis: what results, rows, the what-if map and the report say."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from kit.analysis.parameters import CANDIDATES, ParameterError, Parameters
from kit.analysis.replayed import QUEUED
from kit.analysis.run import read_log, run_steps
from kit.cli import main
from kit.log import load
from kit.prefix import load_paths
from kit.replay import Setting, replay
from kit.replay.miniature import scaled
from kit.report import render

HEAD = "ts,ts_end,session_id,prefix_key,prefix_tokens,input_tokens"


def log_file(folder: Path, with_end: bool = True) -> Path:
    """Ten seconds apart: A (2,000 tokens) runs for 55 s, then B C D E (1,000 each) for 5 s each, then A again for 5 s;
    100 times over, with fresh B C D E."""
    rows = []
    for n in range(600):
        place = n % 6
        key = "A" if place in (0, 5) else f"{'BCDE'[place - 1]}{n}"
        size = 2_000 if key == "A" else 1_000
        end = 10 * n + (55 if place == 0 else 5)
        rows.append(f"{10 * n},{end if with_end else ''},s{n % 30},{key},{size},{size + 100}")
    path = folder / "overlap.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


def asked(**values: Any) -> Parameters:
    base = {"what_if": False, "replicates": 100, "policies": "lru,lfu", "capacity_tokens": 4_000}
    return Parameters(**{**base, **values})


def results_of(path: Path, **values: Any) -> dict[str, Any]:
    parameters = asked(**values)
    return run_steps(read_log([str(path)], parameters, None), parameters, None)


def lru(results: dict[str, Any], capacity: int = 4_000) -> dict[str, Any]:
    return next(row for row in results["replay"] if (row["policy"], row["assumption"], row["window"],
                row["capacity_tokens"]) == ("lru", "neutral", "cold", capacity))  # fmt: skip


def test_what_running_requests_hold(tmp_path: Path) -> None:
    # Budget 4,000. One after the other: A at 0 s is pushed out by B C D at 10 to 30 s and misses at 50 s; it is then
    # used again at 60 s, a hit (2,000 held, nothing between): 1 of 2 uses of A hits from the second round on. Held, A
    # stays for its 55 s while B C D E push out each other: every use but the first hits: 199 of 200.
    path = log_file(tmp_path)
    alone, held = results_of(path), results_of(path, hold_until_end=True)
    assert (lru(alone)["hits"], lru(held)["hits"]) == (99, 199)
    assert (lru(alone)["most_held_tokens"], lru(alone)["crowded_requests"], alone["overlap"]) == (None, None, None)
    # At most A and one of the others run at once: 3,000 tokens. Half the budget has no room for another beside A:
    # B C D E of every round, 400 requests, and A itself whenever it comes finds nothing else running.
    assert (lru(held)["most_held_tokens"], lru(held)["crowded_requests"]) == (3_000, 0)
    assert (lru(held, 2_000)["most_held_tokens"], lru(held, 2_000)["crowded_requests"]) == (2_000, 400)
    found = held["overlap"]
    assert (found["requests"], found["ended_requests"]) == (600, 600)
    assert found["sentence"] == ("Running requests hold up to 3,000 tokens at once, 75.0% of the budget; every request "
                                 "that fits the budget finds room beside them.")  # fmt: skip
    assert "600 of 600 requests have one" in " ".join(held["settings"]["assumptions"])
    assert held["settings"]["assumption_settings"][0]["hold_until_end"] is True
    assert found["sentence"] in render(held)
    # LRU alone found less than held LRU: its curve bounds nothing here
    bound = "take requests one after the other, and only the optimum is an upper bound"
    assert bound in " ".join(held["settings"]["assumptions"])
    one_by_one, overlapping = unescape(render(alone)), unescape(render(held))
    assert "LRU's line is exact at every budget." in one_by_one
    assert bound in overlapping  # not cut short
    assert "LRU's line takes requests one after the other" in overlapping and "LRU's line is exact" not in overlapping
    assert "With lost reads and late writes (pessimistic)" in overlapping and "shorter time to live" not in overlapping
    crowded = results_of(path, hold_until_end=True, capacity_tokens=2_000)["overlap"]["sentence"]
    assert "400 of 600 requests (66.7%) find no room beside them and store nothing" in crowded


def test_a_sample_holds_no_more_than_the_budget(tmp_path: Path) -> None:
    paths = load_paths(load([str(log_file(tmp_path))]))
    tally = replay(paths, "lru", capacity_tokens=2_000, setting=Setting(hold_until_end=True))
    assert (tally.most_held_tokens, scaled(tally, 2_000, 3.0).most_held_tokens) == (2_000, 2_000)


def test_the_map_tries_it_where_an_engine_is_assumed(tmp_path: Path) -> None:
    tried = results_of(log_file(tmp_path), what_if=True)["decision"]["sensitivity"]["map"]
    words = [one["words"] for one in tried if one["dimension"] == "overlap"]
    assert words == ["with each request holding its prefix until it ends"]
    for other in ({"ttl_seconds": 300.0}, {"hold_until_end": True}):
        tried = results_of(log_file(tmp_path), what_if=True, **other)["decision"]["sensitivity"]["map"]
        assert not [one for one in tried if one["dimension"] == "overlap"]


def test_a_queue_of_leaves_is_left_out_by_name(tmp_path: Path) -> None:
    path = log_file(tmp_path)
    results = results_of(path, hold_until_end=True, policies="lru,sieve")
    assert [one["name"] for one in results["policies"]] == ["lru"]
    assert "sieve is left out: it keeps leaves by their place" in " ".join(results["settings"]["assumptions"])


def test_the_replay_alone_leaves_out_an_unasked_queue_and_refuses_an_asked_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["replay", str(log_file(tmp_path)), "--capacities", "4000", "--json"]
    command += ["--set", "tier_mode=engine", "--set", "hold_until_end=true"]
    assert main(command) == 0
    said = capsys.readouterr()
    assert said.err.splitlines() == [f"kit: {QUEUED.format(name='fifo_flat')}"]
    assert {row["policy"] for row in json.loads(said.out)} == set(CANDIDATES.split(",")) - {"fifo_flat"}
    assert main([*command, "--policies", "lru,fifo_flat"]) == 1
    assert QUEUED.format(name="fifo_flat") in capsys.readouterr().err


def test_it_needs_an_end_and_an_engine(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="hold_until_end needs ts_end of the requests"):
        results_of(log_file(tmp_path, with_end=False), hold_until_end=True)
    for other in ({"ttl_seconds": 300.0}, {"tier_mode": "mirror", "provider_rule": "anthropic/api"}):
        with pytest.raises(ParameterError, match="set tier_mode=engine and ttl_seconds=none"):
            results_of(log_file(tmp_path), hold_until_end=True, **other)


def test_ends_become_a_tag(tmp_path: Path) -> None:
    # 55 s after the first start, 5 s after the second; a missing end is -1
    path = log_file(tmp_path)
    lines = path.read_text().splitlines()
    lines[2] = lines[2].replace("10,15,", "10,,", 1)
    path.write_text("\n".join(lines) + "\n")
    ends = load_paths(load([str(path)])).tags["ts_end_us"].tolist()
    assert ends[:3] == [55_000_000, -1, 25_000_000]
