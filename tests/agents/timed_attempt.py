"""An attempt on the clock of the event loop, with slots: for stories on virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

from agents.ports import ModelError, ModelReply, ModelRequest, ToolCall, ToolReply
from streams.core.commands import CallEnded
from streams.core.values import NO_USAGE, Grant, Inline, JobId, Json


class TimedAttempt:
    """One attempt; its time begins when it is made.

    Args:
        time_s: Seconds it has.
        chance: Its jitter.
        slots: Slots that it shares with others; it begins with none, and takes one for each call.

    Attributes:
        errors: What its calls were told, as a transcript names it: kind, endpoint, model, decision.
        calls: When its calls began.
        holds: It has a slot.
    """

    def __init__(
        self, *, time_s: float = 120.0, chance: float = 0.5, slots: asyncio.Semaphore | None = None
    ) -> None:
        self.grant: Grant | None = None
        self.fallback = 0
        self.usage = NO_USAGE
        self.errors: list[tuple[str, str, str, str]] = []
        self.calls: list[float] = []
        self.holds = False
        self._slots = slots or asyncio.Semaphore(1)
        self._chance = chance
        self._time = asyncio.get_running_loop().time
        self._ends = self._time() + time_s

    def left(self) -> float:
        """Seconds it still has."""
        return max(0.0, self._ends - self._time())

    async def model(
        self, request: ModelRequest, call: Callable[[ModelRequest, float], Awaitable[ModelReply]]
    ) -> ModelReply:
        """As the port says."""
        await self._take()
        began = self._time()
        try:
            reply = await call(request, self.left())
        except ModelError as error:
            self.calls.append(began)
            self.errors.append((error.kind, error.endpoint, error.model, error.decision))
            raise
        self.calls.append(began)
        self.usage += reply.usage
        return reply

    async def note(self, call: ToolCall, topic: str, value: Json, *, base: int, timeout_s: float) -> None:
        """As the port says; nobody reads it."""

    async def tool(
        self, call: ToolCall, run: Callable[[float], Awaitable[ToolReply]], *, once: bool = False
    ) -> ToolReply:
        """As the port says."""
        return await run(self.left())

    async def wait_outside(
        self,
        call: ToolCall,
        *,
        on: Literal["approval", "child"],
        args: Json = None,
        child: JobId | None = None,
    ) -> CallEnded:
        """As the port says; everything is approved."""
        del on, args
        return CallEnded(call=call.id, outcome="approved", child=child)

    async def ask_child(self, call: ToolCall, goal: Mapping[str, Json]) -> CallEnded:
        """As the port says; the answer is the goal itself."""
        return CallEnded(call=call.id, outcome="succeeded", answer=Inline(value=dict(goal)))

    async def wait(self, seconds: float) -> None:
        """As the port says."""
        if seconds >= self.left():
            raise TimeoutError
        self.end()
        await asyncio.sleep(seconds)

    async def wait_for(self, ready: Callable[[], Awaitable[None]]) -> None:
        """As the port says."""
        self.end()
        async with asyncio.timeout(self.left()):
            await ready()

    def jitter(self) -> float:
        """Always the same."""
        return self._chance

    def end(self) -> None:
        """Give the slot back."""
        if self.holds:
            self.holds = False
            self._slots.release()

    async def _take(self) -> None:
        if not self.holds:
            await self._slots.acquire()
            self.holds = True
