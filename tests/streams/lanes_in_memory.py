"""Lanes alone on the log in memory: commands in, events out, workers that come and go."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from agents.ports import Attempt, Done, GaveUp
from streams.core.commands import RunSubTask
from streams.core.events import Event, SubTaskEvent, SubTaskStarted
from streams.delivery import Sender
from streams.lanes import Lanes
from streams.log import Producer
from streams.memory_log import NO_FAULTS, Faults, MemoryCluster, MemoryLog
from streams.settings import Settings
from streams.topics import DEAD_LETTERS, JOB_EVENTS, JOBS, SUBTASKS, TRANSCRIPTS
from streams.wire.commands import Order, write_command
from streams.wire.events import read_event
from tests.streams.scripted import Script, Work

TWO_LANES = Settings(lanes=2, concurrency=20)
TOPICS = (SUBTASKS, JOB_EVENTS, TRANSCRIPTS, DEAD_LETTERS, JOBS)


def sub_task(name: str, *, job: str = "default/g", attempt: int = 1, timeout_s: float = 120.0) -> RunSubTask:
    """A command."""
    return RunSubTask(
        job=job, task=name, attempt=attempt, ordinal=1, timeout_s=timeout_s, goal=f"do {name}", kind="analyze"
    )


class Asleep:
    """Work that sleeps as long as its task's name says (``t-30``), and counts what happens to it."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.ended = Counter[str]()
        self.cancelled = Counter[str]()
        self.now = self.most = 0

    async def __call__(self, command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        self.began.append(command.task)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(float(command.task.rpartition("-")[2]))
        except asyncio.CancelledError:
            self.cancelled[command.task] += 1
            raise
        finally:
            self.now -= 1
        self.ended[command.task] += 1
        return Done(result=command.task)


Wrap = Callable[[Producer], Producer]
"""Puts something between the lanes and their producer."""


@dataclass(eq=False, kw_only=True)
class Worker:
    """One process with lanes.

    Attributes:
        watching: Its watchdog.
    """

    log: MemoryLog
    lanes: Lanes
    watching: "asyncio.Task[None]"


@dataclass(kw_only=True)
class LanesInMemory:
    """Workers, and the topics around them. To be made inside the running loop."""

    work: Work = field(default_factory=Asleep)
    settings: Settings = TWO_LANES
    faults: Faults = NO_FAULTS
    script: type[Script] = Script

    def __post_init__(self) -> None:
        self.cluster = MemoryCluster(dict.fromkeys(TOPICS, self.settings.lanes), faults=self.faults)
        self.outside = self.cluster.connect("outside")
        self._workers = 0

    def worker(self, wrap: Wrap = lambda producer: producer, **settings: float) -> Worker:
        """Start a worker, its settings changed by these."""
        self._workers += 1
        log = self.cluster.connect(f"worker-{self._workers}")
        lanes = Lanes(
            log,
            Sender(wrap(log.producer)),
            replace(self.settings, **settings),  # type: ignore[arg-type]
            self.script(work=self.work).crew(),
            run=f"run-{self._workers}",
            chance=lambda: 0.5,
        )
        log.start(log.deliveries(SUBTASKS, "agents", lanes.lane, lanes))
        return Worker(log=log, lanes=lanes, watching=log.start(lanes.watch()))

    async def put(
        self, *commands: Order | bytes | None, lane: int = 0, key: bytes | None = b"default/g/t/1"
    ) -> None:
        """Put commands on a lane; bytes as they are, under *key*."""
        for command in commands:
            if isinstance(command, bytes) or command is None:
                self.cluster.partition(SUBTASKS, lane).append(key, command, (), self.cluster.now_ms())
            else:
                name = f"{command.job}/{command.task}/{command.attempt}".encode()
                await (
                    await self.outside.producer.send(
                        SUBTASKS, write_command(command), key=name, partition=lane
                    )
                )

    def committed(self, lane: int = 0) -> int:
        """How many records of a lane are done, as its group was told."""
        return self.cluster.committed("agents", SUBTASKS).get(lane, 0)

    def events(self) -> list[Event]:
        """All that was told to jobs but that an attempt started."""
        events = [read_event(record) for record in self.cluster.records(JOB_EVENTS)]
        return [event for event in events if not isinstance(event, SubTaskStarted)]

    def told(self) -> list[str]:
        """The tasks whose end was told, in the alphabet's order."""
        return sorted(event.task for event in self.events() if isinstance(event, SubTaskEvent))


async def until(happens: Callable[[], bool], *, within_s: float = 600.0) -> None:
    """Wait, in virtual time, until *happens*.

    Raises:
        TimeoutError: it did not.
    """
    async with asyncio.timeout(within_s):
        while not happens():
            await asyncio.sleep(0.1)
