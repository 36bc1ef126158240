"""What to set where: the concrete setting that brings a verdict about in the system the reader runs.

One row per system and version read. What a system does not have is "not available there", with the nearest policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class System:
    """A cache as of one version: `settings` brings a policy about, `nearest` names the closest for those it lacks."""

    name: str
    version: str
    tier: str
    settings: Mapping[str, str]
    nearest: Mapping[str, str] = field(default_factory=dict)
    otherwise: str = ""


FREQUENCY = ("lfu", "lfu_perfect", "lfu_decay")
SGLANG_PRIORITY = "--radix-eviction-policy priority --enable-priority-scheduling"  # without the second all are 0


def _for_frequency(setting: str) -> dict[str, str]:
    return dict.fromkeys(FREQUENCY, setting)


SYSTEMS: tuple[System, ...] = (
    System(
        "vLLM",
        "0.33.0",
        "GPU blocks",
        dict.fromkeys(("lru", "vllm_lru"), "nothing to set: prefix caching is on and evicts by LRU"),
        otherwise="the GPU tier evicts by LRU only",
    ),
    System(
        "vLLM CPU offload",
        "0.33.0",
        "host memory",
        {"lru": "eviction_policy: lru (the default)", "arc": "eviction_policy: arc"},
        _for_frequency("eviction_policy: arc, which weighs recency against frequency"),
        otherwise="it has lru and arc",
    ),
    System(
        "SGLang",
        "0.5.23",
        "radix cache",
        {
            **dict.fromkeys(("lru", "sglang_lru"), "--radix-eviction-policy lru (the default)"),
            **dict.fromkeys(("lfu", "sglang_lfu"), "--radix-eviction-policy lfu"),
            "sglang_slru": "--radix-eviction-policy slru",
            "sglang_priority": f"{SGLANG_PRIORITY}, and a priority in every request",
            "tlru": "--radix-eviction-policy tlru, with its threshold above the estimate of the next prompt",
        },
        {
            **_for_frequency("--radix-eviction-policy slru, which protects what was hit twice"),
            "saecache": f"{SGLANG_PRIORITY}, and a priority in every request by its session type",
        },
        otherwise="it has lru, lfu, slru, priority and tlru",
    ),
    System(
        "TensorRT-LLM",
        "1.x",
        "KV blocks",
        {
            "lru": "nothing to set: equal priorities are evicted by LRU",
            "tensorrt_priority": "KvCacheRetentionConfig: priority (35 by default) and duration by token range",
        },
        {
            "sglang_priority": "KvCacheRetentionConfig: a priority for all tokens of a request",
            **_for_frequency("KvCacheRetentionConfig: a priority above 35 for the token range of the hot prefix"),
            "length": "KvCacheRetentionConfig: a priority below 35 for the token range of long one-shot content",
            "saecache": "KvCacheRetentionConfig: priority and duration by token range and session type",
        },
        otherwise="it evicts by priority, then LRU",
    ),
    System(
        "LMCache",
        "0.5.6",
        "CPU and remote chunks",
        {
            **dict.fromkeys(("lru", "lmcache_lru"), "cache_policy: LRU (the default)"),
            "lfu": "cache_policy: LFU",
            "fifo": "cache_policy: FIFO",
        },
        {name: "cache_policy: LFU, which forgets on eviction and does not decay" for name in FREQUENCY[1:]},
        otherwise="it has LRU, LFU, FIFO and MRU",
    ),
    System(
        "Mooncake store",
        "of 2026-08",
        "shared store",
        dict.fromkeys(("lru", "mooncake_store"), "nothing to set: the oldest lease goes first, which is LRU"),
        _for_frequency("soft pin of the hot prefixes: they are evicted last"),
        otherwise="it evicts by lease only",
    ),
    System(
        "AIBrix L1",
        "of 2026-08",
        "host memory",
        {
            "lru": "eviction policy LRU (the default is S3FIFO)",
            "fifo": "eviction policy FIFO",
            "s3fifo": "eviction policy S3FIFO (the default)",
        },
        _for_frequency("eviction policy S3FIFO (the default), which resists one-shot keys"),
        otherwise="it has S3FIFO, LRU and FIFO",
    ),
    System(
        "Redis",
        "unstable of 2024-10",
        "flat keys",
        {
            **dict.fromkeys(("lru", "redis_lru"), "maxmemory-policy allkeys-lru (approximate; maxmemory-samples 5)"),
            **dict.fromkeys(
                ("lfu_decay", "redis_lfu"),
                "maxmemory-policy allkeys-lfu with lfu-decay-time in minutes (1 by default, 0 = never)",
            ),
        },
        {name: "maxmemory-policy allkeys-lfu with lfu-decay-time 0" for name in FREQUENCY[:2]},
        otherwise="it has LRU, LFU, random and TTL order",
    ),
    System(
        "Caffeine",
        "3.2.4",
        "flat keys",
        {"w_tinylfu": "maximumWeight with a weigher"},
        _for_frequency("maximumWeight with a weigher: W-TinyLFU counts with periodic halving"),
        otherwise="it has W-TinyLFU only",
    ),
    System(
        "Provider cache",
        "as published",
        "prompt cache of a provider",
        {"lru": "nothing to set: choose the TTL and where the breakpoints stand"},
        otherwise="a provider evicts by its own rules; choose the TTL and where the breakpoints stand",
    ),
)


def settings_for(policy: str) -> list[dict[str, Any]]:
    """One plain row per system: name, version, tier, whether the policy exists there, the setting or the nearest."""
    return [_row(system, policy) for system in SYSTEMS]


def _row(system: System, policy: str) -> dict[str, Any]:
    exact = system.settings.get(policy)
    nearest = system.nearest.get(policy)
    if exact is not None:
        text = exact
    elif nearest is not None:
        text = f"not available there, nearest is {nearest}"
    else:
        text = f"not available there: {system.otherwise}"
    return {
        "system": system.name,
        "version": system.version,
        "tier": system.tier,
        "available": exact is not None,
        "setting": text,
    }
