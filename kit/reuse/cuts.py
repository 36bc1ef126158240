"""Where a prefix key is cut. A concentration figure means nothing without it: the same log gives 6 % or 39 %."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kit.reuse.trace import Ints, Trace, deepest_marked, highest_marked, least_from_leaves, sum_from_root

DEFAULT_CUT = {"flat": "key", "blocks": "longest_shared", "chain": "chain"}
CUTS = ("key", "longest_shared", "first_K", "root", "full", "session", "chain")
FIRST_K = r"first_([1-9]\d*)"
SENTENCES = {
    "key": "The key is the log's own prefix key.",
    "longest_shared": "The key is the longest prefix that any other request also has; "
    "a request that shares nothing is its own key.",
    "root": "The key is the first piece of the prompt (its root).",
    "full": "The key is the whole prompt.",
    "session": "The key is the session.",
    "chain": "The key is the message chain (session and agent).",
}


@dataclass(frozen=True)
class Keys:
    """Requests assigned to keys.

    Per request: ``of_request`` (key number, -1 none). Per key: ``requests`` (assigned to it), ``holders`` (requests
    that hold it as a prefix, at least as many), ``prefix_tokens`` (its length). The pairs ``credit_node``,
    ``credit_key`` name the deepest nodes that a key covers; it covers everything above them too.
    """

    cut: str
    sentence: str
    of_request: Ints
    requests: Ints
    holders: Ints
    prefix_tokens: Ints
    credit_node: Ints
    credit_key: Ints

    @property
    def count(self) -> int:
        """Number of keys."""
        return len(self.requests)

    @property
    def reused(self) -> NDArray[np.bool_]:
        """Per key: held by at least two requests."""
        return self.holders >= 2


def ids_are_local(trace: Trace) -> bool:
    """True where sessions are known, there are several, and not one block occurs in two of them."""
    held = trace.leaf >= 0
    session = trace.session[held].astype(np.int64)
    if not len(session) or session.min() < 0 or session.min() == session.max():
        return False
    low = np.full(len(trace.parent), np.iinfo(np.int64).max)
    high = low.copy()
    np.minimum.at(low, trace.leaf[held], session)
    np.minimum.at(high, trace.leaf[held], -session)
    low, high = least_from_leaves(trace.parent, low), -least_from_leaves(trace.parent, high)
    used = trace.passes > 0
    return bool((low[used] == high[used]).all())


def default_cut(trace: Trace) -> str | None:
    """Where the key is cut when nobody says: the key of a flat log, the chain of a transcript.

    In a block log the longest shared prefix, but the chain where block ids are local to a session: there nothing but
    the session's own next turn can share a prefix.
    """
    if trace.identity == "blocks" and ids_are_local(trace):
        return "chain"
    return DEFAULT_CUT.get(trace.identity or "")


def is_cut(name: str) -> bool:
    """Whether a key can be cut by that name: one of CUTS, with a whole number in the place of K."""
    return name in SENTENCES or re.fullmatch(FIRST_K, name) is not None


def cut_keys(trace: Trace, cut: str | None = None) -> Keys | None:
    """The keys of a log under a cut (None: the default of the log's kind); None where the log has no such identity.

    Raises ``ValueError`` for a cut that does not exist.
    """
    name = cut or default_cut(trace)
    if name is None:
        return None
    first = re.fullmatch(FIRST_K, name)
    if not is_cut(name):
        raise ValueError(f"key cut {name!r} is unknown; use one of {', '.join(CUTS)} (K a whole number, as in first_4)")
    if name in ("session", "chain") and (trace.session if name == "session" else trace.chain).max(initial=-1) >= 0:
        return _group_keys(trace, name)
    if trace.leaf.max(initial=-1) < 0 or name == "session" or (name == "chain" and cut):
        return None
    if name == "chain":
        return _path_keys(trace, "root")
    return _path_keys(trace, name, int(first.group(1)) if first else 0)


def _key_node(trace: Trace, name: str, first: int) -> Ints:
    """The node at which a path is cut, for every node as the end of a path."""
    everything = np.arange(len(trace.parent))
    if name == "longest_shared":
        shared = deepest_marked(trace.parent, trace.passes >= 2)
        return np.where(shared >= 0, shared, everything)
    if name == "root":
        return highest_marked(trace.parent, trace.depth == 0)
    if first:
        full = trace.path_tokens >= first * trace.block_tokens if trace.block_tokens else trace.depth >= first - 1
        node = highest_marked(trace.parent, full)
        return np.where(node >= 0, node, everything)
    return everything


def _path_keys(trace: Trace, name: str, first: int = 0) -> Keys:
    node_at = _key_node(trace, name, first)
    held = trace.leaf >= 0
    nodes, of_held = np.unique(node_at[trace.leaf[held]], return_inverse=True)
    of_request = np.full(trace.requests, -1, dtype=np.int64)
    of_request[held] = of_held
    requests = np.bincount(of_held, minlength=len(nodes)).astype(np.int64)
    return Keys(
        cut=name,
        sentence=SENTENCES.get(name) or f"The key is the first {first} blocks of the prompt.",
        of_request=of_request,
        requests=requests,
        holders=requests if name in ("key", "full") else trace.passes[nodes],
        prefix_tokens=trace.path_tokens[nodes],
        credit_node=nodes,
        credit_key=np.arange(len(nodes)),
    )


def _group_keys(trace: Trace, name: str) -> Keys:
    """Keys that are groups of requests: a key covers every prompt of its session or chain."""
    of_request = (trace.session if name == "session" else trace.chain).astype(np.int64)
    known = of_request >= 0
    _, of_known = np.unique(of_request[known], return_inverse=True)
    of_request[known] = of_known
    requests = np.bincount(of_known).astype(np.int64)
    length = np.zeros(len(requests), dtype=np.int64)
    pathed = known & (trace.leaf >= 0)
    np.maximum.at(length, of_request[pathed], trace.path_tokens[trace.leaf[pathed]])
    return Keys(
        cut=name,
        sentence=SENTENCES[name],
        of_request=of_request,
        requests=requests,
        holders=requests,
        prefix_tokens=length,
        credit_node=trace.leaf[pathed],
        credit_key=of_request[pathed],
    )


def reusable_tokens(trace: Trace) -> Ints:
    """Per node: tokens that could have been read from a cache that never forgets (every pass but the first)."""
    return trace.tokens * np.maximum(trace.passes - 1, 0)


def prompt_tokens(trace: Trace) -> Ints:
    """Per node: tokens that all requests together brought through it, the first time included."""
    return trace.tokens * trace.passes


def one_shot_tokens(trace: Trace) -> Ints:
    """Per request: tokens of its path that no other request of the log has."""
    alone = np.where(trace.passes == 1, trace.tokens, 0)
    on_path = np.append(sum_from_root(trace.parent, alone), 0)
    return on_path[trace.leaf]
