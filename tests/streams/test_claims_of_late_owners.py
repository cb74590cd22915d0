"""What a lost partition's owner may do that does not end at once, and why one would not."""

import asyncio
from typing import Any

import pytest
from aiokafka import TopicPartition

from streams.kafka import claims
from streams.kafka.claims import Ownership
from streams.kafka.reading import stop_consumer
from streams.log import Claim
from streams.settings import Settings

PLACE = TopicPartition("t", 0)


class Consumer:
    """As much of aiokafka's as a claim needs; stopping it takes a cancellation for its own task's."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()

    def pause(self, *_: TopicPartition) -> None:
        """Nothing flows here."""

    resume = pause

    async def stop(self) -> None:
        """As aiokafka's fetcher does."""
        task = asyncio.create_task(asyncio.sleep(60))
        self.stopping.set()
        try:
            await task
        except asyncio.CancelledError:
            task.cancel()


async def test_who_is_told_to_end_while_a_consumer_stops_ends() -> None:
    """The cancellation is theirs, whatever aiokafka makes of it."""
    consumer: Any = Consumer()
    task = asyncio.create_task(stop_consumer(consumer))
    await consumer.stopping.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_late_owner_takes_nothing_from_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told again to end, and the next owner's claim stays the one that is fed."""
    monkeypatch.setattr(claims, "LET_GO_S", 0.01)
    began: asyncio.Queue[Claim] = asyncio.Queue()
    end = asyncio.Event()

    async def owner(claim: Claim) -> None:
        began.put_nowait(claim)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if end.is_set():
                raise
            await end.wait()  # as if nothing had been said

    ownership = Ownership(Settings(), "t", "g", owner, lambda _: None)
    ownership._consumer = Consumer()
    await ownership.on_partitions_assigned([PLACE])
    await began.get()
    (first,) = ownership._owners.values()
    await ownership.on_partitions_revoked([PLACE])
    await ownership.on_partitions_assigned([PLACE])
    second = await began.get()
    end.set()
    await asyncio.wait([first])
    assert first.cancelled()
    assert ownership._claims == {PLACE: second}
    await ownership.on_partitions_revoked([PLACE])
