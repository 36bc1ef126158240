"""The decision table as data: ordered rules, their conditions, and every threshold in one place.

A rule is read top-down and the first that fires decides. Its origin says what the source text supports and what is a
judgement of this kit. Nothing here computes: `read.py` evaluates a condition, `verdict.py` walks the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Kind = Literal["share", "count", "factor", "correlation", "points", "is", "better", "distance"]
Compare = Literal[">=", "<=", "<", ">"]

THRESHOLDS: Mapping[str, float] = MappingProxyType(
    {
        "minimum_days": 7,  # row 0: UTC calendar days the log touches
        "minimum_requests": 5_000,  # row 0
        "minimum_reused_keys": 100,  # row 0: keys with at least two requests
        "maximum_rejected_share": 0.01,  # row 0: rows that could not be read
        "ceiling_share": 0.05,  # row 1: hit tokens of an unlimited cache over input tokens
        "expiring_gap_share": 0.50,  # row 2: token-weighted
        "saturated_share": 0.95,  # row 3: LRU over the ceiling
        "room_lift": 1.25,  # row 4: LRU at double over LRU at the budget
        "policy_gain_of_room": 0.50,  # row 4: best policy's gain over what doubling gains
        "session_type_token_share": 0.10,  # row 5: the second largest session type
        "multi_turn_share": 0.30,  # row 5
        "minimum_gaps": 100,  # row 5: gaps behind each fit
        "maximum_ks": 0.10,  # row 5: distance of the log-normal from the gaps
        "type_reuse_factor": 10.0,  # row 5: most over least reused token type
        "gain_points": 0.02,  # rows 5 and 9: rise of the hit-token ratio
        "hot_request_share": 0.50,  # rows 6 and 10: requests on the top keys
        "day_overlap": 0.50,  # rows 6 and 10: of one day's top keys with the next day's
        "scan_token_share": 0.30,  # row 7: worst hour
        "scan_loss_points": 0.05,  # row 7: LRU's fall in the hour after
        "length_correlation": -0.30,  # row 8: Spearman of length and request count
        "longest_one_shot_share": 0.80,  # row 8: longest tenth of keys
        "longest_request_share": 0.05,  # row 8
    }
)


@dataclass(frozen=True)
class Condition:
    """One test of a rule: the Evidence attribute `measure`, compared with the threshold of that name.

    `kind` says how the value is written and tested: "is" asks for True, "better" asks a Contrast, the others compare a
    number. `words` is a clause with {value}, `otherwise` replaces it where the condition is not met, `noun` names what
    is "not found" where it cannot be measured.
    """

    measure: str
    noun: str
    words: str
    kind: Kind = "share"
    compare: Compare = ">="
    threshold: str | None = None
    otherwise: str | None = None


@dataclass(frozen=True)
class Rule:
    """One row: fires when all its conditions hold (any of them where `any_of`), then recommends `policy`.

    `advice` is the imperative of the sentence, `because` the measures it quotes, `figure` what shows them in a report,
    `counts` whether it needs trustworthy frequency counters, `source` and `judgement` where it comes from.
    """

    number: int
    question: str
    conditions: tuple[Condition, ...]
    policy: str
    advice: str
    because: tuple[str, ...]
    figure: str
    source: str
    judgement: str
    any_of: bool = False
    counts: bool = False


BEST_ONLINE = "best_online"

RULES: tuple[Rule, ...] = (
    Rule(
        0,
        "Is the log too short, too small or too incomplete to decide?",
        (
            Condition(
                "days", "calendar days", "the log touches {value} calendar day{s} (UTC)", "count", "<", "minimum_days"
            ),
            Condition("requests", "requests", "it has {value} request{s}", "count", "<", "minimum_requests"),
            Condition(
                "reused_keys", "reused keys", "it has {value} reused key{s}", "count", "<", "minimum_reused_keys"
            ),
            Condition(
                "absent_count",
                "needed fields",
                "needed but missing: {absent}",
                "count",
                ">",
                None,
                "nothing needed is missing",
            ),
            Condition(
                "rejected_share",
                "rejected rows",
                "{value} of rows were rejected",
                "share",
                ">",
                "maximum_rejected_share",
            ),
        ),
        "lru",
        "Keep LRU at {budget} and collect more log",
        ("days", "requests", "reused_keys", "absent_count", "rejected_share"),
        "log",
        "a week of log; LRU where the pattern is unknown",
        "the counts of requests, reused keys and rejected rows",
        any_of=True,
    ),
    Rule(
        1,
        "Is there almost nothing to reuse, even without a limit?",
        (
            Condition(
                "ceiling_ratio", "ceiling", "the ceiling is {value} of input tokens", "share", "<", "ceiling_share"
            ),
        ),
        "lru",
        "Keep LRU at {budget} and fix the prompt layout, since no policy helps",
        ("ceiling_ratio",),
        "capacity_curve",
        "content that changes early in the prompt spoils every later token",
        "5 %",
    ),
    Rule(
        2,
        "Do most reuse gaps outlast the TTL?",
        (
            Condition(
                "expiring_gap_share",
                "reuse gaps against the TTL",
                "{value} of reused tokens come back after the TTL ({ttl})",
                "share",
                ">=",
                "expiring_gap_share",
            ),
        ),
        "lru",
        "Keep LRU at {budget} and change the TTL tier or keep prefixes alive",
        ("expiring_gap_share",),
        "inter_turn",
        "an entry that is not read again within the TTL is a write",
        "50 %",
    ),
    Rule(
        3,
        "Has LRU already reached the ceiling?",
        (
            Condition(
                "lru_of_ceiling",
                "LRU against the ceiling",
                "LRU reaches {value} of the ceiling",
                "share",
                ">=",
                "saturated_share",
            ),
        ),
        "lru",
        "Keep LRU at {budget}, since nothing is left to win",
        ("lru_of_ceiling",),
        "capacity_curve",
        "a curve flat in capacity, read against the ceiling",
        "95 %",
    ),
    Rule(
        4,
        "Is room short, rather than the policy wrong?",
        (
            Condition(
                "room_lift",
                "LRU at double the budget",
                "doubling the budget multiplies LRU's hit tokens by {value}",
                "factor",
                ">=",
                "room_lift",
            ),
            Condition(
                "policy_gain_of_room",
                "best online policy against double the budget",
                "the best online policy ({best}) gains {value} of what doubling gains",
                "share",
                "<",
                "policy_gain_of_room",
            ),
        ),
        "lru",
        "Keep LRU and buy capacity beyond {budget}",
        ("room_lift", "policy_gain_of_room"),
        "capacity_curve",
        "hit tokens that grow with capacity mean short of room",
        "25 % and half",
    ),
    Rule(
        5,
        "Typed, multi-turn traffic on your own engine that a typed policy serves better?",
        (
            Condition(
                "runs_engine",
                "who runs the model",
                "the model runs on your own engine",
                "is",
                otherwise="the model runs at a provider",
            ),
            Condition(
                "second_session_type_share",
                "session types",
                "the second largest session type has {value} of tokens",
                "share",
                ">=",
                "session_type_token_share",
            ),
            Condition(
                "multi_turn_share",
                "sessions with several turns",
                "{value} of sessions have several turns",
                "share",
                ">=",
                "multi_turn_share",
            ),
            Condition(
                "fewest_gaps",
                "gaps behind each fit",
                "the thinnest fit has {value} gaps",
                "count",
                ">=",
                "minimum_gaps",
            ),
            Condition(
                "log_normal_best",
                "gap fits",
                "a log-normal fits the gaps best",
                "is",
                otherwise="another distribution fits the gaps better than a log-normal",
            ),
            Condition(
                "worst_gap_ks",
                "distance of the gap fits",
                "the worst fit is {value} away (KS)",
                "distance",
                "<=",
                "maximum_ks",
            ),
            Condition(
                "type_reuse_factor",
                "reuse by token type",
                "reuse differs {value}-fold by token type",
                "factor",
                ">=",
                "type_reuse_factor",
            ),
            Condition("saecache", "SAECache-style replay", "{value}", "better"),
            Condition(
                "saecache_gain",
                "SAECache-style hit tokens",
                "its hit tokens change by {value} of input",
                "points",
                ">=",
                "gain_points",
            ),
        ),
        "saecache",
        "Switch to {title} at {budget}",
        ("saecache",),
        "inter_turn",
        "a published typed, session-aware policy",
        "every number; 30 % lies between a corpus where it lost and one where it won",
        counts=True,
    ),
    Rule(
        6,
        "Do a few lasting keys carry most requests, and does decayed LFU serve them better?",
        (
            Condition(
                "top_key_request_share",
                "requests on the top keys",
                "the top {top} of keys carry {value} of requests",
                "share",
                ">=",
                "hot_request_share",
            ),
            Condition(
                "day_overlap",
                "day-to-day overlap of the top keys",
                "{value} of a day's top keys return the next day",
                "share",
                ">=",
                "day_overlap",
            ),
            Condition("lfu_decay", "LFU with decay against LRU", "{value}", "better"),
        ),
        "lfu_decay",
        "Switch to {title} at {budget}",
        ("top_key_request_share", "lfu_decay"),
        "concentration",
        "stable and heavily skewed traffic; LFU must forget",
        "50 % for 'most', and the overlap",
        counts=True,
    ),
    Rule(
        7,
        "Do scans flush what LRU should keep, and does decayed LFU resist?",
        (
            Condition(
                "scan_token_share",
                "tokens in first-seen one-shot keys by hour",
                "the worst hour has {value} of tokens in first-seen one-shot keys",
                "share",
                ">=",
                "scan_token_share",
            ),
            Condition(
                "scan_lru_loss",
                "LRU's loss after a scan",
                "the hour after, LRU finds {value} of input less than usual",
                "share",
                ">=",
                "scan_loss_points",
            ),
            Condition("lfu_decay", "LFU with decay against LRU", "{value}", "better"),
        ),
        "lfu_decay",
        "Switch to {title} at {budget}",
        ("scan_token_share", "lfu_decay"),
        "scans",
        "a periodic scan destroys LRU, frequency resists it",
        "30 % and 5 points",
        counts=True,
    ),
    Rule(
        8,
        "Are the longest flat keys also the least reused, and is evicting them first cheaper at every budget?",
        (
            Condition(
                "flat_keys",
                "whether keys are flat",
                "keys are flat",
                "is",
                otherwise="keys are nested, so length is not the key's own",
            ),
            Condition(
                "spearman_length_count",
                "correlation of length and request count",
                "length and request count correlate at {value}",
                "correlation",
                "<=",
                "length_correlation",
            ),
            Condition(
                "longest_one_shot_share",
                "one-shot share of the longest tenth",
                "{value} of the longest tenth of keys are one-shot",
                "share",
                ">=",
                "longest_one_shot_share",
            ),
            Condition(
                "longest_request_share",
                "requests on the longest tenth",
                "they carry {value} of requests",
                "share",
                "<=",
                "longest_request_share",
            ),
            Condition(
                "system_keys_among_longest",
                "system keys among the longest",
                "{value} system keys are among them",
                "count",
                "<=",
                None,
                "{value} system keys are among them",
            ),
            Condition(
                "length_worst", "Length against LRU and LFU with decay at half, actual and double", "{value}", "better"
            ),
        ),
        "length",
        "Switch to {title} at {budget}",
        ("longest_one_shot_share", "length_worst"),
        "value_rank",
        "only where the longest entries are also the least reused",
        "every number",
    ),
    Rule(
        9,
        "Is some online policy better by replay alone?",
        (
            Condition("challenger", "online policies against LRU", "{value}", "better"),
            Condition(
                "challenger_gain",
                "hit tokens of the best online policy",
                "its hit tokens change by {value} of input",
                "points",
                ">=",
                "gain_points",
            ),
        ),
        BEST_ONLINE,
        "Switch to {title} at {budget} on replay evidence only and re-check monthly",
        ("challenger",),
        "replay",
        "measurement over policy",
        "2 points",
        counts=True,
    ),
    Rule(
        10,
        "Is reuse spread over many keys, or do the top keys change from day to day?",
        (
            Condition(
                "top_key_request_share",
                "requests on the top keys",
                "the top {top} of keys carry {value} of requests",
                "share",
                "<",
                "hot_request_share",
            ),
            Condition(
                "day_overlap",
                "day-to-day overlap of the top keys",
                "{value} of a day's top keys return the next day",
                "share",
                "<",
                "day_overlap",
            ),
        ),
        "lru",
        "Keep LRU at {budget}",
        ("top_key_request_share", "day_overlap"),
        "rotation",
        "a modest share on the top keys, and keys that rotate",
        "50 % and 50 %",
        any_of=True,
    ),
    Rule(
        11,
        "Otherwise, or where frequency counters cannot be trusted",
        (),
        "lru",
        "Keep LRU at {budget}",
        (),
        "replay",
        "the last row: LRU is the default",
        "that it also takes what is too close to call",
    ),
)
