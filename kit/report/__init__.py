"""The report: results in, one HTML file out, that opens without a network or a script, prints on A4 and can be shared.

`render` reads nothing but the plain `results` dict (the content of results.json), so that whatever it shows can be
checked against that file. `render_index` lists the reports of a batch, most money at stake first.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kit.report.page import READINGS, index_page, page


def render(results: dict[str, Any], reading: str = "both") -> str:
    """One HTML document: "finance" (verdict, money, assumptions), "infra" (verdict, trail, curves, settings), both."""
    return page(results, reading)


def write(results: dict[str, Any], path: str | Path, reading: str = "both") -> Path:
    """Render to a file, whole or not at all: a reader never meets half a report. Returns the path."""
    return replace_file(Path(path), render(results, reading))


def render_index(entries: Sequence[dict[str, Any]]) -> str:
    """One HTML document over the reports of a batch.

    An entry has `name`, `log`, `status` (made, kept, earlier or failed), `report` (a path relative to the index) or
    `reason`, of its decision `rule`, `policy`, `sentence` and `saving_per_month`, and where known `retention` (choice,
    saving and currency), `facts` and `previous` (what it is compared with: name and facts) and `chargeback`.
    """
    return index_page(entries)


def replace_file(path: Path, content: str) -> Path:
    """Write text beside the target and move it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as out:
            out.write(content)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


__all__ = ["READINGS", "render", "render_index", "replace_file", "write"]
