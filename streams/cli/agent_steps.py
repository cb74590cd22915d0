"""The steps of a sub-agent in the foreground, as they happen."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from agents.plain_attempt import PlainAttempt
from agents.ports import ModelError, ModelReply, ModelRequest, ToolCall, ToolReply
from streams.redaction import Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAsked:
    """A model is asked.

    Attributes:
        n: Which call, from 1.
        tried: Which try of it, from 1.
        messages: Messages of the request.
        tools: Names of the tools offered.
    """

    n: int
    tried: int
    messages: int
    tools: tuple[str, ...]
    max_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswered:
    """It replied."""

    n: int
    reply: ModelReply


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailed:
    """It brought no reply.

    Attributes:
        decision: What is made of it, one word.
    """

    n: int
    tried: int
    kind: str
    reason: str
    endpoint: str
    model: str
    decision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """The sub-agent waits for its next try.

    Attributes:
        seconds: None: until there is a turn for it.
    """

    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """A tool is called, or refused."""

    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnded:
    """Its reply."""

    call: ToolCall
    reply: ToolReply


Step: TypeAlias = ModelAsked | ModelAnswered | ModelFailed | Waited | ToolCalled | ToolEnded


class WatchedAttempt(PlainAttempt):
    """An attempt that tells each of its steps.

    Args:
        show: Told each step as it happens.
        redactor: Takes secrets out of what comes from outside, as for a worker's journal.

    Attributes:
        simulated: A reply came from the simulated endpoint.
    """

    def __init__(self, seconds: float, show: Callable[[Step], None], *, redactor: Redactor) -> None:
        super().__init__(seconds, chance=random.random)
        self._show, self._redactor = show, redactor
        self._n = self._tried = 1
        self.simulated = False

    async def model(
        self, request: ModelRequest, call: Callable[[ModelRequest, float], Awaitable[ModelReply]]
    ) -> ModelReply:
        """Make the call, and tell of it."""
        asked = ModelAsked(
            n=self._n,
            tried=self._tried,
            messages=len(request.messages),
            tools=tuple(tool.name for tool in request.tools),
            max_tokens=request.max_tokens,
        )
        self._show(asked)
        try:
            reply = await super().model(request, call)
        except ModelError as error:
            error.reason = self._redactor.text(error.reason)
            decision = error.decision or ("retry" if error.retry else "give_up")
            self._show(
                ModelFailed(
                    n=self._n,
                    tried=self._tried,
                    kind=error.kind,
                    reason=error.reason,
                    endpoint=error.endpoint,
                    model=error.model,
                    decision=decision,
                )
            )
            self._tried += 1
            raise
        reply = replace(reply, message=self._redactor.message(reply.message))
        self._show(ModelAnswered(n=self._n, reply=reply))
        self.simulated = self.simulated or reply.simulated
        self._n, self._tried = self._n + 1, 1
        return reply

    async def tool(
        self, call: ToolCall, run: Callable[[float], Awaitable[ToolReply]], *, once: bool = False
    ) -> ToolReply:
        """Make the call, and tell of it."""
        self._show(ToolCalled(call=call))
        reply = await super().tool(call, run, once=once)
        reply = replace(reply, output=self._redactor.output(reply.output))
        self._show(ToolEnded(call=call, reply=reply))
        return reply

    async def wait(self, seconds: float) -> None:
        """Wait, and tell of it.

        Raises:
            TimeoutError: the attempt's time would be over before.
        """
        self._show(Waited(seconds=seconds))
        await super().wait(seconds)

    async def wait_for(self, ready: Callable[[], Awaitable[None]]) -> None:
        """Wait for it, and tell of it.

        Raises:
            TimeoutError: the attempt's time is over.
        """
        self._show(Waited(seconds=None))
        await super().wait_for(ready)
