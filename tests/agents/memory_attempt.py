"""An attempt in memory: it records and recalls like a lane's, and its waits move a clock of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agents.ports import ModelError, ModelReply, ModelRequest, ToolCall, ToolReply
from streams.core.commands import CallEnded
from streams.core.values import NO_USAGE, Grant, Inline, JobId, Json, Usage
from streams.memory_log.virtual_time import VirtualTimeLoop


@dataclass(kw_only=True)
class Journal:
    """What outlives a crash: replies in order, tool replies by call id."""

    requests: list[ModelRequest] = field(default_factory=list)
    replies: list[ModelReply] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    tool_replies: dict[str, ToolReply] = field(default_factory=dict)
    notes: list[tuple[str, str, Json, int]] = field(default_factory=list)


class MemoryAttempt:
    """One run of an attempt.

    Args:
        journal: Of an earlier run that crashed; what it holds is recalled.
        time_s: Virtual seconds the attempt has; only waits pass time.
        chances: Jitters in order, the last one for ever.
        grant: What it may spend.
    """

    def __init__(
        self,
        journal: Journal | None = None,
        *,
        time_s: float = 120.0,
        chances: Sequence[float] = (1.0,),
        grant: Grant | None = None,
    ) -> None:
        self.grant, self.usage, self.fallback = grant, NO_USAGE, 0
        self.journal = journal or Journal()
        self.time_s = time_s
        self.waits: list[float] = []
        self.asked: list[ModelRequest] = []
        self._chances = list(chances)
        self._recalled = 0

    async def model(
        self, request: ModelRequest, call: Callable[[ModelRequest, float], Awaitable[ModelReply]]
    ) -> ModelReply:
        """As the port says."""
        self.asked.append(request)
        if self._recalled < len(self.journal.replies):
            self._recalled += 1
            reply = self.journal.replies[self._recalled - 1]
            self.usage += reply.usage
            return reply
        try:
            reply = await call(request, self.time_s)
        except ModelError as error:
            self.usage += error.usage or NO_USAGE
            raise
        self.journal.requests.append(request)
        self.journal.replies.append(reply)
        self._recalled += 1
        self.usage += reply.usage
        return reply

    async def tool(
        self, call: ToolCall, run: Callable[[float], Awaitable[ToolReply]], *, once: bool = False
    ) -> ToolReply:
        """As the port says."""
        self.usage += Usage(tool_calls=1)
        known = self.journal.tool_replies.get(call.id)
        if known is not None:
            return known
        reply = await run(self.time_s)
        self.journal.calls.append(call)
        self.journal.tool_replies[call.id] = reply
        return reply

    async def note(self, call: ToolCall, topic: str, value: Json, *, base: int, timeout_s: float) -> None:
        """As the port says; kept beside the journal."""
        del timeout_s
        self.journal.notes.append((call.id, topic, value, base))

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
        """As the port says; on virtual time it passes for all, else only for the attempt itself."""
        if seconds >= self.time_s:
            raise TimeoutError
        if isinstance(asyncio.get_running_loop(), VirtualTimeLoop):
            await asyncio.sleep(seconds)
        self.time_s -= seconds
        self.waits.append(seconds)

    async def wait_for(self, ready: Callable[[], Awaitable[None]]) -> None:
        """As the port says; the time that passes on the event loop is the attempt's."""
        clock = asyncio.get_running_loop().time
        began = clock()
        async with asyncio.timeout(self.time_s):
            await ready()
        self.time_s -= clock() - began

    def jitter(self) -> float:
        """The next of the given chances."""
        return self._chances.pop(0) if len(self._chances) > 1 else self._chances[0]
