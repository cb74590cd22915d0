"""Workers of a life: processes that are killed, stopped, put to sleep and started again."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from agents.ports import Crew
from streams.chaos.evidence import Life
from streams.delivery import Sender
from streams.hedges import repeatable
from streams.intake import Intake
from streams.lanes import JOURNALED_S, Lanes
from streams.memory_log import MemoryCluster, MemoryLog
from streams.orchestrator import Orchestrator
from streams.settings import Settings
from streams.topics import GOALS, SUBTASKS

AGAIN_S = 1.0
"""Seconds until a worker that crashed by itself is started again."""

GROUP = "agents"


@dataclass(eq=False, kw_only=True)
class Process:
    """One life of a worker process."""

    run: str
    began: int
    log: MemoryLog
    lanes: Lanes
    task: "asyncio.Task[None]"
    ended: int | None = None
    how: str = ""
    pauses: list[tuple[int, int]] = field(default_factory=list)
    paused_at: int | None = None
    told_at: int | None = None

    def told(self) -> Life:
        """As evidence."""
        return Life(
            run=self.run,
            began=self.began,
            ended=self.ended,
            how=self.how,
            told=self.told_at,
            pauses=tuple(self.pauses),
        )


class Worker:
    """A place for a worker: one process after the other.

    Args:
        crew: Makes the agents of one process.

    Attributes:
        lives: Every process so far.
    """

    def __init__(
        self, name: str, cluster: MemoryCluster, settings: Settings, crew: Callable[[], Crew], *, static: bool
    ) -> None:
        self.name = name
        self._cluster, self._settings, self._crew, self._static = cluster, settings, crew, static
        self._loop = asyncio.get_running_loop()
        self._starting: asyncio.TimerHandle | None = None
        self._busy: set[asyncio.Task[None]] = set()
        self.lives: list[Process] = []
        self.stays_away = False

    @property
    def process(self) -> Process | None:
        """The one that lives now."""
        return self.lives[-1] if self.lives and self.lives[-1].ended is None else None

    def start(self) -> None:
        """Start a process, where none lives."""
        self._starting = None
        if self.process is not None or self.stays_away:
            return
        run = f"{self.name}-{len(self.lives)}"
        log = self._cluster.connect(self.name, static=self._static)
        chance = Random(run).random  # noqa: S311 - chance that must be repeatable, no secret
        sender = Sender(log.producer)
        crew = self._crew()
        lanes = Lanes(log, sender, self._settings, crew, run=run, chance=chance)
        intake = Intake(sender, lanes=self._settings.lanes, run=run, configured=self._settings.configuration)
        orchestrator = Orchestrator(log, self._settings, chance=chance, may_repeat=repeatable(crew.tools))
        parts = [
            orchestrator.run(),
            lanes.watch(),
            log.deliveries(SUBTASKS, GROUP, lanes.lane, lanes),
            log.deliveries(GOALS, GROUP, intake.agent),
        ]

        async def work() -> None:
            tasks = [asyncio.create_task(part) for part in parts]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()

        task = log.start(work())
        process = Process(run=run, began=self._cluster.now_ms(), log=log, lanes=lanes, task=task)
        task.add_done_callback(lambda done: self._ended(process, done))
        self.lives.append(process)

    def start_in(self, seconds: float) -> None:
        """Start a process later, unless one lives by then."""
        if self._starting is not None:
            self._starting.cancel()
        self._starting = self._loop.call_later(seconds, self.start)

    def kill(self, seconds: float, *, steps: int = 0) -> None:
        """Kill the process before its next step but *steps*; start another one *seconds* later."""
        if (process := self.process) is None:
            return
        if steps:
            process.log.after_steps(steps, lambda: self._kill(process, "killed", seconds))
        else:
            self._kill(process, "killed", seconds)

    def _kill(self, process: Process, how: str, seconds: float) -> None:
        if process.ended is None:
            self._over(process, how)
            process.log.kill()
            self.start_in(seconds)

    def stop(self, seconds: float | None) -> None:
        """Tell the process to stop; start another one *seconds* after it has, if any is to be."""
        if seconds is None:
            self.stays_away = True
        if (process := self.process) is not None and process.told_at is None:
            process.told_at = self._cluster.now_ms()
            stopping = self._loop.create_task(self._stop(process, seconds))
            self._busy.add(stopping)
            stopping.add_done_callback(self._busy.discard)

    async def _stop(self, process: Process, seconds: float | None) -> None:
        """In the order of ``streams.app``."""
        settings = self._settings
        with suppress(asyncio.CancelledError, TimeoutError):  # it may be killed meanwhile
            async with asyncio.timeout(settings.drain_s + JOURNALED_S + 1):
                await process.log.start(process.lanes.drain())
        if process.ended is None:
            with suppress(asyncio.CancelledError, TimeoutError):
                async with asyncio.timeout(6.0):
                    await process.log.start(process.log.close())
        if process.ended is None:
            self._over(process, "stopped")
            process.log.kill()  # what is left of it: the process exits
            if seconds is not None:
                self.start_in(seconds)

    def pause(self, seconds: float) -> None:
        """Let the process take no step for so long."""
        process = self.process
        if process is None or process.paused_at is not None:
            return
        process.paused_at = self._cluster.now_ms()
        process.log.pause()
        self._loop.call_later(seconds, self._resume, process)

    def _resume(self, process: Process) -> None:
        if process.ended is None and process.paused_at is not None:
            process.pauses.append((process.paused_at, self._cluster.now_ms()))
            process.paused_at = None
            process.log.resume()

    def _over(self, process: Process, how: str) -> None:
        process.ended, process.how = self._cluster.now_ms(), how
        if process.paused_at is not None:
            process.pauses.append((process.paused_at, process.ended))
            process.paused_at = None

    def _ended(self, process: Process, task: "asyncio.Task[None]") -> None:
        """The parts ended: by themselves, or since the process did."""
        error = None if task.cancelled() else task.exception()
        if process.ended is None and process.told_at is None:
            self._over(process, f"crashed: {error!r}" if error else "crashed")
            process.log.kill()
            self.start_in(AGAIN_S)
