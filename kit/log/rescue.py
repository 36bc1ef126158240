"""Files that are damaged: what can be saved of them, and a reason for every line that cannot.

A compressed file is checked whole before it is read (a cut or corrupt one may otherwise end early without a word); of a
damaged one the lines before the damage are kept. A CSV with a quote that never closes loses that line, not the rest.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from kit.formats import Peek
from kit.log.sources import open_bytes, pieces

CHUNK = 1 << 20
MOST_JOINED_LINES = 1000
OPEN_QUOTE = "damaged line: a quote is never closed"
CUT_SHORT = "the compressed file is cut short or corrupt: everything from here on is lost"
Refusal = tuple[str, int, str]
DAMAGE = (EOFError, OSError, gzip.BadGzipFile, zlib.error, ValueError)
"""What reading a damaged stream raises; a ValueError is what pyarrow says of a zstd stream."""


def _lines(path: Path) -> int | None:
    """Number of lines in a compressed stream; None when it is damaged or has no end."""
    lines, last = 0, b"\n"
    try:
        with open_bytes(path) as stream:
            while chunk := stream.read(CHUNK):
                lines += chunk.count(b"\n")
                last = chunk[-1:]
    except DAMAGE:
        return None
    return lines + (last != b"\n")


def unpacked(one: Peek, folder: Path) -> tuple[Peek, list[Refusal]]:
    """The same file, or, when its compression is damaged, a plain copy of the whole lines before the damage.

    A copy without any has 0 `lines`.
    """
    if one.compression is None:
        return one, []
    if (counted := _lines(one.path)) is not None:
        return replace(one, lines=counted), []
    target = folder / f"{len(list(folder.iterdir()))}.part"
    lines, rest = 0, b""
    with target.open("wb") as out:
        try:
            for piece in pieces(one.path):
                whole, newline, rest = (rest + piece).rpartition(b"\n")
                out.write(whole + newline)
                lines += whole.count(b"\n") + len(newline)
        except DAMAGE:
            pass
    kept = replace(one, path=target, name=one.label, compression=None, lines=None if lines else 0)
    return kept, [(one.label, lines + 1, CUT_SHORT)]


def mended(one: Peek, folder: Path) -> tuple[Peek, list[Refusal]]:
    """A plain copy of a CSV without the lines whose quote never closes."""
    target = folder / f"{len(list(folder.iterdir()))}.part"
    refused: list[Refusal] = []
    with open_bytes(one.path) as stream, target.open("w", encoding="utf-8", newline="") as out:
        for record, text in _records(stream, one.delimiter, len(one.columns)):
            if text is None:
                refused.append((one.label, record, OPEN_QUOTE))
            else:
                out.write(text)
    return replace(one, path=target, name=one.label, compression=None), refused


def _records(stream: Iterable[bytes], delimiter: str, columns: int) -> Iterator[tuple[int, str | None]]:
    """(number, text) of every record; None where a quote opens and no later line closes it into a full record."""
    waiting: list[str] = []
    number = 0
    for line in chain((raw.decode("utf-8", "replace") for raw in stream), [None]):
        if line is not None:
            waiting.append(line)
            if _is_open(waiting) and len(waiting) < MOST_JOINED_LINES:
                continue
        for text in _settled(waiting, delimiter, columns):
            number += 1
            yield number, text
        waiting = []


def _is_open(lines: Sequence[str]) -> bool:
    return sum(line.count('"') for line in lines) % 2 == 1


def _settled(waiting: list[str], delimiter: str, columns: int) -> list[str | None]:
    """One record when the joined lines are one, else each line by itself, those with an open quote refused."""
    joined = "".join(waiting)
    if not _is_open(waiting) and (
        len(waiting) == 1 or len(next(csv.reader(waiting, delimiter=delimiter), [])) == columns
    ):
        return [joined]
    return [None if _is_open([line]) else line for line in waiting]
