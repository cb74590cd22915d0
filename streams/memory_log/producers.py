"""Producers of the log in memory."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from streams.log import Entry, Fenced, Headers, LogUnavailable, RecordRefused
from streams.memory_log.partition import Partition
from streams.memory_log.reach import Reach
from streams.memory_log.wire import Fate


def _fate(reach: Reach) -> Fate:
    faults, chance = reach.cluster.faults, reach.cluster.chance
    if not faults.lost_sends and not faults.lost_replies:
        return Fate.ARRIVES
    draw = chance.random()
    if draw < faults.lost_sends:
        return Fate.LOST
    return Fate.UNANSWERED if draw < faults.lost_sends + faults.lost_replies else Fate.ARRIVES


def _target(reach: Reach, topic: str, partition: int, entry: Entry) -> Partition:
    key, value, headers = entry
    limits = reach.cluster.limits
    size, most = len(key) + len(value or b""), limits.topic_bytes.get(topic, limits.record_bytes)
    size += sum(len(name.encode()) + len(text or b"") for name, text in headers)
    if size > most:
        raise RecordRefused(f"record for {topic}-{partition} has {size} bytes, the broker takes {most}")
    return reach.cluster.partition(topic, partition)


class MemoryProducer:
    """Sends outside transactions; in order per partition."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    async def send(
        self, topic: str, value: bytes | None, *, key: bytes | None, partition: int, headers: Headers = ()
    ) -> "asyncio.Future[int]":
        """Put a record in line; the future is its offset once the log has it."""
        reach = self._reach

        def land() -> int:
            target = _target(reach, topic, partition, (key or b"", value, headers))
            return target.append(key, value, headers, reach.cluster.now_ms())

        return reach.call((topic, partition), f"send to {topic}-{partition}", land, _fate(reach))


class MemoryTransactions:
    """Sends inside transactions, under one epoch of an identity."""

    def __init__(self, reach: Reach, identity: str, epoch: int, line: str) -> None:
        self._reach = reach
        self._identity = identity
        self._epoch = epoch
        self._line = line
        self._open = False
        self._over: str | None = None
        self._sent: list[asyncio.Future[int]] = []

    async def send(
        self, topic: str, value: bytes | None, *, key: bytes | None, partition: int, headers: Headers = ()
    ) -> "asyncio.Future[int]":
        """Put a record in the open transaction.

        Raises:
            RuntimeError: no transaction is open.
        """
        if not self._open:
            raise RuntimeError(f"{self._identity}: send to {topic}-{partition} outside a transaction")
        reach = self._reach

        def land() -> int:
            target = _target(reach, topic, partition, (key or b"", value, headers))
            return reach.cluster.coordinator.append(
                self._identity, self._epoch, target, (key, value, headers), reach.cluster.now_ms()
            )

        what = f"send to {topic}-{partition} in a transaction of {self._identity}"
        sent = reach.call(self._line, what, land, _fate(reach))
        self._sent.append(sent)
        return sent

    async def send_all(self, topic: str, partition: int, entries: Sequence[Entry]) -> None:
        """Put many records of one partition in the open transaction, in order."""
        for key, value, headers in entries:
            await self.send(topic, value, key=key, partition=partition, headers=headers)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """One transaction: commits once every record has landed, aborts where the body raises."""
        if self._over is not None:
            raise LogUnavailable(f"{self._identity}: {self._over}; start a new producer")
        if self._open:
            raise RuntimeError(f"{self._identity}: a transaction is open already")
        self._open, self._sent = True, []
        try:
            yield
            await asyncio.gather(*self._sent)
        except BaseException as error:
            self._open = False
            if isinstance(error, Fenced):
                self._over = "fenced"
            else:
                await self._abort()
            raise
        self._open = False
        if self._sent:
            await self._commit()

    async def _abort(self) -> None:
        if not self._sent:
            return
        try:
            await self._end(Fate.ARRIVES, committed=False)
        except (Fenced, LogUnavailable) as error:
            self._over = f"abort failed ({error})"

    async def _commit(self) -> None:
        faults, chance = self._reach.cluster.faults, self._reach.cluster.chance
        fate = Fate.ARRIVES
        if faults.unknown_commits and chance.random() < faults.unknown_commits:
            fate = chance.choice((Fate.LOST, Fate.UNANSWERED))
        self._over = "the outcome of a commit is unknown"
        await self._end(fate, committed=True)
        self._over = None

    async def _end(self, fate: Fate, *, committed: bool) -> None:
        cluster = self._reach.cluster
        await self._reach.call(
            self._line,
            f"{'commit' if committed else 'abort'} of a transaction of {self._identity}",
            lambda: cluster.coordinator.end(self._identity, self._epoch, committed=committed),
            fate,
        )


@asynccontextmanager
async def open_transactions(reach: Reach, identity: str, line: str) -> AsyncIterator[MemoryTransactions]:
    """A transactional producer; entering it fences the older one and ends its transaction."""
    coordinator = reach.cluster.coordinator
    epoch = await reach.call(line, f"begin of {identity}", lambda: coordinator.begin_epoch(identity))
    producer = MemoryTransactions(reach, identity, epoch, line)
    yield producer
