"""The index of a batch: every log with its verdict, most money at stake first, failures with their reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from kit import numbers
from kit.report.table import plain

Row = dict[str, Any]


def at_stake(entry: Row) -> float | None:
    """Money a month that a log's verdict moves, in its currency; None where there is none or it is not known."""
    saving = entry.get("saving_per_month") or {}
    value = saving.get("value")
    return abs(float(value)) if value is not None and numbers.is_known(value) and saving.get("currency") else None


def retention_at_stake(entry: Row) -> float | None:
    """Money over the log that its verdict on retention moves; None where there is none or it is not known."""
    found = entry.get("retention") or {}
    value = (found.get("saving") or {}).get("value")
    if value is None or not numbers.is_known(value) or not found.get("currency"):
        return None
    return None if found.get("choice") in (None, "too close to call") else abs(float(value))


def ordered(entries: Sequence[Row]) -> list[Row]:
    """Finished logs by money at stake (by policy, then by retention), then failed ones; ties by name."""

    def place(entry: Row) -> tuple[bool, float, float, str]:
        stake, retention = at_stake(entry) or 0.0, retention_at_stake(entry) or 0.0
        return entry.get("status") == "failed", -stake, -retention, str(entry.get("name"))

    return sorted(entries, key=place)


def view(entries: Sequence[Row]) -> Row:
    """What the index shows: a summary sentence, totals per currency, and one written row per log."""
    failed = [entry for entry in entries if entry.get("status") == "failed"]
    logs = f"{numbers.count(len(entries))} {'log' if len(entries) == 1 else 'logs'}"
    done = numbers.count(len(entries) - len(failed))
    summary = f"{logs}: {done} with a report" + (f", {numbers.count(len(failed))} failed." if failed else ".")
    return {"summary": summary, "totals": _totals(entries), "rows": [_row(entry) for entry in ordered(entries)]}


def _totals(entries: Sequence[Row]) -> list[str]:
    """Savings added up per currency: amounts in different currencies are never added."""
    found: dict[str, list[float]] = {}
    for entry in entries:
        saving = entry.get("saving_per_month") or {}
        if at_stake(entry) is not None:
            found.setdefault(str(saving["currency"]), []).append(saving["value"])
    return [
        f"{numbers.money(sum(values), currency)} a month saved if every verdict is followed, over {len(values)} "
        f"{'log' if len(values) == 1 else 'logs'} (list of estimates, intervals not added)."
        for currency, values in sorted(found.items())
    ]


def _row(entry: Row) -> Row:
    failed = entry.get("status") == "failed"
    report = entry.get("report")
    return {
        "name": plain(entry.get("name") or "log"),
        "log": plain(entry.get("log") or ""),
        "href": quote(str(report)) if report and not failed else None,
        "failed": failed,
        "money": numbers.ABSENT if failed else _money(entry.get("saving_per_month")),
        "retention": numbers.ABSENT if failed else _retention(entry),
        "since": numbers.ABSENT if failed else _since(entry),
        "rule": numbers.ABSENT if entry.get("rule") is None else str(entry["rule"]),
        "verdict": plain(entry.get("reason") if failed else entry.get("sentence") or numbers.NOT_FOUND),
        "status": {"made": "made", "kept": "unchanged, kept", "failed": "failed"}.get(str(entry.get("status")), "made"),
    }


def _retention(entry: Row) -> str:
    found, stake = entry.get("retention") or {}, retention_at_stake(entry)
    choice = plain(found.get("choice") or numbers.ABSENT).replace("_", "-")
    if stake is None:
        return choice
    saving, currency = found["saving"], found["currency"]
    low, high = (numbers.money(saving.get(end), currency, True) for end in ("low", "high"))
    return f"{choice}: {numbers.money(stake, currency, True)} ({numbers.span(low, high)})"


def _since(entry: Row) -> str:
    """What changed since the last batch in this folder."""
    before = entry.get("before")
    if not before:
        return "first run"
    if (before.get("rule"), before.get("policy")) == (entry.get("rule"), entry.get("policy")):
        return "as before"
    return f"changed: was rule {plain(before.get('rule'))}, {plain(before.get('policy'))}"


def _money(saving: Row | None) -> str:
    if not saving or not numbers.is_known(saving.get("value")):
        return numbers.ABSENT
    currency = saving.get("currency")
    if not currency:
        return f"{numbers.short(saving['value'])} {plain(saving.get('unit') or 'tokens')}"
    low, high = (numbers.money(saving.get(end), currency) for end in ("low", "high"))
    return f"{numbers.money(saving['value'], currency)} ({numbers.span(low, high)})"
