"""Kinds of field values: how the text of a value becomes a typed value, and what it is called when it cannot.

Each kind is a pair of SQL macros over text: `<kind>_of(x)` gives the typed value or NULL. A value that is there but
gives NULL rejects its row. `NaN`, `null`, `None` and the empty string mean that there is no value.

Times: absolute epochs are told apart by size (below 1e11 seconds, 1e14 milliseconds, 1e17 microseconds, else
nanoseconds); ISO times may have 0 to 9 fractional digits (cut to microseconds) and an offset; without one they are UTC.
"""

from __future__ import annotations

NO_VALUE = "('', 'NaN', 'nan', 'null', 'NULL', 'None', '<NA>')"
LONGEST_NO_VALUE = 8

KINDS: dict[str, str] = {
    "text": "text",
    "count": "a whole number, 0 or more",
    "time": "an ISO time or an epoch",
    "ms": "a number of milliseconds, 0 or more",
    "seconds": "a number of seconds, 0 or more",
    "flag": "true or false",
    "decimal": "a number",
    "json": "JSON",
    "counts": "a list of whole numbers",
    "keys": "a list of ids (numbers or text)",
    "ids": "a list of whole-number ids",
    "texts": "a list of text",
    "runs": "a list of [first, last] pairs",
    "segments": "a list of [type, tokens] pairs",
}

_NUMBER = r"'-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?'"
_PLAIN_ISO = r"'[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z'"
_ISO = (
    r"'[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}([T ][0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?"
    r"( ?(Z|z|UTC|GMT|[+-][0-9]{2}(:?[0-9]{2})?|[A-Za-z]+/[A-Za-z_/]+))?)?'"
)

MACROS = [
    "whole_list(l) AS CASE WHEN list_count(l) = len(l) THEN l END",
    f"value_of(x) AS CASE WHEN strlen(x) > {LONGEST_NO_VALUE} THEN x WHEN trim(x) IN {NO_VALUE} THEN NULL ELSE x END",
    "text_of(x) AS x",
    "json_of(x) AS x",
    "count_of(x) AS CASE WHEN regexp_full_match(x, '[0-9]{1,18}') THEN x::BIGINT "
    r"WHEN regexp_full_match(x, '\s*[0-9]+(\.0+)?\s*') "
    "THEN TRY_CAST(TRY_CAST(x AS DECIMAL(38, 1)) AS BIGINT) END",
    f"number_text(x) AS CASE WHEN regexp_full_match(trim(x), {_NUMBER}) THEN coalesce("
    "TRY_CAST(CASE WHEN NOT contains(lower(x), 'e') THEN x END AS DECIMAL(38, 9)), "
    "TRY_CAST(TRY_CAST(x AS DOUBLE) AS DECIMAL(38, 9))) END",
    "micros(x, scale) AS CASE WHEN number_text(x) >= 0 AND number_text(x) < 1e14 "
    "THEN TRY_CAST(floor(number_text(x) * scale) AS BIGINT) END",
    "instant(us) AS make_timestamp(us)::TIMESTAMPTZ",
    "ms_of(x) AS instant(micros(x, 1000))",
    "seconds_of(x) AS instant(micros(x, 1000000))",
    "epoch_micros(v) AS CASE WHEN v < 0 THEN NULL WHEN v < 1e11 THEN floor(v * 1000000) "
    "WHEN v < 1e14 THEN floor(v * 1000) WHEN v < 1e17 THEN floor(v) ELSE floor(v / 1000) END",
    "epoch_unit_of(x) AS CASE WHEN contains(x, '-') OR contains(x, ':') THEN NULL WHEN number_text(x) < 1e11 "
    "THEN 'seconds' WHEN number_text(x) < 1e14 THEN 'milliseconds' WHEN number_text(x) < 1e17 THEN 'microseconds' "
    "WHEN number_text(x) IS NOT NULL THEN 'nanoseconds' END",
    f"time_of(x) AS CASE WHEN regexp_full_match(x, {_PLAIN_ISO}) THEN TRY_CAST(x AS TIMESTAMPTZ) "
    f"WHEN regexp_full_match(trim(x), {_NUMBER}) "
    "THEN instant(TRY_CAST(epoch_micros(number_text(x)) AS BIGINT)) "
    f"WHEN regexp_full_match(trim(x), {_ISO}) "
    r"THEN TRY_CAST(replace(regexp_replace(trim(x), '\s+([+-][0-9])', '\1'), ',', '.') AS TIMESTAMPTZ) END",
    f"is_naive(x) AS CASE WHEN suffix(x, 'Z') THEN false ELSE regexp_full_match(trim(x), {_ISO}) AND NOT "
    "regexp_matches(trim(x), "
    r"'[0-9]:[0-9].*(Z|z|UTC|GMT|[+-][0-9]{2}(:?[0-9]{2})?|[A-Za-z]+/[A-Za-z_/]+)$') END",
    "flag_of(x) AS CASE lower(trim(x)) WHEN 'true' THEN true WHEN '1' THEN true WHEN 'false' THEN false "
    "WHEN '0' THEN false END",
    "decimal_of(x) AS number_text(x)::DOUBLE",
    "plain_list(x) AS NOT (contains(x, '.') OR contains(x, 'e') OR contains(x, 'u') OR contains(x, '-'))",
    "counts_of(x) AS CASE WHEN plain_list(x) THEN TRY(from_json_strict(x, '[\"BIGINT\"]')) END",
    "ids_of(x) AS CASE WHEN plain_list(x) THEN TRY(from_json_strict(x, '[\"UBIGINT\"]')) END",
    "keys_of(x) AS whole_list(TRY(from_json_strict(x, '[\"VARCHAR\"]')))",
    "texts_of(x) AS TRY(from_json_strict(x, '[\"VARCHAR\"]'))",
    r"runs_of(x) AS CASE WHEN regexp_full_match(x, '[\s0-9,\[\]]*') THEN TRY_CAST(x AS BIGINT[][]) END",
    "segments_of(x) AS CASE WHEN json_valid(x) THEN TRY(list_transform(from_json(x, '[[\"VARCHAR\"]]'), "
    "lambda s: {'kind': s[1], 'tokens': s[2]::BIGINT})) END",
]


def create_macros() -> list[str]:
    """Statements that define the macros on a connection (temporary: they never enter the log's file)."""
    return [f"CREATE OR REPLACE TEMP MACRO {text}" for text in MACROS]


def refusal(kind: str, name: str) -> str:
    """The reason text of a value of this kind that cannot be read, for example `input_tokens is not a whole number`."""
    return f"{name} is not {KINDS[kind]}"
