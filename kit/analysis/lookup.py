"""Finding the row one means among rows of plain tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def at(rows: Iterable[dict[str, Any]], **wanted: Any) -> dict[str, Any] | None:
    """The first row with these values, None where there is none."""
    return next((row for row in rows if all(row[name] == value for name, value in wanted.items())), None)
