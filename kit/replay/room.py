"""A budget in GiB: how many bytes of key and value memory a token takes in a model.

Bytes per token = layers x 2 (key and value) x key-value heads x head size x bytes per number; models with latent
attention store one latent vector and one rotary key per layer instead. Shapes are those of the models' published
configurations (`num_hidden_layers`, `num_key_value_heads`, `head_dim`, `kv_lora_rank`, `qk_rope_head_dim`).
"""

from __future__ import annotations

from dataclasses import dataclass

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

    def bytes_per_token(self, dtype: str = "bf16") -> int:
        """Bytes of key-value memory per token; ValueError lists the known number types."""
        if dtype not in NUMBER_BYTES:
            raise ValueError(f"unknown number type {dtype!r}; known: {', '.join(NUMBER_BYTES)}")
        numbers = self.latent or 2 * self.kv_heads * self.head_size
        return self.layers * numbers * NUMBER_BYTES[dtype]


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


def capacity_tokens(gib: float, kv_bytes_per_token: float | None = None, model: str | None = None,
                    dtype: str = "bf16") -> int:  # fmt: skip
    """Whole tokens that fit into `gib` GiB, from bytes per token given or from a model's shape.

    ValueError where neither is given or the model is unknown (the known ones are listed).
    """
    if kv_bytes_per_token is None:
        if model is None or model not in SHAPES:
            raise ValueError(f"no key-value shape for model {model!r}; give kv_bytes_per_token, or one of "
                             f"{', '.join(SHAPES)}")  # fmt: skip
        kv_bytes_per_token = SHAPES[model].bytes_per_token(dtype)
    if not gib > 0 or not kv_bytes_per_token > 0:
        raise ValueError(f"GiB and bytes per token must be above 0, got {gib} and {kv_bytes_per_token}")
    return int(gib * GIB // kv_bytes_per_token)
