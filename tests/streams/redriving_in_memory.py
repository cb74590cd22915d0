"""A swarm in memory whose dead letters are looked for, redriven and dropped, each by a process of its own."""

from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from random import Random

from streams import dead_letters, letters, redriving
from streams.core.commands import Answer
from streams.core.events import Event, GoalRejected, JobReopened
from streams.core.goal import Source
from streams.core.values import JobId
from streams.delivery import Sender
from streams.intake import Intake
from streams.lanes import Lanes
from streams.letters import Letter, Wanted
from streams.log import Delivery, Record
from streams.memory_log import MemoryLog
from streams.orchestrator import Orchestrator
from streams.outcome import unreadable
from streams.redriving import Outcome
from streams.topics import ANSWERS, GOALS, JOB_EVENTS, SUBTASKS, partition_of
from streams.wire.answers import read_answer
from streams.wire.events import read_event, write_event
from streams.wire.goals import read_goal
from tests.streams.swarm_in_memory import SwarmInMemory

NEWER = "v: version 2 is newer than 1, which this program reads; upgrade it"


@dataclass(kw_only=True)
class RedrivenSwarm(SwarmInMemory):
    """Workers of two versions, and operators."""

    def old_worker(self, *unread: str, refuses: JobId = "") -> MemoryLog:
        """Start a worker that cannot read the commands of these sub-tasks (``a``) or attempts (``a/1``).

        Args:
            refuses: A job whose goal it cannot read.
        """
        self._workers += 1
        log = self.cluster.connect(f"worker-{self._workers}")
        run, chance = f"run-{self._workers}", Random(self.seed + self._workers).random  # noqa: S311 - repeatable
        sender = Sender(log.producer)
        lanes = Lanes(log, sender, self.settings, self.script.crew(), run=run, chance=chance)

        async def lane(partition: int, deliveries: AsyncIterator[Delivery]) -> None:
            await lanes.lane(partition, _readable(sender, deliveries, unread, self.settings.lanes))

        log.start(Orchestrator(log, self.settings, chance=chance).run())
        log.start(log.deliveries(SUBTASKS, "agents", lane, lanes))
        intake = Intake(sender, lanes=self.settings.lanes, run=run)

        async def goals(_: int, deliveries: AsyncIterator[Delivery]) -> None:
            await intake.run(_accepted(sender, deliveries, refuses, self.settings.lanes))

        log.start(log.deliveries(GOALS, "agents", goals))
        return log

    def operator(self) -> MemoryLog:
        """A process that redrives and drops."""
        self._workers += 1
        return self.cluster.connect(f"operator-{self._workers}")

    async def letters(self, **wanted: object) -> list[Letter]:
        """Dead letters, those that wait where nothing else is asked for."""
        return await letters.find(self._outside, range(self.settings.lanes), Wanted(**wanted))  # type: ignore[arg-type]

    async def redrive(
        self, chosen: Collection[Letter] | None = None, *, log: MemoryLog | None = None
    ) -> list[Outcome]:
        """Redrive dead letters: these, or all that wait."""
        chosen = await self.letters() if chosen is None else chosen
        outcomes = redriving.redrive(log or self.operator(), chosen, lanes=self.settings.lanes, by="ada")
        return [outcome async for outcome in outcomes]

    async def drop(self, chosen: Collection[Letter]) -> list[Outcome]:
        """Drop dead letters."""
        outcomes = redriving.drop(self.operator(), chosen, reason="a test", by="ada")
        return [outcome async for outcome in outcomes]

    async def revisions(self) -> dict[str, list[Answer]]:
        """The answers that are there, by id, in the order of their revisions.

        Raises:
            AssertionError: one is there twice.
        """
        found: dict[str, list[Answer]] = {}
        for record in await self.records(ANSWERS):
            answer = read_answer(record)
            found.setdefault(answer.id, []).append(answer)
        for answers in found.values():
            numbers = [answer.revision for answer in answers]
            assert numbers == sorted(set(numbers)), numbers
        return found

    async def events(self, kind: type[Event] = JobReopened) -> list[Event]:
        """The events of a kind that are on the log."""
        events = [read_event(record) for record in await self.records(JOB_EVENTS)]
        return [event for event in events if isinstance(event, kind)]


async def _readable(
    sender: Sender, deliveries: AsyncIterator[Delivery], unread: Collection[str], lanes: int
) -> AsyncIterator[Delivery]:
    """Bury what an older version could not read, as it would."""
    async for delivery in deliveries:
        record = delivery.record
        if not any(f"/{name}/" in f"{(record.key or b'').decode()}/" for name in unread):
            yield delivery
            continue
        await dead_letters.bury(sender, record, NEWER)
        if event := unreadable(record.key, NEWER):
            await tell(sender, event, lanes)
        delivery.ack()


async def _accepted(
    sender: Sender, deliveries: AsyncIterator[Delivery], refuses: JobId, lanes: int
) -> AsyncIterator[Delivery]:
    """Refuse a goal, as an intake would that does not know one of its fields."""
    async for delivery in deliveries:
        record = delivery.record
        if read_goal(record, lanes=lanes).job != refuses:
            yield delivery
            continue
        await dead_letters.bury(sender, record, NEWER)
        source = Source(topic=record.topic, partition=record.partition, offset=record.offset)
        await tell(sender, GoalRejected(job=refuses, reason=NEWER, source=source), lanes)
        delivery.ack()


async def tell(sender: Sender, event: Event, lanes: int) -> None:
    """Put an event on its job's log."""
    await sender.deliver(
        JOB_EVENTS, write_event(event), key=event.job.encode(), partition=partition_of(event.job, lanes)
    )


def as_was(record: Record) -> tuple[bytes | None, bytes | None, object]:
    """What must come back byte for byte."""
    return record.key, record.value, record.headers
