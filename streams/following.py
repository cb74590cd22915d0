"""Records one by one as they come, for as long as someone asks for them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import structlog

from streams.log import Log, Record
from streams.wire.envelope import Unreadable

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

T = TypeVar("T")


class Following:
    """Followed partitions of one log; what callers leave open closes with :meth:`close`."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._open: set[AbstractAsyncContextManager[object]] = set()
        self._opening: set[asyncio.Future[None]] = set()
        self._closed = False

    async def records(
        self, topic: str, partitions: Sequence[int], since: int | None
    ) -> AsyncGenerator[Record, None]:
        """Records as of :meth:`streams.log.Log.follow`.

        Raises:
            LogUnavailable: the place to begin could not be found in time.
        """
        following = self._log.follow(topic, partitions, since=since)
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._opening.add(opened)
        try:
            coming = await following.__aenter__()
            self._open.add(following)
        finally:
            self._opening.discard(opened)
            opened.set_result(None)
        try:
            if self._closed:
                return
            async for records in coming:
                for record in records:
                    yield record
        finally:
            if following in self._open:  # else it is being closed
                self._open.discard(following)
                await following.__aexit__(None, None, None)

    async def close(self) -> None:
        """Close what is still open; whoever waits for a record of it gets no more."""
        self._closed = True
        if self._opening:
            await asyncio.wait(self._opening)
        while self._open:
            await self._open.pop().__aexit__(None, None, None)


async def until(records: AsyncIterator[Record], ends: float) -> AsyncIterator[Record]:
    """The records up to *ends*, by the event loop's time.

    Raises:
        TimeoutError: it is past.
    """
    while True:
        # Around each step and not around the loop: a timeout must not hit the caller's own work.
        async with asyncio.timeout_at(ends):
            record = await anext(records)
        yield record


def readable(read: Callable[[Record], T], record: Record) -> T | None:
    """What *read* makes of the record, or None for one that somebody else put there, with a warning."""
    try:
        return read(record)
    except Unreadable as error:
        structlog.get_logger().warning(
            "record_passed_over",
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            reason=str(error),
        )
        return None
