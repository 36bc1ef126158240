"""An analysis as one call: log in, every step's result stored, verdict out. Notebooks open the finished one.

Importing this package is cheap; the simulator and the statistics are imported when an analysis has to be run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kit.analysis.opening import open_analysis
from kit.analysis.parameters import ParameterError, Parameters
from kit.analysis.store import Analysis

__all__ = ["Analysis", "ParameterError", "Parameters", "analyse", "compare", "open_analysis", "replay_rows"]


def analyse(
    sources: Sequence[str] | str,
    parameters: Parameters,
    out_dir: Path,
    *,
    command: str | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Analysis:
    """Run every step on a log; see `kit.analysis.run.analyse`."""
    from kit.analysis import run

    return run.analyse(sources, parameters, out_dir, command=command, progress=progress)


def replay_rows(
    sources: Sequence[str] | str,
    parameters: Parameters,
    capacities: list[int] | None = None,
    progress: Callable[[str], None] = lambda step: None,
    routes: list[str] | None = None,
) -> list[dict[str, Any]]:
    """Only the replay: rows of `replay[]` for the policies at the given budgets (none given: half, actual, double).

    `routes` are names of `kit.replay.fleet.ROUTES`: the same over several replicas, a budget each.
    """
    from kit.analysis import run

    return run.only_replay(sources, parameters, capacities, progress, routes)


def compare(before: str, after: str, parameters: Parameters) -> Mapping[str, Any]:
    """Judge a change from two logs (or two report folders): accept, revert or inconclusive, with the sentence."""
    from kit.analysis import change

    return change.judge(before, after, parameters)
