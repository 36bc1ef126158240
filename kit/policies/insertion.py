"""Insertion order as one list: what first-in-first-out needs where no node has children.

Source: none of its own; `fifo` on flat keys and `fifo_flat` use it. Use does not move a node.
"""

from __future__ import annotations

from typing import Any

from kit.policies.lru import NEWER, cover, enter, leave, pool, soon, uncover

__all__ = ["cover", "enter", "leave", "pool", "soon", "touch", "uncover", "victim"]


def touch(p: Any, own: Any, node: int, depth: int, request: int, now_us: int) -> None:
    """Nothing: use does not move a node."""


def victim(p: Any, own: Any, nodes: Any, request: int) -> int:
    """The first inserted node that this request does not pin; -1 = none."""
    end = p.links.shape[0] - 1
    node = p.links[end, NEWER]
    if node != end and nodes[node].pinned == request:
        node = p.links[node, NEWER]
    return node if node != end else -1
