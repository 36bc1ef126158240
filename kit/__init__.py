"""Prefix-reuse diagnostics: from a week of request logs to an eviction policy, with its money and uncertainty."""

__version__ = "0.1.0"
