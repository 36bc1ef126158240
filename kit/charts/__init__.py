"""Figures drawn from the plain `results` dict, one function each, offline, with alt text made from their numbers.

In a notebook, `charts.enable()` once, then `charts.capacity_curve(results)` as the last line of a cell draws it.
Every function returns a `Figure` (chart, finding, alt text, data rows), or None where the results cannot support it.
"""

from __future__ import annotations

from kit.charts.capacity import capacity_curve
from kit.charts.figure import Figure, bundle, enable, svg_of
from kit.charts.gap_shape import gap_quantiles, gap_survival, session_fits
from kit.charts.money import miss_causes, policy_change
from kit.charts.reuse import concentration, value_rank
from kit.charts.theme import look_of
from kit.charts.turns import gap_fits

FIGURES = (capacity_curve, policy_change, concentration, value_rank, gap_fits, miss_causes)

__all__ = [
    "FIGURES",
    "Figure",
    "bundle",
    "capacity_curve",
    "concentration",
    "enable",
    "gap_fits",
    "gap_quantiles",
    "gap_survival",
    "look_of",
    "miss_causes",
    "policy_change",
    "session_fits",
    "svg_of",
    "value_rank",
]
