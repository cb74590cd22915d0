"""A whole reply of an endpoint, read: a completion of the chat API as :class:`ModelReply`, or why not."""

from collections.abc import Mapping
from typing import Any

from agents.ports import ModelReply
from agents.strict_json import MAX_DEPTH, deeper_than
from streams.core.values import Json, Usage

BYTES_PER_TOKEN = 4
"""For the estimate where a provider does not tell usage: English text on common tokenizers."""

CUT_SHORT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
"""Words of providers for a reply that ended at its limit; here it is ``length``, OpenAI's own."""

NOT_ENDED = frozenset({"error", "abort", "cancelled"})
"""Words of OpenRouter, Mistral and vLLM for a reply that broke off, though its status is 200."""

MAY_BE_EMPTY = ("length", "content_filter")
"""With these reasons a reply without words is what happened, not a broken reply."""

MAX_CALLS = 1_000
"""Tool calls in one turn. What asks for more asks for nothing that could be told to it."""

MAX_NAME = 256
"""Characters of a model's name and of a call's id as the provider says them; longer ones are no names."""

MAX_TOKENS = 1_000_000_000
"""Tokens of one call, beyond which a provider's word for them is no count."""


class BrokenReply(Exception):
    """A completion that is no reply; its text says why."""


def read_completion(completion: Mapping[str, Any], *, model: str, sent: int, received: int) -> ModelReply:
    """The reply in a completion.

    Args:
        completion: As the chat API has it.
        model: What was asked, where the completion names no model.
        sent: Bytes of the request, for an estimate of its tokens.
        received: Bytes of the reply, likewise.

    Raises:
        BrokenReply: there is none in it, or not the whole.
    """
    try:
        choice = completion["choices"][0]
        message = clean_message(choice["message"])
        finish_reason = choice["finish_reason"]
    except (KeyError, IndexError, TypeError, AttributeError) as broken:
        why = f"{type(broken).__name__}: {broken}"[:200]
        raise BrokenReply(f"no whole choice in it ({why})") from None
    if deeper_than(message, MAX_DEPTH):
        raise BrokenReply(f"a message nested more than {MAX_DEPTH} levels deep")
    if not isinstance(finish_reason, str):
        raise BrokenReply("no finish_reason, so it may be cut off")
    if finish_reason.lower() in NOT_ENDED:
        raise BrokenReply(f"broken off: finish_reason {finish_reason}")
    if finish_reason.lower() in CUT_SHORT:
        finish_reason = "length"
    if not message.get("content") and "tool_calls" not in message and finish_reason not in MAY_BE_EMPTY:
        raise BrokenReply("an empty message")
    return ModelReply(
        message=message,
        finish_reason=finish_reason[:MAX_NAME],
        usage=read_usage(completion.get("usage"), sent=sent, received=received),
        model=name_of(completion.get("model")) or model,
        request_id=name_of(completion.get("id")),
    )


def clean_message(message: Mapping[str, Json]) -> dict[str, Json]:
    """An assistant message as it came, without the empty fields that no endpoint takes back.

    Content in parts, as some endpoints send it, becomes the text of its parts; whatever the message
    says of its role, an assistant said it.

    Raises:
        TypeError, KeyError, AttributeError: it is no message, or a part or a tool call in it is broken.
    """
    kept: dict[str, Json] = {
        name: value for name, value in message.items() if value is not None and value != []
    }
    kept["role"] = "assistant"
    content: Any = kept.setdefault("content", None)
    if isinstance(content, list):
        kept["content"] = "".join(_text(part) for part in content)
    elif content is not None and not isinstance(content, str):
        raise TypeError("content that is no text")
    calls: Any = kept.get("tool_calls", [])
    if not isinstance(calls, list) or len(calls) > MAX_CALLS:
        raise TypeError(f"tool_calls that are no list of at most {MAX_CALLS}")
    for call in calls:
        function = call["function"]
        if not isinstance(function["name"], str) or not isinstance(function["arguments"], str):
            raise TypeError("a tool call without name or arguments")
        if not isinstance(call.get("id", ""), str | None) or len(call.get("id") or "") > MAX_NAME:
            raise TypeError("a tool call whose id is no name")
    return kept


def _text(part: Any) -> str:
    """The text of a part of a message; parts that are not said to be text, such as thoughts, have none."""
    text = part["text"] if part.get("type") in ("text", "output_text") else ""
    if not isinstance(text, str):
        raise TypeError("a part of a message whose text is none")
    return text


def name_of(said: object) -> str:
    """What a provider says of itself, where it can be a name."""
    return said if isinstance(said, str) and len(said) <= MAX_NAME else ""


def read_usage(usage: object, *, sent: int, received: int) -> Usage:
    """What the provider says a call cost, else an estimate from the bytes *sent* and *received*."""
    if isinstance(usage, dict):
        tokens_in, tokens_out = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        if tokens_in is not None and tokens_out is not None:
            details = usage.get("prompt_tokens_details")
            within = details.get("cached_tokens") if isinstance(details, dict) else None
            cached = _count(usage.get("cached_tokens") or within) or 0
            return Usage(
                calls=1, tokens_in=tokens_in, tokens_cached=min(cached, tokens_in), tokens_out=tokens_out
            )
    return Usage(
        calls=1,
        tokens_in=-(-sent // BYTES_PER_TOKEN),
        tokens_out=-(-received // BYTES_PER_TOKEN),
        estimated=1,
    )


def _count(tokens: object) -> int | None:
    """A number of tokens, or None where it is none."""
    fits = isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens <= MAX_TOKENS
    return tokens if fits and isinstance(tokens, int) else None
