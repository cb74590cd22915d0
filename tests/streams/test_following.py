"""Following partitions as they grow: the same on the log in memory and on a real Kafka."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import pytest

from streams.client import Swarm
from streams.kafka.log import KafkaLog
from streams.log import Log, NoSuchTopic, Record
from streams.memory_log import MemoryCluster
from streams.memory_log.virtual_time import run
from streams.topics import ANSWERS, JOB_EVENTS
from tests.conftest import NewSystem

LANES = 3
SOON_S = 30.0


async def put(log: Log, *values: bytes, partition: int = 0) -> None:
    """Records, and back once the log has them."""
    for value in values:
        await (await log.producer.send(JOB_EVENTS, value, key=b"k", partition=partition))


async def first(count: int, coming: AsyncIterator[Sequence[Record]]) -> list[bytes | None]:
    """The next *count* values."""
    values: list[bytes | None] = []
    async with asyncio.timeout(SOON_S):
        while len(values) < count:
            values += [record.value for record in await anext(coming)]
    return values


async def scenario(log: Log) -> None:
    """From the end, from a time, from the beginning; open transactions unseen; it ends when left."""
    assert await log.partitions(JOB_EVENTS) == LANES
    with pytest.raises(NoSuchTopic, match="nowhere"):
        await log.partitions("nowhere")
    await put(log, b"1", b"2")
    async with log.follow(JOB_EVENTS, range(LANES)) as coming:
        # What is sent once it is entered is seen, though nobody has asked for it yet.
        await put(log, b"3")
        await put(log, b"other", partition=2)
        assert sorted(map(str, await first(2, coming))) == ["b'3'", "b'other'"]
        async with log.transactions("t") as transactions:
            with suppress(RuntimeError):
                async with transactions.transaction():
                    await transactions.send(JOB_EVENTS, b"aborted", key=b"k", partition=0)
                    raise RuntimeError
            async with transactions.transaction():
                await transactions.send(JOB_EVENTS, b"4", key=b"k", partition=0)
        assert await first(1, coming) == [b"4"]
        waiting = asyncio.ensure_future(anext(coming, None))
        await asyncio.sleep(0)
    async with asyncio.timeout(SOON_S):
        assert await waiting is None
    async with log.follow(JOB_EVENTS, [0], since=0) as coming:
        assert await first(4, coming) == [b"1", b"2", b"3", b"4"]
    async with log.follow(JOB_EVENTS, [0, 1], since=await after_the_last(log)) as coming:
        await put(log, b"5", partition=1)
        assert await first(1, coming) == [b"5"]


async def after_the_last(log: Log) -> int:
    """A time after that of every record on partition 0."""
    last = 0
    async for records in log.read(JOB_EVENTS, 0):
        last = records[-1].timestamp
    await asyncio.sleep(0.005)  # the brokers' clock has milliseconds
    return last + 1


def test_in_memory() -> None:
    """In virtual time."""

    async def story() -> None:
        await scenario(MemoryCluster({JOB_EVENTS: LANES}).connect("reader"))

    run(story())


async def test_on_kafka(new_system: NewSystem) -> None:
    """In real time."""
    async with KafkaLog(await new_system(lanes=LANES)) as log:
        await scenario(log)


async def test_the_client_on_kafka(new_system: NewSystem) -> None:
    """It finds the number of lanes, and closes all it opened."""
    system = await new_system(lanes=LANES)
    warnings: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: warnings.append(context))
    async with Swarm(system.brokers, prefix=system.prefix) as swarm:
        assert swarm.lanes == LANES
        job = await swarm.submit("nobody works on it", id="x")
        assert job == "default/x"
        left_open = swarm.answers()
        waiting = asyncio.ensure_future(anext(left_open, None))
        await swarm.log.partitions(ANSWERS)  # some time passes
    assert await waiting is None
    assert warnings == []
    with pytest.raises(NoSuchTopic, match="anabranch topics create"):
        async with Swarm(system.brokers, prefix="none-of-ours."):
            pass
