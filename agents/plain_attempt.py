"""An attempt without a journal: for one sub-agent in the foreground, and for what an answer should be."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

from agents.ports import ModelError, ModelReply, ModelRequest, ToolCall, ToolReply
from streams.core.commands import CallEnded
from streams.core.values import NO_USAGE, Grant, JobId, Json, Usage


class PlainAttempt:
    """An attempt with time of its own and no journal (an :class:`agents.ports.Attempt`).

    To be made inside the running loop.

    Args:
        seconds: Its time.
        chance: Numbers between 0 and 1.

    Attributes:
        grant: What it may spend.
        fallback: None came before it.
        usage: What its calls have cost so far.
    """

    def __init__(
        self, seconds: float, grant: Grant | None = None, *, chance: Callable[[], float] = lambda: 0.5
    ) -> None:
        self.grant, self.usage, self.fallback = grant, NO_USAGE, 0
        self._chance = chance
        self._time = asyncio.get_running_loop().time
        self._ends = self._time() + seconds

    def left(self) -> float:
        """Seconds it still has."""
        return max(0.0, self._ends - self._time())

    async def model(
        self, request: ModelRequest, call: Callable[[ModelRequest, float], Awaitable[ModelReply]]
    ) -> ModelReply:
        """Make the call."""
        try:
            reply = await call(request, self.left())
        except ModelError as error:
            self.usage += error.usage or NO_USAGE
            raise
        self.usage += reply.usage
        return reply

    async def tool(
        self,
        call: ToolCall,  # noqa: ARG002 - the port's
        run: Callable[[float], Awaitable[ToolReply]],
        *,
        once: bool = False,  # noqa: ARG002 - the port's
    ) -> ToolReply:
        """Make the call."""
        reply = await run(self.left())
        self.usage += Usage(tool_calls=1)
        return reply

    async def note(
        self,
        call: ToolCall,
        topic: str,
        value: Json,
        *,
        base: int,
        timeout_s: float,
    ) -> None:
        """Nobody else would read it."""

    async def wait_outside(
        self,
        call: ToolCall,
        *,
        on: Literal["approval", "child"],
        args: Json = None,
        child: JobId | None = None,
    ) -> CallEnded:
        """Nobody is there to be waited for: the call is not made."""
        del args
        waited = f"a swarm would wait here for {child or f'approval of {call.name}'}: nobody is asked"
        return CallEnded(call=call.id, outcome="rejected", child=child, reason=f"{waited} ({on})")

    async def ask_child(
        self,
        call: ToolCall,
        goal: Mapping[str, Json],
    ) -> CallEnded:
        """Nobody is there to work on it."""
        reason = f"a swarm would work on the goal {str(goal['goal'])[:200]!r} here: there is none"
        return CallEnded(call=call.id, outcome="rejected", reason=reason)

    async def wait(self, seconds: float) -> None:
        """Wait.

        Raises:
            TimeoutError: the attempt's time would be over before.
        """
        if seconds >= self.left():
            raise TimeoutError
        await asyncio.sleep(seconds)

    async def wait_for(self, ready: Callable[[], Awaitable[None]]) -> None:
        """Wait for it.

        Raises:
            TimeoutError: the attempt's time is over.
        """
        async with asyncio.timeout(self.left()):
            await ready()

    def jitter(self) -> float:
        """The next number between 0 and 1."""
        return self._chance()
