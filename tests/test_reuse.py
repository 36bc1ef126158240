"""What the log says about reuse: small logs worked by hand, conservation laws, and the public traces' known figures."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit import reuse
from kit.log import load
from kit.prefix import load_paths
from kit.replay import replay
from tests.conftest import shared_case, shared_data
from tests.hand_log import hand_log

DAY = 86_400.0


def flat(keys: list[tuple[float, str, int]], **more: Any) -> Any:
    """A flat log from (seconds, key, tokens)."""
    rows = [{"ts": ts, "prefix_key": key, "prefix_tokens": n, "input_tokens": n, **more} for ts, key, n in keys]
    return hand_log(rows, identity="flat")


def blocks(paths: list[str], seconds: float = 10.0, tokens: int = 10) -> Any:
    """A block log: each letter of a path is one block of `tokens` tokens, requests `seconds` apart."""
    rows = [{"ts": i * seconds, "input_tokens": tokens * len(path)} for i, path in enumerate(paths)]
    return hand_log(rows, [[(letter, tokens) for letter in path] for path in paths], "blocks", tokens)


def test_flat_concentration_by_hand() -> None:
    # a: 5 requests of 100 tokens, b: 3 of 200, c and d: 1 of 50 each -> 10 requests, 4 keys, top 25 % = 1 key = a.
    # Reusable (all but the first): a 4 x 100 = 400, b 2 x 200 = 400, c and d 0 -> a carries half of 800.
    # All prompt tokens: a 500, b 600, c 50, d 50 = 1200 -> a carries 500 / 1200.
    names = ["a", "b", "a", "b", "a", "c", "a", "b", "a", "d"]
    size = {"a": 100, "b": 200, "c": 50, "d": 50}
    found = reuse.concentration(flat([(float(i), n, size[n]) for i, n in enumerate(names)]), 0.25)
    assert (found["keys"], found["reused_keys"], found["top_count"]) == (4, 2, 1)
    assert found["request_share"] == 0.5
    assert found["token_share"] == 0.5
    assert found["prompt_token_share"] == pytest.approx(500 / 1200)
    assert found["one_shot_key_share"] == 0.5
    assert found["one_shot_request_share"] == pytest.approx(0.2)
    assert [key["alias"] for key in found["top_keys"]] == ["k1", "k2", "k3", "k4"]
    assert found["top_keys"][0]["value_tokens"] == 500
    assert found["top_keys"][1]["reusable_tokens"] == 400
    assert found["curve"][-1]["request_share"] == found["curve"][-1]["token_share"] == 1.0


def test_gini_of_equal_and_of_unequal_keys() -> None:
    # counts 1, 1, 2: sum of |x_i - x_j| over all pairs = 4; 4 / (2 n^2 mean) = 4 / (2 x 9 x 4/3) = 1/6.
    assert reuse.concentration(flat([(0, "a", 1), (1, "b", 1), (2, "c", 1), (3, "c", 1)]))["gini"] == pytest.approx(
        1 / 6
    )
    assert reuse.concentration(flat([(0, "a", 1), (1, "b", 1)]))["gini"] == 0.0


def test_block_log_cuts_at_the_longest_prefix_another_request_has() -> None:
    # SAX and SAY share SA; SB shares S only; SA again as a whole prompt: its longest shared prefix is SA.
    # Keys: SA (3 requests: SAX, SAY, SA), S (1 request: SB). Holders: SA 3, S 4.
    # Reusable: S 3 passes again x 10 = 30, A 2 x 10 = 20, X, Y, B 0. k1 = SA covers S and A: all 50; S adds nothing.
    found = reuse.concentration(blocks(["SAX", "SAY", "SB", "SA"]), 0.5)
    assert found["cut"] == "longest_shared"
    assert (found["keys"], found["top_count"], found["request_share"], found["token_share"]) == (2, 1, 0.75, 1.0)
    assert [key["holders"] for key in found["top_keys"]] == [3, 4]
    assert [key["reusable_tokens"] for key in found["top_keys"]] == [50, 0]
    assert found["prompt_token_share"] == pytest.approx(70 / 100)  # S 40 + A 30 of S 40, A 30, X, Y, B 10 each


def test_a_request_that_shares_nothing_is_its_own_one_shot_key() -> None:
    found = reuse.concentration(blocks(["AB", "CD", "AB"]))
    assert (found["keys"], found["reused_keys"]) == (2, 1)
    assert found["one_shot_request_share"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("cut", "keys", "request_share"),
    [("first_1", 1, 1.0), ("first_2", 2, 0.75), ("root", 1, 1.0), ("full", 4, 0.25), ("longest_shared", 2, 0.75)],
)
def test_the_figure_depends_on_the_cut(cut: str, keys: int, request_share: float) -> None:
    found = reuse.concentration(blocks(["SAX", "SAY", "SB", "SA"]), 0.05, cut)
    assert (found["keys"], found["request_share"]) == (keys, request_share)


def test_cuts_that_the_log_cannot_give_are_left_out_and_unknown_ones_refused() -> None:
    log = blocks(["SA", "SB"])
    assert [row["cut"] for row in reuse.other_cuts(log, ["session", "chain", "root"])] == ["root"]
    with pytest.raises(ValueError, match=r"key cut 'first_0' is unknown; use one of"):
        reuse.concentration(log, cut="first_0")


def test_chain_log_cuts_at_the_chain() -> None:
    # Chain c1 grows R-1-2 over three requests, c2 takes R-3 once: keys c1 (3), c2 (1).
    rows = [
        {"ts": i, "session_id": "s", "chain_id": c, "input_tokens": 1} for i, c in enumerate(["c1", "c1", "c2", "c1"])
    ]
    paths = [[("R", 8)], [("R", 8), ("1", 4)], [("R", 8), ("3", 2)], [("R", 8), ("1", 4), ("2", 4)]]
    found = reuse.concentration(hand_log(rows, paths, "chain"), 0.5)
    assert (found["cut"], found["keys"], found["request_share"]) == ("chain", 2, 0.75)
    # c1 covers R (3 times again, 24) and 1 (once again, 4): all 28 reusable tokens; its longest prompt is 16.
    assert (found["token_share"], found["top_keys"][0]["prefix_tokens"]) == (1.0, 16)


def test_a_log_without_identity_says_it_cannot_tell() -> None:
    log = hand_log([{"ts": 0, "input_tokens": 5}, {"ts": 1, "input_tokens": 5}], identity=None)
    assert reuse.concentration(log)["request_share"] is None
    assert "cannot be told" in reuse.concentration(log)["cannot_tell"]
    assert reuse.rotation(log)["median"] is None
    assert reuse.value_rank(log)["spearman_length_count"] is None
    assert reuse.reuse_gaps(log, 300)["longer_token_share"] is None
    assert reuse.token_types(log)["types"] == []


def test_rotation_overlap_by_hand() -> None:
    # Day 1 top half of {a 3, b 2, x 1, y 1} = {a, b}; day 2 of {a 3, c 2, z 1} (half rounded up = 2) = {a, c}.
    # One of two stayed: 0.5. Yesterday's top carries 3 of day 2's 6 requests, its own top 5 of 6.
    first = [(float(i), k, 10) for i, k in enumerate("aaabbxy")]
    second = [(DAY + i, k, 10) for i, k in enumerate("aaaccz")]
    found = reuse.rotation(flat(first + second), 0.5)
    assert found["day_overlap"] == [0.5]
    assert found["median"] == 0.5
    assert found["day_pairs"][0]["carried_share"] == 0.5
    assert found["day_pairs"][0]["own_top_share"] == pytest.approx(5 / 6)
    assert [day["new_keys"] for day in found["days"]] == [4, 2]  # c and z are new, a is not


def test_a_day_of_one_shots_has_no_top_and_a_missing_day_makes_no_pair() -> None:
    assert reuse.rotation(flat([(0, "a", 1), (DAY, "a", 1), (DAY + 1, "a", 1)]), 1.0)["day_overlap"] == [None]
    assert (
        reuse.rotation(flat([(0, "a", 1), (1, "a", 1), (2 * DAY, "a", 1), (2 * DAY + 1, "a", 1)]))["day_overlap"] == []
    )


def test_days_follow_the_stated_time_zone() -> None:
    # 23:30 and 23:40 UTC on Monday are already Tuesday in Berlin (UTC+1 in early March).
    log = flat([(23.5 * 3600, "a", 1), (23.6 * 3600, "a", 1), (25 * 3600, "a", 1)])
    assert [day["day"] for day in reuse.rotation(log)["days"]] == ["2026-03-02", "2026-03-03"]
    assert [day["day"] for day in reuse.rotation(log, zone="Europe/Berlin")["days"]] == ["2026-03-03"]
    with pytest.raises(ValueError, match="not a time zone; give an IANA name"):
        reuse.rotation(log, zone="Mars/Olympus")


def test_case_25_days_are_those_of_the_report_zone() -> None:
    folder = shared_case("25-day-buckets-need-an-explicit-time-zone")
    expected = json.loads((folder / "expected.json").read_text())
    zero = datetime(2026, 3, 2, tzinfo=UTC)
    stamps = [datetime.fromisoformat(row["timestamp"]) for row in csv.DictReader((folder / "input.csv").open())]
    stamps = [stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC) for stamp in stamps]  # without a zone: UTC
    log = flat([((stamp - zero).total_seconds(), "k", 1) for stamp in sorted(stamps)])
    for zone, name in (("America/Los_Angeles", "report"), ("UTC", "utc")):
        days, requests = np.unique(reuse.read_trace(log, zone).day, return_counts=True)
        told = {str(np.datetime64(int(day), "D")): int(n) for day, n in zip(days, requests, strict=True)}
        assert told == expected[name]


def test_value_rank_by_hand() -> None:
    # Lengths 10..100, the longer the rarer (counts 10..1): length against count is exactly -1.
    rows = [(float(100 * n + i), f"k{n}", 10 * n) for n in range(1, 11) for i in range(11 - n)]
    found = reuse.value_rank(flat(rows))
    assert found["spearman_length_count"] == pytest.approx(-1.0)
    # length x count = 100, 180, 240, 280, 300, 300, 280, 240, 180, 100: symmetric, so rank correlation 0.
    assert found["spearman_length_value"] == pytest.approx(0.0, abs=1e-12)
    longest = found["longest_tenth"]
    assert (longest["keys"], longest["one_shot_share"], longest["min_prefix_tokens"]) == (1, 1.0, 100)
    assert longest["requests_share"] == pytest.approx(1 / 55)
    assert longest["holds_system_key"] is False
    assert found["deciles"][0]["one_shot_share"] == 1.0


def test_a_widely_used_long_key_counts_as_a_system_key() -> None:
    rows = [{"ts": i, "prefix_key": "sys", "prefix_tokens": 900, "session_id": f"s{i}"} for i in range(5)]
    rows += [{"ts": 9 + i, "prefix_key": f"u{i}", "prefix_tokens": 10, "session_id": f"s{i}"} for i in range(5)]
    assert reuse.value_rank(hand_log(rows))["longest_tenth"]["holds_system_key"] is True


def test_reuse_gaps_by_hand() -> None:
    # S at 0, 10, 400: gaps 10 and 390. SA's A at 0 and 400: gap 400. Tokens 10 each: of 30 reused tokens 20 wait
    # longer than 300 s. A gap of exactly the TTL is not longer.
    log = hand_log(
        [{"ts": 0}, {"ts": 10}, {"ts": 400}],
        [[("S", 10), ("A", 10)], [("S", 10)], [("S", 10), ("A", 10)]],
        "blocks",
        10,
    )
    assert reuse.reuse_gaps(log, 300)["longer_token_share"] == pytest.approx(2 / 3)
    assert reuse.reuse_gaps(log, 390)["longer_token_share"] == pytest.approx(1 / 3)
    assert reuse.reuse_gaps(log, 389.9)["longer_token_share"] == pytest.approx(2 / 3)
    assert reuse.reuse_gaps(log)["longer_token_share"] is None
    assert reuse.reuse_gaps(log)["reused_tokens"] == 30


def test_token_types_by_hand() -> None:
    # system 100 tokens in 4 requests: 3 of 4 reused. tool_result 40 + 40 one-shot and 10 twice: 10 of 100 reused.
    system, tool = ("S", 100, "system"), "tool_result"
    paths = [[system, ("x", 40, tool)], [system, ("y", 40, tool)], [system, ("z", 10, tool)], [system, ("z", 10, tool)]]
    log = hand_log([{"ts": i, "session_id": f"s{i % 2}"} for i in range(4)], paths, "blocks", 10)
    found = reuse.token_types(log, replicates=50)
    rates = {row["token_type"]: row["reuse_rate"] for row in found["types"]}
    assert rates == {"system": 0.75, "tool_result": 0.1}
    assert found["spread"] == pytest.approx(7.5)
    # The longest tenth is one prompt of 140 tokens, 40 of them tool output nobody used again.
    assert found["one_shot_tool_output_share_of_longest"] == pytest.approx(40 / 140)
    assert all(row["interval"] is None for row in found["types"])  # two sessions cannot speak for others


def test_scans_by_hand() -> None:
    # Hour 0: a twice (20 tokens). Hour 1: a (10) and two one-shots of 20: 40 of 50 tokens. Hour 5: a only.
    rows = [(0, "a", 10), (60, "a", 10), (3600, "a", 10), (3700, "x", 20), (3800, "y", 20), (5 * 3600, "a", 10)]
    found = reuse.scans(flat(rows))
    assert [(hour["hour_index"], hour["hour"], hour["share"]) for hour in found["hours"]] == [
        (1, "2026-03-02T01:00Z", 0.8)
    ]
    assert (found["hours_with_traffic"], found["max_share"], found["median_share"]) == (3, 0.8, 0.0)
    # A lone one-shot of 5 tokens at night is an hour of 100 %, but under the median of 5, 10, 20 and 50 tokens (15).
    found = reuse.scans(flat([*rows, (9 * 3600, "z", 5)]))
    assert (found["max_share"], found["median_hour_tokens"], found["max_busy_share"]) == (1.0, 15.0, 0.8)


def test_block_ids_local_to_a_session_are_cut_at_the_chain() -> None:
    # The same block name in two sessions is two blocks here: nothing is shared across sessions.
    paths = [[("a1", 8)], [("b1", 8)], [("a1", 8), ("a2", 8)], [("b1", 8), ("b2", 8)]]
    rows = [{"ts": i, "session_id": "ab"[i % 2]} for i in range(4)]
    assert reuse.concentration(hand_log(rows, paths, "blocks", 8))["cut"] == "chain"
    shared = [[("s", 8), *path] for path in paths]
    assert reuse.concentration(hand_log(rows, shared, "blocks", 8))["cut"] == "longest_shared"


def test_popularity_fades_by_hand() -> None:
    # a is the top key of hour 0 with all 4 requests; it has 3 of 4 in hour 1 and 1 of 4 in hour 2.
    # Lag 1: hour 0 -> 1: 3/4 of 1; hour 1 (a: 3/4) -> 2: 1/4; together (3/4 + 1/4) / (1 + 3/4) = 4/7.
    # Hour 2's top is x with 3 of 4. Lag 2: 1/4 of 1. Half is passed between 4/7 and 1/4: 1 + (4/7 - 1/2) / (4/7 - 1/4).
    hours = ["aaaa", "aaab", "axxx"]
    rows = [(3600.0 * h + i, key, 10) for h, text in enumerate(hours) for i, key in enumerate(text)]
    found = reuse.popularity(flat(rows), 0.5)
    assert [row["remaining"] for row in found["by_hours"]] == pytest.approx([4 / 7, 1 / 4])
    assert found["half_life_hours"] == pytest.approx(1 + (4 / 7 - 1 / 2) / (4 / 7 - 1 / 4))
    assert found["half_life_days"] is found["longer_than_days"] is None  # one day
    steady = reuse.popularity(flat([(3600.0 * h + i, "a", 1) for h in range(5) for i in range(2)]))
    assert (steady["half_life_hours"], steady["longer_than_hours"]) == (None, 4)
    gone = reuse.popularity(flat([(0, "a", 1), (1, "a", 1), (3600, "b", 1), (3601, "b", 1)]))
    assert (gone["half_life_hours"], gone["shorter_than_hours"]) == (None, 1)


def test_working_set_by_hand() -> None:
    # Hour 0 touches S, A, B (10 each) = 30, hour 1 only S, A = 20; the day all 30.
    log = hand_log(
        [{"ts": 0}, {"ts": 5}, {"ts": 3700}],
        [[("S", 10), ("A", 10)], [("S", 10), ("B", 10)], [("S", 10), ("A", 10)]],
        "blocks",
        10,
    )
    found = {row["window_seconds"]: row for row in reuse.working_set(log)}
    assert (found[3600]["windows"], found[3600]["median_tokens"], found[3600]["max_tokens"]) == (2, 25.0, 30)
    assert found[86_400]["max_tokens"] == found[604_800]["max_tokens"] == 30


def test_both_rankings_and_what_dropping_the_longest_costs() -> None:
    # a: 3 x 100 = 300, b: 1 x 500 = 500, c: 4 x 50 = 200. By value b, a, c; by length b, a, c; by requests c, a, b.
    rows = [(i, key, size) for i, (key, size) in enumerate([("a", 100)] * 3 + [("b", 500)] + [("c", 50)] * 4)]
    found = reuse.value_rank(flat(rows))
    assert [row["alias"] for row in found["rankings"]["by_value"]] == ["k3", "k2", "k1"]
    assert found["rankings"]["by_length"][0]["rank_by_value"] == 1
    half = found["dropped"][-1]  # the longest half of three keys, rounded up: b and a
    assert (half["keys"], half["room_share"]) == (2, pytest.approx(600 / 650))
    assert half["value_share"] == pytest.approx(800 / 1000)
    assert half["reuse_share"] == pytest.approx(200 / 350)  # a 2 x 100 of a 200, c 3 x 50
    assert "less reused" in found["sentence"]


def plain_lru(texts: list[str], capacity: int, size: int) -> int:
    """Blocks found in place, front to back, in a cache of `capacity` that forgets the block unused for longest."""
    cache: list[str] = []
    hits = 0
    for text in texts:
        chain = [text[:end] for end in range(1, len(text) + 1)]
        for block in chain:
            if block not in cache:
                break
            hits += 1
        cache = [block for block in cache if block not in chain] + chain[::-1]
        cache = cache[-(capacity // size) :] if capacity // size else []
    return hits


paths = st.lists(st.text("abc", min_size=0, max_size=5), min_size=1, max_size=30)


@settings(max_examples=40, deadline=None)
@given(paths)
def test_passes_and_gaps_match_a_plain_count(texts: list[str]) -> None:
    log = blocks(texts)
    trace = reuse.read_trace(log)
    prefixes = [text[:end] for text in texts for end in range(1, len(text) + 1)]
    again = 10 * (len(prefixes) - len(set(prefixes)))
    assert int((trace.tokens * trace.passes).sum()) == 10 * len(prefixes)
    assert reuse.concentration(log)["reusable_tokens"] in (again, None)
    assert reuse.reuse_gaps(log, 60)["reused_tokens"] == again
    last: dict[str, int] = {}
    longer = 0
    for number, text in enumerate(texts):
        for end in range(1, len(text) + 1):
            longer += 10 * (number - last.get(text[:end], number) > 6)  # 10 s apart: over 60 s is over 6 requests
            last[text[:end]] = number
    assert reuse.reuse_gaps(log, 60)["longer_token_share"] == (longer / again if again else None)


@settings(max_examples=40, deadline=None)
@given(paths, st.sampled_from(["longest_shared", "first_1", "first_2", "root", "full"]))
def test_marginal_tokens_never_count_a_block_twice(texts: list[str], cut: str) -> None:
    found = reuse.concentration(blocks(texts), 1.0, cut, top=1000)
    if found["keys"]:
        assert sum(key["requests"] for key in found["top_keys"]) + found["requests_without_key"] == len(texts)
        assert sum(key["reusable_tokens"] for key in found["top_keys"]) <= found["reusable_tokens"]
        assert cut not in ("full", "longest_shared") or found["token_share"] in (1.0, None)
        shares = [point["token_share"] or 0.0 for point in found["curve"]]
        assert shares == sorted(shares)


@settings(max_examples=40, deadline=None)
@given(paths, st.integers(0, 12))
def test_scan_effect_is_lru_with_and_without_the_one_shots(texts: list[str], room: int) -> None:
    found = reuse.scan_effect(blocks(texts), 10 * room)
    if any(texts):
        assert found["lru_hit_tokens"] == 10 * plain_lru(texts, 10 * room, 10)
        assert found["lru_hit_tokens"] + found["lost_tokens"] == found["without_one_shots"]
        assert found["lost_tokens"] >= 0


def test_scan_effect_by_hand() -> None:
    # Room for 20 tokens; a (10) at 0 and after the scan x, y (10 each): evicted, unless x and y took no room.
    log = flat([(0, "a", 10), (3600, "x", 10), (3601, "y", 10), (7200, "a", 10)])
    found = reuse.scan_effect(log, 20)
    assert (found["lru_hit_tokens"], found["without_one_shots"], found["lost_tokens"]) == (0, 10, 10)
    assert found["hours"] == [{"hour_index": 2, "lost_tokens": 10, "lost_token_share": 1.0}]
    assert reuse.scan_effect(log, 30)["lost_tokens"] == 0


def test_diagnosis_is_plain_finite_json_and_the_same_twice() -> None:
    log = blocks(["SAX", "SAY", "SB", "SA"] * 5, seconds=4000.0)
    first = reuse.diagnose(log, ttl_seconds=300, capacity_tokens=100)
    text = json.dumps(first, allow_nan=False)
    assert text == json.dumps(reuse.diagnose(log, ttl_seconds=300, capacity_tokens=100), allow_nan=False)
    assert "Cut elsewhere: full" in first["concentration"]["sentence"]
    silent = reuse.diagnose(hand_log([{"ts": 0, "input_tokens": 5}], identity=None), capacity_tokens=10)
    json.dumps(silent, allow_nan=False)
    assert silent["concentration"]["request_share"] is None


def test_spearman_equals_scipy_with_ties() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 6, 200), rng.integers(0, 6, 200)
    assert reuse.spearman(a, b) == pytest.approx(spearmanr(a, b).statistic)
    assert reuse.spearman(a, np.ones(200)) is None


@pytest.fixture(scope="module")
def mooncake() -> reuse.Trace:
    """The public Mooncake conversation trace as arrays."""
    return reuse.read_trace(load([shared_data("mooncake_conversation.jsonl")]))


def test_mooncake_known_figures(mooncake: reuse.Trace) -> None:
    shares = {cut: reuse.concentration(mooncake, cut=cut)["request_share"] for cut in ("first_2", "first_4", "full")}
    assert {cut: round(100 * part, 1) for cut, part in shares.items()} == {
        "first_2": 20.3,
        "first_4": 19.9,
        "full": 5.9,
    }
    default = reuse.concentration(mooncake)
    assert default["reusable_tokens"] == 54_098_411  # a cache that never forgets, partial tails at their real size
    assert default["top_keys"][0]["holders"] == 12_031  # every prompt starts with block 0
    assert reuse.reuse_gaps(mooncake, 300)["reused_tokens"] == 54_098_411
    assert reuse.rotation(mooncake)["median"] is None  # one hour


def test_agents_known_figures_and_how_they_depend_on_the_cut() -> None:
    trace = reuse.read_trace(load([shared_data("claude_agents_2026q1.csv")]))
    shares = {cut: reuse.concentration(trace, cut=cut)["request_share"] for cut in (None, "session", "full")}
    assert round(100 * shares["session"], 1) == 20.4
    assert round(100 * shares[None], 1) == 26.9  # by chain: 431 of them, 22 at the top
    assert shares["full"] == pytest.approx(
        1049 / 20_979
    )  # every prompt is new: 5 % of keys, rounded up, one request each
    assert reuse.rotation(trace)["median"] == 0.0  # a session lives for a day
    assert reuse.popularity(trace)["half_life_hours"] < 3


def test_agents_by_model_version_and_folder() -> None:
    entries = list(csv.DictReader(shared_data("claude_agents_2026q1.csv").open()))
    scopes = [" ".join(entry[name] for name in ("model", "client_version", "workdir_id")) for entry in entries]
    found = reuse.concentration(flat([(float(number), scope, 16_000) for number, scope in enumerate(scopes)]))
    assert (found["keys"], found["top_count"], round(100 * found["request_share"], 1)) == (124, 7, 39.2)


def test_one_lru_pass_equals_the_replay(mooncake: reuse.Trace) -> None:
    paths = load_paths(load([shared_data("mooncake_conversation.jsonl")]), block_tokens=1, partial_tail="keep")
    capacity = 10_000 * 512
    hits = replay(paths, "lru", capacity_tokens=capacity).total("cold")["hit_tokens"]
    assert reuse.scan_effect(mooncake, capacity)["lru_hit_tokens"] == hits


def test_taubench_reuse_by_type_of_a_blocks_first_token() -> None:
    found = reuse.token_types(load([shared_data("taubench_gpt4o_airline.jsonl")]), replicates=100)
    assert all(row["interval"]["low"] < row["reuse_rate"] < row["interval"]["high"] for row in found["types"])
    assert found["interval_basis"] == "sessions"
    rates = {row["token_type"]: 100 * row["reuse_rate"] for row in found["types"]}
    assert round(rates.pop("system"), 2) == 99.95
    assert {name: round(rate, 1) for name, rate in rates.items()} == {
        "tool_result": 88.4,
        "user": 88.1,
        "assistant": 86.4,
        "tool_call": 85.7,
    }
