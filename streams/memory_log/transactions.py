"""The broker's side of transactions: identities, epochs, markers."""

import asyncio
from random import Random

from streams.log import Fenced, Headers, LogUnavailable
from streams.memory_log.partition import Partition, Transaction
from streams.memory_log.wire import Busy


class Coordinator:
    """Keeps the newest epoch of each transactional identity and its transaction.

    Only the newest epoch may write. Beginning an epoch aborts what the older one left open; a
    transaction open for longer than *timeout_s* seconds is aborted and its producer fenced.
    """

    def __init__(self, chance: Random, delay_s: float, timeout_s: float) -> None:
        self._chance = chance
        self._delay_s = delay_s
        self._timeout_s = timeout_s
        self._epochs: dict[str, int] = {}
        self._transactions: dict[str, Transaction] = {}

    def open(self) -> tuple[str, ...]:
        """The identities with a transaction that has not ended everywhere."""
        return tuple(name for name, transaction in self._transactions.items() if transaction.partitions)

    def begin_epoch(self, identity: str) -> int:
        """A new producer under *identity*; the older one is fenced from here on.

        Raises:
            Busy: its last transaction is still ending.
        """
        transaction = self._transactions.get(identity)
        if transaction is not None and transaction.committed is None:
            self._epochs[identity] += 1
            self._end(transaction, committed=False)
        if transaction is not None and transaction.partitions:
            raise Busy
        self._epochs[identity] = self._epochs.get(identity, 0) + 1
        return self._epochs[identity]

    def append(
        self,
        identity: str,
        epoch: int,
        partition: Partition,
        record: tuple[bytes | None, bytes | None, Headers],
        timestamp: int,
    ) -> int:
        """Write a record in the identity's open transaction, which begins with its first record.

        Raises:
            Fenced: there is a newer epoch.
            Busy: its last transaction is still ending.
        """
        self._check(identity, epoch)
        transaction = self._transactions.get(identity)
        if transaction is None or transaction.committed is not None:
            if transaction is not None and transaction.partitions:
                raise Busy
            transaction = self._transactions[identity] = Transaction()
            asyncio.get_running_loop().call_later(self._timeout_s, self._expire, identity, transaction)
        return partition.append(*record, timestamp, transaction)

    def end(self, identity: str, epoch: int, *, committed: bool) -> None:
        """Commit or abort; decided now, each partition's marker follows.

        Raises:
            Fenced: there is a newer epoch.
            LogUnavailable: there is nothing to commit.
        """
        self._check(identity, epoch)
        transaction = self._transactions.get(identity)
        if transaction is None or transaction.committed is not None:
            if committed:
                raise LogUnavailable(f"transaction of {identity}: none is open")
            return
        self._end(transaction, committed=committed)

    def _check(self, identity: str, epoch: int) -> None:
        newest = self._epochs[identity]
        if epoch != newest:
            raise Fenced(f"{identity}: epoch {epoch} is over, the newest is {newest}")

    def _end(self, transaction: Transaction, *, committed: bool) -> None:
        transaction.committed = committed
        loop = asyncio.get_running_loop()
        for partition in list(transaction.partitions):
            if self._delay_s:
                loop.call_later(self._chance.uniform(0, self._delay_s), self._mark, transaction, partition)
            else:
                self._mark(transaction, partition)

    @staticmethod
    def _mark(transaction: Transaction, partition: Partition) -> None:
        partition.mark(transaction)
        transaction.partitions.remove(partition)

    def _expire(self, identity: str, transaction: Transaction) -> None:
        if transaction.committed is None:
            self._epochs[identity] += 1
            self._end(transaction, committed=False)
