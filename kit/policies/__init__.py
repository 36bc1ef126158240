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
    fifo,
    fifo_flat,
    gdsf,
    length,
    lfu,
    lfu_decay,
    lfu_perfect,
    lru,
    lruk,
    s3fifo,
    sieve,
    twoq,
)


@dataclass(frozen=True, eq=False)
class Policy:
    """A named policy: its module (or a user's own), parameters with defaults, and whether a decision may pick it."""

    name: str
    title: str
    source: str
    module: ModuleType
    parameters: Mapping[str, float] = field(default_factory=dict)
    needs: tuple[str, ...] = ("ts", "prefix identity")
    candidate: bool = True

    @property
    def segments(self) -> str | None:
        """When a run of blocks may be one node with the block-by-block answer: "always", "fitting" (where every path
        fits the tier, so that its blocks share all their uses), or None (always written out)."""
        return getattr(self.module, "SEGMENTS", None)

    @property
    def ranked(self) -> bool:
        """True where the policy ranks leaves by a key; False where it brings its own structure."""
        return not hasattr(self.module, "victim")


def describe(module: ModuleType, name: str | None = None, candidate: bool = True) -> Policy:
    """The policy a module holds; the source is the docstring's `Source:` sentence."""
    text = " ".join((module.__doc__ or "").split())
    source = text.split("Source: ", 1)[1].split(". ", 1)[0] if "Source: " in text else "not stated"
    short = name or module.__name__.rsplit(".", 1)[-1]
    return Policy(short, getattr(module, "TITLE", short), source, module, dict(getattr(module, "PARAMETERS", {})),
                  candidate=candidate)  # fmt: skip


REGISTRY: Mapping[str, Policy] = MappingProxyType(
    {
        policy.name: policy
        for policy in (
            describe(lru), describe(lfu), describe(lfu_perfect), describe(lfu_decay), describe(length), describe(gdsf),
            describe(fifo), describe(fifo_flat, candidate=False),
            describe(sieve), describe(s3fifo), describe(arc), describe(twoq), describe(lruk),
        )
    }
)  # fmt: skip


def named(name: str) -> Policy:
    """The policy of that name; an unknown name lists the known ones."""
    if name not in REGISTRY:
        raise ValueError(f"unknown policy {name!r}; known: {', '.join(REGISTRY)}")
    return REGISTRY[name]
