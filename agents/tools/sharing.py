"""Equal calls of read-only tools within one job: made once, and the result shared.

It holds within one worker. The sub-tasks of a job run in several; each of them makes the call once at
most, as long as the result is remembered. The journal keeps each attempt's own copy, so that what an
attempt recalls does not depend on what others did.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import orjson

from agents.plain_json import dumps
from agents.ports import ToolReply
from streams.core.values import Json

MAX_RESULTS: Final = 2_000
"""Results remembered, of all jobs together."""

MAX_BYTES: Final = 33_554_432
"""Bytes of their JSON, all together; one may have a sixteenth of that."""

REMEMBER_S: Final = 600.0
"""Seconds that a result is remembered: the world that it was read from goes on."""

Key: TypeAlias = tuple[str, str, bytes]


@dataclass(slots=True, eq=False)
class _Flight:
    """A call under way and how many wait for it."""

    task: "asyncio.Task[ToolReply]"
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class _Kept:
    reply: ToolReply
    size: int
    until: float


class SharedCalls:
    """The calls of one process that are shared, by job, tool and arguments."""

    def __init__(self) -> None:
        self._under_way: dict[Key, _Flight] = {}
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._bytes = 0

    async def call(
        self,
        job: str,
        tool: str,
        arguments: Mapping[str, Json],
        make: Callable[[], Awaitable[ToolReply]],
        *,
        timeout_s: float,
    ) -> ToolReply:
        """The result of ``make()``, or that of an equal call.

        Results are remembered, errors are not: only those who wait for the very call share its error.
        The call goes on as long as anybody waits for it, whoever came first. One that ran out of the
        time of whoever began it is made again by the others, within their own.
        """
        try:
            key = (job, tool, orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS))
        except TypeError:  # an integer of more than 64 bits, say: not worth sharing
            return await make()
        known = self._recall(key)
        if known is not None:
            return replace(known, shared=True, latency_ms=0.0)
        now = asyncio.get_running_loop().time
        until = now() + timeout_s
        joined = key in self._under_way
        reply = await self._wait(key, make, timeout_s)
        if joined and reply is not None and reply.error == "timeout" and until > now():
            joined = key in self._under_way
            reply = await self._wait(key, make, until - now())
        if reply is None:
            return ToolReply(output=f"no result within {timeout_s:.1f} s", error="timeout")
        return replace(reply, shared=joined)

    async def _wait(
        self, key: Key, make: Callable[[], Awaitable[ToolReply]], within_s: float
    ) -> ToolReply | None:
        """The result of the call under way, or of one that begins now; None once the time is over."""
        flight = self._under_way.get(key)
        if flight is None:
            flight = self._under_way[key] = _Flight(asyncio.create_task(self._fly(key, make)))
        flight.waiting += 1
        try:
            await asyncio.wait({flight.task}, timeout=within_s)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                if self._under_way.get(key) is flight:  # whoever comes now begins anew
                    del self._under_way[key]
                flight.task.cancel()
        return flight.task.result() if flight.task.done() and not flight.task.cancelled() else None

    async def _fly(self, key: Key, make: Callable[[], Awaitable[ToolReply]]) -> ToolReply:
        me = asyncio.current_task()
        try:
            reply = await make()
        finally:
            if key in self._under_way and self._under_way[key].task is me:
                del self._under_way[key]
        if reply.error is None:
            self._keep(key, reply)
        return reply

    def _recall(self, key: Key) -> ToolReply | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept.until <= asyncio.get_running_loop().time():
            self._forget(key)
            return None
        self._kept.move_to_end(key)
        return kept.reply

    def _keep(self, key: Key, reply: ToolReply) -> None:
        size = len(dumps(reply.output)) + len(key[2])
        if size > MAX_BYTES // 16:
            return
        if key in self._kept:
            self._forget(key)
        self._kept[key] = _Kept(reply, size, asyncio.get_running_loop().time() + REMEMBER_S)
        self._bytes += size
        while len(self._kept) > MAX_RESULTS or self._bytes > MAX_BYTES:
            self._forget(next(iter(self._kept)))

    def _forget(self, key: Key) -> None:
        self._bytes -= self._kept.pop(key).size
