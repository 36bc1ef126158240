"""FIFO over a flat map: insertion order, a root may go before its children.

Source: simulators that keep blocks in one queue without a tree (root inserted first, evicted first). Such a simulator
counts the leading run of resident blocks, then walks the path block by block, root first, and pins nothing: a request
may evict a block it has just hit. A block whose ancestor is gone is stranded: resident, worth nothing until that is
back. No engine evicts like this; it is here to compare with such simulators. Leaves out: nothing.
"""

from __future__ import annotations

from kit.policies.insertion import cover, enter, leave, pool, soon, touch, uncover, victim

__all__ = ["cover", "enter", "leave", "pool", "soon", "touch", "uncover", "victim"]

TITLE = "FIFO (flat map)"
PARAMETERS: dict[str, float] = {}
INLINE = True
ROOT_FIRST = True
