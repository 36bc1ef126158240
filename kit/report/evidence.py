"""Why: the decision trail, the figures, every policy side by side, and the keys that carry the traffic."""

from __future__ import annotations

from datetime import date
from itertools import groupby
from typing import Any

from kit import charts, numbers
from kit.charts import pick
from kit.report.before_after import window_words
from kit.report.engine import sample_label, with_seeds
from kit.report.interactive import budgets
from kit.report.table import Cell, Part, Picture, Section, Table, Text, csv_link, plain, svg_link, written

Row = dict[str, Any]
TRAIL_COLUMNS = ("rule", "question", "measured", "threshold", "margin", "outcome", "would_say")
WIDE, NARROW = 720, 340


def trail(results: Row, before: tuple[Part, ...] = ()) -> Section:
    """Every rule in order: what the log shows, what each condition asks, the outcome; the fired one marked in words.

    `before` is what stands above the table.
    """
    lines = pick.get(results, "decision.trail", [])
    fired = pick.get(results, "decision.rule")
    rows = tuple(
        (f"{line.get('rule')} {plain(line.get('question') or '')}", _conditions(line), outcome_words(line))
        for line in lines
    )
    table = Table(
        "decision_trail",
        "Rules in order; the first that fires decides",
        ("Rule", "What the log shows, against the threshold", "Outcome"),
        rows,
        "A rule fires when all its conditions are met; rule 0 when any is. In brackets: the threshold, and how far the "
        "log is from it as a share of it. Clearly better: the whole interval on the better side, fewer "
        "billed tokens per request that found its prefix, and no fewer tokens found.",
        text_columns=frozenset(range(3)),
        narrow="stack",
        marked=frozenset(place for place, line in enumerate(lines) if line.get("rule") == fired),
        muted=frozenset(
            place
            for place, words in enumerate(line.get("outcome") or "" for line in lines)
            if words.startswith("not consulted")
        ),
        records=tuple({name: line.get(name) for name in TRAIL_COLUMNS} for line in lines),
    )
    return Section("trail", "Why: the decision trail", (*before, table), frozenset({"infra"}))


def _conditions(line: Row) -> Cell:
    """One text per condition: met or not, what was measured, what is asked. Without conditions what the rule says."""
    conditions = line.get("conditions") or []
    if not conditions:
        return (_said(line.get("measured")),)
    said = tuple(_condition(one) for one in conditions)
    extra = str(line.get("measured") or "").removeprefix("; ".join(str(one.get("words")) for one in conditions))
    return (*said, plain(extra.removeprefix("; "), longest=4000)) if extra.startswith("; ") else said


def _condition(one: Row) -> str:
    words, asked = (plain(one.get(key) or "", longest=2000) for key in ("words", "asked"))
    if one.get("holds") is None:
        words, verdict = words.removesuffix(f": {numbers.NOT_FOUND}"), "Cannot tell: "
    else:
        verdict = "Met: " if one["holds"] else "Not met: "
    if asked in ("yes", "over 0"):
        return f"{verdict}{words}"
    asked = "clearly better" if "interval" in asked else f"{asked}{_distance(one)}"
    return f"{verdict}{words} (threshold: {asked})"


def _distance(one: Row) -> str:
    """How far a number is from what is asked, relative to it; nothing beyond double of it and for yes or no."""
    margin = one.get("margin")
    if margin is None or not numbers.is_known(margin) or abs(margin) >= 1:
        return ""
    if margin == 0:
        return "; exactly on it"
    return f"; {numbers.percent(abs(margin), 0)} {'past it' if margin > 0 else 'short of it'}"


def outcome_words(line: Row) -> str:
    """The outcome of a rule; one that was not consulted or was skipped also says what it would have said."""
    outcome, would = plain(line.get("outcome") or numbers.NOT_FOUND), str(line.get("would_say") or "")
    would = would if not would.startswith("cannot tell") else "cannot tell"  # the conditions beside it say what
    return f"{outcome}: {plain(would)}" if would and outcome.startswith(("not consulted", "skipped")) else outcome


def _said(value: Any) -> str:
    return plain(value, longest=4000) if isinstance(value, str) else written(value)


def pictures(results: Row, names: tuple[str, ...] | None = None) -> list[Picture]:
    """The figures these results support, each drawn wide and narrow; those asked for, or all."""
    drawn = []
    for draw in charts.FIGURES:
        if names is not None and draw.__name__ not in names:
            continue
        wide, narrow = draw(results, WIDE), draw(results, NARROW)
        if wide is not None and narrow is not None:
            drawn.append(
                Picture(
                    wide.name,
                    wide.finding,
                    wide.alt,
                    wide.caption,
                    svg_link(wide.svg()),
                    svg_link(narrow.svg()),
                    csv_link(wide.rows),
                    budgets(results, wide.span),
                )
            )
    return drawn


def evidence(results: Row) -> Section:
    """The figures, the policies at the budget under study, other budgets, and the top keys."""
    drawn = pictures(results)
    missing = {draw.__name__ for draw in charts.FIGURES} - {picture.name for picture in drawn}
    said = (
        [Text("Not drawn, this log cannot tell: " + ", ".join(sorted(NAMES[name] for name in missing)) + ".", "note")]
        if missing
        else []
    )
    tables = [
        table
        for table in (policies(results), by_budget(results), top_keys(results), gaps(results), days(results))
        if table
    ]
    return Section("evidence", "Evidence", (*drawn, *said, *tables), frozenset({"infra"}))


NAMES = {
    "capacity_curve": "hits against capacity",
    "policy_change": "change against LRU by policy",
    "concentration": "concentration of reuse",
    "value_rank": "length against reuse",
    "gap_fits": "time between turns",
    "miss_causes": "causes of misses",
}


def policies(results: Row) -> Table | None:
    """Every online policy at the budget under study, and the bounds, most tokens found first."""
    rows, capacity = pick.policies_at_actual(results), pick.actual_capacity(results)
    if not rows:
        return None
    currency, billed = pick.get(results, "money.currency", "USD"), pick.get(results, "settings.tier_mode") != "engine"
    lines = [_bound("Ceiling (no limit)", pick.get(results, "bounds.ceiling")), *_optimum(results, capacity)]
    proposed = pick.proposed_policy(results)
    chances = {row.get("policy"): row.get("probability_best") for row in pick.get(results, "decision.standings", [])}
    lines += [
        (
            pick.title_of(results, row["policy"]) + (" (recommended)" if row["policy"] == proposed else ""),
            with_seeds(row),
            numbers.percent(_rate(row)),
            numbers.short(row.get("hit_tokens")),
            numbers.short(missed(row, "evicted")),
            numbers.short(missed(row, "expired")),
            numbers.money(row.get("cost"), currency),
            numbers.count(row.get("m_eq")),
            numbers.percent(chances[row["policy"]]) if row["policy"] in chances else numbers.ABSENT,
        )
        for row in rows
    ]
    marked = frozenset(place for place, line in enumerate(lines) if line[0].endswith("(recommended)"))
    head = (
        "Policy",
        "Tokens found cached",
        "Requests hit",
        "Hit tokens",
        "Missed, evicted",
        "Missed, expired",
        f"Input bill ({currency})",
        "Billed tokens per hit" if billed else "Computed tokens per hit",
        "Chance to be best",
    )
    cells = [place for place, name in enumerate(head) if billed or not name.startswith("Input bill")]
    told = "Billed tokens per hit request: input-token equivalents" if billed else (
        "Computed tokens per hit request: what was not found, over the requests that found their prefix"
    )
    return Table(
        "policies",
        f"Every policy at {numbers.count(capacity)} tokens, {window_words(results)}",
        tuple(head[place] for place in cells),
        tuple(tuple(line[place] for place in cells) for line in lines),
        f"{told}. Chance to be best: over bootstrap draws; policies that find exactly the same count as one, and a "
        "policy without a chance is a yardstick, not one to choose.",
        marked=marked,
        narrow="scroll",
    )


def missed(row: Row, cause: str) -> int | None:
    """Missed tokens of one cause."""
    return (row.get("missed") or {}).get(cause)


def _rate(row: Row) -> float | None:
    return row["hits"] / row["requests"] if row.get("requests") and row.get("hits") is not None else None


def _bound(name: str, bound: Row | None) -> tuple[str, ...]:
    found = bound or {}
    return (
        name,
        numbers.percent(found.get("hit_token_ratio")),
        numbers.ABSENT,
        numbers.short(found.get("hit_tokens")),
        *[numbers.ABSENT] * 5,
    )


def _optimum(results: Row, capacity: int | None) -> list[tuple[str, ...]]:
    bound = next(
        (row for row in pick.get(results, "bounds.optimal", []) if row.get("capacity_tokens") == capacity), None
    )
    if bound is None:
        return []
    exact = bound.get("exact")
    method = f", {plain(bound['method'])}" if bound.get("method") else ""
    return [_bound(f"Best possible ({'exact' if exact else 'upper bound'}{method})", bound)]


def by_budget(results: Row) -> Table | None:
    """Tokens found cached by every policy at every replayed budget, under both assumptions."""
    rows = [
        row for row in pick.online(pick.get(results, "replay", [])) if row.get("window") == pick.main_window(results)
    ]
    capacities = sorted({row["capacity_tokens"] for row in rows})
    beside = {"lru", pick.proposed_policy(results), pick.other_policy(results)}
    every = {
        (row["policy"], row["assumption"]) for row in rows if row["assumption"] == "neutral" or row["policy"] in beside
    }
    pairs = sorted(every, key=lambda pair: (pair[1] != "neutral", pair[1], pair[0] != "lru", pair[0]))
    if len(capacities) < 2 or not pairs:
        return None
    found = {(row["policy"], row["assumption"], row["capacity_tokens"]): row.get("hit_token_ratio") for row in rows}
    lines = tuple(
        (
            pick.title_of(results, policy),
            assumption,
            *(numbers.percent(found.get((policy, assumption, size))) for size in capacities),
        )
        for policy, assumption in pairs
    )
    head = ("Policy", "Assumption", *(f"{numbers.short(size)} tokens" for size in capacities))
    return Table(
        "budgets",
        "Input tokens found cached, by budget and assumption" + sample_label(results),
        head,
        lines,
        text_columns=frozenset({0, 1}),
        narrow="scroll",
    )


def top_keys(results: Row) -> Table | None:
    """The most used keys under short aliases: the log's own keys are never printed."""
    keys = pick.get(results, "concentration.top_keys", [])[:10]
    if not keys:
        return None
    lines = tuple(
        (
            plain(key.get("alias") or str(key.get("prefix_key") or f"k{place}")[:8]),
            numbers.count(key.get("requests")),
            numbers.percent(key.get("request_share")),
            numbers.count(key.get("holders")),
            numbers.count(key.get("prefix_tokens")),
            numbers.short(key.get("reusable_tokens")),
            numbers.count(key.get("days_seen")),
        )
        for place, key in enumerate(keys, start=1)
    )
    head = (
        "Key",
        "Requests",
        "Share of requests",
        "Requests that hold it",
        "Length (tokens)",
        "Reusable tokens",
        "Days seen",
    )
    note = plain(pick.get(results, "concentration.cut_sentence", ""))
    note += " A request has one key and may hold others, shorter ones, on its way: those count as holding."
    note += " Reusable tokens count where no key above holds them already."
    return Table("top_keys", "The most used keys", head, lines, note, narrow="scroll")


def gaps(results: Row) -> Table | None:
    """Both inter-turn clocks by session type and trigger, beside the fitted log-normal."""
    rows = pick.get(results, "inter_turn", [])
    if not rows:
        return None
    lines = tuple(
        (
            plain(row.get("session_type") or "all"),
            plain(row.get("trigger") or "all"),
            plain(str(row.get("clock")).replace("_", " ")),
            numbers.count(row.get("n")),
            numbers.seconds(row.get("median_seconds")),
            numbers.decimal(row.get("mu")),
            numbers.decimal(row.get("sigma")),
            *(numbers.percent((row.get("p_within") or {}).get(key)) for key in ("300", "3600")),
        )
        for row in rows[:24]
    )
    head = ("Session type", "Trigger", "Clock", "Gaps", "Median", "Mu (ln s)", "Sigma", "Within 5 min", "Within 1 h")
    left = len(rows) - len(lines)
    note = (
        "Start to start is what an expiry counts, end to start is the time to think or to run a tool. Mu and sigma: "
        "mean and spread of the logarithm of seconds, of the fitted log-normal."
    )
    note += f" {left} more rows are in results.json." if left > 0 else ""
    return Table(
        "inter_turn", "Time between turns", head, lines, note, text_columns=frozenset({0, 1, 2}), narrow="scroll"
    )


def days(results: Row) -> Table | None:
    """Traffic and what LRU finds, day by day."""
    rows = pick.get(results, "days", [])
    if len(rows) < 2 or pick.get(results, "log.has_clock") is False:
        return None
    counted = str(rows[0].get("day")).startswith("1970-01-01")
    lines = tuple(
        (
            _days_named([str(row.get("day")) for row in run], counted),
            numbers.count(run[0].get("requests")),
            numbers.short(run[0].get("input_tokens")),
            numbers.percent(run[0].get("hit_token_ratio_lru")) if run[0].get("requests") else numbers.ABSENT,
        )
        for run in _runs(rows)[:62]
    )
    head = ("Day of the log" if counted else "Day (UTC)", "Requests", "Input tokens", "Found cached with LRU")
    return Table("days", "Day by day", head, lines, narrow="scroll")


def _runs(rows: list[Row]) -> list[list[Row]]:
    """Each day alone, days without requests that follow each other together."""
    return [
        part
        for idle, run in groupby(rows, key=lambda row: not row.get("requests"))
        for part in ([list(run)] if idle else [[row] for row in run])
    ]


def _days_named(days: list[str], counted: bool) -> str:
    """A day or a run of days by date, or counted from 1 where the log's times are relative to its start."""
    names = [str((date.fromisoformat(day) - date(1970, 1, 1)).days + 1) if counted else plain(day) for day in days]
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
