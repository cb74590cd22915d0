"""The log on Kafka, through aiokafka."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Self

from streams.access import Access
from streams.kafka import following
from streams.kafka.claims import Ownership
from streams.kafka.connection import why_not
from streams.kafka.outage import Outage
from streams.kafka.producers import KafkaProducer, start_producer
from streams.kafka.reading import read
from streams.kafka.transactions import KafkaTransactions
from streams.log import LogUnavailable, NotAllowed, Owner, Record
from streams.settings import Settings

FIND_S = 30.0
"""Seconds to go on trying when no broker answers at the start."""
AGAIN_S = 0.5


class KafkaLog:
    """Implements ``streams.log.Log``; to be made inside the running loop and entered before use.

    Topics, groups and identities get the settings' prefix here.

    Args:
        find_s: Seconds to go on trying when no broker answers at the start.

    Attributes:
        outage: Finds out whether the brokers are away; ``streams.kafka.outage.watch_broker`` makes
            it speak for the clients' warnings, too.

    Raises:
        LogUnavailable: on entering, when no broker was found in *find_s* seconds.
        NotAllowed: on entering, at once, when the brokers do not let us in.
        BadAccess: on entering, when certificates or a key cannot be used.
    """

    def __init__(self, settings: Settings, *, find_s: float = FIND_S) -> None:
        self._settings = settings
        self._find_s = find_s
        self.outage = Outage(settings.brokers, self._knock if settings.access != Access() else None)
        self._producer: KafkaProducer | None = None

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._find_s
        while self._producer is None:
            try:
                self._producer = KafkaProducer(self._settings, await start_producer(self._settings))
            except NotAllowed:
                # Let in, but to write nothing: who only reads needs no producer, and a send will tell.
                self._producer = KafkaProducer(self._settings, None)
            except LogUnavailable as error:
                why = await why_not(self._settings, error)
                if isinstance(why, NotAllowed):
                    raise why from error
                if loop.time() > deadline:
                    raise LogUnavailable(
                        f"no Kafka broker at {self._settings.brokers} in {self._find_s:g} s ({why}); "
                        "is it running, and is the address right?"
                    ) from error
                await asyncio.sleep(AGAIN_S)
        return self

    async def _knock(self) -> str:
        nothing = LogUnavailable()
        why = await why_not(self._settings, nothing)
        return "" if why is nothing else str(why)

    async def __aexit__(self, *_: object) -> None:
        await self.outage.end()
        if self._producer is not None:
            await self._producer.close()

    @property
    def producer(self) -> KafkaProducer:
        """The plain producer."""
        if self._producer is None:
            raise RuntimeError("the log is not entered: use `async with KafkaLog(settings) as log`")
        return self._producer

    @asynccontextmanager
    async def transactions(self, identity: str) -> AsyncIterator[KafkaTransactions]:
        """A producer under this transactional identity; entering it fences the older one.

        Raises:
            LogUnavailable: the brokers gave no identity in time.
        """
        name = self._settings.prefix + identity
        transactions = KafkaTransactions(self._settings, name, await start_producer(self._settings, name))
        try:
            yield transactions
        finally:
            await transactions.close()

    def read(
        self, topic: str, partition: int, *, offset: int | None = None, since: int | None = None
    ) -> AsyncIterator[Sequence[Record]]:
        """Committed records up to the end that the partition has now."""
        return read(self._settings, topic, partition, offset, since)

    def follow(
        self, topic: str, partitions: Sequence[int], *, since: int | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Record]]]:
        """Committed records of these partitions as they come."""
        return following.follow(self._settings, topic, partitions, since)

    async def ends(self, topic: str, partitions: Sequence[int]) -> Mapping[int, int]:
        """By partition the offset after the last committed record."""
        return await following.ends(self._settings, topic, partitions)

    async def partitions(self, topic: str) -> int:
        """How many partitions *topic* has."""
        return await following.partitions(self._settings, topic)

    async def own(self, topic: str, group: str, owner: Owner) -> None:
        """Run *owner* for every partition that this process is given, until cancelled."""
        await Ownership(self._settings, topic, group, owner, self.outage.suspect).run()
