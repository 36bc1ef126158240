"""What the report's one script needs, written by the kit, so that the script neither computes nor formats a number.

The script is small and our own: the chart library (Vega, Vega-Lite and its embedder, 898 kB as vl-convert ships it)
would weigh more than the whole report and needs its expression interpreter to run without `eval`; 6 kB do the same on
the drawings that are already in the page. The page's policy allows this script, by its hash, and no other.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from importlib.resources import files
from typing import Any

from kit import numbers
from kit.charts import pick
from kit.charts.capacity import OPTIMUM
from kit.charts.labels import thin

Row = dict[str, Any]
MOST_STEPS = 100
SNAP = 0.02  # of the axis on either side of a replayed budget, where the slider stops at that budget only


def script() -> str:
    """The script's own text."""
    return (files("kit.report") / "report.js").read_text(encoding="utf-8")


def source_hash(text: str) -> str:
    """A content-security-policy source that allows exactly this inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def policy(style: str, script: str = "") -> str:
    """The content-security policy of a page: images from inside it, its own style and script, nothing else."""
    allowed = f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src {source_hash(style)}; img-src data:"
    return f"{allowed}; script-src {source_hash(script)}" if script else allowed


def budgets(results: Row, span: tuple[float, float] | None) -> str:
    """JSON for the slider of the capacity curve; empty without a curve.

    `low` and `high` are the ends of its axis; each of `steps` (replayed budgets, and between them those of LRU's whole
    curve) has its tokens, its words, what each policy finds there (with its bill where there are prices), and a note
    where only LRU was counted. Close to a replayed budget there is no other step, so that the slider stops at it.
    """
    rows = [row for row in pick.online(pick.replay_rows(results)) if row.get("hit_token_ratio") is not None]
    if span is None or not rows:
        return ""
    replayed = sorted({int(row["capacity_tokens"]) for row in rows})
    found = {size: [[_title(results, row), _words(results, row)] for row in _at(rows, size)] for size in replayed}
    best = {row["capacity_tokens"]: row.get("hit_token_ratio") for row in pick.get(results, "bounds.optimal", [])}
    for size in replayed:
        found[size] += [[OPTIMUM, numbers.percent(best[size])]] if best.get(size) is not None else []
    where = " and ".join(numbers.short(size) for size in replayed)
    note = f"other policies were replayed at {where} tokens only"
    steps = [{**_step(size, found[size]), "replayed": True} for size in replayed]
    for point in thin(_between(results, span, replayed), MOST_STEPS):
        lru = [[pick.title_of(results, "lru"), numbers.percent(point["hit_token_ratio"])]]
        steps.append({**_step(int(point["capacity_tokens"]), lru), "note": note})
    steps.sort(key=lambda step: step["tokens"])
    actual = pick.actual_capacity(results)
    start = next((place for place, step in enumerate(steps) if step["tokens"] == actual), 0)
    titles = list(dict.fromkeys(title for size in reversed(replayed) for title, _ in found[size]))
    data = {"low": span[0], "high": span[1], "start": start, "policies": titles, "steps": steps}
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _at(rows: list[Row], size: int) -> list[Row]:
    here = [row for row in rows if row["capacity_tokens"] == size]
    return sorted(here, key=lambda row: (-row["hit_token_ratio"], row["policy"] != "lru", row["policy"]))


def _title(results: Row, row: Row) -> str:
    return numbers.visible(pick.title_of(results, row["policy"]))


def _words(results: Row, row: Row) -> str:
    cost = row.get("cost")
    money = f" ({numbers.money(cost, pick.get(results, 'money.currency', 'USD'))})" if cost is not None else ""
    return numbers.percent(row["hit_token_ratio"]) + money


def _step(size: int, found: list[list[str]]) -> Row:
    return {"tokens": size, "words": f"{numbers.count(size)} tokens", "found": found}


def _between(results: Row, span: tuple[float, float], replayed: list[int]) -> list[Row]:
    """Budgets of LRU's whole curve inside the axis, without those that were replayed or lie close to one that was."""
    near = math.log(span[1] / span[0]) * SNAP
    return [
        point
        for point in pick.get(results, "lru_curve", [])
        if span[0] <= point["capacity_tokens"] <= span[1]
        and all(abs(math.log(point["capacity_tokens"] / size)) > near for size in replayed)
        and point.get("hit_token_ratio") is not None
    ]
