"""The parts of the documents that come from the code. `python -m tests.documents` writes them, a test compares them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import polars as pl

from kit.formats import REGISTRY as FORMATS
from kit.policies import FIELDS
from kit.policies import REGISTRY as POLICIES
from kit.terms import TERMS

PROJECT = Path(__file__).resolve().parent.parent


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _code(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def formats_table() -> str:
    """One row per log format the kit reads."""
    rows = [
        [f"`{item.name}`", item.title, ", ".join(item.containers), _code(_needed(item.name)) or "-"]
        for item in FORMATS.values()
    ]
    return _table(["format", "what it is", "files", "must have"], rows)


def _needed(name: str) -> list[str]:
    if name == "canonical":
        return ["ts", "input_tokens"]
    return [field.paths[0] for field in FORMATS[name].fields if field.required]


def policies_table() -> str:
    """One row per eviction policy."""
    rows = [
        [f"`{item.name}`", item.title, ", ".join(item.needs[len(FIELDS) :]) or "-", item.source]
        for item in POLICIES.values()
    ]
    return _table(["name", "policy", "needs of the log, beside times and prefixes", "after"], rows)


def columns_table() -> str:
    """One row per column of the kit's own log table, with how full the sample week has it."""
    week = pl.read_parquet(PROJECT / "data" / "sample_week.parquet")
    rows = []
    for field in FORMATS["canonical"].fields:
        term, filled = TERMS["source_id" if field.name == "request_id" else field.name], "-"  # the kit numbers anew
        if field.name in week.columns:
            filled = f"{1 - week[field.name].null_count() / week.height:.0%}"
        aliases = [name for name in field.paths if name != field.name]
        rows.append([f"`{field.name}`", _code(aliases) or "-", term.unit or "-", term.sentence, filled])
    return _table(["column", "also read as", "unit", "meaning", "filled in the sample week"], rows)


PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"formats": formats_table},
    "kit/policies/README.md": {"policies": policies_table},
    "data/README.md": {"columns": columns_table},
}


def filled(text: str, parts: dict[str, Callable[[], str]]) -> str:
    """The text with every `<!-- name -->` ... `<!-- end -->` part written anew."""
    for name, build in parts.items():
        block = f"<!-- {name} -->\n{build()}\n<!-- end -->"
        text, count = re.subn(rf"<!-- {name} -->\n.*?<!-- end -->", lambda _, block=block: block, text, flags=re.S)
        if count != 1:
            raise ValueError(f"one part <!-- {name} --> ... <!-- end --> wanted, found {count}")
    return text


if __name__ == "__main__":
    for file, parts in PARTS.items():
        path = PROJECT / file
        path.write_text(filled(path.read_text(encoding="utf-8"), parts), encoding="utf-8")
