"""A budget in GiB: how many bytes of key and value memory a token takes in a model.

Bytes per token = layers x 2 (key and value) x key-value heads x head size x bytes per number; models with latent
attention store one latent vector and one rotary key per layer instead. Shapes are those of the models' published
configurations (`num_hidden_layers`, `num_key_value_heads`, `head_dim`, `kv_lora_rank`, `qk_rope_head_dim`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

GIB = 1 << 30
NUMBER_BYTES = {"bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "fp32": 4}


@dataclass(frozen=True)
class Shape:
    """What decides the key-value memory of a model: layers, key-value heads, head size; `latent` = numbers per layer
    where the cache holds a compressed vector instead of keys and values."""

    layers: int
    kv_heads: int = 0
    head_size: int = 0
    latent: int = 0

    def bytes_per_token(self, number: str = "bf16") -> int:
        """Bytes of key-value memory per token; ValueError lists the known number types."""
        if number not in NUMBER_BYTES:
            raise ValueError(f"unknown number type {number!r} of key-value memory; known: {', '.join(NUMBER_BYTES)}")
        numbers = self.latent or 2 * self.kv_heads * self.head_size
        return self.layers * numbers * NUMBER_BYTES[number]


SHAPES = {
    "llama-3.1-8b": Shape(32, 8, 128),
    "llama-3.1-70b": Shape(80, 8, 128),
    "llama-3.1-405b": Shape(126, 8, 128),
    "mistral-7b": Shape(32, 8, 128),
    "mixtral-8x7b": Shape(32, 8, 128),
    "qwen2.5-7b": Shape(28, 4, 128),
    "qwen2.5-72b": Shape(80, 8, 128),
    "qwen3-8b": Shape(36, 8, 128),
    "qwen3-32b": Shape(64, 8, 128),
    "deepseek-v3": Shape(61, latent=512 + 64),
}


def token_bytes(model: str, number: str = "bf16") -> int:
    """Bytes of key-value memory per token of a model in the catalogue; ValueError lists the known ones."""
    if model not in SHAPES:
        raise ValueError(f"no key-value shape for model {model!r}; give kv_bytes_per_token, or one of "
                         f"{', '.join(SHAPES)}")  # fmt: skip
    return SHAPES[model].bytes_per_token(number)


def capacity_tokens(gib: float, bytes_per_token: float) -> int:
    """Whole tokens that fit into `gib` GiB at so many bytes per token; ValueError where either is not above 0."""
    if not gib > 0 or not bytes_per_token > 0:
        raise ValueError(f"GiB and bytes per token must be above 0, got {gib} and {bytes_per_token}")
    return int(gib * GIB // bytes_per_token)


def catalogue() -> list[dict[str, Any]]:
    """The shapes as plain rows: name, what decides their memory, bytes per token and tokens per GiB (bf16, fp8)."""
    return [
        {
            "name": name, "layers": shape.layers, "kv_heads": shape.kv_heads or None,
            "head_size": shape.head_size or None, "latent": shape.latent or None,
            "bytes_per_token": shape.bytes_per_token(), "tokens_per_gib": capacity_tokens(1, shape.bytes_per_token()),
            "tokens_per_gib_fp8": capacity_tokens(1, shape.bytes_per_token("fp8")),
        }
        for name, shape in SHAPES.items()
    ]  # fmt: skip
