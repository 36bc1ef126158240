"""From measured evidence to one verdict: an ordered table, a trail for every row, and a sentence computed from it."""

from __future__ import annotations

from kit.decide.change import Judgement, Side, judge
from kit.decide.evidence import Contrast, Evidence
from kit.decide.money import Saving
from kit.decide.rule import RANGES, THRESHOLDS, Condition, Rule
from kit.decide.sensitivity import Sensitivity, Variation, differs
from kit.decide.systems import SYSTEMS, settings_for
from kit.decide.table import RULES
from kit.decide.verdict import ACTIONS, Decision, ThresholdError, check_thresholds, decide, sentence

__all__ = [
    "ACTIONS",
    "RANGES",
    "RULES",
    "SYSTEMS",
    "THRESHOLDS",
    "Condition",
    "Contrast",
    "Decision",
    "Evidence",
    "Judgement",
    "Rule",
    "Saving",
    "Sensitivity",
    "Side",
    "ThresholdError",
    "Variation",
    "check_thresholds",
    "decide",
    "differs",
    "judge",
    "sentence",
    "settings_for",
]
