"""One partition of a topic as the broker keeps it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from streams.log import Headers, Record


@dataclass(eq=False, slots=True)
class Transaction:
    """A transaction and where it wrote.

    Attributes:
        committed: None while it is open.
        partitions: Partitions that wait for its marker, in the order of their first record.
    """

    committed: bool | None = None
    partitions: list["Partition"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A record (or, without one, a transaction's marker) and the transaction it belongs to."""

    record: Record | None
    transaction: Transaction | None


class Partition:
    """Records and markers in order; an offset is a place among them."""

    def __init__(self, topic: str, number: int) -> None:
        self.topic = topic
        self.number = number
        self._entries: list[_Entry] = []
        self._open: dict[Transaction, int] = {}
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def end(self) -> int:
        """The next offset."""
        return len(self._entries)

    @property
    def stable(self) -> int:
        """Readers see nothing from here on: the first record of an open transaction, or the end."""
        return min(self._open.values(), default=len(self._entries))

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp: int,
        transaction: Transaction | None = None,
    ) -> int:
        """Add a record; its offset."""
        offset = len(self._entries)
        if transaction is not None and transaction not in self._open:
            self._open[transaction] = offset
            transaction.partitions.append(self)
        record = Record(self.topic, self.number, offset, timestamp, key, value, headers)
        self._entries.append(_Entry(record, transaction))
        self.wake()
        return offset

    def mark(self, transaction: Transaction) -> None:
        """Write the marker of an ended transaction."""
        del self._open[transaction]
        self._entries.append(_Entry(None, transaction))
        self.wake()

    def delete_before(self, offset: int) -> None:
        """Delete what stands before *offset*, as a topic's retention does."""
        for place in range(min(offset, self.end)):
            self._entries[place] = _Entry(None, self._entries[place].transaction)

    def visible(self, start: int, limit: int, end: int | None = None) -> tuple[list[Record], int]:
        """At most *limit* committed records from *start* on (below *end*), and where to go on."""
        records: list[Record] = []
        stop = self.stable if end is None else min(self.stable, end)
        offset = start
        while offset < stop and len(records) < limit:
            entry = self._entries[offset]
            if entry.record is not None and (entry.transaction is None or entry.transaction.committed):
                records.append(entry.record)
            offset += 1
        return records, max(start, offset)

    def at(self, timestamp: int) -> int:
        """The first offset whose record was appended at or after *timestamp*, else the end."""
        for offset, entry in enumerate(self._entries):
            if entry.record is not None and entry.record.timestamp >= timestamp:
                return offset
        return len(self._entries)

    async def change(self) -> None:
        """Wait until there may be more to see, or :meth:`wake`."""
        await any_change([self])

    def await_change(self, waiter: "asyncio.Future[None]") -> None:
        """Let *waiter* be done when there may be more to see."""
        self._waiting.append(waiter)

    def forget(self, waiter: "asyncio.Future[None]") -> None:
        """Nobody waits for *waiter* any more."""
        if waiter in self._waiting:
            self._waiting.remove(waiter)

    def wake(self) -> None:
        """Make every waiting reader look again."""
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)


async def any_change(partitions: Sequence[Partition]) -> None:
    """Wait until there may be more to see on one of them."""
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    for partition in partitions:
        partition.await_change(waiter)
    try:
        await waiter
    finally:
        for partition in partitions:
            partition.forget(waiter)
