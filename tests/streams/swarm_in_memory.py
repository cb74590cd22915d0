"""The whole topology on the log in memory: workers that can be killed, goals in, answers out."""

import asyncio
from dataclasses import dataclass, field
from random import Random

import orjson

from streams.core.commands import Answer
from streams.delivery import Sender
from streams.intake import Intake
from streams.lanes import Lanes
from streams.log import Headers, LogUnavailable, Record
from streams.memory_log import NO_FAULTS, Faults, MemoryCluster, MemoryLog
from streams.orchestrator import Orchestrator
from streams.settings import Settings
from streams.topics import ANSWERS, DEAD_LETTERS, GOALS, JOB_EVENTS, JOBS, SUBTASKS, TRANSCRIPTS
from streams.wire.answers import read_answer
from tests.streams.scripted import Script

TOPICS = (GOALS, JOB_EVENTS, SUBTASKS, TRANSCRIPTS, JOBS, ANSWERS, DEAD_LETTERS)


@dataclass(kw_only=True)
class SwarmInMemory:
    """Workers and topics. To be made inside the running loop.

    Attributes:
        script: What the agents do, shared by all workers.
    """

    script: Script = field(default_factory=Script)
    settings: Settings = field(default_factory=Settings)
    seed: int = 0
    faults: Faults = NO_FAULTS

    def __post_init__(self) -> None:
        self.cluster = MemoryCluster(
            dict.fromkeys(TOPICS, self.settings.lanes), seed=self.seed, faults=self.faults
        )
        self._outside = self.cluster.connect("outside")
        self._workers = 0

    def worker(self) -> MemoryLog:
        """Start a worker; its connection can be killed, paused and closed."""
        self._workers += 1
        log = self.cluster.connect(f"worker-{self._workers}")
        run, chance = f"run-{self._workers}", Random(self.seed + self._workers).random  # noqa: S311 - repeatable
        sender = Sender(log.producer)
        lanes = Lanes(log, sender, self.settings, self.script.crew(), run=run, chance=chance)
        intake = Intake(sender, lanes=self.settings.lanes, run=run, configured=self.settings.configuration)
        log.start(Orchestrator(log, self.settings, chance=chance).run())
        log.start(log.deliveries(SUBTASKS, "agents", lanes.lane, lanes))
        log.start(log.deliveries(GOALS, "agents", intake.agent))
        return log

    async def submit(self, goal: object, *, partition: int = 0, headers: Headers = ()) -> None:
        """Put a goal on its topic: bytes or None as they are, anything else as JSON."""
        value = goal if isinstance(goal, bytes) or goal is None else orjson.dumps(goal)
        sent = await self._outside.producer.send(GOALS, value, key=b"", partition=partition, headers=headers)
        await sent

    async def submit_surely(self, goal: object, *, partition: int = 0) -> None:
        """As :meth:`submit`, again and again until the log says it has it."""
        while True:
            try:
                return await self.submit(goal, partition=partition)
            except LogUnavailable:
                await asyncio.sleep(1)

    async def records(self, topic: str) -> list[Record]:
        """Everything on a topic that a read_committed reader sees, partition by partition."""
        return [
            record
            for partition in range(self.settings.lanes)
            async for records in self._outside.read(topic, partition)
            for record in records
        ]

    async def _surely(self, topic: str) -> list[Record]:
        while True:
            try:
                return await self.records(topic)
            except LogUnavailable:
                await asyncio.sleep(1)

    async def answers(self, count: int, *, within_s: float = 300.0) -> dict[str, Answer]:
        """Wait for *count* answers, then a little longer, and return all there are by id.

        Raises:
            AssertionError: a job has more than one answer, or they did not come in time.
        """
        async with asyncio.timeout(within_s):
            while len(await self._surely(ANSWERS)) < count:
                await asyncio.sleep(5)
        await asyncio.sleep(5.0)  # virtual: for answers that must not come
        answers = [read_answer(record) for record in await self._surely(ANSWERS)]
        by_id = {answer.id: answer for answer in answers}
        assert len(by_id) == len(answers), sorted(answer.id for answer in answers)
        return by_id
