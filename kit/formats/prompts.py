"""Raw prompts to keys: canonical bytes of every part in the provider's order, cut into blocks, hashed as a chain.

The order is tools, system, messages. Bytes are those of the text as sent; transport fields that the model never sees
(cache markers, metadata, sampling) are left out, so moving a cache marker changes nothing. The first link of the
chain is
salted and names the model, so equal keys mean equal prefixes of one model. Only keys, lengths and types leave this
file.

Lengths: token ids are exact. Text is cut at 4 bytes per token unless a tokenizer is named (`tiktoken` must be
installed).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module
from typing import Any

BYTES_PER_TOKEN = 4
TRANSPORT = {"cache_control", "metadata", "index", "status"}
PLACES = ("request", "body", "request_body", "requestBody", "input", "proxy_server_request", "inputBodyJson")
PARTS = ("tools", "toolConfig", "functions", "system", "instructions", "systemInstruction", "system_instruction",
         "messages", "contents", "prompt", "model", "modelId")  # fmt: skip
PROMPT_COLUMNS = (*PARTS, *PLACES)
"""Columns of a table that a prompt may be made of."""
RESULT_TYPES = {"tool_result", "function_call_output", "toolResult", "functionResponse", "custom_tool_call_output"}
CALL_TYPES = {"tool_use", "function_call", "toolUse", "functionCall", "custom_tool_call"}
THOUGHT_TYPES = {"thinking", "redacted_thinking", "reasoning", "reasoningContent"}
IMAGE_TYPES = {"image", "image_url", "input_image", "inlineData"}
Part = tuple[str, str]


@dataclass(frozen=True)
class Prompt:
    """The parts of one prompt: `parts` (type, text), or `ids` where the log has token ids; the model if it is known."""

    parts: tuple[Part, ...] = ()
    ids: tuple[int, ...] | None = None
    model: str = ""


@dataclass(frozen=True)
class Path:
    """Chained keys of the blocks of a prompt (64 bit), their tokens and types; the last block may be partial."""

    keys: list[int]
    tokens: list[int]
    types: list[str]


def canonical(value: Any) -> str:
    """JSON without transport fields, key order and text as sent."""
    return json.dumps(_bare(value), ensure_ascii=False, separators=(",", ":"))


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _bare(inner) for key, inner in value.items() if key not in TRANSPORT}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value


def _type_of(block: dict[str, Any], role: str) -> str:
    kinds = {str(block.get("type", "")), *block}
    for names, word in ((RESULT_TYPES, "tool_result"), (CALL_TYPES, "tool_call"), (THOUGHT_TYPES, "thinking"),
                        (IMAGE_TYPES, "image")):  # fmt: skip
        if kinds & names:
            return word
    return role


def _blocks(content: Any, role: str) -> Iterable[Part]:
    """Parts of one content value: text alone, or a list of typed blocks."""
    if isinstance(content, str):
        yield role, content
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, dict):
                word = _type_of(block, role)
                text = block.get("text")
                yield word, text if isinstance(text, str) and word == role else canonical(block)
            else:
                yield role, str(block)
    elif content is not None:
        yield role, canonical(content)


ROLES = {"developer": "system", "model": "assistant", "tool": "tool_result", "function": "tool_result"}


def _message(message: dict[str, Any]) -> Iterable[Part]:
    role = ROLES.get(str(message.get("role", "user")), str(message.get("role", "user")))
    if "role" not in message and message.get("type"):
        yield _type_of(message, "user"), canonical(message)
        return
    for word, text in _blocks(message.get("content", message.get("parts")), role):
        yield word, f"\x1e{role}\x1f{text}"
    if message.get("tool_calls"):
        yield "tool_call", f"\x1e{role}\x1f{canonical(message['tool_calls'])}"


def parts_of(body: dict[str, Any]) -> list[Part]:
    """Parts of a request body in the order a provider renders them: tools, system, messages. Empty: no prompt here."""
    found: list[Part] = []
    tools = body.get("tools") or body.get("toolConfig") or body.get("functions")
    if tools:
        found.append(("tools", canonical(tools)))
    for name in ("system", "instructions", "systemInstruction", "system_instruction"):
        system = body.get(name)
        found += _blocks(system.get("parts") if isinstance(system, dict) else system, "system")
    spoken = body.get("messages", body.get("contents", body.get("input", body.get("prompt"))))
    if isinstance(spoken, str):
        found.append(("user", f"\x1euser\x1f{spoken}"))
    for message in spoken if isinstance(spoken, list) else []:
        found += _message(message) if isinstance(message, dict) else [("user", str(message))]
    return found if spoken else []


def prompt_of(record: dict[str, Any]) -> Prompt | None:
    """The prompt of a record: at its top, or inside one of the usual wrappers (some hold JSON text). None: no
    prompt."""
    bodies: list[Any] = [record]
    for name in PLACES:
        bodies += [inner[name] for inner in list(bodies) if isinstance(inner, dict) and name in inner]
    for body in reversed(bodies):
        opened = _opened(body)
        if opened and (parts := parts_of(opened)):
            model = opened.get("model") or record.get("model") or record.get("modelId") or ""
            return Prompt(parts=tuple(parts), model=str(model))
    return None


def opened(record: dict[str, Any]) -> dict[str, Any]:
    """A row of a table with the JSON in its text opened."""
    return {name: _json(value) if isinstance(value, str) else value for name, value in record.items()}


def _json(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return text or None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _opened(body: Any) -> dict[str, Any] | None:
    if isinstance(body, str) and body.startswith("{"):
        try:
            body = json.loads(body)
        except ValueError:
            return None
    return body if isinstance(body, dict) else None


IDS = re.compile(r"prompt_token_ids: \[([0-9, ]+)\]")


def ids_in_text(line: str) -> Prompt | None:
    """Token ids printed in an engine's log line."""
    found = IDS.search(line)
    return Prompt(ids=tuple(int(part) for part in found.group(1).split(","))) if found else None


def encoder(tokenizer: str | None) -> Callable[[str], bytes] | None:
    """Text to 4 bytes per token by a named tiktoken encoding; None: text bytes as they are.

    Raises ValueError when tiktoken is not installed or does not know the encoding.
    """
    if tokenizer is None:
        return None
    try:
        encoding = import_module("tiktoken").get_encoding(tokenizer)
    except ImportError:
        raise ValueError(f"tokenizer {tokenizer}: tiktoken is not installed; install it or leave it out") from None
    return lambda text: _packed(encoding.encode(text, disallowed_special=()))


def _packed(ids: Iterable[int]) -> bytes:
    return b"".join(number.to_bytes(BYTES_PER_TOKEN, "little") for number in ids)


def hash_prompt(
    prompt: Prompt, block_tokens: int, salt: bytes = b"", encode: Callable[[str], bytes] | None = None
) -> Path:
    """Chain of keys over the prompt's blocks of `block_tokens`; full blocks, then the rest as a shorter last one."""
    pieces = [("", _packed(prompt.ids))] if prompt.ids is not None else [
        (word, encode(text) if encode else text.encode("utf-8", "surrogatepass")) for word, text in prompt.parts
    ]  # fmt: skip
    stream = b"".join(data for _, data in pieces)
    step = block_tokens * BYTES_PER_TOKEN
    link = blake2b(prompt.model.encode(), digest_size=8, key=salt[:64]).digest()
    keys, tokens = [], []
    for start in range(0, len(stream), step):
        chunk = stream[start : start + step]
        link = blake2b(link + chunk, digest_size=8).digest()
        keys.append(int.from_bytes(link, "little"))
        tokens.append(-(-len(chunk) // BYTES_PER_TOKEN))
    return Path(keys, tokens, _block_types(pieces, step))


def _block_types(pieces: list[tuple[str, bytes]], step: int) -> list[str]:
    """Type of each block: that of its first byte."""
    types: list[str] = []
    end = 0
    for word, data in pieces:
        end += len(data)
        types += [word] * (-(-end // step) - len(types))
    return types
