"""The prefix tree that the calls of a week walk: shared roots, then one chain per session, then outputs read once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kit.sample.traffic import TYPES, Calls, Hot, previous, within_session


class Paths(NamedTuple):
    """Every request's path, root first, as flat arrays: request i owns the nodes from offsets[i] to offsets[i + 1]."""

    offsets: np.ndarray
    keys: np.ndarray
    tokens: np.ndarray
    types: np.ndarray  # positions in TYPES


def paths(calls: Calls, hot: Hot) -> Paths:
    """The path of every call: its shared root if it has one, its session so far, and the output that only it reads."""
    tokens, types, chain_first, once_first = _nodes(calls, hot)
    roots = np.where(calls.hot >= 0, hot.nodes[calls.hot], 0)
    root_first = (np.cumsum(hot.nodes) - hot.nodes)[calls.hot]
    chain = within_session(calls.session, _added_nodes(calls))
    once = calls.once_tokens > 0
    lengths = roots + chain + once
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    at = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    in_root = np.repeat(root_first, lengths) + at
    in_chain = np.repeat(chain_first - roots, lengths) + at
    in_once = np.repeat(once_first + np.cumsum(once) - 1, lengths)
    keys = np.where(at < np.repeat(roots, lengths), in_root, in_chain)
    keys = np.where(at < np.repeat(roots + chain, lengths), keys, in_once)
    return Paths(offsets, keys, tokens[keys], types[keys])


def _added_nodes(calls: Calls) -> np.ndarray:
    """Nodes a call adds to its session: its text, after the first turn the answer before, for agents its thoughts."""
    return np.where(calls.turn == 0, 1, np.where(calls.kind == 1, 3, 2))


def _nodes(calls: Calls, hot: Hot) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Tokens and type of every node, the first chain node of each call's session, the first read-once node."""
    root_tokens = np.stack([hot.system, hot.tools], axis=1).ravel()
    root_types = np.tile([TYPES.index("system"), TYPES.index("tools")], len(hot.system))[root_tokens > 0]
    root_tokens = root_tokens[root_tokens > 0]
    chain_tokens, chain_types = _chain_nodes(calls)
    once_tokens = calls.once_tokens[calls.once_tokens > 0]
    once_types = np.full(len(once_tokens), TYPES.index("tool_result"))
    added = _added_nodes(calls)
    chain_first = len(root_tokens) + np.cumsum(added) - within_session(calls.session, added)
    tokens = np.concatenate([root_tokens, chain_tokens, once_tokens])
    types = np.concatenate([root_types, chain_types, once_types])
    return tokens, types, chain_first, len(root_tokens) + len(chain_tokens)


def _chain_nodes(calls: Calls) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and types of the session nodes, call by call: thoughts and answer of the call before, the new text."""
    added = _added_nodes(calls)
    by = np.repeat(np.arange(len(added)), added)
    from_end = np.cumsum(added)[by] - 1 - np.arange(len(by))  # 0 the new text, 1 the answer before, 2 its thoughts
    newest = np.where(calls.trigger == 1, TYPES.index("tool_result"), TYPES.index("user"))
    types = np.choose(from_end, [newest[by], TYPES.index("assistant"), TYPES.index("thinking")])
    said, thought = previous(calls.turn, calls.said_tokens), previous(calls.turn, calls.thought_tokens)
    return np.choose(from_end, [calls.new_tokens[by], said[by], thought[by]]), types
