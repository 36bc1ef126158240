"""What the provider reported and billed, summed from the log, and the setting a log asks for by itself."""

from __future__ import annotations

from typing import Any

from kit.numbers import percent
from kit.prices import Rate, Rates, rate_sums
from kit.providers.rules import Rule, rule_for, rule_named

CLASSES = ("uncached_tokens", "read_tokens", "write_tokens", "write_long_tokens")
PRICE_OF_CLASS = {
    "uncached_tokens": "input",
    "read_tokens": "read",
    "write_tokens": "write_short",
    "write_long_tokens": "write_long",
}
PER_MILLION = 1e6


def class_cost(rate: Rate, tokens: dict[str, int]) -> tuple[float | None, int]:
    """Money for tokens by class at one rate, and how many of those tokens had a price (None money when none had)."""
    priced = [(count, getattr(rate, PRICE_OF_CLASS[name])) for name, count in tokens.items() if count]
    known = [(count, price) for count, price in priced if price is not None and rate.found]
    if priced and not known:
        return None, 0
    return sum(count * price for count, price in known) / PER_MILLION, sum(count for count, _ in known)


def reported(log: Any, rates: Rates | None = None) -> dict[str, Any]:
    """Tokens by class as the provider reported them, and their input and output cost by `rates`.

    Keys: requests (that carry cached-token figures), read_tokens, write_tokens, write_long_tokens, uncached_tokens,
    output_tokens, cost (input side), output_cost, currency, label, priced_token_share. A class the log never reports is
    None; a log without any cached-token figures gives all None. Output that is a streaming placeholder is left out.
    """
    sums = _class_sums(log, rates)
    result: dict[str, Any] = {"requests": sum(row["requests"] for row in sums)}
    for name in (*CLASSES, "output_tokens"):
        known = [row[name] for row in sums if row[name] is not None]
        result[name] = sum(known) if known else None
    if _placeholder_output(log):
        result["output_tokens"] = None
    result.update(_money(sums, rates, result["output_tokens"] is not None))
    return result


def _placeholder_output(log: Any) -> bool:
    return bool(getattr(getattr(log, "facts", None), "output_is_placeholder", False))


def _class_sums(log: Any, rates: Rates | None) -> list[dict[str, Any]]:
    """Per rate: integer sums of every class over the requests whose provider reported cached tokens."""
    told = "(q.read_tokens IS NOT NULL OR q.write_tokens IS NOT NULL OR q.write_long_tokens IS NOT NULL)"
    columns = f"count(*) FILTER ({told}) AS requests, " + ", ".join(
        f"(sum(q.{name}) FILTER ({told}))::BIGINT AS {name}" for name in (*CLASSES, "output_tokens")
    )
    if rates is None:
        return list(log.con.sql(f"SELECT 0 AS rate_id, {columns} FROM request q").pl().iter_rows(named=True))
    return rate_sums(log.con, rates.rate_of_request, columns)


def _money(sums: list[dict[str, Any]], rates: Rates | None, with_output: bool) -> dict[str, Any]:
    unknown = {"cost": None, "output_cost": None, "currency": None, "label": None, "priced_token_share": None}
    total = sum(row[name] or 0 for row in sums for name in CLASSES)
    if rates is None or not total:
        return unknown
    cost, output_cost, priced_tokens = 0.0, 0.0, 0
    for row in sums:
        rate = rates.rows[row["rate_id"]]
        money, tokens = class_cost(rate, {name: row[name] or 0 for name in CLASSES})
        cost += money or 0.0
        priced_tokens += tokens
        output_cost += (row["output_tokens"] or 0) * (rate.output or 0.0) / PER_MILLION
    if not priced_tokens:
        return {**unknown, "priced_token_share": 0.0}
    return {
        "cost": cost,
        "output_cost": output_cost if with_output else None,
        "currency": rates.currency,
        "label": rates.label,
        "priced_token_share": priced_tokens / total,
    }


def default_setting_facts(log: Any, provider_rule: str | None = None) -> dict[str, Any]:
    """The setting a log asks for when the user says nothing (provider known: mirror; unknown: engine, no TTL).

    Keys: tier_mode, provider, model (dominant by input tokens), token_share of that pair, rule (Rule), provider_rule,
    ttl_seconds, minimum_tokens, block_tokens, write_class, reasons (sentences for the report's assumptions).
    `provider_rule` names a rule by id where no model name can tell (an explicit cache); RuleError for an unknown one.
    """
    shares = log.con.sql(
        "SELECT provider, model, coalesce(sum(input_tokens), 0)::BIGINT AS tokens FROM request "
        "GROUP BY ALL ORDER BY tokens DESC, provider, model"
    ).fetchall()
    provider, model, tokens = shares[0] if shares else (None, None, 0)
    total = sum(row[2] for row in shares)
    rule = rule_for(provider, model) if provider_rule is None else rule_named(provider_rule, model)
    choice = rule.choice("short")
    known = rule.id is not None
    return {
        "tier_mode": "mirror" if known else "engine",
        "provider": provider,
        "model": model,
        "token_share": tokens / total if total else None,
        "rule": rule,
        "provider_rule": rule.id,
        "ttl_seconds": choice.seconds if choice else None,
        "minimum_tokens": rule.minimum_tokens or 0,
        "block_tokens": rule.block_tokens,
        "write_class": "short",
        "reasons": _reasons(rule, provider, model, tokens / total if total else 0.0),
    }


def _reasons(rule: Rule, provider: str | None, model: str | None, share: float) -> list[str]:
    name = " ".join(part for part in (provider, model) if part) or "no provider or model named"
    if rule.id is None:
        return [f"{name}: no published caching rule, so the log is read as an own engine without a TTL"]
    choice = rule.choice("short")
    ttl = f"{choice.name} ({choice.seconds} s)" if choice and choice.seconds else "not published"
    minimum = f"{rule.minimum_tokens:,} tokens" if rule.minimum_tokens else "not published"
    return [
        f"{percent(share)} of the input tokens are of {name}; its rule {rule.id} of {rule.as_of} is used for all",
        f"published TTL {ttl}, minimum prefix {minimum}",
    ]
