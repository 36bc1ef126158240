"""SAECache-style: four queues; lowest alpha x weight x p(idle) / idle goes first, learned as the log goes by.

Source: SAECache (arXiv 2605.18825), abstract and published summaries; constants it does not print are parameters here.
Queues: *evict-first* (thinking tokens, and single turns without a template; drained before anything else), *structural*
(single turns with a template, that is, whose first node two sessions have used), *chat* and *agent* (sessions with a
second turn, or predicted to have one). p is the log-normal survival of the queue's gaps for chat and agent, and
1 - (offset / largest offset)^gamma for structural. Inside one (queue, token type, offset class) the score falls with
idle time, so the order there is LRU and the victim is the best of the class heads. Tie: the deeper node.
Learned online: token-type weights (every `update_evictions`: toward 1 + 5 x misses after eviction + 2 x hits), mu and
sigma of both gap laws (from the last `gap_window` gaps), gamma (hits against offset in ten bins) and queue weights
alpha (softmax of hit tokens per token placed in the queue, at `temperature`). `predictor`: 0 never, 1 always, 2 prior
by session type, 3 oracle. `fixed_*` switch a learner off (the paper's ablations).
Leaves out: the neural predictor over hidden states (no log has them), and the unpublished form of the alpha update.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit import prefix
from kit.policies import lists
from kit.policies.lists import oldest_leaf, put, take
from kit.policies.sessions import agents, later_turns, owners

TITLE = "SAECache-style"
PARAMETERS: dict[str, float] = {
    "predictor": 2.0, "eta": 0.1, "update_evictions": 1000.0, "gap_window": 200.0, "temperature": 1.0,
    "fixed_types": 0.0, "fixed_queues": 0.0, "fixed_timing": 0.0, "fixed_decay": 0.0,
}  # fmt: skip
WANTS = ("session_id", "session_type", "token_type")
EVICT_FIRST, STRUCTURAL, CHAT, AGENT = 0, 1, 2, 3
NEVER, ALWAYS, PRIOR, ORACLE = 0, 1, 2, 3
GENERATED = (4, 5)
TYPES = 8
OFFSETS = 8
BINS = 10
SHORTEST_GAP, LONGEST_GAP = 0.1, 3600.0
LEAST_GAPS = 20


class Pool(NamedTuple):
    """Recency lists per class (`kit.policies.lists`), how many `leaves` each holds, and per node: `covered` (has
    resident children), `used_us`, `kind` (token type), `offset` (class),
    `gone` (evicted before), `place` (offset bin), `root`. Per request: `session`, `agent`, `more` (a later turn comes).
    Per session: `turns`, `last_us`. `seen_root` first session of a root (-2 = two or more sessions). `learned` [rows,
    columns]: see the row names below. `now` [2]: request, time."""

    newer: NDArray[np.int32]
    older: NDArray[np.int32]
    where: NDArray[np.int8]
    tokens: NDArray[np.int64]
    room: NDArray[np.int64]
    leaves: NDArray[np.int64]
    covered: NDArray[np.bool_]
    used_us: NDArray[np.int64]
    depth: NDArray[np.int32]
    kind: NDArray[np.int8]
    offset: NDArray[np.int8]
    place: NDArray[np.int8]
    gone: NDArray[np.bool_]
    root: NDArray[np.int32]
    session: NDArray[np.int64]
    agent: NDArray[np.bool_]
    more: NDArray[np.bool_]
    turns: NDArray[np.int64]
    last_us: NDArray[np.int64]
    seen_root: NDArray[np.int64]
    learned: NDArray[np.float64]
    gaps: NDArray[np.float64]
    now: NDArray[np.int64]
    options: NDArray[np.float64]


(WEIGHT, TYPE_HITS, TYPE_USES, TYPE_REGRET, ALPHA, QUEUE_HITS, QUEUE_ROOM, MU, SIGMA, GAPS_SEEN, GAMMA, BIN_HITS,
 BIN_USES, EVICTED, TURNED, SESSIONS, ROUTE) = range(17)  # fmt: skip
PREDICTOR, ETA, UPDATE, WINDOW, TEMPERATURE, FIXED_TYPES, FIXED_QUEUES, FIXED_TIMING, FIXED_DECAY = range(9)


def classes(path_tokens: NDArray[np.int64], tokens: NDArray[np.int64]) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """(offset class of 8, offset bin of 10) of each node: where it starts in the prompt, as a share of the longest."""
    share = (path_tokens - tokens) / max(int(path_tokens.max(initial=1)), 1)
    return (share * OFFSETS).astype(np.int8), (share * BINS).astype(np.int8)


def learned_start() -> NDArray[np.float64]:
    """Weights and alphas 1, gamma 1, gap laws of the paper's fixed variant: chat 4.15, 0.97; agent 2.28, 1.34."""
    learned = np.zeros((17, BINS))
    learned[WEIGHT] = 1.0
    learned[ALPHA] = 1.0
    learned[GAMMA, 0] = 1.0
    learned[MU, CHAT], learned[SIGMA, CHAT] = 4.15, 0.97
    learned[MU, AGENT], learned[SIGMA, AGENT] = 2.28, 1.34
    return learned


def pool(
    nodes: int, room_tokens: NDArray[np.int64], tokens: NDArray[np.int64], path_tokens: NDArray[np.int64],
    depth: NDArray[np.int32], parent: NDArray[np.int32], leaf: NDArray[np.int32], node_type: NDArray[np.int32],
    session: Any = None, session_type: Any = None, predictor: float = 2.0, eta: float = 0.1,
    update_evictions: float = 1000.0, gap_window: float = 200.0, temperature: float = 1.0, fixed_types: float = 0.0,
    fixed_queues: float = 0.0, fixed_timing: float = 0.0, fixed_decay: float = 0.0,
) -> Pool:  # fmt: skip
    """Nothing resident, nothing learned. Without sessions every request is a session of its own; without token types
    every node is `other`; without session types no session is an agent's."""
    count = leaf.size
    owner = owners(session, count)
    agent = agents(session_type, count)
    kind = np.zeros(nodes, np.int8) if node_type.size == 0 else node_type.astype(np.int8)
    offset, place = classes(path_tokens, tokens)
    sessions = int(owner.max(initial=-1)) + 1
    lanes = (3 * TYPES) + TYPES * OFFSETS
    options = np.array([predictor, eta, update_evictions, gap_window, temperature, fixed_types, fixed_queues,
                        fixed_timing, fixed_decay])  # fmt: skip
    return Pool(
        *lists.empty(room_tokens, lanes), np.zeros(lanes, np.int64), np.zeros(nodes, np.bool_),
        np.zeros(nodes, np.int64), depth, kind, offset, place,
        np.zeros(nodes, np.bool_), prefix.root_of(parent), owner, agent, later_turns(owner),
        np.zeros(sessions, np.int64), np.full(sessions, -1, np.int64), np.full(nodes, -1, np.int64), learned_start(),
        np.zeros((4, int(gap_window))), np.full(2, -1, np.int64), options,
    )  # fmt: skip


def survival(idle_seconds: float, mu: float, sigma: float) -> float:
    """Share of log-normal gaps longer than `idle_seconds`."""
    return 0.5 * math.erfc((math.log(idle_seconds) - mu) / (max(sigma, 0.05) * math.sqrt(2.0)))


def lane(p: Any, queue: int, node: int) -> int:
    """The list of a node in a queue: one per token type, in the structural queue one per offset class too."""
    kind = np.int64(p.kind[node])
    if queue == STRUCTURAL:
        return np.int64(3 * TYPES + kind * OFFSETS + p.offset[node])
    return np.int64((queue if queue == EVICT_FIRST else queue - 1) * TYPES + kind)


def queue_of(which: int) -> int:
    """The queue a list belongs to."""
    if which >= 3 * TYPES:
        return STRUCTURAL
    first = which // TYPES
    return EVICT_FIRST if first == 0 else first + 1


def note_gap(p: Any, queue: int, seconds: float) -> None:
    """Learn a gap of a chat or agent session: mu and sigma move toward the fit of the last gaps."""
    if seconds < SHORTEST_GAP or seconds > LONGEST_GAP or p.options[FIXED_TIMING] > 0.0:
        return
    window = p.gaps.shape[1]
    seen = np.int64(p.learned[GAPS_SEEN, queue])
    p.gaps[queue, seen % window] = math.log(seconds)
    p.learned[GAPS_SEEN, queue] = seen + 1
    have = min(seen + 1, window)
    if have < LEAST_GAPS or (seen + 1) % LEAST_GAPS != 0:
        return
    mean = 0.0
    for k in range(have):
        mean += p.gaps[queue, k] / have
    spread = 0.0
    for k in range(have):
        spread += (p.gaps[queue, k] - mean) ** 2 / have
    eta = p.options[ETA]
    p.learned[MU, queue] += eta * (mean - p.learned[MU, queue])
    p.learned[SIGMA, queue] += eta * (math.sqrt(spread) - p.learned[SIGMA, queue])


def continues(p: Any, request: int) -> bool:
    """Whether the predictor expects another turn of a session seen for the first time."""
    way = np.int64(p.options[PREDICTOR])
    if way == ORACLE:
        return p.more[request]
    if way == PRIOR:
        kind = 1 if p.agent[request] else 0
        return 2.0 * p.learned[TURNED, kind] >= p.learned[SESSIONS, kind]
    return way == ALWAYS


def arrive(p: Any, request: int, node: int, now_us: int) -> None:
    """The first node of a request: count the turn, learn the gap, choose the request's queue."""
    p.now[0] = request
    p.now[1] = now_us
    who = p.session[request]
    root = p.root[node]
    kind = 1 if p.agent[request] else 0
    queue = AGENT if p.agent[request] else CHAT
    p.turns[who] += 1
    if p.turns[who] == 1:
        p.learned[SESSIONS, kind] += 1.0
    else:
        note_gap(p, queue, (now_us - p.last_us[who]) * 1e-6)
        if p.turns[who] == 2:
            p.learned[TURNED, kind] += 1.0
    p.last_us[who] = now_us
    if p.seen_root[root] == -1:
        p.seen_root[root] = who
    elif p.seen_root[root] != who:
        p.seen_root[root] = -2
    if p.turns[who] < 2 and not continues(p, request):
        queue = STRUCTURAL if p.seen_root[root] == -2 else EVICT_FIRST
    p.learned[ROUTE, 0] = queue


def settle_in(p: Any, node: int, request: int, now_us: int) -> None:
    """Put a node into the list of its queue and token type."""
    queue = np.int64(p.learned[ROUTE, 0])
    if p.kind[node] == GENERATED[1] or (p.kind[node] == GENERATED[0] and queue == STRUCTURAL):
        queue = np.int64(EVICT_FIRST)
    p.used_us[node] = now_us
    which = lane(p, queue, node)
    put(p, which, node)
    if not p.covered[node]:
        p.leaves[which] += 1
    p.learned[QUEUE_ROOM, queue] += p.room[node]


def take_out(p: Any, node: int) -> None:
    """Take a node out of its list."""
    if not p.covered[node]:
        p.leaves[p.where[node]] -= 1
    take(p, node)


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """A node becomes resident; if it had been evicted before, its type learns a regret."""
    if p.now[0] != request:
        arrive(p, request, node, now_us)
    p.learned[TYPE_USES, p.kind[node]] += 1.0
    p.learned[BIN_USES, p.place[node]] += 1.0
    if p.gone[node]:
        p.learned[TYPE_REGRET, p.kind[node]] += 1.0
    p.covered[node] = not is_leaf
    settle_in(p, node, request, now_us)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """A resident node is used again: its type, place and queue learn a hit."""
    if p.now[0] != request:
        arrive(p, request, node, now_us)
    p.learned[TYPE_USES, p.kind[node]] += 1.0
    p.learned[TYPE_HITS, p.kind[node]] += 1.0
    p.learned[BIN_USES, p.place[node]] += 1.0
    p.learned[BIN_HITS, p.place[node]] += 1.0
    p.learned[QUEUE_HITS, queue_of(np.int64(p.where[node]))] += p.room[node]
    take_out(p, node)
    settle_in(p, node, request, now_us)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node is evicted or expires; every so many evictions the weights are learned anew."""
    take_out(p, node)
    if evicted:
        p.gone[node] = True
        p.learned[EVICTED, 0] += 1.0
        if p.learned[EVICTED, 0] >= p.options[UPDATE]:
            p.learned[EVICTED, 0] = 0.0
            learn(p)


def learn(p: Any) -> None:
    """Token-type weights toward 1 + 5 x regret + 2 x hits, queue weights toward the softmax of their yield, gamma to
    the best of five exponents; counters decay by 0.99."""
    eta = p.options[ETA]
    if p.options[FIXED_TYPES] == 0.0:
        for kind in range(TYPES):
            uses = max(p.learned[TYPE_USES, kind], 1.0)
            target = 1.0 + 5.0 * p.learned[TYPE_REGRET, kind] / uses + 2.0 * p.learned[TYPE_HITS, kind] / uses
            p.learned[WEIGHT, kind] = min(5.0, max(0.1, (1.0 - eta) * p.learned[WEIGHT, kind] + eta * target))
    if p.options[FIXED_QUEUES] == 0.0:
        most = 0.0
        for queue in range(1, 4):
            most = max(most, p.learned[QUEUE_HITS, queue] / max(p.learned[QUEUE_ROOM, queue], 1.0))
        total = 0.0
        for queue in range(1, 4):
            gain = p.learned[QUEUE_HITS, queue] / max(p.learned[QUEUE_ROOM, queue], 1.0)
            total += math.exp((gain - most) / p.options[TEMPERATURE])
        for queue in range(1, 4):
            gain = p.learned[QUEUE_HITS, queue] / max(p.learned[QUEUE_ROOM, queue], 1.0)
            share = 3.0 * math.exp((gain - most) / p.options[TEMPERATURE]) / total
            p.learned[ALPHA, queue] = min(3.0, max(0.1, (1.0 - eta) * p.learned[ALPHA, queue] + eta * share))
    if p.options[FIXED_DECAY] == 0.0:
        learn_gamma(p)
    for kind in range(TYPES):
        p.learned[TYPE_USES, kind] *= 0.99
        p.learned[TYPE_HITS, kind] *= 0.99
        p.learned[TYPE_REGRET, kind] *= 0.99


def learn_gamma(p: Any) -> None:
    """The exponent of {1/4, 1/2, 1, 2, 4} whose 1 - x^gamma lies closest to the hit share by tenth of the prompt."""
    best, chosen = np.inf, p.learned[GAMMA, 0]
    gamma = 0.25
    while gamma <= 4.0:
        error = 0.0
        for place in range(BINS):
            uses = p.learned[BIN_USES, place]
            if uses > 0.0:
                error += uses * (p.learned[BIN_HITS, place] / uses - 1.0 + ((place + 0.5) / BINS) ** gamma) ** 2
        if error < best:
            best = error
            chosen = gamma
        gamma *= 2.0
    p.learned[GAMMA, 0] = chosen


def cover(p: Any, own: Any, node: int) -> None:
    """A node is no longer a leaf."""
    p.covered[node] = True
    p.leaves[p.where[node]] -= 1


def uncover(p: Any, own: Any, node: int) -> None:
    """A node is a leaf again."""
    p.covered[node] = False
    p.leaves[p.where[node]] += 1


def score(p: Any, node: int, which: int) -> float:
    """alpha x weight x p / idle of a node in a list; smallest goes first, evict-first below everything."""
    queue = queue_of(which)
    idle = max((p.now[1] - p.used_us[node]) * 1e-6, 1e-3)
    if queue == EVICT_FIRST:
        return -idle
    if queue == STRUCTURAL:
        chance = 1.0 - ((p.offset[node] + 0.5) / OFFSETS) ** p.learned[GAMMA, 0]
    else:
        chance = survival(idle, p.learned[MU, queue], p.learned[SIGMA, queue])
    return p.learned[ALPHA, queue] * p.learned[WEIGHT, p.kind[node]] * chance / idle


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The leaf with the lowest score among the oldest leaves of all lists; -1 = none. The evict-first lists come
    first, and whatever they hold goes before all else."""
    best = np.int64(-1)
    lowest = np.inf
    for which in range(p.leaves.size):
        if which == TYPES and best >= 0:
            break
        if p.leaves[which] == 0:
            continue
        node = oldest_leaf(p, np.int64(which), nodes, request)
        if node < 0:
            continue
        value = score(p, node, np.int64(which))
        if value < lowest or (value == lowest and p.depth[node] > p.depth[best]):
            best = node
            lowest = value
    return best
