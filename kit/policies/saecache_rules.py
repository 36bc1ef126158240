"""What SAECache-style learns as a log goes by, rule by rule.

All of it stands in the pool's core (`kit.policies.saecache`): `learned` has one row per quantity, its columns being
token types (0 to 7), queues or tenths of the prompt; the row OPTIONS holds the parameters in the order of SWITCHES. The
rows before WEIGHT are the predictor's (`kit.policies.next_turn`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kit.policies.leaf_lanes import SPARE
from kit.prefix import TOKEN_TYPES

SWITCHES = ("predictor", "eta", "update_evictions", "gap_window", "temperature", "learning_rate", "fixed_types",
            "fixed_queues", "fixed_timing", "fixed_decay", "fixed_predictor")  # fmt: skip
PREDICTOR, ETA, UPDATE, WINDOW, TEMPERATURE, RATE, FIXED_TYPES, FIXED_QUEUES, FIXED_TIMING, FIXED_DECAY, \
    FIXED_PREDICTOR = range(len(SWITCHES))  # fmt: skip
EVICT_FIRST, STRUCTURAL, CHAT, AGENT = 0, 1, 2, 3
ASSISTANT, THINKING = TOKEN_TYPES.index("assistant"), TOKEN_TYPES.index("thinking")
TYPES = len(TOKEN_TYPES)
OFFSETS, BINS = 8, 10
FINE = 40  # parts of the longest prompt: offset classes are five of them, bins four
CELLS = TYPES * FINE
SHORTEST_GAP, LONGEST_GAP = 0.1, 3600.0
LEAST_GAPS = 20
(WEIGHT, TYPE_HITS, TYPE_USES, TYPE_REGRET, ALPHA, QUEUE_HITS, QUEUE_ROOM, MU, SIGMA, GAPS_SEEN, GAMMA, BIN_HITS,
 BIN_USES, OPTIONS) = range(4, 18)  # fmt: skip
ROWS, COLUMNS = 18, 16
HIT, ENTERED, REGRET = 0, 1, 2
EVICTED = SPARE + 1


def queue_of(which: int) -> int:
    """The queue of a lane."""
    if which >= 3 * TYPES:
        return STRUCTURAL
    return EVICT_FIRST if which < TYPES else which // TYPES + 1


def survival(idle_seconds: float, mu: float, sigma: float) -> float:
    """Share of log-normal gaps longer than `idle_seconds`."""
    return 0.5 * math.erfc((math.log(idle_seconds) - mu) / (max(sigma, 0.05) * math.sqrt(2.0)))


def note_gap(p: Any, queue: int, seconds: float) -> None:
    """Learn a gap of a chat or agent session: mu and sigma move toward the fit of the last gaps."""
    if seconds < SHORTEST_GAP or seconds > LONGEST_GAP or p.core.learned[OPTIONS, FIXED_TIMING] > 0.0:
        return
    window = p.core.gaps.shape[1]
    seen = np.int64(p.core.learned[GAPS_SEEN, queue])
    p.core.gaps[queue - CHAT, seen % window] = math.log(seconds)
    p.core.learned[GAPS_SEEN, queue] = seen + 1
    have = min(seen + 1, window)
    if have < LEAST_GAPS or (seen + 1) % LEAST_GAPS != 0:
        return
    mean = 0.0
    for k in range(have):
        mean += p.core.gaps[queue - CHAT, k] / have
    spread = 0.0
    for k in range(have):
        spread += (p.core.gaps[queue - CHAT, k] - mean) ** 2 / have
    eta = p.core.learned[OPTIONS, ETA]
    p.core.learned[MU, queue] += eta * (mean - p.core.learned[MU, queue])
    p.core.learned[SIGMA, queue] += eta * (math.sqrt(spread) - p.core.learned[SIGMA, queue])


def gather(p: Any) -> None:
    """Add what was counted since the last learning to the sums that are learned from."""
    for cell in range(CELLS):
        kind, place = cell // FINE, cell % FINE * BINS // FINE
        hits, entered = p.core.counts[HIT, cell], p.core.counts[ENTERED, cell]
        p.core.learned[TYPE_HITS, kind] += hits
        p.core.learned[TYPE_USES, kind] += hits + entered
        p.core.learned[TYPE_REGRET, kind] += p.core.counts[REGRET, cell]
        p.core.learned[BIN_HITS, place] += hits
        p.core.learned[BIN_USES, place] += hits + entered
        for row in range(3):
            p.core.counts[row, cell] = 0
    for which in range(p.core.lanes.size):
        p.core.learned[QUEUE_HITS, queue_of(which)] += p.core.lanes[which].hit
        p.core.learned[QUEUE_ROOM, queue_of(which)] += p.core.lanes[which].placed
        p.core.lanes[which].hit = 0
        p.core.lanes[which].placed = 0
        p.core.lanes[which].asked = -1


def learn(p: Any) -> None:
    """Token-type weights toward 1 + 5 x regret + 2 x hits, queue weights toward the softmax of their yield, gamma to
    the best of five exponents; counters decay by 0.99."""
    gather(p)
    if p.core.learned[OPTIONS, FIXED_TYPES] == 0.0:
        learn_types(p)
    if p.core.learned[OPTIONS, FIXED_QUEUES] == 0.0:
        learn_queues(p)
    if p.core.learned[OPTIONS, FIXED_DECAY] == 0.0:
        learn_gamma(p)
        shape_offsets(p)
    for kind in range(TYPES):
        p.core.learned[TYPE_USES, kind] *= 0.99
        p.core.learned[TYPE_HITS, kind] *= 0.99
        p.core.learned[TYPE_REGRET, kind] *= 0.99


def learn_types(p: Any) -> None:
    """One step of `eta` toward 1 + 5 x misses after eviction per use + 2 x hits per use, within 0.1 to 5."""
    eta = p.core.learned[OPTIONS, ETA]
    for kind in range(TYPES):
        uses = max(p.core.learned[TYPE_USES, kind], 1.0)
        target = 1.0 + 5.0 * p.core.learned[TYPE_REGRET, kind] / uses + 2.0 * p.core.learned[TYPE_HITS, kind] / uses
        p.core.learned[WEIGHT, kind] = min(5.0, max(0.1, (1.0 - eta) * p.core.learned[WEIGHT, kind] + eta * target))


def learn_queues(p: Any) -> None:
    """One step of `eta` toward three times each queue's softmax share of hits per token placed, within 0.1 to 3."""
    eta = p.core.learned[OPTIONS, ETA]
    most = 0.0
    for queue in range(1, 4):
        most = max(most, p.core.learned[QUEUE_HITS, queue] / max(p.core.learned[QUEUE_ROOM, queue], 1.0))
    total = 0.0
    for queue in range(1, 4):
        gain = p.core.learned[QUEUE_HITS, queue] / max(p.core.learned[QUEUE_ROOM, queue], 1.0)
        total += math.exp((gain - most) / p.core.learned[OPTIONS, TEMPERATURE])
    for queue in range(1, 4):
        gain = p.core.learned[QUEUE_HITS, queue] / max(p.core.learned[QUEUE_ROOM, queue], 1.0)
        share = 3.0 * math.exp((gain - most) / p.core.learned[OPTIONS, TEMPERATURE]) / total
        p.core.learned[ALPHA, queue] = min(3.0, max(0.1, (1.0 - eta) * p.core.learned[ALPHA, queue] + eta * share))


def learn_gamma(p: Any) -> None:
    """The exponent of {1/4, 1/2, 1, 2, 4} whose 1 - x^gamma lies closest to the hit share by tenth of the prompt."""
    best, chosen = np.inf, p.core.learned[GAMMA, 0]
    gamma = 0.25
    while gamma <= 4.0:
        error = 0.0
        for place in range(BINS):
            uses = p.core.learned[BIN_USES, place]
            if uses > 0.0:
                error += uses * (p.core.learned[BIN_HITS, place] / uses - 1.0 + ((place + 0.5) / BINS) ** gamma) ** 2
        if error < best:
            best = error
            chosen = gamma
        gamma *= 2.0
    p.core.learned[GAMMA, 0] = chosen


def chance_at(offset: Any, gamma: float) -> Any:
    """Chance of reuse of an offset class of the structural queue: 1 - (its middle, as a share of all classes)^gamma."""
    return 1.0 - ((offset + 0.5) / OFFSETS) ** gamma


def shape_offsets(p: Any) -> None:
    """Chance of reuse of each structural lane."""
    for which in range(3 * TYPES, p.core.lanes.size):
        p.core.lanes[which].chance = chance_at(which % OFFSETS, p.core.learned[GAMMA, 0])
