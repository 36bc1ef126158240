"""Providers: the published caching rules, and what a log shows they really did."""

from __future__ import annotations

from kit.providers.evictions import evictions
from kit.providers.observed import duplicate_writes, losses, observed_setting, returns, survival, ttl_observed
from kit.providers.reconcile import reconcile
from kit.providers.reported import CLASSES, class_cost, default_setting_facts, reported
from kit.providers.rules import Rule, RuleError, TtlChoice, has_rule, rule_for, rule_named, rule_names

__all__ = [
    "CLASSES", "Rule", "RuleError", "TtlChoice", "class_cost", "default_setting_facts",
    "duplicate_writes", "evictions", "has_rule", "losses", "observed_setting", "reconcile", "reported", "returns",
    "rule_for", "rule_named", "rule_names", "survival", "ttl_observed",
]  # fmt: skip
