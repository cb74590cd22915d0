"""What Kafka itself lets through, and what it does not."""

import asyncio
import inspect
from contextlib import suppress
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete
from aiokafka.consumer import fetcher

from streams import dead_letters
from streams.core.events import GoalRejected, JobSubmitted
from streams.core.goal import Source
from streams.delivery import Sender
from streams.intake import Intake
from streams.kafka import header_names
from streams.kafka.faust_agents import FaustAgents
from streams.kafka.log import KafkaLog
from streams.log import Claim, Record
from streams.orchestrator import Orchestrator
from streams.settings import Settings
from streams.table import GapInLog
from streams.topics import ANSWERS, DEAD_LETTERS, GOALS, JOB_EVENTS
from streams.wire.answers import read_answer
from streams.wire.events import read_event, write_event
from tests.conftest import NewSystem
from tests.hostile.wire_kafka import batch, send

TOO_LARGE = 10


async def taken_in(settings: Settings, count: int) -> tuple[list[Any], list[Any]]:
    """Events and dead letters, once intake on Faust has taken in so many goals."""
    async with KafkaLog(settings) as log:
        intake = Intake(Sender(log.producer), lanes=settings.lanes, run="r")
        agents = FaustAgents(settings, {GOALS: intake.agent})
        running = asyncio.create_task(agents.run())
        try:
            async with asyncio.timeout(60):
                while True:
                    events = [read_event(r) for r in await everything(log, JOB_EVENTS, settings.lanes)]
                    letters = [
                        dead_letters.read(r) for r in await everything(log, DEAD_LETTERS, settings.lanes)
                    ]
                    rejected = sum(isinstance(event, GoalRejected) for event in events)
                    if len(events) - rejected + len(letters) >= count or running.done():
                        return events, letters
                    await asyncio.sleep(0.2)
        finally:
            await agents.stop()
            running.cancel()


async def everything(log: KafkaLog, topic: str, lanes: int) -> list[Record]:
    return [r for lane in range(lanes) async for records in log.read(topic, lane) for r in records]


async def test_a_header_whose_name_is_no_text_stops_nobody(new_system: NewSystem) -> None:
    """It came as bytes and goes on as escapes of them; before, it ended each worker that met it."""
    settings = await new_system(lanes=1)
    topic = settings.prefix + GOALS
    good = (b"k", b'{"id":"good","goal":"x"}', (("NAME", b"\xff"), ("plain", None)))
    bad = (b"k", b"\xff\xfe", (("NAME", b"1"),))
    mixed = batch(good, bad, (None, None, ()), names={b"NAME": b"\xff\xfeab"})
    for data in (
        mixed,
        batch(bad, names={b"NAME": b"a\x00\xc3("}, zipped=True),
        batch((b"", b'{"id":"last","goal":"x"}', ())),
    ):
        assert await send(settings.brokers, topic, 0, data) == 0
    events, letters = await taken_in(settings, 5)
    jobs = {event.job: event for event in events if isinstance(event, JobSubmitted)}
    assert jobs.keys() == {"default/good", "default/last"}
    names = [(header.name, header.base64) for header in jobs["default/good"].headers]
    assert names == [("\\xff\\xfeab", True), ("plain", False)]
    assert sorted(letter.place.offset for letter in letters) == [1, 2, 3]
    assert {name for letter in letters for name, _ in letter.headers} <= {"\\xff\\xfeab", "a\x00\ufffd("}


async def test_goals_are_as_large_as_they_are(new_system: NewSystem) -> None:
    """However small they were made: a kilobyte that unpacks to sixty megabytes is refused by the broker."""
    settings = await new_system(lanes=1)
    topic = settings.prefix + GOALS
    bomb = batch((b"k", bytes(60_000_000), ()), zipped=True)
    assert len(bomb) < 100_000
    assert await send(settings.brokers, topic, 0, bomb) == TOO_LARGE
    small = batch((b"k", b'{"id":"zipped","goal":"x"}', ()), zipped=True)
    assert await send(settings.brokers, topic, 0, small) == 0
    events, letters = await taken_in(settings, 1)
    assert [event.job for event in events] == ["default/zipped"]
    assert letters == []


async def test_a_goal_is_as_old_as_the_broker_says(new_system: NewSystem) -> None:
    """One of 1970 would be past its retention before anybody reads it, one of the far future never."""
    settings = await new_system(lanes=1)
    ages = (-1, 0, -(10**12), 10**13)
    for at in ages:
        data = batch((b"k", b'{"goal":"x"}', ()), at=at)
        assert await send(settings.brokers, settings.prefix + GOALS, 0, data) == 0
    async with KafkaLog(settings) as log:
        times = [record.timestamp for record in await everything(log, GOALS, 1)]
    assert len(times) == len(ages)
    assert max(times) - min(times) < 600_000


def test_the_patch_is_in_place() -> None:
    """An upgrade of aiokafka that moves what is replaced shows here."""
    assert fetcher.MemoryRecords is header_names.Records
    assert "MemoryRecords(" in inspect.getsource(fetcher.Fetcher._proc_fetch_request)


async def answered(log: KafkaLog, count: int) -> list[str]:
    """Ids of the answers, once there are so many."""
    async with asyncio.timeout(60):
        while len(found := await everything(log, ANSWERS, 1)) < count:
            await asyncio.sleep(0.2)
    return [read_answer(record).id for record in found]


async def reject(log: KafkaLog, name: str) -> None:
    """An event that is answered at once."""
    source = Source(topic=GOALS, partition=0, offset=0)
    event = GoalRejected(job=f"default/{name}", reason="none", source=source)
    await (await log.producer.send(JOB_EVENTS, write_event(event), key=event.job.encode(), partition=0))


async def test_a_strangers_transaction_on_the_log_closes_no_partition(new_system: NewSystem) -> None:
    """What it committed is a dead letter, what it aborted is seen by nobody; lost events are an error."""
    settings = await new_system(lanes=1, heartbeat_s=0.2)
    told: list[str] = []
    async with KafkaLog(settings) as own, KafkaLog(settings) as log:
        orchestrator = Orchestrator(own, settings)

        async def lead(claim: Claim) -> None:
            try:
                await orchestrator.lead(claim)
            except GapInLog as error:
                told.append(str(error))
                raise

        working = asyncio.create_task(own.own(JOB_EVENTS, "orchestrator", lead))
        try:
            await reject(log, "first")
            await answered(log, 1)
            for number, end in enumerate((None, RuntimeError)):
                async with log.transactions(f"stranger-{number}") as foreign:
                    with suppress(RuntimeError):
                        async with foreign.transaction():
                            await foreign.send(JOB_EVENTS, b"x", key=b"k", partition=0)
                            if end is not None:
                                raise end
                await reject(log, f"behind-{number}")
            assert await answered(log, 3) == ["first", "behind-0", "behind-1"]
            assert told == []
            await delete_all(settings, JOB_EVENTS)
            working.cancel()
            await asyncio.wait([working])
            await reject(log, "lost")
            await delete_all(settings, JOB_EVENTS)
            await reject(log, "behind-the-loss")
            working = asyncio.create_task(own.own(JOB_EVENTS, "orchestrator", lead))
            async with asyncio.timeout(60):
                while not told:
                    await asyncio.sleep(0.1)
            assert "events are missing" in told[0]
            assert await answered(log, 3) == ["first", "behind-0", "behind-1"]
        finally:
            working.cancel()
            await asyncio.wait([working])
        letters = [dead_letters.read(record).value for record in await everything(log, DEAD_LETTERS, 1)]
        assert letters == [b"x"]


async def delete_all(settings: Settings, topic: str) -> None:
    """Delete every record of a topic's first partition, as its retention would."""
    place = TopicPartition(settings.prefix + topic, 0)
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.brokers)
    await admin.start()
    try:
        await admin.delete_records({place: RecordsToDelete(before_offset=-1)})
    finally:
        await admin.close()
