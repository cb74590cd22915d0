"""The table wiped on a real Kafka: the orchestrator rebuilds it, and gives nothing a second time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from streams.chaos.wiping import wipe_table
from streams.core.events import Event, GoalRejected, JobSubmitted, Planned, SubTaskSucceeded
from streams.core.goal import Goal, Source
from streams.core.plan import SubTask
from streams.core.values import PLAN, Inline
from streams.kafka import admin
from streams.kafka.log import KafkaLog
from streams.orchestrator import Orchestrator
from streams.topics import ANSWERS, DEAD_LETTERS, JOB_EVENTS, JOBS, SUBTASKS
from streams.wire.events import write_event
from tests.conftest import NewSystem

SOURCE = Source(topic="goals", partition=0, offset=0)
PLANNED = (SubTask(id="a", goal="do a"), SubTask(id="b", goal="do b"))


def life(job: str, *, to_its_end: bool) -> list[Event]:
    """Of two sub-tasks, the second of which may not have ended yet."""
    return [
        JobSubmitted(job=job, goal=Goal(text=Inline(value="x")), source=SOURCE, lanes=1),
        Planned(job=job, task=PLAN, attempt=1, plan=PLANNED),
        SubTaskSucceeded(job=job, task="a", attempt=1, result=Inline(value=1)),
        *(end(job) if to_its_end else []),
    ]


def end(job: str) -> list[Event]:
    return [
        SubTaskSucceeded(job=job, task="b", attempt=1, result=Inline(value=2)),
        SubTaskSucceeded(job=job, task="answer", attempt=1, result=Inline(value=3)),
    ]


async def test_a_wiped_table_is_rebuilt_and_nothing_is_given_twice(new_system: NewSystem) -> None:
    """Answers and dead letters stay as they are, and the job under way goes on to its one answer."""
    settings = await new_system(lanes=1)
    async with KafkaLog(settings) as log:

        async def put(*events: Event | bytes) -> None:
            for event in events:
                key = b"k" if isinstance(event, bytes) else event.job.encode()
                value = event if isinstance(event, bytes) else write_event(event)
                await (await log.producer.send(JOB_EVENTS, value, key=key, partition=0))

        async def values(topic: str) -> list[bytes | None]:
            return [record.value async for batch in log.read(topic, 0) for record in batch]

        async def answered(job: str) -> None:
            async with asyncio.timeout(60), log.follow(ANSWERS, [0], since=0) as coming:
                async for batch in coming:
                    if any(record.key == job.encode() for record in batch):
                        return

        async def first_row() -> None:
            async with asyncio.timeout(60), log.follow(JOBS, [0], since=0) as coming:
                await anext(coming)

        @asynccontextmanager
        async def orchestrator(batch: int = 500) -> AsyncIterator[None]:
            async with KafkaLog(settings) as own:
                working = asyncio.create_task(Orchestrator(own, replace(settings, batch=batch)).run())
                try:
                    yield
                finally:
                    working.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await working

        await put(*life("default/open", to_its_end=False), b"poison")
        await put(*life("default/whole", to_its_end=True))
        async with orchestrator():
            await answered("default/whole")
        given = await values(ANSWERS), await values(DEAD_LETTERS)
        assert list(map(len, given)) == [1, 1]
        asked = len(await values(SUBTASKS))

        await wipe_table(settings)
        assert await values(JOBS) == []
        assert await admin.check(settings) == ()
        async with orchestrator(batch=1):  # which ends while its rows land, one after another
            await first_row()
        async with orchestrator():
            await put(GoalRejected(job="default/last", reason="none", source=SOURCE))
            await answered("default/last")
            answers, buried = await values(ANSWERS), await values(DEAD_LETTERS)
            assert (answers[:-1], buried) == given
            keys = {record.key async for batch in log.read(JOBS, 0) for record in batch}
            assert {b"default/whole", b"default/open/@goal", b"default/open/b"} <= keys
            await put(*end("default/open"))
            await answered("default/open")
        assert [record.key async for batch in log.read(ANSWERS, 0) for record in batch] == [
            b"default/whole",
            b"default/last",
            b"default/open",
        ]
        commands = [record.key async for batch in log.read(SUBTASKS, 0) for record in batch][asked:]
        assert commands[-1] == b"default/open/answer/1"
        assert set(commands[:-1]) == {b"default/open/b/1"}, "the same attempt, which its lane knows again"
