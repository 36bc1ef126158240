"""Shared test material: the public traces beside the project, skipped with a reason where absent."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("kit", deadline=None)  # a first call may compile; tests are never timed
settings.load_profile("kit")

PROJECT = Path(__file__).resolve().parent.parent
SHARED = PROJECT.parent / "shared"


def shared_data(name: str) -> Path:
    """Path of a public trace in the folder beside the project; skips the test with a reason where it is absent."""
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(f"shared trace {name} not present beside the project")
    return path


def shared_case(name: str) -> Path:
    """Folder of a public bug case beside the project; skips the test with a reason where it is absent."""
    path = SHARED / "cases" / name
    if not path.exists():
        pytest.skip(f"shared case {name} not present beside the project")
    return path
