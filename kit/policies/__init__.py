"""Eviction policies, one file each, and the registry that names them.

A policy file holds: a docstring with source, key, tie-break and what it leaves out; TITLE; PARAMETERS (name -> real
default); and one of two shapes. *Ranked* files give `key(own, node)` (smallest evicted first) and, where the key
depends on history, `own(...)`, `on_enter`, `on_touch`, `on_leave`; the leaf heap does the rest. *Listed* files bring
their own structure: `pool(...)`, `enter`, `touch`, `leave`, `cover`, `uncover`, `victim`. Functions are plain Python
that numba compiles; run uncompiled they are the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType

from kit.policies import (
    arc,
    dynamo_multilru,
    fifo,
    fifo_flat,
    gdsf,
    hyperbolic,
    lecar,
    length,
    lfu,
    lfu_decay,
    lfu_halving,
    lfu_perfect,
    lhd,
    lmcache_lru,
    lpc_turns,
    lru,
    lruk,
    marconi,
    mooncake_store,
    prefix_biased_depth,
    prefix_biased_fanout,
    redis_lfu,
    redis_lru,
    s3fifo,
    saecache,
    sglang_lfu,
    sglang_lru,
    sglang_priority,
    sglang_slru,
    sieve,
    tensorrt_priority,
    tlru,
    twoq,
    vllm_lru,
    w_tinylfu,
    workload_aware,
)

FIELDS = ("ts", "prefix identity")


@dataclass(frozen=True, eq=False)
class Policy:
    """A named policy: its module (or a user's own), parameters with defaults, and whether a decision may pick it."""

    name: str
    title: str
    source: str
    module: ModuleType
    parameters: Mapping[str, float] = field(default_factory=dict)
    needs: tuple[str, ...] = FIELDS
    candidate: bool = True

    @property
    def segments(self) -> str | None:
        """When a run of blocks may be one node with the block-by-block answer: "always", "fitting" (where every path
        fits the tier, so that its blocks share all their uses), or None (always written out)."""
        return getattr(self.module, "SEGMENTS", None)

    @property
    def tags(self) -> tuple[str, ...]:
        """What every request has to carry for this policy (`kit.prefix.Paths.tags`)."""
        return getattr(self.module, "NEEDS", ())

    @property
    def overlaps(self) -> bool:
        """Whether requests may hold their paths until they have ended (`kit.replay.Setting.hold_until_end`). A queue
        that keeps only leaves, by place, would lose the place of what is held."""
        return bool(getattr(self.module, "OVERLAPS", self.ranked))

    @property
    def ranked(self) -> bool:
        """True where the policy ranks leaves by a key; False where it brings its own structure."""
        return not hasattr(self.module, "victim")


def describe(module: ModuleType, name: str | None = None, candidate: bool = True) -> Policy:
    """The policy a module holds; the source is the docstring's `Source:` sentence."""
    text = " ".join((module.__doc__ or "").split())
    source = text.split("Source: ", 1)[1].split(". ", 1)[0] if "Source: " in text else "not stated"
    wanted = tuple(f"{column} (or it is as if all had the same)" for column in getattr(module, "WANTS", ()))
    short = name or module.__name__.rsplit(".", 1)[-1]
    return Policy(short, getattr(module, "TITLE", short), source, module, dict(getattr(module, "PARAMETERS", {})),
                  FIELDS + getattr(module, "NEEDS", ()) + wanted, candidate)  # fmt: skip


REGISTRY: Mapping[str, Policy] = MappingProxyType(
    {
        policy.name: policy
        for policy in (
            describe(lru), describe(lfu), describe(lfu_perfect), describe(lfu_decay), describe(length), describe(gdsf),
            describe(fifo), describe(fifo_flat, candidate=False),
            describe(sieve), describe(s3fifo), describe(arc), describe(w_tinylfu), describe(twoq), describe(lruk),
            describe(lfu_halving), describe(vllm_lru, candidate=False), describe(sglang_lru, candidate=False),
            describe(sglang_lfu), describe(sglang_slru), describe(sglang_priority), describe(tensorrt_priority),
            describe(dynamo_multilru, candidate=False), describe(lmcache_lru, candidate=False),
            describe(mooncake_store, candidate=False), describe(redis_lru), describe(redis_lfu),
            describe(hyperbolic, candidate=False), describe(lhd, candidate=False), describe(lecar, candidate=False),
            describe(workload_aware), describe(tlru, candidate=False), describe(marconi, candidate=False),
            describe(saecache), describe(lpc_turns, candidate=False), describe(prefix_biased_depth, candidate=False),
            describe(prefix_biased_fanout, candidate=False),
        )
    }
)  # fmt: skip

USUAL = ("lru", "lfu", "lfu_perfect", "lfu_decay", "length", "gdsf", "fifo", "fifo_flat")
"""The policies that are compared where nobody names any."""


def named(name: str) -> Policy:
    """The policy of that name; an unknown name lists the known ones."""
    if name not in REGISTRY:
        raise ValueError(f"unknown policy {name!r}; known: {', '.join(REGISTRY)}")
    return REGISTRY[name]
