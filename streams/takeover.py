"""Taking a lane over: what of its commands was begun before, and how far, read from the journal.

Commands from before the takeover are delivered again. Their journal is read from the append time of
the first of them less a minute, and followed until each of them is over, and until no call is under
way at the last owner: its replies still arrive for a moment, and its calls count against our cap.
The commands themselves are read ahead, too: of those that were stopped none begins.
"""

import asyncio
from asyncio import Task
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress

import structlog
from structlog.typing import FilteringBoundLogger

from streams.core.commands import StopAttempt
from streams.log import Log, LogUnavailable, Record
from streams.outstanding import outstanding
from streams.past import NO_PAST, Past, Pasts
from streams.topics import SUBTASKS, TRANSCRIPTS
from streams.wire.commands import read_command
from streams.wire.envelope import Unreadable

EARLIER_MS = 60_000
"""The journal of a command begins after its append time; clocks of two brokers may differ by less."""

LOOK_S = 5.0
"""Seconds between two looks whether anyone still follows the journal."""

AGAIN_S = 1.0

LONG_BACKLOG = 10_000
"""Of more commands than this the table is asked which are still open: more are never out at once, so
the group's offsets were lost, or one slow command holds back the acknowledgement of all these."""


class TakeOver:
    """One lane, from when this process was given it.

    Args:
        first: The first command delivered.

    Attributes:
        ends: By partition the end of ``subtasks`` when the lane was taken.
        reading: Reads and follows the journal for as long as is needed; to be cancelled with the lane.
    """

    def __init__(
        self, log: Log, partition: int, *, ends: "Task[Mapping[int, int]]", first: Record, lanes: int
    ) -> None:
        self._log, self._partition, self.ends, self._lanes = log, partition, ends, lanes
        self._first = first
        self._end = 0
        self._open: frozenset[bytes] | None = None
        self._stopped: dict[bytes, tuple[int, str]] = {}
        self._pasts = Pasts(lambda key: self._open is None or key in self._open)
        self._ready = asyncio.Event()
        self._asking = 0
        self.reading = asyncio.create_task(self._read())

    @property
    def elsewhere(self) -> int:
        """How many attempts have calls under way at the lane's last owner."""
        return self._pasts.elsewhere

    def elsewhere_of(self, tenant: str) -> int:
        """How many of them are a tenant's."""
        return self._pasts.elsewhere_of(tenant)

    async def past(self, record: Record, key: bytes) -> Past | None:
        """What was done before for a command, settled; None where it is over and must not run again."""
        self._asking += 1
        try:
            await self._ready.wait()
        finally:
            self._asking -= 1
        if record.offset >= self._end:
            if not self._asking:
                # Deliveries come in order, so all others have begun; but one that comes when the
                # journal has just been read is ahead of those that waited for it.
                self._pasts.forget()
                self._stopped.clear()
            return NO_PAST
        if self._open is not None and key not in self._open:
            return None
        past = self._pasts.begin(key)
        await self._pasts.settle(key, past)
        return past

    def stopped(self, record: Record) -> str:
        """Why a command that is delivered again must not run: its stop stands behind it; empty without."""
        offset, why = self._stopped.get(record.key or b"", (-1, ""))
        return why if offset > record.offset else ""

    def over(self, key: bytes) -> None:
        """An attempt makes no call here any more."""
        self._pasts.end(key)

    async def _read(self) -> None:
        self._end = (await asyncio.shield(self.ends)).get(self._partition, 0)
        if self._first.offset < self._end:
            await self._look_back()
        self._ready.set()

    async def _look_back(self) -> None:
        log = structlog.get_logger().bind(part="lanes", lane=self._partition)
        while True:
            try:
                if self._end - self._first.offset > LONG_BACKLOG and self._open is None:
                    self._open = await outstanding(self._log, self._lanes)
                if self._open is None:  # else the table has said which are stopped: none of those is open
                    await self._read_stops()
                return await self._follow(log)
            except LogUnavailable as error:
                log.warning("journal_not_read", reason=str(error), again_in_s=AGAIN_S)
                await asyncio.sleep(AGAIN_S)

    async def _read_stops(self) -> None:
        """What was stopped by now must not begin again before its stop is delivered again, too."""
        async for records in self._log.read(SUBTASKS, self._partition, offset=self._first.offset):
            for record in records:
                if record.key is None or b'"StopAttempt"' not in (record.value or b"")[:40]:
                    continue
                with suppress(Unreadable):  # it is delivered again, and buried then
                    order = read_command(record)
                    if isinstance(order, StopAttempt):
                        self._stopped[record.key] = record.offset, order.reason

    async def _follow(self, log: FilteringBoundLogger) -> None:
        began, count = asyncio.get_running_loop().time(), 0
        since = max(1, self._first.timestamp - EARLIER_MS)
        async with self._log.follow(TRANSCRIPTS, [self._partition]) as later:
            async for records in self._log.read(TRANSCRIPTS, self._partition, since=since):
                for record in records:
                    self._pasts.add(record)
                count += len(records)
            self._ready.set()
            seconds = round(asyncio.get_running_loop().time() - began, 3)
            log.info("journal_read", records=count, attempts=self._pasts.attempts, seconds=seconds)
            following = asyncio.create_task(self._take_in(later))
            try:
                while not following.done():
                    await asyncio.wait([following], timeout=LOOK_S)
                    if not self._pasts.live and not self._pasts.elsewhere:
                        return
            finally:
                following.cancel()
                await asyncio.wait([following])
            following.result()

    async def _take_in(self, later: AsyncIterator[Sequence[Record]]) -> None:
        async for records in later:
            for record in records:
                self._pasts.add(record)
