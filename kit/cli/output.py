"""Where a command writes: asked before the work begins, so that hours of it are not lost to a path."""

from __future__ import annotations

import os
from pathlib import Path

from kit.cli.arguments import UsageError


def check_file(given: str, name: str, kinds: tuple[str, ...] = ()) -> Path:
    """The path of a file that can be written (its folders are made then). UsageError or ValueError says what is wrong.

    `name` is what the command line calls it, `kinds` the endings it may have (none: any).
    """
    path = Path(given)
    if not given.strip():
        raise UsageError(f"{name} takes the name of a file, got an empty text")
    if path.is_dir():
        raise UsageError(f"{name} {path} is a folder; name a file in it, such as {path / ('week' + (*kinds, '')[0])}")
    if kinds and not path.name.endswith(kinds):
        raise UsageError(f"{name} {path}: cannot write this kind of file; name it {', '.join(kinds)}")
    check_folder(path.parent, name)
    return path


def check_folder(given: str | Path, name: str) -> Path:
    """The path of a folder that is there or can be made; UsageError or ValueError says what is in the way."""
    if not str(given).strip():
        raise UsageError(f"{name} takes a folder, got an empty text")
    folder = Path(given)
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists() or one.is_symlink())
    if there.is_symlink() and not there.exists():
        raise ValueError(f"{name}: {there} is a link to {os.readlink(there)}, which is absent; choose another folder")
    if not there.is_dir():
        raise ValueError(f"{name}: {there} is a file, not a folder; choose another folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{name}: nothing can be written in the folder {there} (no permission); choose another folder")
    return folder
