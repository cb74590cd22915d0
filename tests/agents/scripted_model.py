"""A model port that gives prepared replies or errors, in order, the last one for ever."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.ports import ModelError, ModelReply, ModelRequest
from streams.core.values import Json, Usage

ONE_CALL = Usage(calls=1, tokens_in=100, tokens_out=20)


def said(
    content: str | None = "ok", *, finish: str | None = None, calls: Sequence[Mapping[str, Any]] = ()
) -> ModelReply:
    """A reply with this text or these tool calls."""
    message: dict[str, Json] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = list(calls)
    return ModelReply(
        message=message,
        finish_reason=finish or ("tool_calls" if calls else "stop"),
        usage=ONE_CALL,
        model="m",
    )


class ScriptedModel:
    """The requests it got are in *requests*, the time each had in *timeouts*."""

    def __init__(self, *turns: ModelReply | ModelError) -> None:
        self._turns = list(turns)
        self.requests: list[ModelRequest] = []
        self.timeouts: list[float] = []

    async def chat(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        """Give the next turn."""
        self.requests.append(request)
        self.timeouts.append(timeout_s)
        turn = self._turns.pop(0) if len(self._turns) > 1 else self._turns[0]
        if isinstance(turn, ModelError):
            raise turn
        return turn
