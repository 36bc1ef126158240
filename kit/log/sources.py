"""From what the user named (file, folder, glob) to files with a known container, compression and fingerprint."""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import IO, Any

from kit.formats import LogError, Peek

Sources = str | Path | Sequence[str | Path]
HEAD_BYTES = 1 << 20
BRIEF_BYTES = 1 << 15
LONGEST_LINE_BYTES = 100 << 20
LOOK_AT = 200
SERVER_LINE = re.compile(r"^(\(.*?\)\s*)?(DEBUG|INFO|WARNING|ERROR)\b")
OTHER_PACKERS = {b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x04\x22\x4d\x18": "lz4", b"7z\xbc\xaf": "7-Zip"}
MOST_NULS = 0.05
ACCEPTED = "accepted are Parquet, CSV, JSON lines, JSON, each plain, gz or zst"


State = tuple[int, int, int]


@dataclass(frozen=True)
class Files:
    """The files of one log in order of name, with their fingerprint; `repeated` are files with equal bytes, left
    out. `lines` counts the lines of each file's bytes as they are, `states` is what tells a change of a file."""

    paths: tuple[Path, ...]
    sha256: str
    repeated: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    lines: Mapping[Path, int] = field(default_factory=dict)
    states: Mapping[Path, State] = field(default_factory=dict)


def resolve(sources: Sources) -> list[Path]:
    """Every file that the sources name, sorted by name, each once. Raises LogError when one names nothing."""
    named = [sources] if isinstance(sources, (str, Path)) else list(sources)
    if not named:
        raise LogError("no log was named; give a file, a folder or a glob such as 'logs/*.jsonl.gz'")
    found: dict[Path, None] = {}
    for source in named:
        if not str(source).strip():
            raise LogError("a log was named by an empty text; give a file, a folder or a glob")
        for path in _expand(Path(source)):
            found[path.resolve()] = None
    return sorted(found, key=lambda path: (path.name, str(path)))


def _expand(source: Path) -> Iterable[Path]:
    if source.is_dir():
        inside = [path for path in _inside(source) if path.is_file()]
        if not inside:
            raise LogError(f"{source}: the folder has no files; name a folder that holds the log")
        return inside
    if source.is_file():
        return [source]
    if source.exists():
        raise LogError(f"{source}: neither a file nor a folder (a pipe or a device); save it as a file first")
    if source.is_symlink():
        raise LogError(f"{source}: a link to {os.readlink(source)}, which is not there; name the file itself")
    matches = [Path(name) for name in glob(str(source), recursive=True) if Path(name).is_file()]
    if not matches:
        raise LogError(f"{source}: no such file, folder or glob; check the path")
    return matches


def _cannot_list(error: OSError) -> None:
    raise LogError(f"{error.filename}: the folder cannot be listed ({error.strerror}); change that, or name its files")


def _inside(folder: Path) -> Iterator[Path]:
    """Every file and dangling link in a folder and its folders, linked ones too (each once), but hidden ones."""
    been = set()
    for here, folders, files in os.walk(folder, onerror=_cannot_list, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if (real := os.path.realpath(here)) in been:
            folders.clear()
            continue
        been.add(real)
        yield from (Path(here) / name for name in files if not name.startswith("."))


def dangling(sources: Sources) -> list[str]:
    """The links to nothing in the folders that the sources name, each as a warning."""
    named = [sources] if isinstance(sources, (str, Path)) else list(sources)
    links = [path for source in named if Path(source).is_dir() for path in _inside(Path(source)) if not path.exists()]
    return [f"left out: {path.name}: a link to {os.readlink(path)}, which is not there" for path in links]


def fingerprint(paths: Sequence[Path]) -> Files:
    """SHA-256 over all bytes, files in the given order (one file: what `sha256sum` prints).

    A second file with the same bytes is left out of the log and of the sum, and named.
    """
    total, seen, kept, repeated, empty = hashlib.sha256(), set(), [], [], []
    lines, states = {}, {}
    for path in paths:
        states[path] = _state(path)
        if path.stat().st_size == 0:
            empty.append(path.name)
            continue
        own, lines[path] = _digest(path)
        if own in seen:
            repeated.append(path.name)
            continue
        seen.add(own)
        kept.append(path)
    if not kept:
        raise LogError(f"{', '.join(empty[:3])}: the file is empty (0 bytes); export the log again")
    if len(kept) == 1:
        return Files(tuple(kept), next(iter(seen)), tuple(repeated), tuple(empty), lines, states)
    for path in kept:
        for chunk in _chunks(path):
            total.update(chunk)
    return Files(tuple(kept), total.hexdigest(), tuple(repeated), tuple(empty), lines, states)


def _state(path: Path) -> State:
    """What changes when a file is written: its length, its time of change, and which file stands under the name."""
    now = path.stat()
    return now.st_size, now.st_mtime_ns, now.st_ino


def check_unchanged(files: Files) -> None:
    """Raise LogError when a file was written between its fingerprint and now: what was read is then no one log."""
    for path in files.paths:
        if not path.exists() or _state(path) != files.states[path]:
            raise LogError(f"{path.name}: was written while it was read; wait until it is complete, or copy it first")


def _chunks(path: Path) -> Iterable[bytes]:
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            yield chunk


def _digest(path: Path) -> tuple[str, int]:
    """(SHA-256, number of lines) of a file's bytes."""
    own, lines, last = hashlib.sha256(), 0, b"\n"
    for chunk in _chunks(path):
        own.update(chunk)
        lines += chunk.count(b"\n")
        last = chunk[-1:]
    return own.hexdigest(), lines + (last != b"\n")


def compression_of(path: Path) -> str | None:
    """`gzip`, `zstd` or None, by the first bytes of the file."""
    with path.open("rb") as stream:
        start = stream.read(4)
    if start[:2] == b"\x1f\x8b":
        return "gzip"
    return "zstd" if start == b"\x28\xb5\x2f\xfd" else None


def open_bytes(path: Path) -> IO[bytes]:
    """The decompressed bytes of a file."""
    packed = compression_of(path)
    if packed == "gzip":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if packed == "zstd":
        import pyarrow as pa  # here and for Parquet only: 25 MB that most logs do not need

        return io.BufferedReader(pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))
    return path.open("rb")


def pieces(path: Path) -> Iterator[bytes]:
    """The decompressed bytes of a file, piece by piece as they come: all that is before a damage comes before its
    error."""
    with open_bytes(path) as stream:
        while piece := stream.read1(1 << 16):  # type: ignore[attr-defined]
            yield piece


def _head(path: Path, most: int) -> bytes:
    """Up to `most` decompressed bytes; what could be read of a file that is cut short."""
    out = bytearray()
    try:
        for piece in pieces(path):
            out += piece
            if len(out) >= most:
                break
    except (EOFError, OSError, zlib.error):
        if not out:
            raise LogError(f"{path.name}: damaged compressed file, nothing can be read; compress it again") from None
    return bytes(out[:most])


def _is_wide(head: bytes) -> bool:
    """True for plain text of two bytes a character: every other byte is 0."""
    halves = (head[0::2], head[1::2])
    return any(0 not in one and other.count(0) > 0.9 * len(other) for one, other in (halves, halves[::-1]))


def _is_text(head: bytes) -> bool:
    """True unless there are bytes that no text has; a few stray NULs in UTF-8 are damage, judged line by line."""
    if 0 not in head:
        return True
    with suppress(UnicodeDecodeError):
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the cut may part a character
        return head.count(0) <= MOST_NULS * len(head)
    return False


def _refuse_binary(path: Path, head: bytes) -> None:
    """One line for containers that are not logs."""
    if head[:4] in (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff"):
        raise LogError(f"{path.name}: UTF-32 text; save it as UTF-8")
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or _is_wide(head[:4096]):
        raise LogError(f"{path.name}: UTF-16 text; save it as UTF-8")
    if packer := next((name for start, name in OTHER_PACKERS.items() if head.startswith(start)), None):
        raise LogError(f"{path.name}: packed by {packer}; {ACCEPTED}")
    if head[8:12] == b"DUCK":
        raise LogError(f"{path.name}: a DuckDB file, not a log; open it with kit.log.open_log, or name the log itself")
    if head[:2] == b"PK":
        raise LogError(f"{path.name}: a zip archive; unpack it and name the file inside")
    if head[:2] in (b"\x80\x03", b"\x80\x04", b"\x80\x05"):
        raise LogError(
            f"{path.name}: a Python pickle, which runs code when opened; convert it to JSON lines where it was made"
        )
    if not _is_text(head[:4096]):
        raise LogError(f"{path.name}: binary content that is no log; {ACCEPTED}")


def peek(path: Path, brief: bool = False) -> Peek:
    """First look at a file: container, columns and some records. Raises LogError in one line when it is no log.

    `brief` looks at less: enough for the many files of a folder that are like those before them.
    """
    with path.open("rb") as stream:
        if stream.read(4) == b"PAR1":
            return _peek_parquet(path)
    head = _head(path, BRIEF_BYTES if brief else HEAD_BYTES)
    _refuse_binary(path, head)
    text = head.decode("utf-8", errors="replace").removeprefix("\ufeff")
    packed = compression_of(path)
    if not text.strip():
        raise LogError(f"{path.name}: nothing but blank lines; export the log again")
    if text.lstrip()[0] in "{[":
        return _peek_json(path, text, packed)
    lines = text.splitlines()[:LOOK_AT]
    if any(SERVER_LINE.match(line) for line in lines):
        return Peek(path, "text", ("text",), tuple({"text": line} for line in lines), compression=packed)
    return _peek_csv(path, text, packed)


def _peek_parquet(path: Path) -> Peek:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = tuple(file.schema_arrow.names)
            batch = next(file.iter_batches(batch_size=20), None)
            records = tuple(batch.to_pylist()) if batch is not None else ()
    except (pa.ArrowInvalid, OSError):
        raise LogError(f"{path.name}: the Parquet file is cut short or damaged; export it again") from None
    return Peek(path, "parquet", names, records)


def _objects(lines: Iterable[str]) -> list[dict[str, Any]]:
    found = []
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _peek_json(path: Path, text: str, packed: str | None) -> Peek:
    """JSON lines when a line is an object by itself, else one JSON document."""
    lines = text.splitlines()
    records = _objects(lines[:LOOK_AT]) if text.lstrip()[0] == "{" else []
    if not records and text.lstrip()[0] == "{":
        records = _objects([_first_line(path)])
    container = "jsonl" if records else "json"
    if not records:
        records = _document(path, text)
    names: dict[str, None] = {key: None for record in records for key in record}
    return Peek(path, container, tuple(names), tuple(records), compression=packed)


def _first_line(path: Path) -> str:
    """The whole first line, however long: a prompt may be larger than the head of the file."""
    try:
        with open_bytes(path) as stream:
            return stream.readline(LONGEST_LINE_BYTES).decode("utf-8-sig", errors="replace")
    except (EOFError, OSError):
        return ""


def _document(path: Path, text: str) -> list[dict[str, Any]]:
    """Records of a JSON document (a list, or one object), read whole only when it is larger than the head."""
    try:
        if len(text) >= BRIEF_BYTES // 2:
            with open_bytes(path) as stream:
                text = stream.read().decode("utf-8-sig", errors="replace")
        value = json.loads(text)
    except (ValueError, EOFError, OSError, RecursionError):
        raise LogError(
            f"{path.name}: starts like JSON but cannot be parsed (cut short or damaged); {ACCEPTED}"
        ) from None
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)][:LOOK_AT]


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Column names made different (letter case does not count): a repeated one gets a number, an empty one a place."""
    seen: dict[str, int] = {}
    out = []
    for place, name in enumerate(names, 1):
        name = name or f"column{place}"
        seen[name.lower()] = seen.get(name.lower(), 0) + 1
        out.append(name if seen[name.lower()] == 1 else f"{name}_{seen[name.lower()]}")
    return tuple(out)


def _no_table(first: str) -> str:
    """Why a first line is no header, and what to do."""
    if len(first) > (most := csv.field_size_limit()):
        return f"no table: a value of the first line is longer than {most:,} characters; {ACCEPTED}"
    return "lines end in a bare carriage return (CR), or a line has one inside; save it with line feeds (LF)"


def _peek_csv(path: Path, text: str, packed: str | None) -> Peek:
    first = text.splitlines()[0]
    delimiter = max(",;\t|", key=first.count)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        given = [name.strip() for name in next(reader)]
    except csv.Error:
        raise LogError(f"{path.name}: {_no_table(first)}") from None
    header = _distinct(given)
    rows = []
    try:
        for row in reader:
            if len(row) == len(header):
                rows.append(dict(zip(header, row, strict=True)))
            if len(rows) >= LOOK_AT:
                break
    except csv.Error:
        pass
    renamed = [(old, new) for old, new in zip(given, header, strict=True) if old and old != new]
    twice = [f"{old} (the next one is read as {new})" for old, new in renamed]
    notes = (f"{path.name}: the header names a column twice: {', '.join(twice)}",) if twice else ()
    return Peek(path, "csv", header, tuple(rows), delimiter=delimiter, compression=packed, notes=notes)
