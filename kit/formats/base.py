"""What a log format is: the fields it has, how it is recognised, and how its fields become request columns.

A format is data: `Field`s name what to look for and of what kind it is, `columns` is the one explicit SELECT list from
typed fields to request columns, `recognise` looks at the content of a file (never its name). Values are read as text
and
cast by kind, each failed cast with its reason; nothing is inferred from a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class LogError(ValueError):
    """A log that cannot be read. The message is one line: what was found, what is accepted, what to do next."""


class UnknownNameError(LogError):
    """The user named a format or a column that does not exist. One line with the accepted values."""


@dataclass(frozen=True)
class Peek:
    """The first look at one file: container, top-level column names, and up to 200 records for recognition only.

    `lines`: how many lines it has, where that is known from reading it whole. `notes`: what to warn of.
    """

    path: Path
    container: str
    columns: tuple[str, ...]
    records: tuple[dict[str, Any], ...] = ()
    delimiter: str = ","
    compression: str | None = None
    name: str = ""
    lines: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What the file is called to people (a rescued copy keeps the name of its original)."""
        return self.name or self.path.name

    def has(self, *names: str) -> bool:
        """True when every name is a top-level column."""
        return all(name in self.columns for name in names)

    def any_record(self, test: Callable[[dict[str, Any]], bool]) -> bool:
        """True when some looked-at record passes the test; a record without the expected shape does not."""
        for record in self.records:
            try:
                if test(record):
                    return True
            except (AttributeError, KeyError, TypeError, IndexError):
                continue
        return False


@dataclass(frozen=True)
class Field:
    """One thing to look for in a record.

    `paths` are the accepted places, best first; `/` steps into a JSON object (`usage/input_tokens`). `kind` is one of
    the keys of `kit.formats.kinds.KINDS`. A `required` field that is absent rejects the row.
    """

    name: str
    kind: str
    paths: tuple[str, ...]
    required: bool = False


@dataclass(frozen=True)
class Format:
    """One log layout; see the module text. All SQL is over the typed fields of one record.

    `rows`: SQL relation of raw records when one line is not one record (over `{lines}`: rn, filename, text).
    `keep`: condition under which a record claims to be a request. `checks`: (condition that is wrong, reason).
    `after`: a step on the temporary table `staged` (merging streamed records, following ids), before rows are counted;
    it returns statements about what it derived. `aside`: (condition, reason) for good rows that are no request of this
    question (failed calls, answers from a gateway's own cache): reported like refused rows but not as damage.
    Entries of `columns` that are not request columns are extra columns for `after`.
    `prompt`: the prompt of one record (or line of text), for logs that may hold prompts; see `kit.formats.prompts`.
    `sets`: the columns that `after` writes beside those in `columns`; None: any of them.
    `refuses`: why a recognised file is no request log, and what to do instead.
    `clock`: absolute, relative (starts at 0), session (starts at 0 in every session), none.
    """

    name: str
    title: str
    containers: tuple[str, ...]
    recognise: Callable[[Peek], float]
    fields: tuple[Field, ...]
    columns: Mapping[str, str]
    identity_rule: str
    token_rule: str
    units: Mapping[str, str]
    source: str
    clock: str = "absolute"
    keep: str = "true"
    checks: tuple[tuple[str, str], ...] = ()
    rows: str | None = None
    after: Callable[[Any], list[str]] | None = None
    aside: tuple[tuple[str, str], ...] = ()
    prompt: Callable[[Any], Any] | None = None
    refuses: str | None = None
    sets: tuple[str, ...] | None = None

    def required_missing(self, peek: Peek) -> list[str]:
        """Required fields of this format that the looked-at file does not have, by their best-known name."""
        return [item.paths[0] for item in self.fields if item.required and not any(seen(peek, p) for p in item.paths)]


def seen(peek: Peek, path: str) -> bool:
    """True when the path leads somewhere in the looked-at file."""
    if path in peek.columns:
        return True
    first, *rest = path.split("/")
    if first not in peek.columns:
        return False
    return not rest or peek.any_record(lambda record: _walk(record, [first, *rest]))


def _walk(record: dict[str, Any], steps: list[str]) -> bool:
    value: Any = record
    for step in steps:
        value = value[step]
    return value is not None
