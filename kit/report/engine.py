"""For those who run the cache: how sampled figures are, what routing wins, what becomes of cached tokens."""

from __future__ import annotations

from typing import Any

from kit import numbers
from kit.charts import pick
from kit.report.table import Part, Section, Table, Text, plain

Row = dict[str, Any]
SAMPLE_OFF = 0.05  # of the input tokens


def engine(results: Row) -> Section:
    """The sample's error, the fleet route by route, and how long entries live under every policy."""
    told = (sample_sentence(results), fleet_sentence(results), overlap_sentence(results))
    said = [Text(words) for words in told if words]
    every = (sample_errors(results), fleet(results), headroom(results), cache_life(results))
    tables = [table for table in every if table]
    parts: tuple[Part, ...] = (*said, *tables)
    return Section("engine", "Replicas, and the life of cached tokens", parts, frozenset({"infra"}))


def sample_label(results: Row) -> str:
    """`, estimated from 10% of sessions` where figures come from a sample, else nothing."""
    sample = pick.get(results, "settings.sample")
    if not sample:
        return ""
    return f", estimated from {numbers.percent(sample.get('rate'), 0)} of {plain(sample.get('what'))}"


def budget_words(results: Row) -> str:
    """The budget in tokens, and in GiB where the size of a token in memory is known."""
    gib = pick.get(results, "settings.capacity_gib")
    beside = f" ({numbers.decimal(gib, 2)} GiB)" if gib is not None else ""
    return f"{numbers.count(pick.actual_capacity(results))} tokens{beside}"


def with_seeds(row: Row) -> str:
    """The share of tokens found by one row; policies that draw also say lowest and highest over their seeds."""
    found, spread = numbers.percent(row.get("hit_token_ratio")), row.get("seed_spread")
    if not spread:
        return found
    ends = numbers.span(numbers.percent(spread.get("low"), 2), numbers.percent(spread.get("high"), 2))
    return numbers.Written(f"{found} (over seeds {ends})", row.get("hit_token_ratio"), numbers.SHARE)


def sample_sentence(results: Row) -> str:
    """What was sampled, why so much, and what that means; empty for the whole log."""
    sample = pick.get(results, "settings.sample")
    if not sample:
        return ""
    kept, whole = numbers.count(sample.get("requests")), numbers.count(sample.get("requests_of_log"))
    return (
        "Figures of other policies than LRU are estimates: LRU on the whole log, and the difference to it on "
        f"{kept} of {whole} requests, {numbers.percent(sample.get('rate'), 0)} of {plain(sample.get('what'))} "
        f"({plain(sample.get('reason'))}), at the same share of the budget."
    )


def sample_warning(results: Row) -> str:
    """A warning where the sample is far off on LRU at the budget under study, which is known exactly; else empty."""
    rows, budget = pick.get(results, "settings.sample.lru_errors", []), pick.actual_capacity(results)
    off = next((row.get("hit_token_ratio") for row in rows if row.get("capacity_tokens") == budget), None)
    if off is None or abs(off) <= SAMPLE_OFF:
        return ""
    longest = pick.get(results, "settings.sample.longest_prefix_tokens") or 0
    cramped = longest > (budget or 0) * pick.get(results, "settings.sample.rate")
    return (
        f"Other policies than LRU are estimated, and the sample is {numbers.points(abs(off)).lstrip('+')} off on LRU "
        "at this budget. That error is taken off, but theirs may be another: take what sets them apart from LRU as "
        "rough, or replay a larger share."
        + (f" The sample's share of the budget cannot hold the longest prefix ({numbers.tokens(longest)}), which alone "
           "makes policies differ otherwise than on the whole log." if cramped else "")
    )  # fmt: skip


def sample_errors(results: Row) -> Table | None:
    """By how much the sample is off on LRU at every budget."""
    rows = pick.get(results, "settings.sample.lru_errors", [])
    if not rows:
        return None
    lines = tuple(
        (numbers.tokens(row.get("capacity_tokens")), numbers.points(row.get("hit_token_ratio"), 2))
        for row in rows
    )
    note = "Tokens found cached with LRU: the sample less the whole log. This is taken off every estimate; others err "
    note += "alike, not equally."
    return Table("sample_errors", "What the sample gets wrong", ("Budget", "Error on LRU"), lines, note)


def fleet_sentence(results: Row) -> str:
    """What cache-aware routing wins; empty where one cache is assumed."""
    return plain(pick.get(results, "fleet.sentence") or "", longest=1000)


def overlap_sentence(results: Row) -> str:
    """What running requests hold; empty where requests are taken one after the other."""
    return plain(pick.get(results, "overlap.sentence") or "", longest=1000)


def fleet(results: Row) -> Table | None:
    """What every route keeps with the same replicas and budgets."""
    found = pick.get(results, "fleet")
    if not found:
        return None
    currency = pick.get(results, "money.currency") or "USD"
    lines: tuple[tuple[str, ...], ...] = tuple(
        (
            plain(row.get("title")),
            numbers.percent(row.get("hit_token_ratio")),
            numbers.short(row.get("hit_tokens")),
            *_difference(row),
            _busiest(row),
            numbers.money(row.get("cost"), currency),
        )
        for row in found.get("rows", [])
    )
    base = next((row.get("title") for row in found["rows"] if row.get("routing") == found.get("base")), "the base")
    head: tuple[str, ...] = (
        "Routing", "Tokens found cached", "Hit tokens", "Change", "95% interval", "Requests on the busiest",
        f"Input bill ({currency})",
    )  # fmt: skip
    if all(row.get("cost") is None for row in found.get("rows", [])):
        head, lines = head[:-1], tuple(line[:-1] for line in lines)
    size, total = (numbers.count(found.get(name)) for name in ("capacity_tokens", "total_capacity_tokens"))
    left = "".join(
        f" Left out, {plain(row.get('routing'))}: {plain(row.get('reason'))}." for row in found.get("left_out", [])
    )
    note = f"Change against: {plain(base).lower()}. LRU, all requests, {size} tokens each, {total} together.{left}"
    caption = f"{numbers.count(found.get('replicas'))} replicas, by how requests are routed"
    return Table("fleet", caption, head, lines, note, narrow="scroll")


def _busiest(row: Row) -> str:
    found = row.get("busiest_request_share")
    return numbers.ABSENT if found is None else numbers.percent(found)


def _difference(row: Row) -> tuple[str, str]:
    told = (row.get("interval") or {}).get("hit_token_ratio")
    if not told:
        return numbers.ABSENT, numbers.ABSENT
    band = numbers.span(numbers.points(told.get("low")), numbers.points(told.get("high")))
    return numbers.points(told.get("value")), band


def headroom(results: Row) -> Table | None:
    """What a better policy, and what only more room could win at every budget."""
    rows = pick.get(results, "bounds.gaps", [])
    if not rows:
        return None
    lines = tuple(
        (
            numbers.tokens(row.get("capacity_tokens")),
            numbers.points(row.get("policy_gap")),
            numbers.points(row.get("best_policy_gap")),
            pick.title_of(results, str(row.get("best_policy"))),
            numbers.points(row.get("room_gap")),
        )
        for row in rows
    )
    head = ("Budget", "Optimum less LRU", "Optimum less the best policy", "Best policy", "Ceiling less optimum")
    note = "The first two only a policy can close, the last only room or time to live." + (
        "" if all(row.get("exact") for row in rows)
        else " The optimum is an upper bound here: the first two are at most, the last is at least so large."
    )  # fmt: skip
    caption = f"Headroom at every budget, points of input tokens{sample_label(results)}"
    return Table("headroom", caption, head, lines, note, text_columns=frozenset({0, 3}), narrow="scroll")


def cache_life(results: Row) -> Table | None:
    """What is written and never read, how old entries are when they are pushed out, how deep hits reach."""
    rows = pick.get(results, "cache_life", [])
    if not rows:
        return None
    lines = tuple(
        (
            pick.title_of(results, str(row.get("policy"))),
            numbers.short(row.get("written_tokens")),
            numbers.percent(row.get("evicted_unused_share")),
            numbers.short(row.get("evicted_tokens")),
            _age(row.get("median_eviction_age")),
            _age(row.get("median_reuse_span")),
            _deep(row.get("hit_depth") or []),
            numbers.short(row.get("resident_tokens_mean")),
        )
        for row in rows
    )
    head = (
        "Policy", "Written tokens", "Left unread", "Evicted tokens", "Median age when evicted",
        "Median span to reuse", "Hits on 9/10 of the prompt or more", "Held on average",
    )  # fmt: skip
    note = (
        "Left unread: share of written tokens that were pushed out or expired before anyone read them. Age: since the "
        "last use; span: from the last use to the one that finds them there; a use is dated by its request's start; "
        "weighted by tokens. All ages, spans and depths, and hits hour by hour, are in results.json."
    )
    caption = f"The life of cached tokens at {budget_words(results)}{sample_label(results)}"
    return Table("cache_life", caption, head, lines, note, narrow="scroll")


def _age(step: Row | None) -> str:
    """A doubling step of seconds in words."""
    if not step:
        return numbers.ABSENT
    return f"{numbers.seconds(step.get('from_seconds'))} to {numbers.seconds(step.get('to_seconds'))}"


def _deep(rows: list[Row]) -> str:
    """Share of hit requests whose hit reached nine tenths of the prompt."""
    total = sum(row.get("requests") or 0 for row in rows)
    deep = sum(row.get("requests") or 0 for row in rows if (row.get("from_share") or 0) >= 0.9)
    return numbers.percent(deep / total) if total else numbers.ABSENT
