"""Qwen-Bailian traces: relative seconds, chat turns, and ids of 16-token blocks.

Ids are hashes of single blocks, not of chains, so the same id at another place is another prefix: the kit chains them.
A session is what `parent_chat_id` leads back to; parents may lie before the start of the trace.
"""

from __future__ import annotations

from typing import Any

from kit.formats.base import Field, Format, Peek

BLOCK = 16


def recognise(peek: Peek) -> float:
    """Chat ids beside lengths and block ids."""
    return 0.95 if peek.has("chat_id", "parent_chat_id", "input_length", "hash_ids") else 0.0


def sessions(con: Any) -> list[str]:
    """Name every session after the first chat its turns lead back to (one already outside the trace included)."""
    rows = con.sql("SELECT rowid, chat, parent FROM staged WHERE is_request ORDER BY rn").fetchall()
    parent_of = {chat: parent for _, chat, parent in rows if parent is not None and parent != "-1"}
    root_of: dict[str, str] = {}
    for _, chat, _ in rows:
        path: list[str] = []
        at = chat
        while at in parent_of and at not in root_of and len(path) <= len(parent_of):
            path.append(at)
            at = parent_of[at]
        root = root_of.get(at, at)
        for name in (*path, chat):
            root_of[name] = root
    con.execute("CREATE OR REPLACE TEMP TABLE root_chat(chat VARCHAR, root VARCHAR)")
    con.execute(
        "INSERT INTO root_chat SELECT unnest($chats), unnest($roots)",
        {"chats": list(root_of), "roots": list(root_of.values())},
    )
    con.execute("UPDATE staged SET session_id = root FROM root_chat WHERE root_chat.chat = staged.chat")
    return ["session_id: the first chat that parent_chat_id leads back to"]


FORMAT = Format(
    name="qwen_bailian",
    title="Qwen-Bailian usage trace",
    containers=("jsonl", "json"),
    recognise=recognise,
    fields=(
        Field("chat_id", "text", ("chat_id",), required=True),
        Field("parent_chat_id", "text", ("parent_chat_id",)),
        Field("timestamp", "seconds", ("timestamp",), required=True),
        Field("input_length", "count", ("input_length",), required=True),
        Field("output_length", "count", ("output_length",)),
        Field("hash_ids", "ids", ("hash_ids",), required=True),
    ),
    columns={
        "ts": "timestamp",
        "session_id": "chat_id",
        "input_tokens": "input_length",
        "output_tokens": "output_length",
        "path_keys": "hash_ids",
        "block_tokens": f"{BLOCK}",
        "source_id": "chat_id",
        "chat": "chat_id",
        "parent": "parent_chat_id",
    },
    checks=(
        (f"len(hash_ids) NOT IN (input_length // {BLOCK}, (input_length + {BLOCK - 1}) // {BLOCK})",
         "hash_ids does not have one id per 16 tokens of input_length"),
    ),
    after=sessions,
    sets=(),
    identity_rule="one line is one request (chat_id); lines that repeat a chat_id count once",
    token_rule="input_length is the whole prompt; what a cache did is not in the trace",
    units={"timestamp": "seconds from 0", "hash_ids": "blocks of 16 tokens, each hashed by itself"},
    source="alibaba-edu/qwen-bailian-usagetraces-anon README",
    clock="relative",
)  # fmt: skip
