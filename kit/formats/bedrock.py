"""Amazon Bedrock model invocation log: additive counts; the split of writes by lifetime is inside the answer's body."""

from __future__ import annotations

from kit.formats.base import Field, Format, Peek
from kit.formats.prompts import prompt_of

LONG = (
    "coalesce(TRY_CAST(json_extract_string(body, '$[0].message.usage.cache_creation.ephemeral_1h_input_tokens') "
    "AS BIGINT), TRY_CAST(json_extract_string(body, '$.usage.cache_creation.ephemeral_1h_input_tokens') AS BIGINT), 0)"
)


def recognise(peek: Peek) -> float:
    """The schema name, or an invocation with token counts."""
    if peek.any_record(lambda record: record["schemaType"] == "ModelInvocationLog"):
        return 0.99
    return 0.9 if peek.has("modelId", "requestId", "input", "output") else 0.0


FORMAT = Format(
    name="bedrock",
    title="Bedrock model invocation log",
    containers=("jsonl", "json"),
    recognise=recognise,
    fields=(
        Field("timestamp", "time", ("timestamp",), required=True),
        Field("request_id", "text", ("requestId",)),
        Field("model_id", "text", ("modelId",)),
        Field("region", "text", ("region",)),
        Field("caller", "text", ("identity/arn",)),
        Field("error", "text", ("errorCode",)),
        Field("uncached", "count", ("input/inputTokenCount",), required=True),
        Field("cached", "count", ("input/cacheReadInputTokenCount",)),
        Field("written", "count", ("input/cacheWriteInputTokenCount",)),
        Field("output_tokens", "count", ("output/outputTokenCount",)),
        Field("body", "json", ("output/outputBodyJson",)),
    ),
    columns={
        "ts": "timestamp",
        "provider": "'bedrock'",
        "model": "regexp_extract(model_id, '[^/]+$')",
        "cache_scope": "region",
        "owner": "caller",
        "input_tokens": "uncached + coalesce(cached, 0) + coalesce(written, 0)",
        "uncached_tokens": "uncached",
        "read_tokens": "cached",
        "write_tokens": f"written - least(written, {LONG})",
        "write_long_tokens": f"least(written, {LONG})",
        "output_tokens": "output_tokens",
        "source_id": "request_id",
        "path_keys": "NULL::UBIGINT[]",
    },
    aside=(("error IS NOT NULL AND uncached IS NULL", "failed call"),),
    prompt=prompt_of,
    identity_rule="one requestId is one request; repeated delivery counts once",
    token_rule="additive: inputTokenCount is the uncached part",
    units={"timestamp": "ISO time"},
    source="AWS user guide, model invocation logging",
)
