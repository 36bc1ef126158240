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
from kit.analysis.parameters import ParameterError, Parameters

STORE_VARIABLE = "PREFIX_KIT_STORE"
LOG_DB = "log.duckdb"
REPORT_HTML = "report.html"
RESULTS_JSON = "results.json"
SIGNIFICANT_DIGITS = 9
OPEN_TABLES = ("values", "limits", "parameters")  # nested tables whose names differ from row to row: kept as JSON text

# table name -> (where its rows are in the results, columns it has even when it is empty)
TABLES: dict[str, tuple[str, str]] = {
    "replay_point": (
        "replay",
        "policy capacity_tokens capacity_label assumption window hits hit_tokens hit_token_ratio evictions "
        "missed_evicted missed_expired read_tokens write_tokens write_long_tokens uncached_tokens cost "
        "cost_per_request m_eq",
    ),
    "optimum": ("bounds.optimal", "capacity_tokens hit_tokens hit_token_ratio exact method"),
    "headroom": ("bounds.gaps", "capacity_tokens policy_gap best_policy best_policy_gap room_gap exact"),
    "lru_curve": ("lru_curve", "capacity_tokens hit_tokens hit_token_ratio"),
    "policy": ("policies", "name title source"),
    "inter_turn_fit": (
        "inter_turn",
        "session_type trigger clock n censored median_seconds mu sigma ks p_within_300 p_within_3600",
    ),
    "concentration_curve": ("concentration.curve", "keys key_share request_share token_share"),
    "top_key": (
        "concentration.top_keys",
        "alias requests request_share prefix_tokens reusable_tokens token_share sessions days_seen",
    ),
    "rotation_day": ("rotation.day_pairs", "from to overlap carried_share own_top_share top_keys new_key_share"),
    "token_type": ("token_types.types", "token_type tokens reused_tokens reuse_rate one_shot_token_share"),
    "gap_survival": ("turns.survival", "session_type trigger seconds seen fitted"),
    "gap_quantile": ("turns.qq", "session_type trigger level observed_seconds fitted_seconds"),
    "gap_day": ("turns.drift", "day trigger n mu median_seconds p_within_300 left_the_week"),
    "session_fit": (
        "turns.per_session.sessions",
        "session_type rank gaps mu_alone mu mu_low mu_high sigma mu_shrinkage",
    ),
    "session_type_fit": (
        "turns.per_session.types",
        "session_type fitted_sessions type_mu type_between type_sigma mean_mu_shrinkage",
    ),
    "ttl_outlook": (
        "turns.ttl_outlook",
        "session_type trigger ttl_seconds n p_within p_next_within rewrite_tokens rewrite_tokens_per_turn",
    ),
    "key_cut": ("concentration.cuts", "cut keys reused_keys request_share token_share"),
    "working_set": ("rotation.working_set", "window_seconds windows median_tokens max_tokens"),
    "popularity_hour": ("rotation.popularity.by_hours", "lag remaining pairs"),
    "popularity_day": ("rotation.popularity.by_days", "lag remaining pairs"),
    "dropped_key": ("value_rank.dropped", "longest_share keys room_share value_share reuse_share requests_share"),
    "rank_by_value": ("value_rank.rankings.by_value", "alias prefix_tokens requests value_tokens rank_by_length"),
    "rank_by_length": ("value_rank.rankings.by_length", "alias prefix_tokens requests value_tokens rank_by_value"),
    "prefix_break": (
        "prefix_breaks.worst",
        "position_tokens token_type breaks different lost_tokens content",
    ),
    "prefix_break_type": (
        "prefix_breaks.by_type",
        "token_type content breaks lost_tokens median_position_tokens",
    ),
    "prompt_place": ("token_types.places", "prompt_tokens tokens reused_tokens reuse_rate"),
    "scan_hour": ("scans.hours", "hour_index hour requests tokens one_shot_tokens share"),
    "decision_trail": ("decision.trail", "rule question measured threshold margin outcome"),
    "sensitivity": ("decision.sensitivity.map", "dimension words factor rule policy flips"),
    "rate": ("money.rates", "rate_id provider model input read write_short write_long output currency label"),
    "survival": ("provider.survival", "write_class idle_from_seconds idle_to_seconds clock n share low high"),
    "reconciliation_day": ("provider.reconciliation.days", "day model requests input_tokens"),
    "reconciliation_cause": ("provider.reconciliation.causes", "cause meaning requests read_tokens cost"),
    "ttl_observed": ("provider.ttl_observed", "write_class ttl_seconds low high n"),
    "retention_group": (
        "ttl_verdict.groups",
        "dimension group requests choice cheapest next_best saving_value saving_low saving_high",
    ),
    "fleet_route": (
        "fleet.rows",
        "routing title requests hits hit_tokens hit_token_ratio busiest_request_share cost",
    ),
    "cache_life": (
        "cache_life",
        "policy evicted_tokens written_tokens evicted_unused_tokens evicted_unused_share resident_tokens_mean",
    ),
    "hour": ("hours", "hour requests input_tokens hit_tokens_lru hit_token_ratio_lru"),
    "day": ("days", "day requests input_tokens hit_tokens_lru hit_token_ratio_lru"),
    "bill_line": ("bill", "policy token_class tokens cost"),
    "owner_bill": (
        "chargeback.owners",
        "owner requests input_tokens read_tokens write_tokens write_long_tokens uncached_tokens cost cost_share "
        "output_cost avoidable_cost saving saving_share input_token_share",
    ),
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

        Comes back: the kit.replay.Tally, comparable with the rows of replay_point; None where the log has no prefix
        identity and nothing can be replayed.
        """
        from kit.replay import replay

        budget, sample = self.results["settings"]["capacity_tokens"], self.results["settings"].get("sample")
        if budget is None:
            return None
        paths, setting = self.paths_and_setting()
        if sample is None:
            return replay(paths, policy, capacity_tokens=budget, setting=setting)
        from kit.replay import miniature

        drawn = miniature.draw(paths, sample["rate"], self.results["parameters"]["seed"])
        own, small = miniature.sampled_grid(drawn, [policy, "lru"], [budget], [setting])
        return miniature.anchored(own, small, replay(paths, "lru", capacity_tokens=budget, setting=setting))

    def paths_and_setting(self) -> tuple[Any, Any]:
        """(kit.prefix.Paths, kit.replay.Setting): the log's prefixes and the neutral setting of this analysis."""
        from kit.log import open_log
        from kit.prefix import load_paths
        from kit.replay import Setting

        settings = self.results["settings"]
        named = next(one for one in settings["assumption_settings"] if one["name"] == "neutral")
        log = open_log(self.folder / LOG_DB)
        tail = self.results["parameters"]["partial_tail"]
        return load_paths(log, block_tokens=settings["block_tokens"], partial_tail=tail), Setting(**named)

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
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"a result of type {type(value).__name__} cannot be written as JSON: {value!r}")


def to_json(results: Mapping[str, Any]) -> str:
    """The text of results.json: sorted as built, two spaces, never NaN."""
    return json.dumps(results, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """One row with nested tables spelt out: {"missed": {"cold": 1}} becomes missed_cold; lists become JSON text."""
    out: dict[str, Any] = {}
    for key, value in row.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and key not in OPEN_TABLES:
            out.update(flat(value, f"{name}_"))
        else:
            out[name] = json.dumps(value) if isinstance(value, list | Mapping) else value
    return out


def frame(rows: list[Mapping[str, Any]], columns: list[str]) -> pl.DataFrame:
    """Rows as a frame, nested tables spelt out; a column without any value is a float column of nulls.

    `columns` are the columns of an empty frame; with rows the rows say what there is.
    """
    records = [flat(row) for row in rows]
    names = list(dict.fromkeys(name for record in records for name in record)) or columns
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
    """Every stored table of the results by name; a step without rows has an empty table."""
    return {table: frame(list(rows_at(results, place)), columns.split()) for table, (place, columns) in TABLES.items()}


def rows_at(results: Mapping[str, Any], place: str) -> Any:
    """The list at a dotted place of the results; empty where a step of the way is absent or null."""
    found: Any = results
    for step in place.split("."):
        found = (found or {}).get(step)
    return found or []


def write_tables(con: duckdb.DuckDBPyConnection, results: Mapping[str, Any], key: Key) -> None:
    """Store every step's rows, the results as JSON and the key of this analysis in the log's DuckDB file."""
    for table, rows in tables_of(results).items():
        con.register("rows_to_store", rows)
        con.execute(f'create or replace table "{table}" as from rows_to_store')
        con.unregister("rows_to_store")
    con.execute("create or replace table result (results_json VARCHAR, analysis_key VARCHAR)")
    con.execute("insert into result values ($1, $2)", [to_json(results), str(key)])


@dataclass(frozen=True)
class Key:
    """What a stored analysis answers for: the log's files, the parameters (and price overlay), the kit's own code."""

    files: str
    parameters: str
    code: str

    def __str__(self) -> str:
        return f"{self.files}-{self.parameters}-{self.code}"


def analysis_key(sources: list[Path], parameters: Parameters) -> Key:
    """The key of an analysis of these files with these parameters by the kit as it is now."""
    files = [[path.name, (stat := path.stat()).st_size, stat.st_mtime_ns] for path in sources]
    return Key(_digest(json.dumps(files)), parameters_key(parameters), _code())


def parameters_key(parameters: Parameters) -> str:
    """Digest of the parameters and of the price overlay they name."""
    overlay = Path(parameters.price_overlay).read_text() if parameters.price_overlay else None
    return _digest(json.dumps([parameters.as_dict(), overlay], sort_keys=True))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _code() -> str:
    """Digest of every source, rule and template file of the kit."""
    root = Path(kit.__file__).parent
    files = [path for path in sorted(root.rglob("*")) if path.suffix in (".py", ".json", ".toml", ".j2", ".css", ".js")]
    whole = hashlib.sha256(kit.__version__.encode())
    for path in files:
        whole.update(path.read_bytes())
    return whole.hexdigest()[:16]


def opened(folder: Path) -> Analysis:
    """The analysis in a folder, whatever it answers for; OSError where there is none."""
    found = _open(folder)
    if found is None:
        raise OSError(f"{folder}: no finished analysis is stored there; choose another out_dir")
    return found[0]


def stored(folder: Path, key: Key) -> Analysis | None:
    """The analysis in a folder when it answers for this key, else None (absent, unreadable or of other settings)."""
    found = _open(folder)
    if found is None or found[1] == str(key):
        return found[0] if found else None
    found[0].con.close()
    return None


def _open(folder: Path) -> tuple[Analysis, str] | None:
    db = folder / LOG_DB
    if not db.exists():
        return None
    try:
        con = duckdb.connect(str(db), read_only=True)
        con.execute("SET TimeZone='UTC'")
        results_json, key = con.sql("select results_json, analysis_key from result").fetchall()[0]
    except (duckdb.Error, IndexError):
        return None
    return Analysis(results=json.loads(results_json), con=con, folder=folder), key


def in_progress(parameters: Parameters) -> Analysis | None:
    """The analysis that a running report hands to its notebooks; None outside such a run.

    ParameterError where a notebook of the report asks for something else than the report was made with.
    """
    folder = os.environ.get(STORE_VARIABLE)
    found = _open(Path(folder)) if folder else None
    if found is None:
        return None
    if found[1].split("-")[1] != parameters_key(parameters):
        raise ParameterError("the parameters of this notebook are not those of the report it is run for")
    return found[0]
