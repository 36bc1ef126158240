"""Length times count against length alone: evict by length only where the longest keys are also the least reused."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from kit.reuse.concentration import share
from kit.reuse.cuts import Keys, cut_keys
from kit.reuse.dropping import dropped, rankings
from kit.reuse.resample import interval
from kit.reuse.trace import Ints, Trace, highest_marked, read_trace

SYSTEM_TYPES = ("system", "tool_schema", "tools")
SYSTEM_SESSION_SHARE = 0.05
SYSTEM_SESSIONS = 3
SYSTEM_REQUEST_SHARE = 0.01


def _standard_ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    ranks = rankdata(values)
    ranks -= ranks.mean()
    return ranks / (ranks.std() or np.nan)


def rank_agreement(one: NDArray[Any], other: NDArray[Any]) -> tuple[float | None, dict[str, float] | None]:
    """Rank correlation with average ranks for ties, and its 95 % interval; None where one side never varies.

    The interval is the delta method over keys: the spread of each key's influence on the correlation.
    """
    if len(one) < 3:
        return None, None
    a, b = _standard_ranks(one), _standard_ranks(other)
    rank = float(a @ b) / len(a)
    if np.isnan(rank):
        return None, None
    reach = 1.96 * float((a * b - rank * (a * a + b * b) / 2).std()) / np.sqrt(len(a))
    return rank, interval(max(-1.0, rank - reach), min(1.0, rank + reach))


def spearman(one: NDArray[Any], other: NDArray[Any]) -> float | None:
    """Rank correlation with average ranks for ties; None where one side never varies."""
    return rank_agreement(one, other)[0]


def _sessions_of(trace: Trace, keys: Keys) -> Ints:
    """Distinct sessions per key."""
    known = (keys.of_request >= 0) & (trace.session >= 0)
    pairs = np.unique(keys.of_request[known] * (int(trace.session.max(initial=0)) + 1) + trace.session[known])
    return np.bincount(pairs // (int(trace.session.max(initial=0)) + 1), minlength=keys.count)


def system_keys(trace: Trace, keys: Keys) -> tuple[NDArray[np.bool_], str]:
    """Per key: does it look like a system prompt or tool schema, and the rule that was used to tell."""
    system = [code for code, name in enumerate(trace.type_names) if name in SYSTEM_TYPES]
    if system:
        root = highest_marked(trace.parent, trace.depth == 0)
        is_system = np.isin(trace.token_type[root], system)
        flag = np.zeros(keys.count, dtype=bool)
        whole = trace.path_tokens[keys.credit_node] <= 2 * trace.tokens[root[keys.credit_node]]
        flag[keys.credit_key[is_system[keys.credit_node] & whole]] = True
        return flag, "its first piece is of type " + " or ".join(SYSTEM_TYPES) + " and at least half of it"
    sessions = int(trace.session.max(initial=-1)) + 1
    if trace.has_sessions and sessions:
        least = max(SYSTEM_SESSIONS, SYSTEM_SESSION_SHARE * sessions)
        return _sessions_of(trace, keys) >= least, (
            f"no token types in the log: seen in {SYSTEM_SESSION_SHARE:.0%} of sessions and {SYSTEM_SESSIONS} or more"
        )
    least = max(SYSTEM_SESSIONS, SYSTEM_REQUEST_SHARE * trace.requests)
    return keys.requests >= least, f"no token types or sessions in the log: {SYSTEM_REQUEST_SHARE:.0%} of requests"


def _longest(trace: Trace, keys: Keys, order: Ints, tenth: float) -> dict[str, Any]:
    longest = order[: max(1, int(np.ceil(round(keys.count * tenth, 9))))]
    system, rule = system_keys(trace, keys)
    value = keys.prefix_tokens * keys.holders
    return {
        "keys": len(longest),
        "min_prefix_tokens": int(keys.prefix_tokens[longest].min()),
        "requests_share": share(keys.requests[longest].sum(), trace.requests),
        "one_shot_share": share((~keys.reused[longest]).sum(), len(longest)),
        "value_share": share(value[longest].sum(), value.sum()),
        "holds_system_key": bool(system[longest].any()),
        "system_key_rule": rule,
    }


def _sentence(count: float | None, longest: dict[str, Any]) -> str:
    """Length may only be evicted by where the longest keys are also the least reused; what holds here."""
    if count is None:
        return "All keys are alike in length or in use: length says nothing about reuse."
    said = f"The longest tenth of keys carries {longest['requests_share']:.1%} of requests"
    said += f", {longest['one_shot_share']:.0%} of it was used only once, and the rank correlation of length and use is"
    reading = "the longest keys are also less reused" if count < 0 else "the longest keys are not the least reused"
    return f"{said} {count:+.2f}: {reading}. Evict by length only where the longest are also the least reused."


def value_rank(log: Any, cut: str | None = None) -> dict[str, Any]:
    """Is a long key a valuable key? Rank correlations over all keys of the log, and a look at the longest tenth.

    ``spearman_length_value``: length against length x count; ``spearman_length_count``: length against count (count =
    requests that hold the key), both with an ``interval``. ``longest_tenth``: its share of requests, the share of its
    keys that nobody used again, whether a system prompt is among them (and how that was told). ``deciles``: longest
    first. ``rankings``: both orders side by side. ``dropped``: what is lost without the longest x % of keys.
    """
    trace = read_trace(log)
    keys = cut_keys(trace, cut)
    if keys is None or keys.count == 0:
        nothing = ("cut", "keys", "spearman_length_value", "spearman_length_count", "longest_tenth", "sentence")
        return {**dict.fromkeys(nothing), "interval": {}, "deciles": [], "rankings": {}, "dropped": []}
    order = np.lexsort((np.arange(keys.count), -keys.holders, -keys.prefix_tokens))
    value, value_interval = rank_agreement(keys.prefix_tokens, keys.prefix_tokens * keys.holders)
    count, count_interval = rank_agreement(keys.prefix_tokens, keys.holders)
    longest = _longest(trace, keys, order, 0.1)
    return {
        "cut": keys.cut,
        "keys": keys.count,
        "spearman_length_value": value,
        "spearman_length_count": count,
        "interval": {"spearman_length_value": value_interval, "spearman_length_count": count_interval},
        "longest_tenth": longest,
        "sentence": _sentence(count, longest),
        "deciles": _deciles(keys, order),
        "rankings": rankings(keys),
        "dropped": dropped(keys, order),
    }


def _deciles(keys: Keys, order: Ints) -> list[dict[str, Any]]:
    """Keys from longest to shortest in ten parts: one-shot share, requests, length."""
    if keys.count < 10:
        return []
    parts = np.array_split(order, 10)
    return [
        {
            "decile": number,
            "keys": len(part),
            "min_prefix_tokens": int(keys.prefix_tokens[part].min()),
            "max_prefix_tokens": int(keys.prefix_tokens[part].max()),
            "requests": int(keys.requests[part].sum()),
            "one_shot_share": share((~keys.reused[part]).sum(), len(part)),
        }
        for number, part in enumerate(parts, start=1)
    ]
