"""Replies as streams of events, whole ones and those that chance breaks."""

from collections.abc import Iterator
from typing import Any

import orjson

from agents.simulator.asked import Asked
from agents.simulator.replies import Reply, opening, usage

PIECES = 8
"""Pieces of a text, and of the arguments of a tool call."""

DONE = b"data: [DONE]\n\n"


def events(asked: Asked, said: Reply, tokens_cached: int) -> list[bytes]:
    """The events of a reply, the last of them its end."""
    head = opening(asked, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event({**head, "choices": [choice]})

    made = [chunk({"role": "assistant", "content": ""})]
    made += [chunk({"reasoning_content": part}) for part in _parts(said.thought or "")]
    made += [chunk({"content": part}) for part in _parts(said.text or "")]
    for index, (call, name, arguments) in enumerate(said.calls):
        function = {"name": name, "arguments": ""}
        made.append(
            chunk({"tool_calls": [{"index": index, "id": call, "type": "function", "function": function}]})
        )
        made += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
            for part in _parts(arguments)
        ]
    made.append(chunk({}, said.finish_reason))
    if asked.usage_in_stream:
        made.append(_event({**head, "choices": [], "usage": usage(asked, said, tokens_cached)}))
    return [*made, DONE]


def _event(event: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(event) + b"\n\n"


def _parts(text: str) -> Iterator[str]:
    size = max(1, -(-len(text) // PIECES))
    return (text[at : at + size] for at in range(0, len(text), size))
