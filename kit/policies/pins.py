"""What may not be evicted: the path of the request that is served, and the paths of requests that still run."""

from __future__ import annotations

from typing import Any


def pinned(nodes: Any, node: int, request: int) -> bool:
    """Whether a node is in use while `request` is served (`nodes.pinned`: until which request); below 0 = nobody is."""
    return 0 <= request <= nodes[node].pinned
