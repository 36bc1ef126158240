"""What a rule of the decision table is made of, and every threshold in one place."""

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
        "scan_token_share": 0.30,  # row 7: worst hour with at least the median hour's tokens
        "scan_loss_points": 0.05,  # row 7: hit tokens LRU loses to one-shot tokens, of input
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


RANGES: Mapping[Kind, tuple[float, float, str]] = MappingProxyType(
    {
        "share": (0.0, 1.0, "a share between 0 and 1"),
        "points": (0.0, 1.0, "a share of input tokens between 0 and 1 (0.02 = 2 points)"),
        "distance": (0.0, 1.0, "between 0 and 1"),
        "correlation": (-1.0, 1.0, "between -1 and 1"),
        "factor": (1.0, 1e6, "a factor of at least 1 and at most 1,000,000"),
        "count": (0.0, 1e12, "0 or more and at most 1,000,000,000,000"),
    }
)
BEST_ONLINE = "best_online"
