"""Trees of spans: a request is a model call without a model call below it, and sessions are inherited from above."""

from __future__ import annotations

from typing import Any

REPEATS = "repeats the tokens of the calls below it"
Key = tuple[str | None, str | None]


def keep_leaves(con: Any) -> list[str]:
    """Set aside calls that have a call below them; give calls without a session that of their nearest ancestor.

    Reads the extra staging columns `trace`, `span` and `parent_span`; every span of the log is in `staged`.
    """
    rows = con.sql(
        "SELECT rowid, trace, span, parent_span, is_request, session_id FROM staged WHERE span IS NOT NULL"
    ).fetchall()
    above: dict[Key, Key] = {(trace, span): (trace, parent) for _, trace, span, parent, *_ in rows}
    session_of: dict[Key, str | None] = {(row[1], row[2]): row[5] for row in rows}
    has_call_below: set[Key] = set()
    inherited: list[tuple[int, str]] = []
    for number, trace, span, _, is_call, session in rows:
        if not is_call:
            continue
        ancestors = _ancestors(above, (trace, span))
        has_call_below.update(ancestors)
        if session is None and (found := next((session_of[key] for key in ancestors if session_of.get(key)), None)):
            inherited.append((number, found))
    doubled = [row[0] for row in rows if row[4] and (row[1], row[2]) in has_call_below]
    con.execute(
        f"UPDATE staged SET reason = '{REPEATS}', aside = true WHERE is_request AND reason IS NULL "
        "AND rowid IN (SELECT unnest($rows::BIGINT[]))",
        {"rows": doubled},
    )
    con.execute(
        "UPDATE staged SET session_id = s FROM (SELECT unnest($rows::BIGINT[]) AS r, unnest($names::VARCHAR[]) AS s) "
        "WHERE staged.rowid = r",
        {"rows": [row for row, _ in inherited], "names": [name for _, name in inherited]},
    )
    return ["session_id: taken from the nearest span above that has one"] if inherited else []


def _ancestors(above: dict[Key, Key], start: Key) -> list[Key]:
    """The spans above one, nearest first; a loop ends the walk."""
    found: list[Key] = []
    at = above.get(start)
    while at is not None and at in above and at not in found:
        found.append(at)
        at = above.get(at)
    return found


def settle_basis(con: Any) -> list[str]:
    """Decide per provider and model whether cached tokens are a part of the input count, by the rows themselves.

    Any row with more cached than input tokens proves that its provider and model count them beside the input
    (additive);
    without such a row they are a part of it, as the conventions ask. Reads the extra columns `given` (the input count).
    """
    con.execute(
        "CREATE OR REPLACE TEMP TABLE additive AS SELECT provider AS p, model AS m FROM staged WHERE is_request "
        "AND coalesce(read_tokens, 0) + coalesce(write_tokens, 0) > given GROUP BY ALL"
    )
    con.execute(
        "UPDATE staged SET uncached_tokens = given, input_tokens = given + coalesce(read_tokens, 0) + "
        "coalesce(write_tokens, 0) FROM additive WHERE provider IS NOT DISTINCT FROM p AND model IS NOT DISTINCT FROM m"
    )
    names = [model or "unnamed model" for _, model in con.sql("SELECT p, m FROM additive ORDER BY ALL").fetchall()]
    return [f"input_tokens: beside the cached tokens for {', '.join(names)} (some rows prove it)"] if names else []
