"""Mapping files: the columns of a home-made layout, named once. TOML or JSON, `canonical = "column"`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from kit.formats import LogError


def read_mapping(path: str | Path) -> dict[str, str]:
    """{canonical: column} from a `.toml` or `.json` file. Raises LogError in one line when it is no such table."""
    source = Path(path)
    try:
        text = source.read_text(encoding="utf-8-sig")
        table = tomllib.loads(text) if source.suffix == ".toml" else json.loads(text)
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise LogError(f'{source.name}: no mapping file ({why}); write lines such as ts = "when"') from None
    if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
        raise LogError(f'{source.name}: a mapping is a table of text, such as ts = "when"')
    return dict(table)
