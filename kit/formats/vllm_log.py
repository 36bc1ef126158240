"""vLLM's request log: plain text lines `Received request ID: ... prompt_token_ids: [...]`.

Times are printed as month and day without a year. `--max-log-len` cuts the ids, which shortens prefixes without a
trace.
"""

from __future__ import annotations

import re
from typing import Any

from kit.formats.base import Field, Format, Peek
from kit.formats.prompts import ids_in_text

LINE = re.compile(r"(Received request \S+:|Request \S+ details:).*prompt_token_ids")
MARK = "(Received request|Request) [^ ]+( details)?:"
ROWS = (
    "SELECT rn, filename, text, CASE WHEN text IS NOT NULL THEN json_object("
    f"'request', regexp_matches(text, '{MARK}'), "
    "'id', nullif(regexp_extract(text, '(?:Received request|Request) ([^ :]+)', 1), ''), "
    "'day', nullif(regexp_extract(text, '([0-9]{{2}}-[0-9]{{2}} "
    "[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:[.,][0-9]+)?)', 1), ''), "
    "'dated', nullif(regexp_extract(text, '([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]"
    "[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)', 1), ''), "
    "'ids', nullif(regexp_extract(text, 'prompt_token_ids: \\[([0-9, ]*)\\]', 1), '')) END AS doc FROM ({lines})"
).replace("{{", "{").replace("}}", "}")


def say_year(con: Any) -> list[str]:
    """Say so where the log has no year."""
    bare = con.sql("SELECT count(*) FROM staged WHERE is_request AND year(ts) = 1972").fetchall()[0][0]
    return ["ts: the log prints month and day without a year; 1972 stands for it"] if bare else []


def recognise(peek: Peek) -> float:
    """Lines that receive a request."""
    return 0.95 if any(LINE.search(str(record.get("text", ""))) for record in peek.records) else 0.0


FORMAT = Format(
    name="vllm_log",
    title="vLLM request log",
    containers=("text",),
    recognise=recognise,
    fields=(
        Field("request", "flag", ("request",)),
        Field("id", "text", ("id",)),
        Field("day", "text", ("day",)),
        Field("dated", "time", ("dated",)),
        Field("ids", "text", ("ids",)),
    ),
    columns={
        "ts": "coalesce(dated, "
        "TRY_CAST('1972-' || replace(day, ',', '.') AS TIMESTAMPTZ))",
        "input_tokens": "len(string_split(ids, ','))",
        "source_id": "id",
        "path_keys": "NULL::UBIGINT[]",
    },
    keep="request AND ids IS NOT NULL",
    rows=ROWS,
    prompt=ids_in_text,
    after=say_year,
    identity_rule="one request id is one request; the line with token ids is the one read",
    token_rule="input_tokens is the number of printed token ids; what the cache did is not in this log",
    units={"day": "month-day and time of the server's zone, taken as UTC", "dated": "ISO time, without an offset UTC"},
    source="vllm-project/vllm entrypoints/logger.py",
)
