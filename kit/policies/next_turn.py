"""Will a session that asks for the first time ask again? Four answers without a model, and one learned as it goes.

`never`, `always`, the share of sessions of its type that went on so far (`prior`), what the log holds (`oracle`), and
`learned`: a logistic regression on what a log knows at a first turn (length of the prompt, how many sessions used its
template, hour of the day, model), updated once per session, after it was asked: toward 1 when the second turn comes,
toward 0 when none came for an hour. It starts at weights of zero and draws nothing at random. A policy's `Pool` has
`asks` (recarray of ASK) and `known` (of KNOWN), its core `learned` with rows TURNED and SESSIONS (columns: 0 chat and
others, 1 agents), ODDS (the weights of the regression) and TURN (one session's features).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit import prefix
from kit.policies.leaf_lanes import SPARE
from kit.policies.sessions import agents, later_turns, owners

NEVER, ALWAYS, PRIOR, ORACLE, LEARNED = 0, 1, 2, 3, 4
WAIT_US = 3_600_000_000  # a session silent for so long did not go on
DAY_SECONDS = 86_400
USUAL_TOKENS = 1_000.0
MODELS = 8
BIAS, LENGTH, REUSE, SINE, COSINE, MODEL = range(6)
FEATURES = MODEL + MODELS
TURNED, SESSIONS, ODDS, TURN = 0, 1, 2, 3
JUDGED = SPARE

ASK = np.dtype(
    [("ts_us", np.int64), ("tokens", np.int64), ("session", np.int32), ("root", np.int32), ("model", np.int8),
     ("agent", np.bool_), ("more", np.bool_)], align=True,
)  # fmt: skip
"""One request: start, `tokens` of its path, its session and the root of its path (both dense, -1 = no path), `model`
code, whether it is an agent's, whether its session asks again (`more`)."""

KNOWN = np.dtype([("last_us", np.int64), ("turns", np.int32), ("first", np.int32), ("company", np.int32),
                  ("user", np.int32), ("users", np.int32), ("judged", np.bool_)], align=True)  # fmt: skip
"""Row i holds what is known of session i (start of its last turn, `turns` so far, its `first` request, how many other
sessions had used the root by then, `company`, whether the regression has learned from it) and, beside it, of root i
(the session that used it last, `user`, and how often that changed, `users`: from two on it is a template)."""


def arrivals(
    ts_us: NDArray[np.int64], leaf: NDArray[np.int32], path_tokens: NDArray[np.int64], parent: NDArray[np.int32],
    session: Any, session_type: Any, model: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """(asks, known) of a log before its first request. Without sessions every request is one of its own;
    of the models the first seven are told apart, the rest go together."""
    asks = np.recarray(leaf.size, dtype=ASK)
    asks.ts_us = ts_us
    asks.tokens = np.where(leaf >= 0, path_tokens[leaf], 0) if path_tokens.size else 0
    asks.session = owners(session, leaf.size)
    asks.agent = agents(session_type, leaf.size)
    asks.more = later_turns(asks.session.astype(np.int64))
    asks.model = 0 if model is None else np.minimum(prefix.first_seen_rank(np.asarray(model)), MODELS - 1)
    number = np.cumsum(parent < 0) - 1
    asks.root = np.where(leaf >= 0, number[prefix.root_of(parent)[leaf]], -1) if parent.size else -1
    rows = max(int(asks.session.max(initial=-1)), int(number.max(initial=-1))) + 1
    known = np.zeros(rows, KNOWN).view(np.recarray)
    known.user = -1
    return asks, known


def describe_turn(p: Any, request: int, company: int) -> None:
    """Write the features of a first turn: 1, ln(tokens / 1,000), ln(1 + sessions before on its root), the hour as a
    point on a circle, one flag per model."""
    ask = p.asks[request]
    hour = (ask.ts_us // 1_000_000) % DAY_SECONDS * (2.0 * math.pi / DAY_SECONDS)
    p.core.learned[TURN, BIAS] = 1.0
    p.core.learned[TURN, LENGTH] = math.log(max(ask.tokens, 1) / USUAL_TOKENS)
    p.core.learned[TURN, REUSE] = math.log(1.0 + company)
    p.core.learned[TURN, SINE] = math.sin(hour)
    p.core.learned[TURN, COSINE] = math.cos(hour)
    for k in range(MODELS):
        p.core.learned[TURN, MODEL + k] = 1.0 if k == ask.model else 0.0


def chance_of_more(p: Any) -> float:
    """Probability by the regression that the session described goes on."""
    total = 0.0
    for k in range(FEATURES):
        total += p.core.learned[ODDS, k] * p.core.learned[TURN, k]
    return 1.0 / (1.0 + math.exp(-total))


def judge(p: Any, who: int, went_on: float, rate: float) -> None:
    """Learn from a session: every weight moves by rate x (outcome - probability) x feature."""
    one = p.known[who]
    if one.judged:
        return
    one.judged = True
    describe_turn(p, np.int64(one.first), np.int64(one.company))
    step = rate * (went_on - chance_of_more(p))
    for k in range(FEATURES):
        p.core.learned[ODDS, k] += step * p.core.learned[TURN, k]


def judge_silent(p: Any, now_us: int, rate: float) -> None:
    """Learn from the sessions whose first turn lies more than an hour back and that never asked again."""
    at = p.core.live[JUDGED]
    while at < p.asks.size and p.asks[at].ts_us < now_us - WAIT_US:
        who = np.int64(p.asks[at].session)
        if p.known[who].turns == 1 and p.known[who].first == at:
            judge(p, who, 0.0, rate)
        at += 1
    p.core.live[JUDGED] = at


def continues(p: Any, request: int, way: int) -> bool:
    """Whether the predictor expects another turn of a session that asks for the first time."""
    ask = p.asks[request]
    if way == ORACLE:
        return ask.more
    if way == PRIOR:
        kind = 1 if ask.agent else 0
        return 2.0 * p.core.learned[TURNED, kind] >= p.core.learned[SESSIONS, kind]
    if way == LEARNED:
        describe_turn(p, request, np.int64(p.known[ask.session].company))
        return chance_of_more(p) >= 0.5
    return way == ALWAYS
