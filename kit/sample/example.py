"""The classic worked example: 50 hot prefixes against 4,000 that come once."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Literal

import polars as pl

from kit.sample.traffic import START


def worked_example(order: Literal["seed", "shuffled"] = "seed", one_hot_40k: bool = False) -> pl.DataFrame:
    """The classic example in its consistent form: 10,000 requests with flat keys, one every 60 s, over 7 UTC days.

    50 prefixes of 8,000 tokens carry 6,000 requests; 4,000 prefixes of 20,000 tokens are asked once each. `one_hot_40k`
    makes one of the fifty 40,000 tokens long. `order="seed"` is the mix that Python's `random.Random(1)` gives,
    `"shuffled"` another order of the very same requests, to see how much of an answer hangs on the order.
    """
    if order not in ("seed", "shuffled"):
        raise ValueError(f"order must be 'seed' or 'shuffled', got {order!r}")
    rng = random.Random(1)
    keys = [f"h{rng.randrange(50)}" for _ in range(6_000)] + [f"o{i}" for i in range(4_000)]
    rng.shuffle(keys)
    if order == "shuffled":
        random.Random(2).shuffle(keys)
    hot = 40_000 if one_hot_40k else 8_000
    tokens = [hot if key == "h0" else 8_000 if key[0] == "h" else 20_000 for key in keys]
    times = [START + timedelta(seconds=60 * i) for i in range(len(keys))]
    ts = pl.Series(times, dtype=pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts": ts, "prefix_key": keys, "prefix_tokens": tokens, "input_tokens": tokens})
