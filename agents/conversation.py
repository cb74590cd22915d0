"""A sub-agent's conversation with its model: what was said, and what each tool call brought."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.cut import cut_json
from agents.plain_json import dumps
from agents.ports import ModelReply, ToolCall, ToolReply
from agents.prompt_data import from_tool
from streams.core.values import Json

RESULT_BYTES = 16_384
"""Bytes of JSON of one tool result that the model sees, about 4,000 tokens."""

SHORTENED_BYTES = 1_024
"""What is left of a tool result when the context is full."""


class Conversation:
    """Messages in the terms of the chat API, the fixed one first."""

    def __init__(self, opening: Sequence[Mapping[str, Json]], *, result_bytes: int = RESULT_BYTES) -> None:
        self.messages: list[Mapping[str, Json]] = list(opening)
        self._result_bytes = result_bytes
        self._seen: set[str] = set()
        self._told: dict[int, tuple[str, bytes]] = {}  # by place the tool's name, and its output's JSON

    def take_turn(self, reply: ModelReply) -> tuple[ToolCall, ...]:
        """Add the model's turn, verbatim, and give the tool calls it asks for.

        A call without an id, or with one used before in the same turn, gets one of its own, so
        that each call has exactly one result.
        """
        asked: Any = reply.message.get("tool_calls") or ()
        ids: dict[str, None] = {}
        for place, one in enumerate(asked):
            name = str(one.get("id") or f"call_{len(self.messages)}_{place}")
            while name in ids:
                name = f"{name}_{len(self.messages)}_{place}"
            ids[name] = None
        if any(one.get("id") != name for one, name in zip(asked, ids, strict=True)):
            renamed = [{**one, "id": name} for one, name in zip(asked, ids, strict=True)]
            self.messages.append({**reply.message, "tool_calls": renamed})
        else:
            self.messages.append(reply.message)
        return tuple(
            ToolCall(id=name, name=one["function"]["name"], arguments=one["function"]["arguments"])
            for one, name in zip(asked, ids, strict=True)
        )

    def journaled(self, call: ToolCall) -> ToolCall:
        """The call under an id unique in the whole attempt: some models count from 0 again each turn."""
        name, again = call.id, 1
        while name in self._seen:
            again += 1
            name = f"{call.id}#{again}"
        self._seen.add(name)
        return call if name == call.id else ToolCall(id=name, name=call.name, arguments=call.arguments)

    def add_result(self, call: ToolCall, reply: ToolReply) -> None:
        """Add what came of a call, marked as data, and cut in the middle where it is long."""
        encoded = dumps(told(reply))
        self._told[len(self.messages)] = call.name, encoded
        content = from_tool(call.name, cut_json(encoded, self._result_bytes))
        self.messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

    def shorten(self) -> bool:
        """Cut the older half of the tool results hard, for a full context. False: nothing got shorter."""
        places = list(self._told)
        shortened = False
        for place in places[: (len(places) + 1) // 2]:
            name, encoded = self._told[place]
            if len(encoded) > SHORTENED_BYTES:
                cut = from_tool(name, cut_json(encoded, SHORTENED_BYTES))
                self.messages[place] = {**self.messages[place], "content": cut}
                shortened = True
        return shortened


def told(reply: ToolReply) -> Json:
    """A tool's output as the model sees it; an error says so."""
    if reply.error is None:
        return reply.output
    if isinstance(reply.output, Mapping):
        return {"error": reply.error, **reply.output}
    return {"error": reply.error, "message": reply.output}
