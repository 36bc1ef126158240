"""The loop compiled once per policy, cached on disk, never stale.

The loop and the pool are plain functions that call global names. For each policy they are rebuilt over that policy's
own functions, named after a hash of all the code involved, and compiled with numba. The name is part of numba's cache
key, so an edited policy (or loop) compiles anew and an unchanged one starts from disk. A policy that lives in a
notebook cell has no file: it is compiled in memory each time.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, wraps
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from numba import njit

from kit.policies import Policy, leaf_heap
from kit.prefix import Paths
from kit.replay import flat, loop, overlap

QUICK: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
"""No reference counts (nothing is allocated inside the loop) and no zero-division checks: half the time of the default.
The loop's own steps are inlined, since passing the arrays costs more than most steps; heap operations are called."""

INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Only the loop itself is called from Python."""
HOOKS = ("enter", "touch", "leave", "cover", "uncover", "victim")
OPTIONAL = {"unfinished": loop, "readable": loop, "soon": flat, "hold": overlap, "unhold": overlap, "free": overlap}
"""What a policy may bring, and where it stands for those that do not."""
LOOP = ("remove", "trim", "expire", "match", "count", "age_step", "note_age", "make_room", "admit", "regrow",
        "hit_until", "settle", "bypass", "found", "fits", "keep", "serve", "book", "finish")  # fmt: skip
"""The steps of the loops; `run` goes through them."""
APART = ((loop, "make_room"), (loop, "expire"), (overlap, "make_room"), (overlap, "finish"),
         (loop, "age_step"), (flat, "age_step"), (overlap, "age_step"))  # fmt: skip
"""Steps that a request of many nodes takes once, or that take a number or two: called, which halves the time to compile
and costs a node nothing."""
STATE = ("pool", "own")
RANKED = ("key", "on_enter", "on_touch", "on_leave")
PLAIN_VALUES = (bool, int, float, str, tuple)


def _functions(module: ModuleType | SimpleNamespace) -> dict[str, FunctionType]:
    """Plain functions a module defines or borrows and those they call, every one after what it calls. What a borrowed
    function calls is the module's own function of that name where it has one."""
    found: dict[str, FunctionType] = {}
    mine = {name: value for name, value in vars(module).items()
            if isinstance(value, FunctionType) and value.__module__ == getattr(module, "__name__", None)}  # fmt: skip
    on_the_way: set[str] = set()

    def add(name: str, function: FunctionType) -> None:
        if name in found or name in on_the_way or function.__code__.co_name != name:
            return
        on_the_way.add(name)
        for callee in function.__code__.co_names:
            called = mine.get(callee, function.__globals__.get(callee))
            if isinstance(called, FunctionType):
                add(callee, called)
        found[name] = function

    for name, value in vars(module).items():
        if isinstance(value, FunctionType):
            add(name, value)
    return found


def _spelt(function: FunctionType) -> str:
    """A function as it was imported (its file may have changed since): code, constants and the globals it names."""
    code = function.__code__
    constants = [found.co_code if isinstance(found, CodeType) else found for found in code.co_consts]
    named = [function.__globals__.get(name) for name in code.co_names]
    plain_values = [value for value in named if isinstance(value, PLAIN_VALUES)]
    return repr((code.co_name, code.co_code, constants, code.co_names, plain_values))


@lru_cache(maxsize=1)
def _shared() -> str:
    """What every policy's loop is made of. It stays as it was imported, so one look is enough."""
    modules = (loop, flat, overlap, leaf_heap)
    return "\n".join(_spelt(function) for module in modules for function in _functions(module).values())


def fingerprint(policy: Policy) -> str:
    """12 hex digits over everything the compiled loop depends on, as it was imported."""
    spelt = [_shared(), *(_spelt(function) for function in _functions(policy.module).values())]
    switches = {name: value for name, value in vars(policy.module).items()
                if name.isupper() and isinstance(value, PLAIN_VALUES)}  # fmt: skip
    return hashlib.sha256("\n".join([*spelt, repr(switches)]).encode()).hexdigest()[:12]


def _rebind(function: FunctionType, names: dict[str, Any], suffix: str) -> FunctionType:
    fresh = FunctionType(function.__code__, {**function.__globals__, **names}, f"{function.__name__}_{suffix}",
                         function.__defaults__)  # fmt: skip
    fresh.__qualname__ = f"{function.__name__}_{suffix}"
    fresh.__module__ = loop.__name__
    return fresh


def _bind_all(functions: dict[str, FunctionType], names: dict[str, Any], suffix: str,
              compiler: Callable[[FunctionType], Any]) -> dict[str, Any]:  # fmt: skip
    bound = dict(names)
    for name, function in functions.items():
        bound[name] = compiler(_rebind(function, bound, suffix))
    return bound


def _hooks(policy: Policy, suffix: str, compiler: Callable[[FunctionType], Any]) -> dict[str, Any]:
    """The functions the loop calls, bound to the policy."""
    own = _bind_all({k: v for k, v in _functions(policy.module).items() if k not in STATE}, {}, suffix, compiler)
    order: dict[str, Any] = {"ROOT_FIRST": getattr(policy.module, "ROOT_FIRST", loop.ROOT_FIRST)}
    for name, home in OPTIONAL.items():
        order[name] = own[name] if name in own else compiler(_rebind(getattr(home, name), {}, suffix))
    if not policy.ranked:
        return order | {name: own[name] for name in HOOKS}
    heap = {name: function for name, function in _functions(leaf_heap).items() if name not in RANKED or name not in own}
    names: dict[str, Any] = {name: own[name] for name in RANKED if name in own}
    names["RESTAMP"] = getattr(policy.module, "RESTAMP", leaf_heap.RESTAMP)
    bound = _bind_all({k: v for k, v in heap.items() if k not in STATE}, names, suffix, compiler)
    return order | {name: bound[name] for name in HOOKS}


def plain(policy: Policy, module: ModuleType = loop) -> Callable[..., None]:
    """A loop bound to a policy, uncompiled: slow, and the reference for the compiled ones."""
    def keep(function: FunctionType) -> FunctionType:
        return function

    return _bound(module, _hooks(policy, "plain", keep), "plain", keep, keep)


def _bound(module: ModuleType, hooks: dict[str, Any], suffix: str, compiler: Callable[[FunctionType], Any],
           apart: Callable[[FunctionType], Any]) -> Any:  # fmt: skip
    """`run` of a loop over its steps, bound to the hooks of a policy; `apart` compiles the steps that stay calls."""

    def step(function: FunctionType) -> Any:
        return apart(function) if (module, function.__code__.co_name) in APART else compiler(function)

    steps = {name: function for name, function in _functions(module).items() if name in LOOP}
    return _rebind(module.run, _bind_all(steps, hooks, suffix, step), suffix)


@lru_cache(maxsize=128)
def _compiled(fingerprint_of: str, policy: Policy, module: ModuleType) -> Callable[..., None]:
    on_disk = isinstance(policy.module, ModuleType) and getattr(policy.module, "__file__", None) is not None

    def inlined(function: FunctionType) -> Any:
        return njit(**QUICK, **INNER, inline="always")(function)

    def called(function: FunctionType) -> Any:
        return njit(**QUICK, **INNER)(function)

    kind = "" if module is loop else f"{module.__name__.rsplit('.', 1)[-1]}_"
    suffix = f"{policy.name}_{kind}{fingerprint_of}"
    hooks = _hooks(policy, suffix, inlined if getattr(policy.module, "INLINE", False) else called)
    run = _bound(module, hooks, suffix, inlined, called)
    return _lean(njit(**QUICK, cache=on_disk)(run))


def _lean(run: Any) -> Callable[..., None]:
    """The compiled loop without its LLVM code, which numba keeps for callers that would inline it: half its memory."""

    @wraps(run)
    def lean(*arguments: Any) -> None:
        run(*arguments)
        for made in run.overloads.values():
            made.library._shared_module = None

    return lean


def fitted(policy: Policy) -> Policy:
    """The policy as flat keys need it: without depth it may have a simpler structure with the same victims."""
    simpler = getattr(policy.module, "ON_FLAT_KEYS", None)
    return replace(policy, module=simpler) if simpler else policy


def compiled(policy: Policy, module: ModuleType) -> Callable[..., None]:
    """A loop (`kit.replay.loop`, `flat` or `overlap`) compiled for a policy, from the disk cache where unchanged."""
    return _compiled(fingerprint(policy), policy, module)


def _given(function: Callable[..., Any], known: dict[str, Any], parameters: dict[str, float]) -> Any:
    wanted = inspect.signature(function).parameters
    return function(**{name: known[name] if name in known else parameters[name] for name in wanted
                       if name in known or name in parameters})  # fmt: skip


def state(
    policy: Policy, paths: Paths, capacity_tokens: int, parameters: dict[str, float] | None = None
) -> tuple[Any, Any]:
    """(pool, own): empty state of a policy for these paths. Parameters override the policy's defaults by name."""
    unknown = set(parameters or {}) - set(policy.parameters)
    if unknown:
        accepted = ", ".join(policy.parameters) or "none"
        raise ValueError(f"policy {policy.name!r} has no parameter {sorted(unknown)[0]!r}; accepted: {accepted}")
    for tag in policy.tags:
        if tag not in paths.tags:
            raise ValueError(f"policy {policy.name!r} needs {tag!r} of every request, which this log does not have; "
                             f"leave the policy out, or set Paths.tags[{tag!r}] in a notebook")  # fmt: skip
    given = {**policy.parameters, **(parameters or {})}
    known = {"nodes": paths.parent.size, "path_tokens": paths.path_tokens, "room_tokens": paths.room_tokens,
             "tokens": paths.tokens, "depth": paths.depth, "parent": paths.parent,
             "most_uses": paths.requests, "leaf": paths.leaf, "capacity_tokens": capacity_tokens,
             "block_tokens": paths.block_tokens, "node_type": paths.node_type, "ts_us": paths.ts_us,
             **paths.tags}  # fmt: skip
    own = _given(policy.module.own, known, given) if hasattr(policy.module, "own") else np.zeros(1)
    make_pool = leaf_heap.pool if policy.ranked else policy.module.pool
    return _given(make_pool, known, given), own
