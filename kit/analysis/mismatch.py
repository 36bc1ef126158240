"""SAECache-style fitted on one mix of traffic and run, frozen, on another: does what it learned travel?

The mixes are made-up weeks (`kit.sample`: shares of chat, agents and single calls, as the paper mixes its data sets).
What a replay learned on one week (`Tally.learned`) starts a replay of another with every learner switched off. "Own"
means fitted on another week of the same mix, so no row is fitted on the very requests it is judged by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from kit import numbers
from kit.analysis import published
from kit.analysis.display import Sentence, Table
from kit.intervals import REPLICATES, paired_ratio
from kit.policies import named
from kit.prefix import SESSION_TYPES, TOKEN_TYPES, Paths, build_forest, make_paths
from kit.replay import Setting, Tally, replay
from kit.sample import sample_week
from kit.sample.week import LIST_COLUMNS

MIXES: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {"mostly chat": (80, 0, 20), "mostly agents": (10, 80, 10), "mostly single calls": (12, 0, 88)}
)
"""Chat : agents : single calls, in shares of the requests; 12 % multi-turn is the paper's hardest data set."""

REQUESTS = 6_000
ONLINE, LRU = "learning as it goes", "LRU"
UPDATE_EVICTIONS = 200.0  # these weeks are small: learn as often per request as on a large one


def made_up_weeks(seed: int, requests: int = REQUESTS) -> dict[str, Paths]:
    """One week of every mix, without the nightly job, as paths."""
    return {name: paths_of(sample_week(seed=seed, requests=requests, mixture=mix, scan=False))
            for name, mix in MIXES.items()}  # fmt: skip


def paths_of(week: pl.DataFrame) -> Paths:
    """A made-up week as paths, without a file between: what `load_paths` makes of it once it is loaded."""
    sizes = week["path_keys"].list.len().to_numpy()
    keys, tokens, types = (week[name].explode() for name in LIST_COLUMNS)
    leaf, parent, node_tokens, _, first = build_forest(
        np.concatenate([[0], np.cumsum(sizes)]), keys.cast(pl.UInt64).to_numpy(), tokens.to_numpy()
    )
    session = week["session_id"].cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)
    kind = week["session_type"].replace_strict({name: code for code, name in enumerate(SESSION_TYPES)})
    made = make_paths(parent, node_tokens, leaf, week["ts"].dt.epoch("us").to_numpy(), week["input_tokens"].to_numpy(),
                      sessions=session)  # fmt: skip
    codes = types.replace_strict({name: code for code, name in enumerate(TOKEN_TYPES)}, return_dtype=pl.Int32)
    return replace(made, tags={"session": session, "session_type": kind.to_numpy()}, node_type=codes.to_numpy()[first])


def frozen(learned: Mapping[str, float]) -> dict[str, float]:
    """Parameters that start from what was learned and learn nothing more."""
    switches = {name: 1.0 for name in named("saecache").parameters if name.startswith("fixed_")}
    return {**learned, **switches}


def workload_mismatch(
    weeks: Mapping[str, Paths],
    fitted_on: Mapping[str, Paths],
    setting: Setting | None = None,
    replicates: int = REPLICATES,
    seed: int = 1,
) -> list[dict[str, Any]]:
    """Every week under LRU, under SAECache-style as it learns, and frozen with what each `fitted_on` week taught it.

    Each at the week's own knee (LRU at 80 % of its ceiling). Rows: {log, way, own (fitted on the same mix; None where
    nothing is fitted), budget_tokens, hit_tokens, hit_token_ratio, against_online {value, low, high, ...} or None for
    learning as it goes, parameters}.
    """
    rules = setting or Setting()
    learned = {name: _tally(paths, rules, {"update_evictions": UPDATE_EVICTIONS}).learned
               for name, paths in fitted_on.items()}  # fmt: skip
    rows = []
    for name, paths in weeks.items():
        online = _tally(paths, rules, {"update_evictions": UPDATE_EVICTIONS})
        ways: dict[str, tuple[Tally, bool | None, dict[str, float]]] = {
            LRU: (_lru(paths, rules), None, {}), ONLINE: (online, None, dict(online.learned))
        }  # fmt: skip
        for other, found in learned.items():
            ways[f"frozen, fitted on {other}"] = (_tally(paths, rules, frozen(found)), other == name, dict(found))
        for way, (tally, own, parameters) in ways.items():
            rows.append({"log": name, "way": way, "own": own, "budget_tokens": tally.capacity_tokens,
                         "hit_tokens": tally.total()["hit_tokens"], "hit_token_ratio": tally.hit_token_ratio(),
                         "against_online": None if tally is online else _against(tally, online, replicates, seed),
                         "parameters": parameters})  # fmt: skip
    return rows


def _knee(paths: Paths, setting: Setting) -> int:
    return published.budgets_around_the_knee(paths, 1, setting)[0]


def _lru(paths: Paths, setting: Setting) -> Tally:
    return replay(paths, "lru", capacity_tokens=_knee(paths, setting), setting=setting)


def _tally(paths: Paths, setting: Setting, parameters: dict[str, float]) -> Tally:
    return replay(paths, "saecache", capacity_tokens=_knee(paths, setting), setting=setting, parameters=parameters)


def _against(tally: Tally, online: Tally, replicates: int, seed: int) -> dict[str, Any] | None:
    hits, asked, online_hits, online_asked = (
        one.blocks(field).sum(axis=0) for one in (tally, online) for field in ("hit_tokens", "input_tokens")
    )
    found = paired_ratio(hits, asked, online_hits, online_asked, replicates, seed)
    return found.as_dict() if found else None


def compared(weeks: Mapping[str, Paths], seed: int = 1) -> dict[str, list[dict[str, Any]]]:
    """What `published.side_by_side` shows, on every week at five budgets around its knee."""
    return {name: published.compare_published(paths, variants=False, seed=seed, systems=published.TOLD)
            for name, paths in weeks.items()}  # fmt: skip


def as_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Weeks down, ways across: hit-token ratio and, after it, the difference to learning in points [95 %]."""
    ways = list(dict.fromkeys(row["way"] for row in rows))
    weeks = list(dict.fromkeys(row["log"] for row in rows))
    cell = {(row["log"], row["way"]): _cell(row) for row in rows}
    lines = [[name, *(cell.get((name, way), "") for way in ways)] for name in weeks]
    return Table(pl.DataFrame(lines, schema=["week run", *ways], orient="row"),
                 "SAECache-style: fitted on one mix, run frozen on another")  # fmt: skip


def _cell(row: Mapping[str, Any]) -> str:
    share = numbers.percent(row["hit_token_ratio"], 1)
    if row["against_online"] is None:
        return share
    return f"{share} {published.difference({'against_lru': row['against_online']})}"


def what_travels(rows: Sequence[Mapping[str, Any]]) -> Sentence:
    """The worst foreign fit, the worst own fit, and how many of each lose to learning as it goes."""
    said = []
    for own, name in ((False, "another mix"), (True, "another week of the same mix")):
        fits = [row for row in rows if row["own"] is own]
        if not fits:
            continue
        lost = sum(row["against_online"]["high"] < 0 for row in fits)
        worst = min(fits, key=lambda row: row["against_online"]["value"])
        shown = published.difference({"against_lru": worst["against_online"]})
        said.append(f"fitted on {name} it keeps less than while it learns in {lost} of {len(fits)} runs (worst: "
                    f"{shown} points of input tokens, {worst['log']}, {worst['way']})")  # fmt: skip
    text = "; ".join(said)
    return Sentence(f"{text[:1].upper()}{text[1:]}.")
