"""One analysis from log to verdict: every step in order, each result stored, nothing computed twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from kit import billing, decide, prices
from kit.analysis import results as composed
from kit.analysis.evidence import gather
from kit.analysis.fleets import compare_routes
from kit.analysis.known import unpriced_model
from kit.analysis.measures import measure
from kit.analysis.only_replay import rows_of
from kit.analysis.parameters import ParameterError, Parameters
from kit.analysis.replayed import playable, replay_all
from kit.analysis.rows import Beside, replay_rows
from kit.analysis.scene import set_the_scene
from kit.analysis.store import LOG_DB, RESULTS_JSON, Analysis, analysis_key, clean, tables_of, to_json, write_tables
from kit.analysis.typed import with_typed
from kit.analysis.whatif import what_if
from kit.log import Log, connect, load, open_log
from kit.log.sources import resolve
from kit.policies import named

Step = Callable[[str], None]


def quiet(step: str) -> None:
    """No progress shown."""


def read_log(sources: Sequence[str] | str, parameters: Parameters, db_path: Path | None) -> Log:
    """The log, loaded into a DuckDB file (in memory for None) with the user's format, column map, provider and model.

    LogError where it cannot be read, ParameterError where the user's model has no price.
    """
    for name in parameters.policy_names:
        named(name)
    log = load(sources, db_path, format=parameters.format, column_map=dict(parameters.column_map) or None)
    named_by_user = {c: v for c, v in (("provider", parameters.provider), ("model", parameters.model)) if v is not None}
    if not named_by_user:
        return log
    with writable(log) as con:
        for column, value in named_by_user.items():
            con.execute(f"update request set {column} = $1", [value])
    log = log if db_path is None else open_log(db_path)
    if wrong := unpriced_model(log, parameters):
        log.con.close()
        raise ParameterError(wrong)
    return log


@contextmanager
def writable(log: Log) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that may write to a loaded log; a log in a file is closed first (reading it locks writers out)."""
    if log.db_path is None:
        yield log.con
        return
    log.con.close()
    con = connect(str(log.db_path))
    try:
        yield con
        con.execute("CHECKPOINT")
    finally:
        con.close()


def analyse(
    sources: Sequence[str] | str,
    parameters: Parameters,
    out_dir: Path,
    *,
    command: str | None = None,
    progress: Step = quiet,
) -> Analysis:
    """Run every step and leave log.duckdb, results.json and one CSV per table in `out_dir`; the results come back.

    Raises LogError, ParameterError or ValueError, each one line, where the log or a parameter cannot be used.
    """
    progress("reading the log")
    key = analysis_key(resolve(sources), parameters)
    log = read_log(sources, parameters, out_dir / LOG_DB)
    try:
        results = run_steps(log, parameters, command, progress)
        progress("storing")
        _write_files(log, results, parameters, out_dir)
        with writable(log) as con:
            write_tables(con, results, key)
    finally:
        log.con.close()
    return open_finished(out_dir, results)


def _write_files(log: Log, results: dict[str, Any], parameters: Parameters, out_dir: Path) -> None:
    """results.json, one CSV per table, and the ledger of the bill where there are prices (safe in a spreadsheet)."""
    (out_dir / RESULTS_JSON).write_text(to_json(results), encoding="utf-8")
    for name, rows in tables_of(results).items():
        billing.write_csv(out_dir / f"{name}.csv", rows.iter_rows(named=True), rows.columns)
    if results["money"]["currency"]:
        rates = prices.rate_table(log, parameters.price_overlay, parameters.service_class)
        books = billing.ledger(log, rates, minimum_tokens=results["settings"]["minimum_tokens"])
        billing.write_books(out_dir, books if parameters.name_owners else {"bill": books["bill"]})


def open_finished(folder: Path, results: dict[str, Any]) -> Analysis:
    """A finished analysis with its DuckDB file opened read only."""
    return Analysis(results=results, con=connect(str(folder / LOG_DB), read_only=True), folder=folder)


def run_steps(log: Log, parameters: Parameters, command: str | None, progress: Step = quiet) -> dict[str, Any]:
    """The results of a loaded log as plain values (the content of results.json)."""
    asked, scene = parameters, set_the_scene(log, parameters, progress=progress)
    parameters, left_out = playable(asked, scene.paths)
    scene = replace(scene, assumptions=(*scene.assumptions, *left_out))
    replayed = replay_all(scene, parameters, progress)
    measures = measure(log, scene, parameters, progress)
    scene, replayed = with_typed(scene, measures, parameters, replayed, progress)
    progress("bills and intervals")
    bills = scene.billing(parameters)
    rows = replay_rows(replayed.tallies, scene.capacities, bills, Beside.of(scene, replayed))
    made = composed.Parts(log, parameters, scene, measures, rows, replayed, bills, command)
    made = replace(made, fleet=compare_routes(made, progress))
    progress("decision")
    evidence = {name: gather(made, name) for name in ("neutral", "pessimistic")}
    decision = decide.decide(
        evidence["neutral"],
        thresholds=dict(parameters.thresholds),
        waive_row_0=parameters.waive_row_0,
        counters_trustworthy=parameters.counters_trustworthy,
        pessimistic=evidence["pessimistic"],
    )
    results = composed.compose(made, decision) | {"parameters": asked.as_dict()}
    if parameters.what_if:
        progress("what would change the answer")
        results["decision"]["sensitivity"] = what_if(made)
    return clean(results)


def only_replay(
    sources: Sequence[str] | str,
    parameters: Parameters,
    capacities: list[int] | None,
    progress: Step = quiet,
    routes: list[str] | None = None,
) -> list[dict[str, Any]]:
    """Rows of `replay[]` without the rest of the analysis; the log is read into memory. See `only_replay.rows_of`."""
    progress("reading the log")
    log = read_log(sources, parameters, None)
    try:
        return clean(rows_of(log, parameters, capacities, routes, progress))
    finally:
        log.con.close()
