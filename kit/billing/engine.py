"""Your own engine: no bill, but prefill work. Tokens, floating-point operations, and GPU time where a rate is given."""

from __future__ import annotations

from kit.billing.bill import Bill, BillingError

FLOPS_PER_PARAMETER_AND_TOKEN = 2


def prefill_work(
    drawn: Bill, model_parameters: float | None = None, prefill_tokens_per_second: float | None = None
) -> dict[str, float | None]:
    """Prefill tokens done and saved, and what they mean for a model of a size and an engine of a speed.

    `model_parameters` is the number of active parameters P: a prefilled token costs about 2 P operations (attention
    over the context comes on top and is left out). `prefill_tokens_per_second` is one GPU's measured prefill rate. What
    is not given stays None. Raises BillingError for a size or rate that is not above 0.
    """
    for name, value in (
        ("model_parameters", model_parameters),
        ("prefill_tokens_per_second", prefill_tokens_per_second),
    ):
        if value is not None and not 0 < value < float("inf"):
            raise BillingError(f"{name} is {value}; accepted is a number above 0, or none")
    done = drawn.write_tokens + drawn.write_long_tokens + drawn.uncached_tokens
    per_token = None if model_parameters is None else FLOPS_PER_PARAMETER_AND_TOKEN * model_parameters
    rate = prefill_tokens_per_second
    return {
        "prefill_tokens": done,
        "saved_tokens": drawn.read_tokens,
        "prefill_flops": None if per_token is None else done * per_token,
        "saved_flops": None if per_token is None else drawn.read_tokens * per_token,
        "gpu_seconds": None if rate is None else done / rate,
        "saved_gpu_seconds": None if rate is None else drawn.read_tokens / rate,
    }
