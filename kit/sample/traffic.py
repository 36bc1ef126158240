"""Draw the calls of a week: who calls when, under which shared prompt, and how much each call adds to its session.

Only integers leave this module (times in milliseconds, sizes in tokens), so a seed gives the same calls everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

START = datetime(2026, 9, 7, tzinfo=UTC)  # a Monday
DAYS = 7
DAY_MS = 86_400_000
KINDS = ("chat", "agent", "single")
TRIGGERS = ("person", "tool", "other")
TYPES = ("system", "tools", "user", "assistant", "thinking", "tool_result")
OWNERS = ("team-a", "team-b", "team-c", "team-d", "team-e", "team-f")

HOT_PROMPTS = {"chat": 12, "agent": 8, "single": 10}  # shared system prompts per session type, Zipf(1) popular
AD_HOC_SHARE = 0.3  # of the single calls: no shared system prompt at all
MEAN_TURNS = {"chat": 5.0, "agent": 18.0, "single": 1.0}  # geometric
PERSON_SHARE = 0.12  # of the later agent turns: a person steps in, otherwise a tool answered
LONG_TOOL_SHARE = (
    0.06  # of the tool turns while the prompt is short: output read by this one call, then cleared from the context
)
LONGEST_CHAIN_TOKENS = 60_000  # a session ends when its prompt would pass this
SCAN_SHARE = 0.04  # of all requests
SCAN_HOUR = 2  # UTC, every night
NIGHTLY = "nightly"  # how the sessions of that job are named
HOUR_WEIGHTS = (
    2,
    1,
    1,
    1,
    1,
    2,
    5,
    12,
    20,
    24,
    24,
    20,
    18,
    22,
    24,
    22,
    18,
    12,
    8,
    6,
    5,
    4,
    3,
    2,
)  # session starts, UTC
DAY_WEIGHTS = (10, 10, 10, 10, 9, 4, 3)  # Monday to Sunday


@dataclass(frozen=True)
class Gap:
    """Log-normal parameters of a gap in seconds: mean and standard deviation of its natural logarithm."""

    mu: float
    sigma: float


GAPS: Mapping[tuple[str, str], Gap] = {  # (session type, trigger) -> end of the answer to the start of the next call
    ("chat", "person"): Gap(4.4, 1.2),
    ("agent", "tool"): Gap(1.6, 1.2),
    ("agent", "person"): Gap(5.0, 1.4),
}


@dataclass(frozen=True)
class Hot:
    """The shared system prompts: kind, owner and tokens of each; `tools` is 0 where a prompt has no tool schema."""

    kind: np.ndarray
    owner: np.ndarray
    system: np.ndarray
    tools: np.ndarray

    @property
    def nodes(self) -> np.ndarray:
        """Number of root nodes of each prompt: the system text and, where there is one, the tool schema."""
        return 1 + (self.tools > 0)


@dataclass(frozen=True)
class Calls:
    """One value per request, the requests of a session side by side; times in ms since the start of the week."""

    kind: np.ndarray  # position in KINDS, one more for the nightly job
    session: np.ndarray
    turn: np.ndarray
    trigger: np.ndarray  # position in TRIGGERS
    hot: np.ndarray  # position of the shared prompt, -1 for none
    owner: np.ndarray
    start_ms: np.ndarray
    end_ms: np.ndarray
    new_tokens: np.ndarray  # the user text or tool output that this call adds
    said_tokens: np.ndarray  # the visible answer
    thought_tokens: np.ndarray
    once_tokens: np.ndarray  # a long tool output that only this call carries

    def take(self, chosen: np.ndarray) -> Calls:
        """The chosen rows (a mask or positions)."""
        return Calls(**{name: values[chosen] for name, values in vars(self).items()})


def join(parts: list[Calls]) -> Calls:
    """One after the other, the sessions numbered on."""
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])}
    firsts = np.cumsum([0] + [part.session.max(initial=-1) + 1 for part in parts[:-1]])
    columns["session"] = np.concatenate([part.session + first for part, first in zip(parts, firsts, strict=True)])
    return Calls(**columns)


def _tokens(rng: np.random.Generator, size: int, median: float, sigma: float, low: int, high: int) -> np.ndarray:
    """Log-normal sizes, clipped, as integers."""
    drawn = np.exp(np.log(median) + sigma * rng.standard_normal(size))
    return np.clip(np.rint(drawn), low, high).astype(np.int64)


def within_session(session: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Running total of the values, starting again at each session."""
    total = np.cumsum(values)
    first = np.flatnonzero(np.diff(session, prepend=-1))
    before = total[first] - values[first]
    return total - np.repeat(before, np.diff(np.append(first, len(session))))


def previous(turn: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The value of the call before in the same session, 0 for a first call."""
    return np.where(turn > 0, np.concatenate([[0], values[:-1]]), 0)


def hot_prompts(rng: np.random.Generator) -> Hot:
    """Draw the shared system prompts and tool schemas; single calls have no tools."""
    kind = np.repeat(np.arange(3), [HOT_PROMPTS[name] for name in KINDS])
    n = len(kind)
    system = np.select(
        [kind == 0, kind == 1],
        [rng.integers(1_500, 5_000, n), rng.integers(3_000, 7_000, n)],
        rng.integers(1_800, 6_000, n),
    )
    tools = np.select([kind == 0, kind == 1], [rng.integers(500, 3_000, n), rng.integers(5_000, 14_000, n)], 0)
    return Hot(kind, rng.integers(0, len(OWNERS), n), system, tools)


def _choose_hot(rng: np.random.Generator, hot: Hot, kind: int, size: int) -> np.ndarray:
    """Positions of shared prompts of one session type, the k-th most popular drawn in proportion to 1/k."""
    mine = np.flatnonzero(hot.kind == kind)
    weight = 1.0 / np.arange(1, len(mine) + 1)
    return mine[np.searchsorted(np.cumsum(weight)[:-1], rng.random(size) * weight.sum())]


def _session_starts_ms(rng: np.random.Generator, size: int) -> np.ndarray:
    """Starts over the week by the weights of day and hour, evenly inside an hour."""
    weight = np.outer(DAY_WEIGHTS, HOUR_WEIGHTS).ravel()
    hour = np.searchsorted(np.cumsum(weight)[:-1], rng.random(size) * weight.sum())
    return hour * 3_600_000 + rng.integers(0, 3_600_000, size)


def _turns(rng: np.random.Generator, kind: int, size: int) -> np.ndarray:
    """Turns per session: geometric with the mean of the session type, at most 60."""
    mean = MEAN_TURNS[KINDS[kind]]
    if mean == 1:
        return np.ones(size, int)
    return np.clip(np.ceil(np.log1p(-rng.random(size)) / np.log1p(-1 / mean)), 1, 60).astype(int)


def _prompt_and_owner(rng: np.random.Generator, hot: Hot, kind: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Per session its shared prompt (-1: none, some of the single calls) and the team that pays."""
    chosen = _choose_hot(rng, hot, kind, size)
    owner = hot.owner[chosen]
    if KINDS[kind] != "single":
        return chosen, owner
    ad_hoc = rng.random(size) < AD_HOC_SHARE
    return np.where(ad_hoc, -1, chosen), np.where(ad_hoc, rng.integers(0, len(OWNERS), size), owner)


def _triggers(rng: np.random.Generator, kind: int, turn: np.ndarray) -> np.ndarray:
    """Positions in TRIGGERS: chat is a person, a single call other, an agent turn a tool unless a person steps in."""
    if KINDS[kind] != "agent":
        return np.full(len(turn), TRIGGERS.index("person" if KINDS[kind] == "chat" else "other"))
    return np.where(
        (turn == 0) | (rng.random(len(turn)) < PERSON_SHARE), TRIGGERS.index("person"), TRIGGERS.index("tool")
    )


def _gaps_ms(rng: np.random.Generator, kind: int, trigger: np.ndarray) -> np.ndarray:
    """Time from the end of the previous answer to each call (a first call gets one too, unused)."""
    gaps = [GAPS.get((KINDS[kind], name), Gap(0.0, 0.0)) for name in TRIGGERS]
    mu, sigma = np.array([gap.mu for gap in gaps])[trigger], np.array([gap.sigma for gap in gaps])[trigger]
    seconds = np.exp(mu + sigma * rng.standard_normal(len(trigger)))
    return np.maximum(1, np.rint(1_000 * seconds)).astype(np.int64)


def _new_tokens(rng: np.random.Generator, kind: int, trigger: np.ndarray, hot: np.ndarray) -> np.ndarray:
    """The user text or tool output of each call; a single call without a shared prompt brings a longer text."""
    n = len(trigger)
    if KINDS[kind] == "single":
        return np.where(hot < 0, _tokens(rng, n, 4_000, 0.6, 1_500, 20_000), _tokens(rng, n, 1_800, 0.7, 200, 12_000))
    by_tool = trigger == TRIGGERS.index("tool")
    return np.where(by_tool, _tokens(rng, n, 500, 1.1, 20, 5_000), _tokens(rng, n, 120, 1.0, 8, 4_000))


def _once_tokens(rng: np.random.Generator, trigger: np.ndarray) -> np.ndarray:
    """The long tool output of a few tool turns, 0 elsewhere."""
    size = _tokens(rng, len(trigger), 14_000, 0.5, 6_000, 30_000)
    return np.where((trigger == TRIGGERS.index("tool")) & (rng.random(len(trigger)) < LONG_TOOL_SHARE), size, 0)


def sessions(rng: np.random.Generator, hot: Hot, kind: int, requests: int) -> Calls:
    """So many requests of one session type, in whole sessions but for the last.

    A session also ends where its prompt would pass LONGEST_CHAIN_TOKENS, and where the week ends.
    """
    size = int(requests / MEAN_TURNS[KINDS[kind]] * 1.6) + 20
    turns = _turns(rng, kind, size)
    session = np.repeat(np.arange(size), turns)
    turn = within_session(session, np.ones(len(session), int)) - 1
    prompt, owner = (each[session] for each in _prompt_and_owner(rng, hot, kind, size))
    trigger = _triggers(rng, kind, turn)
    said, thought = _answers(rng, kind, len(session))
    took_ms = 700 + np.rint((said + thought) * 13 * (0.8 + 0.4 * rng.random(len(session)))).astype(np.int64)
    starts_ms = _session_starts_ms(rng, size)[session]
    waited_ms = np.where(turn > 0, _gaps_ms(rng, kind, trigger) + previous(turn, took_ms), starts_ms)
    start_ms = within_session(session, waited_ms)
    new = _new_tokens(rng, kind, trigger, prompt)
    once = _once_tokens(rng, trigger)
    kinds = np.full(len(session), kind)
    drawn = Calls(kinds, session, turn, trigger, prompt, owner, start_ms, start_ms + took_ms, new, said, thought, once)
    return _cut(drawn, hot, requests)


def _answers(rng: np.random.Generator, kind: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens said and tokens thought by each answer; only agents think."""
    if KINDS[kind] == "agent":
        return _tokens(rng, size, 100, 0.7, 12, 3_000), _tokens(rng, size, 130, 0.9, 10, 4_000)
    return _tokens(rng, size, 200 if KINDS[kind] == "chat" else 100, 0.8, 12, 4_000), np.zeros(size, np.int64)


def _cut(calls: Calls, hot: Hot, requests: int) -> Calls:
    """The first calls that fit the week and the longest prompt; long tool output only while the prompt is short."""
    added = calls.new_tokens + previous(calls.turn, calls.said_tokens) + previous(calls.turn, calls.thought_tokens)
    root = np.where(calls.hot >= 0, (hot.system + hot.tools)[calls.hot], 0)
    prompt = within_session(calls.session, added) + root
    fits = np.flatnonzero((prompt <= LONGEST_CHAIN_TOKENS) & (calls.end_ms < DAYS * DAY_MS))
    if len(fits) < requests:
        kind = KINDS[calls.kind[0]]
        raise ValueError(
            f"the draw holds {len(fits)} requests of type {kind}, {requests} were wanted: take another seed"
        )
    short = replace(calls, once_tokens=np.where(prompt <= LONGEST_CHAIN_TOKENS // 2, calls.once_tokens, 0))
    return short.take(fits[:requests])


def nightly_scan(rng: np.random.Generator, requests: int) -> Calls:
    """The indexing job, evenly over the nights: its prompts begin with the document, so no two share anything."""
    night = np.arange(requests) * DAYS // requests
    start_ms = night * DAY_MS + SCAN_HOUR * 3_600_000 + rng.integers(0, 3_550_000, requests)
    said = _tokens(rng, requests, 150, 0.5, 12, 2_000)
    new = _tokens(rng, requests, 18_000, 0.4, 6_000, 50_000)
    none = np.zeros(requests, np.int64)
    kind, owner, other = none + len(KINDS), none + len(OWNERS) - 1, none + TRIGGERS.index("other")
    end_ms = start_ms + 700 + 13 * said
    return Calls(kind, np.arange(requests), none, other, none - 1, owner, start_ms, end_ms, new, said, none, none)
