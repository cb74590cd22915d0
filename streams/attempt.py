"""One attempt of a sub-task: its time, its slot and its journal, as the agents' side sees them."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from agents.ports import ModelError, ModelReply, ModelRequest, ToolCall, ToolReply
from streams.core.commands import Command
from streams.core.values import NO_USAGE, Usage
from streams.journal import Journal
from streams.slots import Slots

A_TOOL_CALL = Usage(tool_calls=1)


class RunningAttempt:
    """An attempt under way (an :class:`agents.ports.Attempt`).

    Each reply is put on the journal at once, and is there before the next call begins: a call
    whose reply is being written is not waited for by whoever only works with that reply. A slot
    is held but in :meth:`wait`.

    Args:
        chance: Numbers between 0 and 1.

    Attributes:
        usage: What its calls have cost so far, also where it ends without a result.
    """

    def __init__(
        self, command: Command, journal: Journal, slots: Slots, *, chance: Callable[[], float]
    ) -> None:
        self._command, self._journal, self._slots, self._chance = command, journal, slots, chance
        self._time = asyncio.get_running_loop().time
        self._ends = self._time() + command.timeout_s
        self._holds = False
        self._writing: list[asyncio.Task[None]] = []
        self._replies = self._tries = self._seen = 0
        self._refused: tuple[ModelRequest, ModelError] | None = None
        self.usage = NO_USAGE

    def begin(self) -> None:
        """Its time counts from now: it has a slot."""
        self._ends = self._time() + self._command.timeout_s

    def left(self) -> float:
        """Seconds this attempt still has."""
        return max(0.0, self._ends - self._time())

    async def model(
        self, request: ModelRequest, call: Callable[[ModelRequest, float], Awaitable[ModelReply]]
    ) -> ModelReply:
        """As :meth:`agents.ports.Attempt.model`."""
        self._decided("retry")
        await self.recorded()
        try:
            reply = await call(request, self.left())
        except ModelError as error:
            self._tries += 1
            self._refused = request, error
            raise
        self.usage += reply.usage
        self._replies, self._tries = self._replies + 1, 0
        self._write(self._journal.model_called(self._replies, self._seen, request, reply))
        self._seen = len(request.messages) + 1  # the reply among them
        return reply

    async def tool(
        self, call: ToolCall, run: Callable[[float], Awaitable[ToolReply]], *, once: bool = False
    ) -> ToolReply:
        """As :meth:`agents.ports.Attempt.tool`."""
        await self.recorded()
        if once:
            await self._journal.tool_started(call)
        reply = await run(self.left())
        self.usage += A_TOOL_CALL
        self._write(self._journal.tool_called(call, reply))
        return reply

    async def recorded(self) -> None:
        """Wait until every reply so far is on the journal.

        Raises:
            RecordRefused, Unwritable: the journal cannot hold one; the attempt must not go on.
        """
        so_far = tuple(self._writing)
        if any(not task.done() for task in so_far):
            await asyncio.wait(so_far)  # others may wait for the same; nobody's end may end them
        self._writing = [task for task in self._writing if task not in so_far]
        for task in so_far:
            task.result()

    async def end(self) -> None:
        """It makes no call any more: wait until all of it is on the journal.

        Raises:
            RecordRefused, Unwritable: the journal cannot hold a part of it.
        """
        self._decided("give_up")
        await self.recorded()

    def _decided(self, decision: str) -> None:
        """What was made of the last call that brought no reply is known by what came after it."""
        if self._refused is not None:
            (request, error), self._refused = self._refused, None
            entry = self._journal.model_failed(
                self._replies + 1, request, error, tried=self._tries, seen=self._seen, decision=decision
            )
            self._write(entry)

    def _write(self, entry: Coroutine[Any, Any, None]) -> None:
        self._writing.append(asyncio.create_task(entry))

    async def wait(self, seconds: float) -> None:
        """As :meth:`agents.ports.Attempt.wait`."""
        if seconds >= self.left():
            raise TimeoutError
        self._decided("retry")
        self.give_back()
        await asyncio.sleep(seconds)
        await self.take(back=True)

    async def take(self, *, back: bool = False) -> None:
        """Wait for a slot."""
        await self._slots.acquire(self._command.job, back=back)
        self._holds = True

    def give_back(self) -> None:
        """Give the slot back, where one is held."""
        if self._holds:
            self._holds = False
            self._slots.release()

    def jitter(self) -> float:
        """As :meth:`agents.ports.Attempt.jitter`."""
        return self._chance()
