"""Prefixes as paths: block rounding, the forest of nodes, and the arrays a replay reads.

One path model serves every log. A flat key is a path of one node, a block log a path of blocks, a transcript a path of
turn increments. A node can hit only while every ancestor of it is resident, so a path is stored as its deepest node and
the chain of parents (`parent[node] < node` always).

Rounding: a prefix is cached in whole blocks, counted from its start (vLLM and SGLang cache full blocks only), so a node
is worth the full blocks that end inside it: floor(end / block) - floor(start / block), in blocks.
"""

from kit.prefix.forest import build_forest, depths, first_seen_rank, flat_forest, path_sums, root_of, scatter
from kit.prefix.loading import load_paths
from kit.prefix.paths import (
    BOOTSTRAP_BLOCKS,
    DAY_US,
    HOUR_US,
    SESSION_TYPES,
    TIME_STRETCHES,
    TOKEN_TYPES,
    Ints,
    Paths,
    bootstrap_blocks,
    make_paths,
    round_to_blocks,
    split_segments,
    warm_window,
)

__all__ = [
    "BOOTSTRAP_BLOCKS",
    "DAY_US",
    "HOUR_US",
    "SESSION_TYPES",
    "TIME_STRETCHES",
    "TOKEN_TYPES",
    "Ints",
    "Paths",
    "bootstrap_blocks",
    "build_forest",
    "depths",
    "first_seen_rank",
    "flat_forest",
    "load_paths",
    "make_paths",
    "path_sums",
    "root_of",
    "round_to_blocks",
    "scatter",
    "split_segments",
    "warm_window",
]
