"""What stands behind the figures: near misses, assumptions, rows, what the log cannot tell, words, provenance."""

from __future__ import annotations

from typing import Any

from kit import numbers, terms
from kit.charts import pick
from kit.report.settings import flips_sentence
from kit.report.table import Items, Part, Section, Table, Words, plain, written

Row = dict[str, Any]
MENTIONED = 0.001  # a lead under 0.1 points is no lead
WORDS = (
    "tier",
    "prefix key",
    "hit",
    "miss cause",
    "ceiling",
    "optimum",
    "mirror",
    "absorb",
    "engine",
    "TTL",
    "retention",
    "keep-alive",
    "concentration",
    "rotation",
    "inter-turn gap",
    "key cut",
    "neutral",
    "pessimistic",
    "redrawn log",
    "pt",
    "m_eq",
    "cost_per_request",
)


def what_would_change(results: Row) -> Section:
    """Later rules that would have fired, other budgets, the other assumption and the time to live."""
    lines = [
        *filter(None, [flips_sentence(results), _room(results), _firmness(results)]),
        *_near_misses(results),
        *_other_budgets(results),
        *_other_assumption(results),
    ]
    lines = lines or ["Nothing that was measured comes near another answer."]
    return Section("change", "What would change the answer", (Items(tuple(lines)),))


def _near_misses(results: Row) -> list[str]:
    close = pick.get(results, "decision.too_close_to_call", {})
    sides = [
        f"{plain(name)}: rule {side.get('rule')}, {plain(side.get('title') or side.get('policy'))}"
        for name, side in close.items()
    ]
    lines = [f"Too close to call, the assumptions disagree ({'; '.join(sides)})."] if sides else []
    return lines + [plain(row.get("text") or "") + "." for row in pick.get(results, "decision.near_misses", [])]


def _firmness(results: Row) -> str:
    """How likely the recommended policy is the best, and what choosing it costs where it is not."""
    told = pick.get(results, "decision.firmness")
    return sentence(plain(told, longest=800)) if told else ""


def _room(results: Row) -> str:
    """What doubling the budget under LRU would save a month."""
    return plain(pick.get(results, "decision.room.sentence", ""), longest=400)


def _other_budgets(results: Row) -> list[str]:
    lines = []
    for label in ("half", "double"):
        rows = [
            row
            for row in pick.online(pick.replay_rows(results, capacity_label=label))
            if row.get("hit_token_ratio") is not None
        ]
        lru = next((row for row in rows if row["policy"] == "lru"), None)
        if lru is None or len(rows) < 2:
            continue
        best = max(rows, key=lambda row: (row["hit_token_ratio"], row["policy"] == "lru", row["policy"]))
        lead = f"At {label} the budget ({numbers.short(lru['capacity_tokens'])} tokens)"
        ahead = best["hit_token_ratio"] - lru["hit_token_ratio"]
        if ahead < MENTIONED:
            more = "more" if best["policy"] == "lru" else "0.1 pt more"
            others = len(rows) - 1
            none = f"none of the {others} other policies tried finds"
            tried = f"{none if others > 1 else 'the other policy does not find'} {more}"
            lines.append(f"{lead} LRU finds {numbers.percent(lru['hit_token_ratio'])}, and {tried}.")
        else:
            gain = numbers.points(ahead).lstrip("+")
            lines.append(
                f"{lead} {pick.title_of(results, best['policy'])} finds most, "
                f"{numbers.percent(best['hit_token_ratio'])}, {gain} above LRU."
            )
    return lines


def _other_assumption(results: Row) -> list[str]:
    other = pick.other_policy(results)
    pair = [pick.at_actual(results, policy, assumption="pessimistic") for policy in ("lru", other or "")]
    if None in pair:
        return []
    title = pick.title_of(results, other or "")
    currency = pick.get(results, "money.currency", "USD")
    ratios = [numbers.percent((row or {}).get("hit_token_ratio")) for row in pair]
    costs = [(row or {}).get("cost") for row in pair]
    expires = pick.get(results, "settings", {}).get("ttl_seconds", 0) is not None
    lead = f"With {'a shorter time to live, ' if expires else ''}lost reads and late writes (pessimistic),"
    bills = [numbers.money(cost, currency) for cost in costs if None not in costs]
    if ratios[0] == ratios[1] and len(set(bills)) < 2:
        once = f", at {bills[0]}" if bills else ""
        return [f"{lead} LRU and {title} both find {ratios[0]} of tokens cached{once}."]
    money = f", {bills[0]} and {bills[1]}" if len(set(bills)) > 1 else f", both at {bills[0]}" if bills else ""
    return [f"{lead} LRU and {title} find {ratios[0]} and {ratios[1]} of tokens cached{money}."]


def quality(results: Row) -> Section:
    """Assumptions, rows by reason, missing columns and questions left open."""
    log, settings = pick.get(results, "log", {}), pick.get(results, "settings", {})
    assumed = [plain(line) for line in settings.get("assumptions") or []] or _settings_lines(settings)
    one_cache = any("replica" in line for line in assumed)
    warned = [line for line in log.get("warnings") or [] if not (one_cache and str(line).startswith("no replica"))]
    assumed += [plain(line) for line in [*(log.get("derived") or []), *warned]]
    assumed = [sentence(line.removeprefix("node: ")) for line in assumed]
    parts: list[Part] = [Items(tuple(dict.fromkeys(assumed))), _rows(log)]
    opened = [plain(line) for line in log.get("cannot_tell") or []]
    if log.get("missing"):
        parts.append(
            Items(("Columns this log does not have: " + ", ".join(plain(name) for name in log["missing"]) + ".",))
        )
    parts.append(
        Items(tuple(f"Cannot tell: {line}" for line in opened) or ("Nothing is left open by missing columns.",))
    )
    return Section("quality", "Assumptions and data quality", tuple(parts))


def sentence(line: str) -> str:
    """A remark as a sentence: a capital first, a full stop last; a column's name that opens it keeps its spelling."""
    first = line.split(" ")[0]
    line = line if "_" in first or first.endswith(":") or not line else line[0].upper() + line[1:]
    return line if line.endswith((".", "!", "?")) else f"{line}."


def _settings_lines(settings: Row) -> list[str]:
    ttl, minimum = settings.get("ttl_seconds"), settings.get("minimum_tokens")
    block = settings.get("block_tokens")
    origin = f" ({plain(settings['capacity_origin'])})" if settings.get("capacity_origin") else ""
    lines = [
        f"Budget of the tier: {numbers.count(settings.get('capacity_tokens'))} tokens{origin}.",
        f"Tier mode {plain(settings.get('tier_mode') or numbers.NOT_FOUND)}; "
        + (f"entries expire {numbers.seconds(ttl)} after their last use starts." if ttl else "entries do not expire."),
    ]
    if block and block > 1:
        lines.append(f"Prefixes are rounded down to full blocks of {numbers.count(block)} tokens.")
    if minimum:
        lines.append(f"Prefixes shorter than {numbers.count(minimum)} tokens are not cached.")
    if settings.get("provider_rule"):
        lines.append(f"Provider rules: {written(settings['provider_rule'])}.")
    return lines


def _rows(log: Row) -> Table:
    rejected = log.get("rejected") or {}
    lines: list[tuple[str, str]] = [
        ("Rows read", numbers.count(log.get("rows"))),
        ("Rows used", numbers.count(log.get("kept", log.get("requests")))),
    ]
    lines += [(f"Rejected: {plain(reason)}", numbers.count(number)) for reason, number in rejected.items()]
    lines += [] if rejected else [("Rejected", "0")]
    return Table("rows", "Rows of the log", ("Rows", "Number"), tuple(lines))


def words() -> Section:
    """The words a reader needs, from the one dictionary."""
    pairs = tuple((terms.TERMS[name].title, terms.TERMS[name].sentence) for name in WORDS if name in terms.TERMS)
    return Section("words", "Words used here", (Words(pairs),))


def footer(results: Row) -> Words:
    """Where the figures come from and how to make them again."""
    log, money, note = (pick.get(results, key, {}) for key in ("log", "money", "footer"))
    parameters = pick.get(results, "parameters", {})
    set_ones = ", ".join(
        f"{plain(name)}={_parameter(value)}" for name, value in parameters.items() if value not in (None, {}, [])
    )
    sheet = " ".join(plain(money[key]) for key in ("price_version", "lock_date") if money.get(key))
    told = f"{sheet}, {money.get('currency') or 'USD'}, {plain(money.get('label') or numbers.NOT_FOUND)}"
    files = ", ".join(plain(name).rsplit("/", 1)[-1] for name in (log.get("files") or [])[:5])
    pairs = [
        (
            "Log",
            f"sha256 {plain(log.get('sha256') or numbers.NOT_FOUND)} · {numbers.count(log.get('rows'))} rows"
            + (f" · {files}" if files else ""),
        ),
        ("Kit", plain(results.get("kit_version") or note.get("kit_version") or numbers.NOT_FOUND)),
        ("Parameters", set_ones or "defaults"),
        ("Prices", told if sheet else "none used"),
        ("Reproduce", plain(note.get("command") or numbers.NOT_FOUND)),
    ]
    return Words(tuple(pairs))


def _parameter(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "+".join(plain(item) for item in value)
    return plain(value)
