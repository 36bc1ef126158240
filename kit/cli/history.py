"""A batch folder over its runs: which rows stand in it already, and what each log is compared with.

Logs of one family have the same name but for a date in it (`week_2026-09-07`, `week_2026-09-14`). A log is compared
with what its name held before, if that was another log; else with the log of its family that ended last before it; else
with its own last report, made with other parameters or another kit.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Row = dict[str, Any]
BATCH_JSON = "batch.json"
DATE = re.compile(r"(?<!\d)(19|20)\d\d([-_.]?(0[1-9]|1[0-2])([-_.]?(0[1-9]|[12]\d|3[01]))?|[-_.]?[qwQW]\d{1,2})?(?!\d)")


def family(name: str) -> str:
    """A log's name with every date in it (year, month, day, quarter, week) replaced by one mark."""
    return DATE.sub("*", name)


def facts(results: Mapping[str, Any]) -> Row:
    """What of a report is compared from run to run."""
    log, settings, decision = results["log"], results["settings"], results["decision"]
    lru: Row = next(
        (
            row
            for row in results["replay"]
            if (row["policy"], row["assumption"], row["window"]) == ("lru", "neutral", settings["decision_window"])
            and row["capacity_tokens"] == settings["capacity_tokens"]
        ),
        {},
    )
    return {
        "sha256": log["sha256"],
        "end": log["end"],
        "requests": log["requests"],
        "rule": decision["rule"],
        "policy": decision["policy"],
        "capacity_tokens": settings["capacity_tokens"],
        "hit_token_ratio": lru.get("hit_token_ratio"),
        "cost_per_request": lru.get("cost_per_request"),
        "currency": results["money"]["currency"],
        "retention": results["ttl_verdict"].get("choice"),
    }


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the folder against other runs of the kit while its index is read, joined and written."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def earlier_rows(folder: Path) -> dict[str, Row]:
    """The rows of the folder's last index by name; empty at the first run or where it cannot be read."""
    try:
        rows = json.loads((folder / BATCH_JSON).read_text(encoding="utf-8"))
        return {str(row["name"]): row for row in rows}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def joined(folder: Path, rows: Sequence[Row], earlier: Mapping[str, Row]) -> list[Row]:
    """This run's rows, then those of earlier runs whose report still stands; each with what it is compared with.

    A log that failed keeps the facts and the link of its last good report, so that its next run is compared with it.
    """
    rows = [_kept(folder, row, earlier.get(row["name"])) for row in rows]
    now = {row["name"] for row in rows}
    standing = [
        {**row, "status": "earlier"}
        for name, row in earlier.items()
        if name not in now and row.get("report") and (folder / row["report"]).is_file()
    ]
    every = [*rows, *standing]
    return [{**row, "previous": _previous(row, every, earlier.get(row["name"]))} for row in every]


def _kept(folder: Path, row: Row, before: Row | None) -> Row:
    """A failed row with the facts and comparison of the log's last good report, and its link while it stands."""
    if row["status"] != "failed" or before is None:
        return row
    link = before.get("report")
    standing = link if link and (folder / link).is_file() else None
    return {**row, "report": standing, "facts": before.get("facts"), "previous": before.get("previous")}


def _previous(row: Row, every: Sequence[Row], before: Row | None) -> Row | None:
    """{name, facts} of the report a row is compared with; None at the first of its family."""
    mine, last = row.get("facts"), (before or {}).get("facts")
    if mine is None:
        return None
    if row["status"] == "failed":
        return row.get("previous")
    if last and last.get("sha256") != mine.get("sha256"):
        return {"name": row["name"], "facts": last}
    older = [
        other
        for other in every
        if other["name"] != row["name"]
        and family(other["name"]) == family(row["name"])
        and (other.get("facts") or {}).get("end")
        and mine.get("end")
        and other["facts"]["end"] < mine["end"]
    ]
    if older:
        nearest = max(older, key=lambda other: (other["facts"]["end"], other["name"]))
        return {"name": nearest["name"], "facts": nearest["facts"]}
    if before and row["status"] in ("kept", "earlier"):
        return before.get("previous")
    return {"name": row["name"], "facts": last} if last else None
