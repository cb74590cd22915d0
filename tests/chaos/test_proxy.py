"""The proxy on a real Kafka: all goes through unchanged, and what is trapped is cut or held exactly there."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from streams.broker import Cluster, start_cluster
from streams.broker.node import HOST
from streams.chaos.open_transactions import open_transactions
from streams.chaos.proxy import Api, Moment, Proxy, Trap
from streams.core.events import GoalRejected
from streams.core.goal import Source
from streams.kafka import admin
from streams.kafka.log import KafkaLog
from streams.log import LogUnavailable
from streams.orchestrator import Orchestrator
from streams.settings import Settings
from streams.topics import ANSWERS, JOB_EVENTS, JOBS
from streams.wire.answers import read_answer
from streams.wire.events import write_event

pytestmark = pytest.mark.xdist_group("kafka")

MOMENTS: tuple[Moment, ...] = ("before", "after")
AROUND = [(api, moment) for api in (Api.ADD_PARTITIONS_TO_TXN, Api.END_TXN) for moment in MOMENTS]


@pytest.fixture(scope="module")
def kafka_with_a_door(kafka_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker with a second door."""
    data = tmp_path_factory.mktemp("kafka")
    cluster = asyncio.run(start_cluster(kafka_home, data, brokers=1, second_doors=True))
    yield cluster
    asyncio.run(cluster.close())


class Here:
    """A system, as seen directly and through a proxy."""

    def __init__(self, direct: Settings, through: Settings, proxy: Proxy) -> None:
        self.direct, self.through, self.proxy = direct, through, proxy


@pytest_asyncio.fixture
async def here(kafka_with_a_door: Cluster) -> AsyncIterator[Here]:
    """A system of one partition, and a proxy in front of its broker."""
    (door,) = kafka_with_a_door.doors
    direct = Settings(brokers=kafka_with_a_door.servers, prefix=f"proxy-{uuid.uuid4().hex[:12]}.", lanes=1)
    await admin.create(direct)
    async with Proxy(HOST, door.told, door.port) as proxy:
        through = Settings(brokers=proxy.servers, prefix=direct.prefix, lanes=1)
        yield Here(direct, through, proxy)


async def values(settings: Settings, topic: str) -> list[bytes | None]:
    """What a reader sees who does not come by the proxy."""
    async with KafkaLog(settings) as log:
        return [record.value async for batch in log.read(topic, 0) for record in batch]


async def test_what_is_not_trapped_goes_through_as_it_is(here: Here) -> None:
    """Also what is large, and in both directions; and clients stay on the proxy."""
    large = bytes(range(256)) * 8_000
    async with KafkaLog(here.through) as log:
        await (await log.producer.send(JOB_EVENTS, large, key=b"k", partition=0))
        found = [record.value async for batch in log.read(JOB_EVENTS, 0) for record in batch]
        assert found == await values(here.direct, JOB_EVENTS) == [large]
        here.proxy.cut()
        await (await log.producer.send(JOB_EVENTS, b"again", key=b"k", partition=0))
    assert await values(here.direct, JOB_EVENTS) == [large, b"again"]


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_commit_is_held_on_its_way_there_or_on_its_way_back(here: Here, moment: Moment) -> None:
    """Until it is through; before, the transaction is still open, and after it is committed."""
    trap = here.proxy.set(Trap(api=Api.END_TXN, moment=moment, hold_s=3_600.0))
    async with KafkaLog(here.through) as log, log.transactions("mine") as mine:

        async def commit() -> None:
            async with mine.transaction():
                await mine.send(JOBS, b"x", key=b"k", partition=0)

        committing = asyncio.create_task(commit())
        await trap.once.wait()
        if moment == "before":
            assert f"{here.direct.prefix}mine: Ongoing" in await open_transactions(here.direct)
            assert await values(here.direct, JOBS) == []
        else:
            assert await open_transactions(here.direct, within_s=10.0) == ()
            assert await values(here.direct, JOBS) == [b"x"]
        assert not committing.done()
        here.proxy.cut()
        with pytest.raises(LogUnavailable):
            await committing
    assert trap.sprung == 1


@pytest.mark.parametrize(("api", "moment"), AROUND)
async def test_what_an_orchestrator_asks_for_lands_once_though_its_connection_is_cut(
    here: Here, api: Api, moment: Moment
) -> None:
    """Cut around the commit, and around what stands before it: each goal has one answer, in order."""
    trap = here.proxy.set(Trap(api=api, moment=moment, skip=1))
    async with KafkaLog(here.through) as log, KafkaLog(here.direct) as outside:
        working = asyncio.create_task(Orchestrator(log, here.through).run())
        try:
            for number in range(4):
                source = Source(topic="goals", partition=0, offset=number)
                event = GoalRejected(job=f"default/g{number}", reason="none", source=source)
                await outside.producer.send(
                    JOB_EVENTS, write_event(event), key=event.job.encode(), partition=0
                )
                await answered(outside, number + 1)
            assert trap.sprung == 1
        finally:
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working
        landed = [read_answer(record).id async for batch in outside.read(ANSWERS, 0) for record in batch]
        assert landed == ["g0", "g1", "g2", "g3"]
        assert await open_transactions(here.direct, within_s=10.0) == ()


async def answered(log: KafkaLog, count: int) -> None:
    """Wait for so many answers."""
    async with asyncio.timeout(60), log.follow(ANSWERS, [0], since=0) as coming:
        async for records in coming:
            count -= len(records)
            if count <= 0:
                return
