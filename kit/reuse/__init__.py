"""What the log says about reuse before any simulation: concentration, rotation, length against value, types, scans.

Every function takes a loaded log (or a `Trace`, so that several figures share one read) and returns plain dicts.
"""

from __future__ import annotations

from kit.reuse.concentration import concentration, other_cuts
from kit.reuse.cuts import CUTS, DEFAULT_CUT, Keys, cut_keys
from kit.reuse.diagnosis import diagnose
from kit.reuse.gaps import reuse_gaps
from kit.reuse.popularity import popularity, working_set
from kit.reuse.rotation import hourly_rotation, rotation
from kit.reuse.scan_effect import scan_effect
from kit.reuse.scans import scans
from kit.reuse.token_types import token_types
from kit.reuse.trace import Trace, read_trace
from kit.reuse.value import spearman, value_rank

__all__ = [
    "CUTS",
    "DEFAULT_CUT",
    "Keys",
    "Trace",
    "concentration",
    "cut_keys",
    "diagnose",
    "hourly_rotation",
    "other_cuts",
    "popularity",
    "read_trace",
    "reuse_gaps",
    "rotation",
    "scan_effect",
    "scans",
    "spearman",
    "token_types",
    "value_rank",
    "working_set",
]
