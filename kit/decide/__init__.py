"""From measured evidence to one verdict: an ordered table, a trail for every row, and a sentence computed from it."""

from __future__ import annotations

from kit.decide.change import Judgement, Side, judge
from kit.decide.evidence import Contrast, Evidence
from kit.decide.money import Saving
from kit.decide.table import RULES, THRESHOLDS, Condition, Rule
from kit.decide.verdict import Decision, ThresholdError, decide, sentence

__all__ = [
    "RULES",
    "THRESHOLDS",
    "Condition",
    "Contrast",
    "Decision",
    "Evidence",
    "Judgement",
    "Rule",
    "Saving",
    "Side",
    "ThresholdError",
    "decide",
    "judge",
    "sentence",
]
