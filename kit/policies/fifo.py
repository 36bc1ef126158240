"""FIFO among leaves: earliest insertion first, the deeper block first inside a request.

Source: SGLang `fifo` (creation time) on a leaf heap. Use does not change the key. Where no
node has children the heap is a list.
Leaves out: Redis and cloud FIFO variants that reinsert.
"""

from __future__ import annotations

from kit.policies import insertion

TITLE = "FIFO (leaves only)"
PARAMETERS: dict[str, float] = {}
RESTAMP = False
ON_FLAT_KEYS = insertion
