"""What Kafka itself lets through, and what it does not."""

import asyncio
import inspect
from typing import Any

from aiokafka.consumer import fetcher

from streams import dead_letters
from streams.core.events import GoalRejected, JobSubmitted
from streams.delivery import Sender
from streams.intake import Intake
from streams.kafka import header_names
from streams.kafka.faust_agents import FaustAgents
from streams.kafka.log import KafkaLog
from streams.log import Record
from streams.settings import Settings
from streams.topics import DEAD_LETTERS, GOALS, JOB_EVENTS
from streams.wire.events import read_event
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
    assert [event.job for event in events if isinstance(event, JobSubmitted)] == [
        "default/good",
        "default/last",
    ]
    names = [(header.name, header.base64) for header in events[0].headers]
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


def test_the_patch_is_in_place() -> None:
    """An upgrade of aiokafka that moves what is replaced shows here."""
    assert fetcher.MemoryRecords is header_names.Records
    assert "MemoryRecords(" in inspect.getsource(fetcher.Fetcher._proc_fetch_request)
