"""The one line an error ends in: what it was about, what was found, what to do."""

from __future__ import annotations

import errno
import re
from pathlib import Path

WHAT_TO_DO = {
    errno.ENOENT: "no such file or folder; check the path",
    errno.EACCES: "no permission; change that, or choose another place",
    errno.EPERM: "not permitted; choose another place",
    errno.EROFS: "this disk can only be read; choose another place",
    errno.ENOSPC: "no space left on the disk; free some, or choose another place",
    errno.EDQUOT: "no space left in your quota; free some, or choose another place",
    errno.EFBIG: "too large for the disk; choose another place",
    errno.EISDIR: "is a folder; name a file",
    errno.ENOTDIR: "a part of this path is a file, not a folder; check the path",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.ELOOP: "the links lead in a circle; name the file itself",
    errno.EMFILE: "too many open files; close some, or raise the limit (ulimit -n)",
    errno.EIO: "the disk cannot be read or written; use another one",
}


def line(error: BaseException) -> str:
    """An error as one line; one of the operating system with the path and what to do."""
    text = " ".join(str(error).split()) or type(error).__name__
    if "No space left on device" in text and type(error).__module__.endswith("duckdb"):
        full = OSError(errno.ENOSPC, text, _visible(re.findall(r'"([^"]+)"', text)))
        return _of_system(full) or text
    if isinstance(error, OSError):
        return _of_system(error) or text
    if isinstance(error, MemoryError):
        return "the memory of this machine is not enough; use less of the log, or --sample"
    return text if isinstance(error, ValueError | RuntimeError) else f"{type(error).__name__}: {text}"


def _visible(paths: list[str]) -> str | None:
    """The nearest folder that a user knows of the first path: what is hidden is the kit's own, and gone by now."""
    if not paths:
        return None
    parts = Path(paths[0]).parts
    shown = next((place for place, part in enumerate(parts) if part.startswith(".")), len(parts))
    return str(Path(*parts[:shown])) if shown else None


def _of_system(error: OSError) -> str | None:
    advice = WHAT_TO_DO.get(error.errno or 0)
    path = error.filename2 or error.filename
    if advice is None:
        return None
    return f"{path}: {advice}" if path is not None else advice
