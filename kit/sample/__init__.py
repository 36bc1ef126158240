"""A week of requests made from a seed, with answers known before any measurement, and the classic worked example.

The week holds what a real log holds: system prompts shared by many sessions, chat sessions whose turns follow a person,
agent sessions whose turns mostly follow a tool, single calls, long tool output read once, and an indexing job that runs
for one hour every night and never meets a prefix twice. The time from the end of an answer to the next call is
log-normal with stated parameters.
"""

from kit.sample.example import worked_example
from kit.sample.files import ENDINGS, write
from kit.sample.known import Answers, answers
from kit.sample.traffic import GAPS, Gap
from kit.sample.week import sample_week

__all__ = ["ENDINGS", "GAPS", "Answers", "Gap", "answers", "sample_week", "worked_example", "write"]
