"""Kinds of field values: how the text of a value becomes a typed value, and what it is called when it cannot.

Each kind is a pair of SQL macros over text: `<kind>_of(x)` gives the typed value or NULL. A value that is there but
gives NULL rejects its row. `NaN`, `null`, `None` and the empty string mean that there is no value.

Times: absolute epochs are told apart by size (below 1e11 seconds, 1e14 milliseconds, 1e17 microseconds, else
nanoseconds); ISO times may have 0 to 9 fractional digits (cut to microseconds) and an offset or the name of a zone;
without one they are UTC. Offsets no clock has, and hours that a zone's clock skips or repeats, are refused.
"""

from __future__ import annotations

import re

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
    "keys": "a list of ids (whole numbers or text)",
    "ids": "a list of whole-number ids",
    "texts": "a list of text",
    "runs": "a list of [first, last] pairs",
    "segments": "a list of [type, tokens] pairs",
}

_NUMBER = r"'-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?'"
_ISO = (
    r"'[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}([T ][0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?"
    r"( ?(Z|z|UTC|GMT|[+-][0-9]{2}(:?[0-9]{2})?|[A-Za-z]+/[A-Za-z_/]+))?)?'"
)

_NO_OFFSET = (
    r"'[0-9]:[0-9].*[+-](1[5-9]|[2-9][0-9]|14:?(0[1-9]|[1-5][0-9])|[0-9]{2}:?[6-9][0-9])'"
)
"""An offset that no clock has: beyond 14 hours, or of 60 minutes and more."""

_FIGURES = (
    "'([0-9][TZtzEe]?|[\\s.,:+/\\[\\]\"-]|null|NULL|true|false|NaN|nan|Infinity|inf|UTC|GMT)*'"
)
LONGEST_KEY = 256
HASHED_KEY = "sha256:"
"""How a prefix key begins that is stored as a hash, because it is long or has white space and may be a prompt."""

CALL = re.compile(r"\b(\w+)\(")

MACROS = [
    f"shown(x) AS CASE WHEN regexp_full_match(x, {_FIGURES}) THEN left(x, 40) "
    "ELSE CASE left(ltrim(x), 1) WHEN '{' THEN 'an object' WHEN '[' THEN 'a list' ELSE 'text' END "
    "|| ' of ' || length(x) || CASE length(x) WHEN 1 THEN ' character' ELSE ' characters' END END",
    f"stored_key(x) AS CASE WHEN length(x) > {LONGEST_KEY} OR regexp_matches(x, '\\s') "
    f"THEN '{HASHED_KEY}' || left(sha256(x), 32) ELSE x END",
    "whole_list(l) AS CASE WHEN list_count(l) = len(l) THEN l END",
    f"value_of(x) AS CASE WHEN strlen(x) > {LONGEST_NO_VALUE} OR (x > '(' AND x < ':') THEN x "
    f"WHEN trim(x) IN {NO_VALUE} THEN NULL ELSE x END",
    "text_of(x) AS x",
    "json_of(x) AS x",
    "starts_as_number(x) AS x > '/' AND x < ':'",
    "any_count(x) AS CASE WHEN regexp_full_match(x, '[0-9]{1,18}') THEN x::BIGINT "
    r"WHEN regexp_full_match(x, '\s*[0-9]+(\.0+)?\s*') "
    "THEN TRY_CAST(TRY_CAST(x AS DECIMAL(38, 1)) AS BIGINT) END",
    "count_of(x) AS CASE WHEN starts_as_number(x) AND TRY_CAST(x AS DOUBLE) = TRY_CAST(x AS UINTEGER) "
    "THEN TRY_CAST(x AS UINTEGER)::BIGINT ELSE any_count(x) END",
    f"number_text(x) AS CASE WHEN regexp_full_match(trim(x), {_NUMBER}) THEN coalesce("
    "TRY_CAST(CASE WHEN NOT contains(lower(x), 'e') THEN x END AS DECIMAL(38, 9)), "
    "TRY_CAST(TRY_CAST(x AS DOUBLE) AS DECIMAL(38, 9))) END",
    "micros(x, scale) AS CASE WHEN number_text(x) >= 0 AND number_text(x) < 1e14 "
    "THEN TRY_CAST(floor(number_text(x) * scale) AS BIGINT) END",
    "instant(us) AS make_timestamptz(us)",
    "whole(x) AS CASE WHEN starts_as_number(x) AND TRY_CAST(x AS DOUBLE) = TRY_CAST(x AS BIGINT) "
    "THEN TRY_CAST(x AS BIGINT) END",
    "digits_in_seconds(x) AS TRY_CAST(split_part(x, '.', 1) || rpad(left(split_part(x, '.', 2), 6), 6, '0') "
    "AS BIGINT)",
    "in_seconds(x) AS CASE WHEN NOT starts_as_number(x) OR TRY_CAST(x AS DOUBLE) >= 1e11 THEN NULL "
    "WHEN contains(x, '.') THEN CASE WHEN abs(digits_in_seconds(x) / 1e6 - TRY_CAST(x AS DOUBLE)) < 1e-5 "
    "THEN digits_in_seconds(x) END ELSE whole(x) * 1000000 END",
    "in_larger(x) AS CASE WHEN contains(x, '.') OR TRY_CAST(x AS DOUBLE) < 1e11 THEN NULL "
    "WHEN TRY_CAST(x AS DOUBLE) < 1e14 THEN whole(x) * 1000 "
    "WHEN TRY_CAST(x AS DOUBLE) < 1e17 THEN whole(x) ELSE whole(x) // 1000 END",
    "ms_of(x) AS instant(coalesce(CASE WHEN TRY_CAST(x AS DOUBLE) < 1e14 AND NOT contains(x, '.') "
    "THEN whole(x) * 1000 END, micros(x, 1000)))",
    "seconds_of(x) AS instant(coalesce(in_seconds(x), micros(x, 1000000)))",
    "epoch_micros(v) AS CASE WHEN v < 0 THEN NULL WHEN v < 1e11 THEN floor(v * 1000000) "
    "WHEN v < 1e14 THEN floor(v * 1000) WHEN v < 1e17 THEN floor(v) ELSE floor(v / 1000) END",
    "epoch_of(x) AS coalesce(in_seconds(x), in_larger(x), TRY_CAST(epoch_micros(number_text(x)) AS BIGINT))",
    "epoch_unit_of(x) AS CASE WHEN contains(x, '-') OR contains(x, ':') THEN NULL WHEN TRY_CAST(x AS DOUBLE) < 1e11 "
    "THEN 'seconds' WHEN TRY_CAST(x AS DOUBLE) < 1e14 THEN 'milliseconds' WHEN TRY_CAST(x AS DOUBLE) < 1e17 "
    "THEN 'microseconds' WHEN TRY_CAST(x AS DOUBLE) < 1e30 THEN 'nanoseconds' END",
    f"no_offset(x) AS regexp_matches(x, {_NO_OFFSET})",
    "local_time(x) AS TRY_CAST(replace(regexp_replace(trim(x), ' ?[A-Za-z]+/[A-Za-z_/]+$', ''), ',', '.') "
    "AS TIMESTAMP)",
    "in_zone(x, zone) AS timezone(zone, local_time(x))",
    "is_shifted(x, zone) AS timezone(zone, in_zone(x, zone)) <> local_time(x) "
    "OR timezone(zone, in_zone(x, zone) - INTERVAL 1 HOUR) = local_time(x) "
    "OR timezone(zone, in_zone(x, zone) + INTERVAL 1 HOUR) = local_time(x)",
    "no_hour(x) AS coalesce(CASE WHEN regexp_matches(trim(x), '[A-Za-z]/[A-Za-z_]') "
    "THEN CASE WHEN TRY_CAST(replace(trim(x), ',', '.') AS TIMESTAMPTZ) IS NOT NULL "
    "THEN is_shifted(x, regexp_extract(trim(x), '([A-Za-z]+/[A-Za-z_/]+)$', 1)) END END, false)",
    f"any_time(x) AS CASE WHEN regexp_full_match(trim(x), {_NUMBER}) THEN instant(epoch_of(trim(x))) "
    f"WHEN regexp_full_match(trim(x), {_ISO}) AND NOT no_offset(x) AND NOT no_hour(x) "
    r"THEN TRY_CAST(replace(regexp_replace(trim(x), '\s+([+-][0-9])', '\1'), ',', '.') AS TIMESTAMPTZ) END",
    "time_of(x) AS CASE WHEN suffix(x, 'Z') OR x LIKE '____-__-_____:__:__%' AND x[-1] BETWEEN '0' AND '9' "
    "AND (strlen(x) = 19 OR x LIKE '%+0_:00' OR x LIKE '%-0_:00' OR NOT no_offset(x)) "
    "THEN coalesce(TRY_CAST(x AS TIMESTAMPTZ), any_time(x)) "
    "WHEN starts_as_number(x) AND TRY_CAST(x AS DOUBLE) IS NOT NULL THEN instant(epoch_of(x)) ELSE any_time(x) END",
    f"any_naive(x) AS regexp_full_match(trim(x), {_ISO}) AND NOT regexp_matches(trim(x), "
    r"'[0-9]:[0-9].*(Z|z|UTC|GMT|[+-][0-9]{2}(:?[0-9]{2})?|[A-Za-z]+/[A-Za-z_/]+)$')",
    "is_naive(x) AS CASE WHEN suffix(x, 'Z') OR x LIKE '%+__:__' OR NOT (contains(x, '-') OR contains(x, '/')) "
    "THEN false WHEN x LIKE '____-__-_____:__:__%' AND (strlen(x) = 19 OR x[20] = '.' AND "
    "TRY_CAST(x[21:] AS UINTEGER) IS NOT NULL) THEN true ELSE any_naive(x) END",
    "flag_of(x) AS CASE lower(trim(x)) WHEN 'true' THEN true WHEN '1' THEN true WHEN 'false' THEN false "
    "WHEN '0' THEN false END",
    "decimal_of(x) AS number_text(x)::DOUBLE",
    "lasting(us) AS CASE WHEN us BETWEEN -1e15 AND 1e15 THEN to_microseconds(us::BIGINT) END",
    "plain_list(x) AS NOT (contains(x, '.') OR contains(x, 'e') OR contains(x, 'u') OR contains(x, '-'))",
    "counts_of(x) AS CASE WHEN plain_list(x) THEN TRY(from_json_strict(x, '[\"BIGINT\"]')) END",
    "ids_of(x) AS CASE WHEN plain_list(x) THEN TRY(from_json_strict(x, '[\"UBIGINT\"]')) END",
    "without_texts(x) AS regexp_replace(x, '\"(\\\\.|[^\"\\\\])*\"', '0', 'g')",
    "is_keys(x) AS CASE WHEN TRY(json_structure(x)) IN ('[\"VARCHAR\"]', '[\"UBIGINT\"]', '[\"HUGEINT\"]') THEN true "
    r"ELSE regexp_full_match(without_texts(x), '\s*\[[\s0-9,-]*\]\s*') END",
    "keys_of(x) AS whole_list(CASE WHEN is_keys(x) THEN TRY(from_json_strict(x, '[\"VARCHAR\"]')) END)",
    "texts_of(x) AS TRY(from_json_strict(x, '[\"VARCHAR\"]'))",
    r"runs_of(x) AS CASE WHEN regexp_full_match(x, '[\s0-9,\[\]]*') THEN TRY_CAST(x AS BIGINT[][]) END",
    "segments_of(x) AS CASE WHEN json_valid(x) THEN TRY(list_transform(from_json(x, '[[\"VARCHAR\"]]'), "
    "lambda s: {'kind': s[1], 'tokens': s[2]::BIGINT})) END",
]


def create_macros(query: str | None = None) -> list[str]:
    """Statements that define the macros that a query needs, or all (temporary: they never enter the log's file)."""
    if query is None:
        return [f"CREATE OR REPLACE TEMP MACRO {text}" for text in MACROS]
    needed, found = set(CALL.findall(query)), list[str]()
    for text in reversed(MACROS):  # a macro calls those before it
        if text.split("(")[0] in needed:
            needed.update(CALL.findall(text))
            found.append(f"CREATE OR REPLACE TEMP MACRO {text}")
    return found[::-1]


def refusal(kind: str, name: str) -> str:
    """The reason text of a value of this kind that cannot be read, for example `input_tokens is not a whole number`."""
    return f"{name} is not {KINDS[kind]}"
