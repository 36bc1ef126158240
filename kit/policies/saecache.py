"""SAECache-style: four queues; lowest alpha x weight x p(idle) / idle goes first, learned as the log goes by.

Source: SAECache (arXiv 2605.18825), abstract and published summaries; constants it does not print are parameters here.
Queues: *evict-first* (thinking tokens, and single turns without a template; drained before anything else), *structural*
(single turns with a template, that is, whose first node two sessions have used), *chat* and *agent* (sessions with a
second turn, or predicted to have one). p is the log-normal survival of the queue's gaps for chat and agent, and
1 - (offset / largest offset)^gamma for structural. Inside one (queue, token type, offset class) the score falls with
idle time, so the order there is LRU and the victim is the best of the class heads. Tie: the deeper node, then the one
longer unused. Idle time counts to the request that needs the room.
Learned online: token-type weights (every `update_evictions`: toward 1 + 5 x misses after eviction + 2 x hits), mu and
sigma of both gap laws (from the last `gap_window` gaps), gamma (hits against offset in ten bins) and queue weights
alpha (softmax of hit tokens per token placed in the queue, at `temperature`). `predictor`: 0 never, 1 always, 2 prior
by session type, 3 oracle, 4 logistic regression (`kit.policies.next_turn`, step `learning_rate`). `fixed_*` switch a
learner off (the paper's ablations); it then stays at its start value, which is a parameter too, so that what was
learned on one log (`learned_parameters`) can be run, frozen, on another.
Leaves out: the neural predictor over hidden states (no log has them), and the unpublished form of the alpha update.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.policies.leaf_lanes import (
    COUNT,
    FIRST,
    LOOK,
    NONE,
    REQUEST,
    add_leaf,
    depth_of,
    drop_leaf,
    empty_core,
    empty_spots,
    give_up,
    look,
    look_past,
    new_child,
    order_of,
)
from kit.policies.next_turn import LEARNED, SESSIONS, TURNED, arrivals, continues, judge, judge_silent
from kit.policies.saecache_rules import (
    AGENT,
    ALPHA,
    ASSISTANT,
    CELLS,
    CHAT,
    COLUMNS,
    ENTERED,
    EVICT_FIRST,
    EVICTED,
    FINE,
    FIXED_PREDICTOR,
    GAMMA,
    HIT,
    MU,
    OFFSETS,
    OPTIONS,
    PREDICTOR,
    RATE,
    REGRET,
    ROWS,
    SIGMA,
    STRUCTURAL,
    SWITCHES,
    THINKING,
    TYPES,
    UPDATE,
    WEIGHT,
    chance_at,
    learn,
    note_gap,
    queue_of,
    survival,
)
from kit.prefix import TOKEN_TYPES

TITLE = "SAECache-style"
OVERLAPS = True
PARAMETERS: dict[str, float] = {
    "predictor": 2.0, "eta": 0.1, "update_evictions": 1000.0, "gap_window": 200.0, "temperature": 1.0,
    "learning_rate": 0.05, "fixed_types": 0.0, "fixed_queues": 0.0, "fixed_timing": 0.0, "fixed_decay": 0.0,
    "fixed_predictor": 0.0, "gamma": 1.0, "mu_chat": 4.15, "sigma_chat": 0.97, "mu_agent": 2.28, "sigma_agent": 1.34,
    "alpha_structural": 1.0, "alpha_chat": 1.0, "alpha_agent": 1.0, "weight_other": 1.0, "weight_system": 1.0,
    "weight_tools": 1.0, "weight_user": 1.0, "weight_assistant": 1.0, "weight_thinking": 1.0, "weight_tool_call": 1.0,
    "weight_tool_result": 1.0, "continue_chat": 1.0, "continue_agent": 1.0,
}  # fmt: skip
WANTS = ("session_id", "session_type", "token_type")


class Pool(NamedTuple):
    """`spots` (per node, with `room` in tokens, `cell`: token type and place in the prompt, `gone`: evicted before) and
    `heap`: `kit.policies.leaf_lanes`. `asks` and `known`: `kit.policies.next_turn`. `core`: lanes (with `hit` and
    `placed` tokens since the last learning, `chance` of the offset class) and live; `learned` [rows, columns] by the
    names above, OPTIONS in the order of SWITCHES; `counts` [HIT ENTERED REGRET, cells] since the last learning;
    `lane_of` [queues, cells]; `gaps` [chat and agent, window] log seconds."""

    spots: Any
    heap: NDArray[np.int32]
    asks: Any
    known: Any
    core: Any


def cell_of(
    path_tokens: NDArray[np.int64], tokens: NDArray[np.int64], node_type: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Token type x where the node starts in the prompt, in fortieths of the longest prompt."""
    place = (path_tokens - tokens) * FINE // max(int(path_tokens.max(initial=1)), 1)
    return place + FINE * (node_type.astype(np.int64) if node_type.size else 0)


def lane_table() -> NDArray[np.int8]:
    """The lane of a cell in each queue: evict-first, chat and agent have one per token type, structural one per token
    type and offset class. Thinking is evict-first everywhere, an answer to a single call too."""
    kind, place = np.arange(CELLS) // FINE, np.arange(CELLS) % FINE
    table = np.empty((4, CELLS), np.int8)
    table[EVICT_FIRST], table[CHAT], table[AGENT] = kind, TYPES + kind, 2 * TYPES + kind
    table[STRUCTURAL] = np.where(kind == ASSISTANT, kind, 3 * TYPES + kind * OFFSETS + place * OFFSETS // FINE)
    table[:, kind == THINKING] = THINKING
    return table


def learned_start(given: dict[str, float]) -> NDArray[np.float64]:
    """Weights, queue weights, gamma and gap laws as given, and the shares of a frozen predictor."""
    learned = np.zeros((ROWS, COLUMNS))
    learned[WEIGHT, :TYPES] = [given[f"weight_{name}"] for name in TOKEN_TYPES]
    learned[GAMMA, 0] = given["gamma"]
    learned[OPTIONS, : len(SWITCHES)] = [given[name] for name in SWITCHES]
    learned[ALPHA, STRUCTURAL] = given["alpha_structural"]
    for queue, name in ((CHAT, "chat"), (AGENT, "agent")):
        learned[ALPHA, queue] = given[f"alpha_{name}"]
        learned[MU, queue], learned[SIGMA, queue] = given[f"mu_{name}"], given[f"sigma_{name}"]
        if given["fixed_predictor"]:
            learned[TURNED, queue - CHAT], learned[SESSIONS, queue - CHAT] = given[f"continue_{name}"], 1.0
    return learned


def learned_parameters(p: Pool) -> dict[str, float]:
    """What a replay has learned, as start values for another: the parameters behind the `fixed_*` switches."""
    found = {f"weight_{name}": p.core.learned[WEIGHT, kind] for kind, name in enumerate(TOKEN_TYPES)}
    found |= {"gamma": p.core.learned[GAMMA, 0], "alpha_structural": p.core.learned[ALPHA, STRUCTURAL]}
    for queue, name in ((CHAT, "chat"), (AGENT, "agent")):
        found |= {f"alpha_{name}": p.core.learned[ALPHA, queue], f"mu_{name}": p.core.learned[MU, queue],
                  f"sigma_{name}": p.core.learned[SIGMA, queue]}  # fmt: skip
        seen = p.core.learned[SESSIONS, queue - CHAT]
        found[f"continue_{name}"] = p.core.learned[TURNED, queue - CHAT] / seen if seen else 1.0
    return {name: float(value) for name, value in found.items()}


def pool(
    nodes: int, room_tokens: NDArray[np.int64], tokens: NDArray[np.int64], path_tokens: NDArray[np.int64],
    parent: NDArray[np.int32], leaf: NDArray[np.int32], ts_us: NDArray[np.int64], node_type: NDArray[np.int32],
    session: Any = None, session_type: Any = None, model: Any = None, *,
    predictor: float = 2.0, eta: float = 0.1, update_evictions: float = 1000.0, gap_window: float = 200.0,
    temperature: float = 1.0, learning_rate: float = 0.05, fixed_types: float = 0.0, fixed_queues: float = 0.0,
    fixed_timing: float = 0.0, fixed_decay: float = 0.0, fixed_predictor: float = 0.0, gamma: float = 1.0,
    mu_chat: float = 4.15, sigma_chat: float = 0.97, mu_agent: float = 2.28, sigma_agent: float = 1.34,
    alpha_structural: float = 1.0, alpha_chat: float = 1.0, alpha_agent: float = 1.0, weight_other: float = 1.0,
    weight_system: float = 1.0, weight_tools: float = 1.0, weight_user: float = 1.0, weight_assistant: float = 1.0,
    weight_thinking: float = 1.0, weight_tool_call: float = 1.0, weight_tool_result: float = 1.0,
    continue_chat: float = 1.0, continue_agent: float = 1.0,
) -> Pool:  # fmt: skip
    """Nothing resident, nothing learned. Without sessions every request is a session of its own; without token types
    every node is `other`; without session types no session is an agent's; without models all have the same."""
    given = {name: value for name, value in locals().items() if name in PARAMETERS}
    cell, table = cell_of(path_tokens, tokens, node_type), lane_table()
    count = np.bincount(cell, minlength=CELLS)
    most = np.zeros(3 * TYPES + TYPES * OFFSETS, np.int64)
    for queue in range(4):
        np.add.at(most, table[queue], count * (table[queue] != THINKING) if queue else count)
    spots = empty_spots([("cell", np.int16), ("room", np.int32), ("gone", np.bool_)], parent)
    spots.room, spots.cell = room_tokens, cell
    core, heap = empty_core(
        [("hit", np.int64), ("placed", np.int64), ("chance", np.float64)], most,
        ("learned", np.float64, (ROWS, COLUMNS)), ("counts", np.int64, (3, CELLS)), ("lane_of", np.int8, (4, CELLS)),
        ("gaps", np.float64, (2, int(gap_window))),
    )  # fmt: skip
    core.learned[:], core.lane_of[:] = learned_start(given), table
    asks, known = arrivals(ts_us, leaf, path_tokens, parent, session, session_type, model)
    core.lanes["chance"][3 * TYPES :] = np.tile(chance_at(np.arange(OFFSETS), gamma), TYPES)
    return Pool(spots, heap, asks, known, core)


def learn_turn(p: Any, who: int, kind: int, now_us: int) -> None:
    """The predictor learns from a turn: of this session, and of those that have been silent for too long."""
    if p.core.learned[OPTIONS, FIXED_PREDICTOR] > 0.0:
        return
    turns = p.known[who].turns
    if p.core.learned[OPTIONS, PREDICTOR] == LEARNED:
        judge_silent(p, now_us, p.core.learned[OPTIONS, RATE])
        if turns == 2:
            judge(p, who, 1.0, p.core.learned[OPTIONS, RATE])
    if turns == 1:
        p.core.learned[SESSIONS, kind] += 1.0
    elif turns == 2:
        p.core.learned[TURNED, kind] += 1.0


def route(p: Any, request: int, now_us: int) -> int:
    """Count the turn, learn from it, and choose the queue of the request."""
    ask = p.asks[request]
    who = np.int64(ask.session)
    one, root = p.known[who], p.known[ask.root]
    queue = np.int64(AGENT) if ask.agent else np.int64(CHAT)
    if root.user != who:
        root.user = who
        root.users += 1
    one.turns += 1
    learn_turn(p, who, queue - CHAT, now_us)
    if one.turns > 1:
        note_gap(p, queue, (now_us - one.last_us) * 1e-6)
    else:
        one.first = request
        one.company = root.users - 1
        if not continues(p, request, np.int64(p.core.learned[OPTIONS, PREDICTOR])):
            queue = np.int64(STRUCTURAL) if root.users > 1 else np.int64(EVICT_FIRST)
    one.last_us = now_us
    return queue


def arrive(p: Any, request: int, node: int, depth: int, now_us: int) -> None:
    """The deepest node a request uses or inserts, and with it all above: resident ones learn a hit of their type, place
    and queue, others become resident and, where they had been evicted before, learn a regret."""
    p.core.live[REQUEST] = request
    queue = route(p, request, now_us)
    order = order_of(request, depth)
    end = node
    while node >= 0:
        spot = p.spots[node]
        if spot.at >= 0:
            drop_leaf(p, node)
        which = np.int64(p.core.lane_of[queue, spot.cell])
        p.core.lanes[which].placed += spot.room
        if spot.there:
            p.core.counts[HIT, spot.cell] += 1
            p.core.lanes[spot.lane].hit += spot.room
        else:
            p.core.counts[ENTERED, spot.cell] += 1
            if spot.gone:
                p.core.counts[REGRET, spot.cell] += 1
            new_child(p, node)
        spot.lane = which
        spot.order = order
        order += 1
        node = np.int64(spot.parent)
    if p.spots[end].children == 0:
        add_leaf(p, end)


def enter(p: Any, own: Any, node: int, depth: int, is_leaf: bool, request: int, now_us: int) -> None:
    """The deepest node of a request, if it is new, brings the path."""
    if p.core.live[REQUEST] != request:
        arrive(p, request, node, np.int64(depth), now_us)


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """The deepest node of a request, if it is resident, brings the path."""
    if p.core.live[REQUEST] != request:
        arrive(p, request, node, np.int64(depth), now_us)


def leave(p: Any, own: Any, node: int, evicted: bool) -> None:
    """A node expires; an evicted one has gone when it was chosen."""
    if p.spots[node].there:
        give_up(p, node)


def hold(p: Any, own: Any, node: int) -> None:
    """A running request ends at a node: no leaf until it has ended, as if it had a child."""
    if p.spots[node].at >= 0:
        drop_leaf(p, node)
    p.spots[node].children += 1


def unhold(p: Any, own: Any, node: int) -> None:
    """That request has ended."""
    p.spots[node].children -= 1
    if p.spots[node].children == 0:
        add_leaf(p, node)


def cover(p: Any, own: Any, node: int) -> None:
    """Nothing: the path that covers a node has been walked."""


def uncover(p: Any, own: Any, node: int) -> None:
    """Nothing: the child that went has seen to it."""


def score(p: Any, which: int, idle_seconds: float) -> float:
    """alpha x weight x p / idle of a leaf of a lane; smallest goes first, evict-first below everything."""
    queue = queue_of(which)
    idle = max(idle_seconds, 1e-3)
    if queue == EVICT_FIRST:
        return -idle
    if queue == STRUCTURAL:
        kind, chance = (which - 3 * TYPES) // OFFSETS, p.core.lanes[which].chance
    else:
        kind, chance = which % TYPES, survival(idle, p.core.learned[MU, queue], p.core.learned[SIGMA, queue])
    return p.core.learned[ALPHA, queue] * p.core.learned[WEIGHT, kind] * chance / idle


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The leaf with the lowest score among the oldest leaves of all lanes, taken out; -1 = none. What stands in
    evict-first lanes goes before all else. Every so many evictions the weights are learned anew."""
    asked = request if request >= 0 else p.core.live[REQUEST]
    lane = lowest_lane(p, asked)
    while lane >= 0 and nodes[p.core.lanes[lane].best].pinned == request:
        look_past(p, lane, asked)
        lane = lowest_lane(p, asked)
    if lane < 0:
        return np.int64(-1)
    best = np.int64(p.core.lanes[lane].best)
    give_up(p, best)
    p.spots[best].gone = True
    p.core.live[EVICTED] += 1
    if p.core.live[EVICTED] >= p.core.learned[OPTIONS, UPDATE]:
        p.core.live[EVICTED] = 0
        learn(p)
    return best


def lowest_lane(p: Any, asked: int) -> int:
    """The lane whose oldest leaf has the lowest score at a request: an evict-first one, else any; -1 = none."""
    now_us = p.asks[asked].ts_us
    chosen = np.int64(-1)
    lowest, tie = np.inf, np.int64(0)
    for only_first in (True, False):
        for k in range(FIRST, FIRST + p.core.live[COUNT]):
            which = p.core.live[k]
            if (which < TYPES) != only_first:
                continue
            lane = p.core.lanes[which]
            if lane.best == LOOK or (lane.skipped >= 0 and lane.skipped != asked):
                look(p, which)
            if lane.best == NONE:
                continue
            if lane.asked != asked:
                lane.asked = asked
                lane.value = score(p, which, (now_us - lane.since_us) * 1e-6)
            if lane.value < lowest or (lane.value == lowest and before(np.int64(lane.order), tie)):
                chosen, lowest, tie = which, lane.value, np.int64(lane.order)
        if chosen >= 0:
            break
    return chosen


def before(order: int, other: int) -> bool:
    """Whether a leaf goes before another one of the same score: the deeper, then the one longer unused."""
    return depth_of(order) > depth_of(other) or (depth_of(order) == depth_of(other) and order < other)
