"""FIFO among leaves: earliest insertion first, the deeper block first inside a request.

Source: SGLang `fifo` (creation time) on a leaf heap. Use does not change the key.
Leaves out: Redis and cloud FIFO variants that reinsert.
"""

from __future__ import annotations

TITLE = "FIFO (leaves only)"
PARAMETERS: dict[str, float] = {}
RESTAMP = False
