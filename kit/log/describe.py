"""`kit inspect`: what a log is, how it was read, what it can and cannot tell, and what to log to unlock the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from kit.formats import Format, Peek
from kit.log.facts import CANNOT, EMPTY
from kit.log.reading import LINE_BYTES, lines_sql
from kit.log.staging import source_columns

UNLOCK: dict[str, str] = {
    "identity": "log a hash per prompt block (path_keys, path_tokens), or one prefix_key with prefix_tokens; "
    "`kit hash` makes them from raw prompts",
    "times": "log the start of each request as ts, with its offset",
    "clock": "log the start of each request as ts, with its offset",
    "session_id": "log the conversation or run as session_id",
    "ts_end": "log the end of each answer as ts_end",
    "read_tokens": "log the usage object's cached-token counts as read_tokens, write_tokens, write_long_tokens",
    "model": "log the model",
    "output_tokens": "log output_tokens from the final usage object",
    "token_type": "log path_types beside path_keys (system, tools, user, assistant, tool_result)",
    "owner": "log a team, application or key as owner",
}
QUESTIONS: dict[str, str] = {
    "identity": "concentration, rotation, value rank and policy replay",
    "times": "gaps, hours and days",
    "clock": "time to live and day overlap",
    "session_id": "inter-turn gaps by session type",
    "ts_end": "think and tool time (end to start)",
    "read_tokens": "the provider's own hit rate beside the replay",
    "model": "money",
    "output_tokens": "the output side of the bill",
    "token_type": "reuse by token type",
    "owner": "chargeback",
}


def keys_of(con: duckdb.DuckDBPyConnection, peeks: Sequence[Peek]) -> list[str]:
    """Top-level columns over all rows of all files, in order of first appearance (a key may appear late)."""
    names = dict.fromkeys(name for one in peeks for name in one.columns)
    if peeks[0].container == "jsonl":
        late = con.sql(
            "SELECT DISTINCT unnest(json_keys(TRY_CAST(text AS JSON))) AS key "
            f"FROM ({lines_sql(peeks, LINE_BYTES)}) WHERE text IS NOT NULL ORDER BY key"
        ).fetchall()
        names.update(dict.fromkeys(row[0] for row in late))
    return list(names)


def unused_columns(form: Format, columns: Sequence[str]) -> list[str]:
    """Columns of the log that the format does not read."""
    read = {path.split("/")[0] for item in form.fields for path in item.paths} | {
        path for item in form.fields for path in item.paths
    }
    return [name for name in columns if name not in read]


def description(
    form: Format, confidence: float, columns: Sequence[str], facts: Mapping[str, Any], coverage: Mapping[str, int],
    peeks: Sequence[Peek],
) -> dict[str, Any]:  # fmt: skip
    """The inspect dict: recognition, rows, columns, units, coverage, what is possible and how to unlock the rest."""
    sources = source_columns(form, peeks)
    impossible = [name for name, sentence in (*CANNOT, ("identity", EMPTY)) if sentence in facts["cannot_tell"]]
    return {
        **facts,
        "format": form.name,
        "title": form.title,
        "confidence": round(confidence, 3),
        "container": peeks[0].container,
        "columns": list(columns),
        "mapped": {name: source for name, source in sources.items() if source != "-"},
        "not_used": unused_columns(form, columns),
        "coverage": {name: number / facts["kept"] for name, number in coverage.items()},
        "identity_rule": form.identity_rule,
        "token_rule": form.token_rule,
        "possible": [question for name, question in QUESTIONS.items() if name not in impossible],
        "unlock": {QUESTIONS[name]: UNLOCK[name] for name in impossible},
    }
