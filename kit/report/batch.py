"""The index of a batch: every log with its verdict, most money at stake first, failures with their reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from kit import numbers
from kit.report.owners import head, line
from kit.report.table import Table, plain

Row = dict[str, Any]
STATUS = {"made": "made", "kept": "unchanged, kept", "failed": "failed", "earlier": "from an earlier run"}
LAST_GOOD = "failed; the link opens the report of its last good run"


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
    return {
        "summary": summary,
        "totals": _totals(entries),
        "rows": [_row(entry) for entry in ordered(entries)],
        "owners": chargeback(entries),
    }


def _totals(entries: Sequence[Row]) -> list[str]:
    """Savings added up per currency: amounts in different currencies are never added."""
    found: dict[str, list[float]] = {}
    for entry in entries:
        saving = entry.get("saving_per_month") or {}
        if at_stake(entry) is not None:
            found.setdefault(str(saving["currency"]), []).append(saving["value"])
    return [
        f"{numbers.money(sum(values), currency)} a month saved if every verdict is followed, over {len(values)} "
        f"{'log' if len(values) == 1 else 'logs'} (estimates added up, without their intervals)."
        for currency, values in sorted(found.items())
    ]


def _row(entry: Row) -> Row:
    failed = entry.get("status") == "failed"
    report = entry.get("report")
    return {
        "name": plain(entry.get("name") or "log"),
        "log": plain(entry.get("log") or ""),
        "href": quote(str(report)) if report else None,
        "failed": failed,
        "money": numbers.ABSENT if failed else _money(entry),
        "retention": numbers.ABSENT if failed else _retention(entry),
        "since": numbers.ABSENT if failed else _since(entry),
        "rule": numbers.ABSENT if entry.get("rule") is None else str(entry["rule"]),
        "verdict": plain(entry.get("reason") if failed else entry.get("sentence") or numbers.NOT_FOUND),
        "status": LAST_GOOD if failed and report else STATUS.get(str(entry.get("status")), "made"),
    }


def _retention(entry: Row) -> str:
    found, stake = entry.get("retention") or {}, retention_at_stake(entry)
    choice = plain(found.get("choice") or numbers.NOT_FOUND).replace("_", "-")
    if stake is None:
        return choice
    saving, currency = found["saving"], found["currency"]
    low, high = (numbers.money(saving.get(end), currency, True) for end in ("low", "high"))
    return f"{choice}: {numbers.money(stake, currency, True)} ({numbers.span(low, high)})"


def _since(entry: Row) -> str:
    """What changed since the run the log is compared with: verdict, budget, what LRU finds, cost, retention."""
    previous = entry.get("previous")
    if not previous:
        return "first run"
    then, now = previous["facts"], entry.get("facts") or {}
    again = previous["name"] == entry.get("name")
    against = f"against {'its last report' if again else plain(previous['name'])}"
    until = f" (until {plain(then['end'])[:10]})" if then.get("end") else ""
    changes = [change for change in (tell(then, now) for tell in CHANGES) if change]
    return f"{against}{until}: {'; '.join(changes) or 'as before'}"


def _verdict_change(then: Row, now: Row) -> str:
    before, after = ((facts.get("rule"), facts.get("policy")) for facts in (then, now))
    if before == after:
        return ""
    return f"verdict rule {before[0]}, {plain(before[1])} to rule {after[0]}, {plain(after[1])}"


def _budget_change(then: Row, now: Row) -> str:
    before, after = then.get("capacity_tokens"), now.get("capacity_tokens")
    return "" if before == after else f"budget {numbers.short(before)} to {numbers.short(after)} tokens"


def _hit_change(then: Row, now: Row) -> str:
    before, after = then.get("hit_token_ratio"), now.get("hit_token_ratio")
    if before is None or after is None:
        return "" if before == after else f"LRU finds {numbers.percent(before)} to {numbers.percent(after)}"
    if abs(after - before) < LEAST_CHANGE:
        return ""
    return (
        f"LRU finds {numbers.percent(before)} to {numbers.percent(after)} of tokens ({numbers.points(after - before)})"
    )


def _cost_change(then: Row, now: Row) -> str:
    before, after = then.get("cost_per_request"), now.get("cost_per_request")
    if before is None or after is None or then.get("currency") != now.get("currency"):
        return ""
    if not before or abs(after / before - 1) < LEAST_CHANGE:
        return ""
    ends = (numbers.unit_price(1000 * amount, str(now["currency"])) for amount in (before, after))
    return f"cost per 1,000 requests {' to '.join(ends)} ({numbers.signed((after / before - 1) * 100, 1)}%)"


def _retention_change(then: Row, now: Row) -> str:
    before, after = (plain(facts.get("retention") or "none told") for facts in (then, now))
    return "" if before == after else f"retention {before} to {after}".replace("_", "-")


LEAST_CHANGE = 0.0005
CHANGES = (_verdict_change, _budget_change, _hit_change, _cost_change, _retention_change)


def chargeback(entries: Sequence[Row]) -> list[Table]:
    """One table per currency: every owner over all logs that name owners, most costly first, and the total."""
    found = [entry["chargeback"] for entry in entries if entry.get("chargeback")]
    tables = []
    for currency in sorted({one["currency"] or "" for one in found}):
        mine = [one for one in found if (one["currency"] or "") == currency]
        rows = _owners([row for one in mine for row in one["owners"]])
        total = {"owner": None, **_added([one["total"] for one in mine])}
        rows = [{**row, **_shares(row, total)} for row in rows]
        lines = [line(row, currency or None) for row in rows] + [line(total, currency or None, whole=True)]
        logs = f"{numbers.count(len(mine))} {'log' if len(mine) == 1 else 'logs'}"
        note = "A saving of each log's own verdict (policy, else retention) over that log; below zero: pays more."
        tables.append(
            Table(
                f"owners_{currency or 'tokens'}",
                f"Chargeback by owner, over {logs}",
                head(currency or None),
                tuple(lines),
                note,
                marked=frozenset({len(lines) - 1}),
                narrow="scroll",
            )
        )
    return tables


def _owners(rows: Sequence[Row]) -> list[Row]:
    names = dict.fromkeys(row["owner"] for row in rows)
    added = [{"owner": name, **_added([row for row in rows if row["owner"] == name])} for name in names]
    return sorted(added, key=_place)


def _place(row: Row) -> tuple[float, int, bool, str]:
    """Most costly first, then most input, then by name with the unnamed last."""
    return -(row["cost"] or 0.0), -(row["input_tokens"] or 0), row["owner"] is None, row["owner"] or ""


def _added(rows: Sequence[Row]) -> Row:
    """Sums; money of which any part is not found is not found, except a saving, which is that of the logs that save."""
    found: Row = {}
    for name in ADDED:
        parts = [row.get(name) for row in rows]
        known = [part for part in parts if part is not None]
        found[name] = sum(known) if len(known) == len(parts) or (name == "saving" and known) else None
    return found


def _shares(row: Row, total: Row) -> Row:
    return {
        f"{name}_share": row[name] / total[name] if row[name] is not None and total[name] else None
        for name in ("cost", "saving")
    }


ADDED = (
    "requests", "input_tokens", "read_tokens", "write_tokens", "write_long_tokens", "uncached_tokens", "cost", "saving",
)  # fmt: skip


def _money(entry: Row) -> str:
    """The saving of a log's verdict; nothing where LRU stays on a log that is enough to decide on, else not found."""
    saving = entry.get("saving_per_month") or {}
    if not numbers.is_known(saving.get("value")):
        stays = entry.get("policy") == "lru" and entry.get("rule") not in (None, 0)
        return numbers.ABSENT if stays and not saving else numbers.NOT_FOUND
    currency = saving.get("currency")
    if not currency:
        return f"{numbers.short(saving['value'])} {plain(saving.get('unit') or 'tokens')}"
    low, high = (numbers.money(saving.get(end), currency) for end in ("low", "high"))
    return f"{numbers.money(saving['value'], currency)} ({numbers.span(low, high)})"
