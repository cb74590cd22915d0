"""A running system on a real Kafka: goals in, events watched, answers out, workers as users start them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import orjson

from agents import simulator
from streams.core.commands import Answer
from streams.kafka.log import KafkaLog
from streams.log import Record
from streams.settings import Settings
from streams.topics import ANSWERS, GOALS, JOB_EVENTS
from streams.wire.answers import read_answer
from streams.wire.events import read_event
from tests.acceptance.conftest import Program, Programs

WITHIN_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A system without workers, until :meth:`worker` starts one.

    Attributes:
        endpoint: The simulated model, in this process.
    """

    settings: Settings
    log: KafkaLog
    endpoint: simulator.Simulator
    programs: Programs

    async def worker(self, name: str = "") -> Program:
        """Start a worker; *name* makes it a static member of its groups."""
        return await self.programs.start(
            "worker",
            system=self.settings,
            ANABRANCH_WORKER_NAME=name,
            OPENAI_BASE_URL=self.endpoint.url,
            OPENAI_API_KEY="simulated",
        )

    async def send(self, goal: object, *, partition: int = 0) -> None:
        """Put a goal on its topic: bytes or None as they are, anything else as JSON."""
        value = goal if isinstance(goal, bytes) or goal is None else orjson.dumps(goal)
        await (await self.log.producer.send(GOALS, value, key=b"", partition=partition))

    async def see(self, enough: Callable[[Sequence[Record]], bool], topic: str = JOB_EVENTS) -> None:
        """Wait until the records of a topic, from its beginning, are *enough*.

        Raises:
            TimeoutError: they were not, in :data:`WITHIN_S` seconds.
        """
        seen: list[Record] = []
        lanes = range(self.settings.lanes)
        async with asyncio.timeout(WITHIN_S), self.log.follow(topic, lanes, since=0) as batches:
            async for records in batches:
                seen += records
                if enough(seen):
                    return

    async def see_events(self, kind: type[object], count: int) -> None:
        """Wait until there are *count* events of a kind."""
        await self.see(lambda seen: sum(isinstance(read_event(r), kind) for r in seen) >= count)

    async def records(self, topic: str) -> list[Record]:
        """All that a read_committed reader sees on a topic, partition by partition."""
        return [
            record
            for partition in range(self.settings.lanes)
            async for records in self.log.read(topic, partition)
            for record in records
        ]

    async def answers(self, count: int) -> dict[str, Answer]:
        """Wait for *count* answers, then for a goal sent after them; all answers but its own, by id.

        Raises:
            AssertionError: a job has more than one.
        """
        await self.see(lambda seen: len(seen) >= count, ANSWERS)
        await self.send({"id": "the-last", "goal": "[[plan 1]]"})
        await self.see(lambda seen: any(read_answer(r).id == "the-last" for r in seen), ANSWERS)
        found = [read_answer(record) for record in await self.records(ANSWERS)]
        by_id = {answer.id: answer for answer in found}
        assert len(by_id) == len(found), sorted(answer.id for answer in found)
        del by_id["the-last"]
        return by_id


@asynccontextmanager
async def running(
    settings: Settings, programs: Programs, behaviour: simulator.Behaviour | None = None
) -> AsyncIterator[Running]:
    """A system and its endpoint; the fixture *programs* ends the workers."""
    endpoint = await simulator.start(behaviour or simulator.Behaviour())
    try:
        async with KafkaLog(settings) as log:
            yield Running(settings=settings, log=log, endpoint=endpoint, programs=programs)
    finally:
        await endpoint.close()
