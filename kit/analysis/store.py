"""Where an analysis lives: one DuckDB file per log, in which every step's result is a table.

A notebook starts from the middle (it opens the file read only), and a reader can query every figure of a report. The
file answers for one log, one set of parameters and one version of the kit; its `analysis_key` says which.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

import kit
from kit.analysis.display import Sentence, Table
from kit.analysis.parameters import Parameters

STORE_VARIABLE = "PREFIX_KIT_STORE"
LOG_DB = "log.duckdb"
REPORT_HTML = "report.html"
RESULTS_JSON = "results.json"
SIGNIFICANT_DIGITS = 9

# table name -> where its rows are in the results
TABLES: dict[str, tuple[str, ...]] = {
    "replay_point": ("replay",),
    "optimum": ("bounds", "optimal"),
    "lru_curve": ("lru_curve",),
    "policy": ("policies",),
    "inter_turn_fit": ("inter_turn",),
    "concentration_curve": ("concentration", "curve"),
    "top_key": ("concentration", "top_keys"),
    "rotation_day": ("rotation", "day_pairs"),
    "decision_trail": ("decision", "trail"),
    "rate": ("money", "rates"),
    "ttl_observed": ("provider", "ttl_observed"),
    "day": ("days",),
    "bill_line": ("bill",),
}


@dataclass(frozen=True)
class Analysis:
    """A finished analysis: `results` (the dict of results.json), `con` (its DuckDB file, read only), `folder`."""

    results: dict[str, Any]
    con: duckdb.DuckDBPyConnection
    folder: Path

    def show(self, sql: str, caption: str) -> Table:
        """The rows of a select on the stored tables (TABLES, and the log's own), as a notebook shows them."""
        return Table(pl.DataFrame(self.con.sql(sql)), caption)

    def replay(self, policy: Any) -> Any:
        """A policy (a name, or a kit.policies.Policy of your own) at the budget and neutral setting of this analysis.

        Comes back: the kit.replay.Tally, comparable with the rows of replay_point.
        """
        from kit.log import open_log
        from kit.prefix import load_paths
        from kit.replay import Setting, replay

        settings = self.results["settings"]
        named = next(one for one in settings["assumption_settings"] if one["name"] == "neutral")
        log = open_log(self.folder / LOG_DB)
        tail = self.results["parameters"]["partial_tail"]
        paths = load_paths(log, block_tokens=settings["block_tokens"], partial_tail=tail)
        return replay(paths, policy, capacity_tokens=settings["capacity_tokens"], setting=Setting(**named))

    def write_report(self, reading: str = "both") -> Sentence:
        """Compose report.html beside the analysis from its results; what was written comes back as a sentence."""
        from kit import report

        path = report.write(self.results, self.folder / REPORT_HTML, reading=reading)
        return Sentence(
            f"{path.name} ({path.stat().st_size / 1000:,.0f} kB) is written, in the folder of the analysis."
        )


def clean(value: Any) -> Any:
    """The value as JSON can hold it: numpy scalars to Python, NaN and infinities to None, floats to 9 digits.

    Nine significant digits keep every figure a report prints and drop the last bits that differ between runs.
    """
    if isinstance(value, Mapping):
        return {str(key): clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [clean(inner) for inner in value]
    if hasattr(value, "item") and not isinstance(value, str | bytes):
        value = value.item() if getattr(value, "ndim", 0) == 0 else value.tolist()
        return clean(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    if value is None or isinstance(value, bool | int | str):
        return value
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"a result of type {type(value).__name__} cannot be written as JSON: {value!r}")


def to_json(results: Mapping[str, Any]) -> str:
    """The text of results.json: sorted as built, two spaces, never NaN."""
    return json.dumps(results, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """One row with nested tables spelt out: {"missed": {"cold": 1}} becomes missed_cold; lists become JSON text."""
    out: dict[str, Any] = {}
    for key, value in row.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            out.update(flat(value, f"{name}_"))
        else:
            out[name] = json.dumps(value) if isinstance(value, list) else value
    return out


def frame(rows: list[Any]) -> pl.DataFrame:
    """Rows (tables, or pairs as lists) as a frame; a column without any value is a float column of nulls."""
    records = [flat(row) if isinstance(row, Mapping) else {f"c{i}": v for i, v in enumerate(row)} for row in rows]
    names = list(dict.fromkeys(name for record in records for name in record))
    return pl.DataFrame({name: _series(name, [record.get(name) for record in records]) for name in names})


def _series(name: str, values: list[Any]) -> pl.Series:
    known = [value for value in values if value is not None]
    if not known:
        return pl.Series(name, values, dtype=pl.Float64)
    if any(isinstance(value, str) for value in known):
        return pl.Series(name, [None if v is None else str(v) for v in values], dtype=pl.String)
    if any(isinstance(value, float) for value in known):
        return pl.Series(name, [None if v is None else float(v) for v in values], dtype=pl.Float64)
    return pl.Series(name, values)


def tables_of(results: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """Every stored table of the results by name; a step without rows has no table."""
    out = {}
    for table, place in TABLES.items():
        rows: Any = results
        for step in place:
            rows = (rows or {}).get(step)
        if rows:
            out[table] = frame(list(rows))
    return out


def write_tables(con: duckdb.DuckDBPyConnection, results: Mapping[str, Any], key: str) -> None:
    """Store every step's rows, the results as JSON and the key of this analysis in the log's DuckDB file."""
    for table, rows in tables_of(results).items():
        con.register("rows_to_store", rows)
        con.execute(f'create or replace table "{table}" as from rows_to_store')
        con.unregister("rows_to_store")
    con.execute("create or replace table result (results_json VARCHAR, analysis_key VARCHAR)")
    con.execute("insert into result values ($1, $2)", [to_json(results), key])


def analysis_key(sources: list[Path], parameters: Parameters) -> str:
    """What a stored analysis answers for: the log's files, the parameters, the price overlay, the kit's own code."""
    files = [[path.name, (stat := path.stat()).st_size, stat.st_mtime_ns] for path in sources]
    overlay = Path(parameters.price_overlay).read_text() if parameters.price_overlay else None
    parts = json.dumps([files, parameters.as_dict(), overlay, kit.__version__], sort_keys=True)
    return f"{hashlib.sha256(parts.encode()).hexdigest()}-{_code()}"


def _code() -> str:
    digest = hashlib.sha256()
    root = Path(kit.__file__).parent
    for path in sorted(root.rglob("*")):
        if path.suffix in (".py", ".json", ".toml"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def stored(folder: Path, key: str, any_code: bool = False) -> Analysis | None:
    """The analysis in a folder when it answers for this key, else None (absent, unreadable or of other settings).

    With `any_code` the kit may have changed since: a report in progress is finished by what began it.
    """
    db = folder / LOG_DB
    if not db.exists():
        return None
    try:
        con = duckdb.connect(str(db), read_only=True)
        con.execute("SET TimeZone='UTC'")
        rows = con.sql("select results_json, analysis_key from result").fetchall()
    except duckdb.Error:
        return None
    part = 0 if any_code else slice(None)
    if not rows or rows[0][1].split("-")[part] != key.split("-")[part]:
        con.close()
        return None
    return Analysis(results=json.loads(rows[0][0]), con=con, folder=folder)


def store_in_progress() -> Path | None:
    """The unfinished folder that a running report hands to its notebooks, None outside such a run."""
    path = os.environ.get(STORE_VARIABLE)
    return Path(path) if path else None
