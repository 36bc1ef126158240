"""Lifetimes that count from creation: from the provider's rule to the rows of results.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kit.analysis.parameters import Parameters
from kit.analysis.run import read_log, run_steps


def results_of(path: Path, **values: Any) -> dict[str, Any]:
    parameters = Parameters(what_if=False, replicates=100, policies="lru,lfu", capacity_tokens=50_000, **values)
    return run_steps(read_log([str(path)], parameters, None), parameters, None)


def lru(results: dict[str, Any]) -> dict[str, Any]:
    return next(row for row in results["replay"] if (row["policy"], row["assumption"], row["window"],
                row["capacity_tokens"]) == ("lru", "neutral", "cold", 50_000))  # fmt: skip


def test_a_cache_object_is_written_again_every_hour(tmp_path: Path) -> None:
    # One key of 5,000 tokens every 40 minutes, 30 times; the object lives 3,600 s from its writing, so a request
    # writes it (0, 80, 160 min ...) and the next one reads it: 15 hits, 14 of the 15 writes because it had expired.
    # With a lifetime that reads refresh, 29 hits.
    path = tmp_path / "objects.csv"
    rows = [f"{2_400 * n},gemini,gemini-3.6-flash,k,5000,5000" for n in range(30)]
    path.write_text("\n".join(["ts,provider,model,prefix_key,prefix_tokens,input_tokens", *rows]) + "\n")
    created = results_of(path, provider_rule="google/explicit")
    row = lru(created)
    assert (row["hits"], row["missed"]["expired"], row["write_tokens"]) == (15, 14 * 5_000, 15 * 5_000)
    assert "a lifetime counts from creation" in " ".join(created["settings"]["assumptions"])
    assert [one["refresh_on_read"] for one in created["settings"]["assumption_settings"]] == [False, False]
    assert lru(results_of(path, ttl_seconds=3_600.0, tier_mode="mirror", provider_rule="qwen/explicit"))["hits"] == 29


def test_prefixes_that_grow_are_replayed_with_the_other_clock_and_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "grows.csv"
    rows = [f"{2_400 * n},gemini,gemini-3.6-flash,k,{5_000 + 100 * n},{5_000 + 100 * n}" for n in range(30)]
    path.write_text("\n".join(["ts,provider,model,prefix_key,prefix_tokens,input_tokens", *rows]) + "\n")
    results = results_of(path, provider_rule="google/explicit")
    assert "replayed as if reads refreshed it" in " ".join(results["settings"]["assumptions"])
    assert lru(results)["hits"] == 29
