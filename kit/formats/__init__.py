"""The log formats the kit reads, one file each, and how a file is told to be one of them."""

from __future__ import annotations

import re
import shlex

from kit.formats import (
    agent_usage,
    anthropic_usage,
    azure,
    bedrock,
    burstgpt,
    canonical,
    claude_code,
    codex_exec,
    codex_rollout,
    dynamo,
    gemini_usage,
    hash_runs,
    helicone,
    kv_events,
    langfuse,
    litellm_payload,
    litellm_spend,
    mooncake,
    openai_usage,
    openrouter,
    otel_spans,
    qwen_bailian,
    raw_dump,
    sglang,
    vllm_log,
)
from kit.formats.base import Field, Format, LogError, Peek, UnknownNameError

MODULES = (
    canonical,
    agent_usage,
    claude_code,
    codex_exec,
    codex_rollout,
    litellm_spend,
    litellm_payload,
    langfuse,
    helicone,
    otel_spans,
    openai_usage,
    anthropic_usage,
    gemini_usage,
    bedrock,
    openrouter,
    mooncake,
    dynamo,
    qwen_bailian,
    hash_runs,
    azure,
    burstgpt,
    sglang,
    vllm_log,
    kv_events,
    raw_dump,
)
REGISTRY: dict[str, Format] = {module.FORMAT.name: module.FORMAT for module in MODULES}


def recognise(peek: Peek) -> tuple[Format, float]:
    """The format this file most likely is, with a confidence from 0 to 1.

    Raises LogError naming the nearest format and the columns it would need when nothing fits.
    """
    scores = {name: found.recognise(peek) for name, found in REGISTRY.items() if peek.container in found.containers}
    best = max(scores, key=lambda name: scores[name], default=None)
    if best is None or scores[best] <= 0:
        raise LogError(
            f"{peek.path.name}: {_nearest(peek)}; see python -m kit formats, or name columns with {_likely(peek)}"
        )
    return REGISTRY[best], scores[best]


def _likely(peek: Peek) -> str:
    """The mapping that the columns suggest: names that are ours but for case and signs; else how a mapping looks."""
    ours = {_bare(path): name for name, (_, paths) in canonical.NAMES.items() for path in paths}
    found = {ours[_bare(column)]: column for column in reversed(peek.columns) if _bare(column) in ours}
    pairs = [f"--map {shlex.quote(f'{name}={column}')}" for name, column in reversed(found.items())]
    return " ".join(pairs[:4]) or "--map canonical=column"


def _bare(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())


def _nearest(peek: Peek) -> str:
    """What the file has, and the format with the smallest share of its required columns missing."""
    fits = [item for item in REGISTRY.values() if peek.container in item.containers and item.name != "canonical"]
    fits = [item for item in fits if any(part.required for part in item.fields)]
    found = ", ".join(peek.columns[:8]) or "no columns"

    def missing_share(item: Format) -> float:
        return len(item.required_missing(peek)) / max(1, sum(part.required for part in item.fields))

    nearest = min(fits, key=missing_share, default=None)
    if nearest is None or missing_share(nearest) == 1:
        return f"not a log layout the kit knows (found {found}); the kit's own table needs ts and input_tokens"
    absent = ", ".join(nearest.required_missing(peek))
    return f"not a log layout the kit knows (found {found}); nearest is {nearest.name}, which also needs {absent}"


__all__ = ["REGISTRY", "Field", "Format", "LogError", "Peek", "UnknownNameError", "recognise"]
