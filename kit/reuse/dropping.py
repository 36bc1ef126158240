"""What evicting by length would cost: both rankings side by side, and the reuse lost with the longest keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kit.reuse.concentration import ranking, share, top_count
from kit.reuse.cuts import Keys
from kit.reuse.trace import Ints

DROPPED_SHARES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5)


def _places(order: Ints) -> Ints:
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(1, len(order) + 1)
    return place


def rankings(keys: Keys, top: int = 10) -> dict[str, list[dict[str, Any]]]:
    """The first ``top`` keys by length x count and by length alone, each with its place in the other ranking.

    Aliases are those of the concentration table (k1 has the most requests). Equal values: the more requested key first.
    """
    known = _places(ranking(keys))
    value = keys.prefix_tokens * keys.holders
    by_value = np.lexsort((known, -value))
    by_length = np.lexsort((known, -keys.prefix_tokens))
    value_place, length_place = _places(by_value), _places(by_length)

    def rows(order: Ints) -> list[dict[str, Any]]:
        return [
            {
                "alias": f"k{known[key]}",
                "prefix_tokens": int(keys.prefix_tokens[key]),
                "requests": int(keys.holders[key]),
                "value_tokens": int(value[key]),
                "rank_by_value": int(value_place[key]),
                "rank_by_length": int(length_place[key]),
            }
            for key in order[:top]
        ]

    return {"by_value": rows(by_value), "by_length": rows(by_length)}


def dropped(keys: Keys, longest_first: Ints, shares: Sequence[float] = DROPPED_SHARES) -> list[dict[str, Any]]:
    """If the longest x % of keys were never kept: room freed, value (length x count), reuse and requests given up.

    ``reuse_share`` counts every use of a key but its first, length x (count - 1): what a cache could have served.
    """
    length, count = keys.prefix_tokens[longest_first], keys.holders[longest_first]
    worth = (length, length * count, length * (count - 1), keys.requests[longest_first])
    names = ("room_share", "value_share", "reuse_share", "requests_share")
    rows = []
    for part in shares:
        size = top_count(keys.count, part)
        figures = {name: share(w[:size].sum(), w.sum()) for name, w in zip(names, worth, strict=True)}
        rows.append({"longest_share": part, "keys": size, **figures})
    return rows
