"""Output of `codex exec --json`: events of one run, without any time, so no request can be placed.

A usage object stands at the end of a turn, and a turn is several model calls: neither when they ran nor how many there
were can be told. The rollout file that the same run leaves behind has both.
"""

from __future__ import annotations

from kit.formats.base import Format, Peek

EVENTS = ("thread.started", "turn.started", "turn.completed", "turn.failed", "item.started", "item.completed")
REFUSAL = (
    "the output of `codex exec --json` has no times and one usage object for all calls of a turn; give the rollout of "
    "the same run, under sessions/ in the Codex folder (rollout-*.jsonl)"
)


def recognise(peek: Peek) -> float:
    """Lines whose type is an event of a run, without a time."""
    if not peek.has("type") or peek.has("timestamp"):
        return 0.0
    return 0.95 if peek.any_record(lambda record: record["type"] in EVENTS) else 0.0


FORMAT = Format(
    name="codex_exec",
    title="Output of codex exec --json",
    containers=("jsonl",),
    recognise=recognise,
    fields=(),
    columns={},
    identity_rule="not a request log: events of one run without times",
    token_rule="not read: one usage object covers all calls of a turn",
    units={"usage": "tokens of a whole turn"},
    source="openai/codex, ccusage adapter for Codex",
    refuses=REFUSAL,
)
