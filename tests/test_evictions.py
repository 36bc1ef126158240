"""KV events of an engine: stored, evicted, stored again, and in which order, by hand."""

from __future__ import annotations

import gzip
import json

import pytest

from kit.log import LogError
from kit.providers import evictions


def stored(seq, ts, hashes, parent=None, **more):
    return {"seq": seq, "ts": ts, "type": "BlockStored", "block_hashes": hashes, "parent_block_hash": parent,
            "block_size": 16, "medium": "GPU", **more}  # fmt: skip


def removed(seq, ts, hashes, **more):
    return {"seq": seq, "ts": ts, "type": "BlockRemoved", "block_hashes": hashes, "medium": "GPU", **more}


def written(path, events):
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


BIG = 18_446_744_073_709_551_615
EVENTS = [
    stored(1, 0.0, [BIG, 77]),  # 77 stands on the big one
    stored(2, 1.0, [99]),
    removed(4, 10.0, [99]),  # leaf, lived 9 s; number 3 is missing
    removed(5, 12.0, [BIG]),  # its child 77 is still there, lived 12 s
    stored(6, 20.0, [99]),  # again
    removed(7, 21.0, [77]),  # lived 21 s
    {"seq": 8, "ts": 30.0, "type": "AllBlocksCleared"},
]


def test_events_by_hand(tmp_path):
    """At most three blocks of 16 tokens at once; one of four stored blocks had been evicted before."""
    found = evictions(written(tmp_path / "events.jsonl", EVENTS))
    assert (found["stored"], found["stored_again"], found["removed"], found["cleared"]) == (4, 1, 3, 1)
    assert found["removed_with_children"] == 1 and found["stored_again_share"] == 0.25
    assert (found["peak_tokens"], found["block_tokens"]) == (48, 16)
    assert found["lifetime_seconds"]["p50"] == 12.0
    assert found["order_correlation"] == pytest.approx(-0.5)


def test_first_in_first_out_has_correlation_one_and_replicas_do_not_mix(tmp_path):
    events = [stored(n, float(n), [n], dp=dp) for dp in (0, 1) for n in range(5)]
    events += [removed(10 + n, 10.0 + n, [n], dp=0) for n in range(5)]
    found = evictions(written(tmp_path / "events.jsonl", events))
    assert (found["stored"], found["removed"], found["peak_tokens"]) == (10, 5, 160)
    assert found["order_correlation"] == pytest.approx(1.0) and found["stored_again"] == 0


def test_compressed_files_and_lines_that_are_no_event(tmp_path):
    path = tmp_path / "events.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.write("".join(json.dumps(event) + "\n" for event in [*EVENTS, {"type": "Hello"}, {"ts": 3}]))
    assert evictions(path)["stored"] == 4


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"ts": "2026-02-01T00:00:00Z", "input_tokens": 5, "prefix_key": "a"}\n')
    with pytest.raises(LogError, match="not as KV events"):
        evictions(path)


def test_mixed_block_sizes_are_refused(tmp_path):
    events = [stored(1, 0.0, [1]), {**stored(2, 0.0, [2]), "block_size": 32}]
    with pytest.raises(LogError, match="block sizes 16 and 32 are mixed"):
        evictions(written(tmp_path / "events.jsonl", events))
