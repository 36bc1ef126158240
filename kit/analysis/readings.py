"""Readings: one sentence per question, with its numbers taken from the results, for notebooks and the command line.

Every function takes the results of an analysis and returns a Sentence. What the log cannot tell is said.
"""

from __future__ import annotations

from typing import Any

from kit import numbers
from kit.analysis.display import Sentence
from kit.analysis.lookup import at
from kit.report.retention import mixed

Results = dict[str, Any]
DECISION_ROW = {"assumption": "neutral", "window": "cold"}


def _plural(n: int, one: str) -> str:
    return f"{numbers.count(n)} {one}" if n == 1 else f"{numbers.count(n)} {one}s"


def rows(results: Results) -> Sentence:
    """Rows read, kept and rejected, with the reasons."""
    log = results["log"]
    rejected = sum(log["rejected"].values())
    why = "; ".join(f"{numbers.count(n)} {reason}" for reason, n in log["rejected"].items())
    tail = f": {why}" if why else ""
    return Sentence(
        f"{numbers.count(log['kept'])} of {numbers.count(log['rows'])} rows are kept and "
        f"{numbers.count(rejected)} are rejected{tail}."
    )


def span(results: Results) -> Sentence:
    """Days, requests and sessions of the log."""
    log = results["log"]
    sessions = _plural(log["sessions"], "session") if log["sessions"] is not None else "no sessions named"
    return Sentence(
        f"The log touches {_plural(log['days'], 'calendar day')} (UTC), {_day(log['start'])} to {_day(log['end'])}, "
        f"with {_plural(log['requests'], 'request')} and {sessions}."
    )


def _day(moment: str | None) -> str:
    return moment[:16].replace("T", " ") if moment else numbers.NOT_FOUND


def cannot_tell(results: Results) -> Sentence:
    """What the log leaves open."""
    open_questions = results["log"]["cannot_tell"]
    if not open_questions:
        return Sentence("This log answers every question of the kit.")
    return Sentence("This log cannot tell: " + "; ".join(str(q) for q in open_questions) + ".")


def fit_to_decide(results: Results) -> Sentence:
    """Whether row 0 of the decision table lets the log decide."""
    first = next(row for row in results["decision"]["trail"] if row["rule"] == 0)
    if first["outcome"] == "fires":
        return Sentence(f"**This log is not enough to decide on:** {_text(first['measured'])}.")
    return Sentence(f"**This log is fit to decide on:** {_text(first['measured'])}.")


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key.replace('_', ' ')} {_text(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(_text(inner) for inner in value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return numbers.count(value) if isinstance(value, int) and not isinstance(value, bool) else str(value)


def concentration(results: Results) -> Sentence:
    """What the top keys carry."""
    found = results["concentration"]
    if found["request_share"] is None:
        return Sentence("This log cannot tell how concentrated reuse is: it has no prefix identity.")
    return Sentence(
        f"The top {numbers.percent(found['top_fraction'], 0)} of keys ({_plural(found['top_count'], 'key')}) carry "
        f"{numbers.percent(found['request_share'])} of requests and {numbers.percent(found['token_share'])} of "
        f"reusable tokens. {found['cut_sentence']}"
    )


def rotation(results: Results) -> Sentence:
    """Whether yesterday's top set is today's."""
    median = results["rotation"]["median"]
    if median is None:
        return Sentence("This log cannot tell whether the top set stays: it needs two days with reused keys.")
    return Sentence(f"From one day to the next, {numbers.percent(median)} of the top set stays (median over days).")


def value_rank(results: Results) -> Sentence:
    """Whether long keys are valuable keys."""
    found = results["value_rank"]
    count, tenth = found["spearman_length_count"], found["longest_tenth"]
    if count is None or not tenth:
        return Sentence("This log cannot tell whether long keys are valuable keys.")
    return Sentence(
        f"Length and count rank with {numbers.signed(count, 2)} (Spearman), length and length x count with "
        f"{numbers.signed(found['spearman_length_value'], 2)}; of the longest tenth of keys "
        f"{numbers.percent(tenth['one_shot_share'])} are used once."
    )


def reuse(results: Results) -> Sentence:
    """One line on skew and on the long keys."""
    found, tenth = results["concentration"], results["value_rank"]["longest_tenth"]
    if found["request_share"] is None or not tenth:
        return Sentence("**The log does not say how prefixes are reused.**")
    skew = "is skewed" if found["request_share"] >= 0.5 else "is spread over many keys"
    long_keys = "mostly used once" if tenth["one_shot_share"] >= 0.8 else "reused like the others"
    return Sentence(f"**Reuse {skew}, and the longest keys are {long_keys}.**")


def gaps(results: Results) -> Sentence:
    """Median times to the next turn, by what triggered it."""
    told = [
        f"{numbers.seconds(row['median_seconds'])} after a {row['trigger']} ({numbers.count(row['n'])} gaps)"
        for row in results["inter_turn"]
        if row["clock"] == "start_to_start"
        and row["session_type"] in (None, "all")
        and row["trigger"] in ("person", "tool")
    ]
    every = _all_gaps(results)
    if every is None:
        return Sentence("This log cannot tell how long the next turn takes: it has no sessions or no clock.")
    start = f"From start to start the next turn comes after {numbers.seconds(every['median_seconds'])} (median)"
    return Sentence(f"{start}: {', '.join(told)}." if told else f"{start}, over {_plural(every['n'], 'gap')}.")


def _all_gaps(results: Results) -> dict[str, Any] | None:
    found = [row for row in results["inter_turn"] if row["clock"] == "start_to_start" and row["n"]]
    every = [row for row in found if row["session_type"] in (None, "all") and row["trigger"] in (None, "all")]
    return (every or found or [None])[0]


def fits(results: Results) -> Sentence:
    """Whether one log-normal describes all gaps."""
    every = _all_gaps(results)
    if every is None or every.get("ks") is None:
        return Sentence("There are too few gaps to fit a distribution.")
    return Sentence(
        f"One log-normal over all gaps has mu {every['mu']:.2f} and sigma {every['sigma']:.2f} (log seconds) and "
        f"is off by at most {numbers.percent(every['ks'])} of gaps (Kolmogorov-Smirnov distance)."
    )


def expiry(results: Results) -> Sentence:
    """How many gaps outlast the cache's lifetime."""
    ttl = results["settings"]["ttl_seconds"]
    share = results["settings"].get("reuse_gap_share_over_ttl")
    if ttl is None:
        return Sentence("**Entries do not expire here**, so no gap is too long.")
    if share is None:
        return Sentence(f"**The log cannot tell** how many gaps outlast {numbers.seconds(ttl)}.")
    return Sentence(
        f"**{numbers.percent(share)} of reused tokens come back later than {numbers.seconds(ttl)}**, "
        "after the entry has expired."
    )


def _actual(results: Results, policy: str) -> dict[str, Any] | None:
    return at(results["replay"], policy=policy, capacity_label="actual", **DECISION_ROW)


def _title(results: Results, policy: str) -> str:
    return next((str(p["title"]) for p in results["policies"] if p["name"] == policy), policy)


def budget(results: Results) -> Sentence:
    """The budget under study and where it comes from."""
    settings = results["settings"]
    if settings["capacity_tokens"] is None:
        return Sentence(f"There is no budget: {_why_not(results)}.")
    return Sentence(
        f"The budget is {numbers.count(settings['capacity_tokens'])} tokens ({settings['capacity_origin']}), "
        f"in blocks of {_plural(settings['block_tokens'], 'token')}."
    )


def _why_not(results: Results) -> str:
    """Why LRU was not replayed at the budget."""
    origin = str(results["settings"]["capacity_origin"])
    return origin.removeprefix("none: ") if origin.startswith("none: ") else "LRU was not replayed"


def bounds(results: Results) -> Sentence:
    """LRU between nothing and the best possible."""
    lru, ceiling = _actual(results, "lru"), results["bounds"]["ceiling"]
    if lru is None:
        return Sentence(f"There is nothing to compare LRU with: {_why_not(results)}.")
    best = at(results["bounds"]["optimal"], capacity_tokens=lru["capacity_tokens"])
    kind = "the optimum" if best and best.get("exact") else "a bound on the optimum"
    middle = f", {kind} {numbers.percent(best['hit_token_ratio'], 2)}" if best else ""
    return Sentence(
        f"LRU finds {numbers.percent(lru['hit_token_ratio'], 2)} of input tokens cached{middle}, "
        f"a cache without limit {numbers.percent(ceiling['hit_token_ratio'], 2)}."
    )


def best(results: Results) -> Sentence:
    """The policy that keeps most at the budget, against LRU; those that keep exactly what LRU keeps are ties."""
    online = [row for row in results["replay"] if row["capacity_label"] == "actual" and _is_decision_row(row)]
    lru = _actual(results, "lru")
    others = [row for row in online if row["policy"] != "lru"]
    if lru is None or lru["hit_token_ratio"] is None:
        return Sentence(f"**There is nothing to compare: {_why_not(results)}.**")
    if not others:
        return Sentence("**There is nothing to compare: only LRU was replayed.**")
    top = max(others, key=lambda row: (row["hit_tokens"], row["policy"]))
    if top["hit_tokens"] <= lru["hit_tokens"]:
        equal = [_title(results, row["policy"]) for row in others if row["hit_tokens"] == lru["hit_tokens"]]
        same = f"; {', '.join(equal)} {'keep' if len(equal) > 1 else 'keeps'} exactly as much" if equal else ""
        tried = f"None of the {len(others)} other policies tried keeps"
        lead = (
            tried
            if len(others) > 1
            else f"{_title(results, top['policy'])}, the only other policy tried, does not keep"
        )
        return Sentence(f"**{lead} more than LRU at this budget{same}.**")
    gain = top["hit_token_ratio"] - lru["hit_token_ratio"]
    return Sentence(
        f"**{_title(results, top['policy'])} keeps most: {numbers.points(gain)} of input tokens over LRU.**"
    )


def _is_decision_row(row: dict[str, Any]) -> bool:
    return all(row[name] == value for name, value in DECISION_ROW.items())


def doubling(results: Results) -> Sentence:
    """What twice the budget would bring to LRU."""
    rows_ = {
        row["capacity_label"]: row for row in results["replay"] if row["policy"] == "lru" and _is_decision_row(row)
    }
    if "actual" not in rows_:
        return Sentence(f"What more room would bring cannot be told: {_why_not(results)}.")
    if "double" not in rows_:
        return Sentence("What more room would bring cannot be told: double the budget was not replayed.")
    if not rows_["actual"]["hit_tokens"]:
        return Sentence("LRU finds nothing cached at this budget, so a larger one has nothing to grow from.")
    lift = rows_["double"]["hit_tokens"] / rows_["actual"]["hit_tokens"] - 1
    return Sentence(f"Twice the budget lifts LRU's hit tokens by {numbers.percent(lift)}.")


def fleet(results: Results) -> Sentence:
    """What routing keeps over several replicas, or that one cache is assumed."""
    found = results["fleet"]
    if not found:
        return Sentence("One cache is assumed: the log names no replicas and `replicas` is not given.")
    told = ", ".join(f"{row['title'].lower()} {numbers.percent(row['hit_token_ratio'])}" for row in found["rows"])
    return Sentence(f"{found['sentence']} All of them: {told}.")


def cache_life(results: Results) -> Sentence:
    """What LRU writes for nothing, at what age it evicts, and what time it bridges."""
    row = at(results["cache_life"], policy="lru")
    if row is None:
        return Sentence("Nothing was replayed under LRU, so the life of cached tokens cannot be told.")
    unread = numbers.percent(row["evicted_unused_share"]) if row["evicted_unused_share"] is not None else "none"
    age = row["median_eviction_age"]
    when = f"{numbers.seconds(age['from_seconds'])} to {numbers.seconds(age['to_seconds'])}" if age else None
    evicted = f"what it evicts has been unused for {when} (median)" if when else "it evicts nothing"
    span = row["median_reuse_span"]
    found = ("what it finds was last used "
             f"{numbers.seconds(span['from_seconds'])} to {numbers.seconds(span['to_seconds'])} before (median)"
             if span else "it finds nothing")  # fmt: skip
    return Sentence(f"Of the tokens LRU writes, {unread} leave unread; {evicted}, {found}.")


def breaks(results: Results) -> Sentence:
    """How often a request stops repeating the one before it, and whether the prompt or the room is to blame."""
    found = results["prefix_breaks"]
    if found and found["basis"] is None:
        return Sentence("Without sessions or chains, requests that follow each other are different users: not told.")
    if not found or not found["pairs"]:
        return Sentence("This log has no consecutive prompts to compare.")
    said = (
        f"**{numbers.count(found['broken'])} of {numbers.count(found['pairs'])} consecutive requests do not extend the "
        f"one before in their chain; {numbers.count(found['lost_tokens'])} tokens stood behind the break.**"
    )
    if not found["by_type"]:
        return Sentence(said)
    top = found["by_type"][0]
    cure = {
        "new": "what follows there is new each time, so the prompt is what to change",
        "removed": "it was taken out of the context (cleared or summed up), so the prompt's layout is not to blame",
        "again": "what follows there had been sent before, so only room or time would have kept it",
        "cut": "the prompt was cut short there",
    }[top["content"]]
    return Sentence(f"{said} Most of it where {top['token_type'] or 'an unnamed part'} begins: {cure}.")


def user_policy(results: Results, tally: Any) -> Sentence:
    """How a policy from a notebook cell compares with LRU at the same budget; tally None: nothing could be replayed."""
    if tally is None:
        return Sentence("This log has no prefix identity, so no policy can be replayed on it.")
    own, lru = tally.total("cold"), _actual(results, "lru")
    found = numbers.percent(own["hit_tokens"] / own["input_tokens"], 2)
    against = f"; LRU finds {numbers.percent(lru['hit_token_ratio'], 2)}" if lru else ""
    return Sentence(f"The policy of this cell finds {found} of input tokens cached{against}.")


def bill(results: Results) -> Sentence:
    """The input bill with LRU at the budget, and without a cache."""
    lru, money = _actual(results, "lru"), results["money"]
    if lru is None:
        return Sentence(f"There is no bill to state: {_why_not(results)}.")
    if lru["cost"] is None:
        why = (
            "you run the model, a miss is prefill work"
            if results["settings"]["tier_mode"] == "engine"
            else "prices not found"
        )
        missed = numbers.count(sum(lru["missed"].values()))
        return Sentence(f"There is no bill ({why}); with LRU {missed} input tokens are computed again.")
    cost = numbers.money(lru["cost"], money["currency"], detail=True)
    each = numbers.unit_price(lru["cost_per_request"], money["currency"])
    return Sentence(f"With LRU the input side costs {cost} in this log, {each} per request ({money['label']} prices).")


def provider(results: Results) -> Sentence:
    """Whether the simulated reads agree with the ones the provider reported."""
    found = results["provider"]
    reported, simulated = found.get("reported"), found.get("simulated")
    if not reported or reported.get("read_tokens") is None or not simulated:
        return Sentence(
            "The log does not report what the provider read from its cache, so there is nothing to check against."
        )
    off = simulated["read_tokens"] / reported["read_tokens"] - 1 if reported["read_tokens"] else None
    return Sentence(
        f"The provider reported {numbers.count(reported['read_tokens'])} tokens read; the replay gives "
        f"{numbers.count(simulated['read_tokens'])} ({numbers.percent(off)} off)."
    )


def verdict(results: Results) -> Sentence:
    """The verdict sentence, word for word as in the report."""
    return Sentence(f"**{results['decision']['sentence']}**")


def rule(results: Results) -> Sentence:
    """The rule that fired, and the provisional one where the log is too small."""
    decision = results["decision"]
    fired = next(row for row in decision["trail"] if row["rule"] == decision["rule"])
    text = f"Rule {decision['rule']} fires: {fired['question']}"
    provisional = decision["provisional"]
    if provisional:
        title = _title(results, provisional["policy"])
        text += f" Without that row, rule {provisional['rule']} would fire and say {title}; that is provisional."
    return Sentence(text)


def retention(results: Results) -> Sentence:
    """Which retention would have been cheapest, and which mix of them costs less again."""
    return Sentence(" ".join(filter(None, (results["ttl_verdict"]["sentence"], mixed(results)))))


def sensitivity(results: Results) -> Sentence:
    """What would change the answer, nearest first; plainly said where nothing tried does."""
    found = results["decision"].get("sensitivity")
    if not found or not found["map"]:
        return Sentence("Nothing else was tried on this log.")
    if _actual(results, "lru") is None:
        return Sentence(f"What would change the answer cannot be told: {_why_not(results)}.")
    flips = [row for row in found["map"] if row["flips"]]
    tried = _plural(len(found["map"]), "variation")
    if not flips:
        return Sentence(f"None of {tried} of budget, lifetime, price or assumption changes the policy.")
    told = "; ".join(f"{row['words']} the answer is {_title(results, row['policy'])}" for row in flips[:3])
    return Sentence(f"{numbers.count(len(flips))} of {tried} change the policy: {told}.")


def standing(results: Results) -> Sentence:
    """How sure the recommendation is against the other policies, and what being wrong costs."""
    told = results["decision"].get("firmness")
    if told is None:
        return Sentence("How likely the recommended policy is the best cannot be told on this log.")
    return Sentence(f"{told}.")
