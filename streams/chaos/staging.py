"""A scenario on a real Kafka: the same goals and incidents that a simulated life has, at the same seconds.

What it leaves out is what only a log in memory can do by itself: late and lost replies, and steps
that are counted.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from agents import simulator
from agents.simulator import Simulator
from streams.chaos import gathering, stranger
from streams.chaos.evidence import Evidence, Expected, Life
from streams.chaos.open_transactions import open_transactions
from streams.chaos.scenarios import Incident, IncidentKind, Poison, Scenario
from streams.chaos.simulation.living import FRESH
from streams.chaos.simulation.outside import goal_value
from streams.chaos.workers import WorkerProcess, Workers
from streams.core.values import JobId
from streams.delivery import Sender
from streams.kafka import admin
from streams.kafka.log import KafkaLog
from streams.settings import Settings
from streams.topics import GOALS

ANSWERED_S: Final = 90.0
LAG_S: Final = 30.0
OPEN_S: Final = 10.0
STAGED: Final[frozenset[IncidentKind]] = frozenset(
    {"kill", "stop", "pause", "join", "leave", "stranger", "endpoint_down", "endpoint_slow"}
)
"""The kinds of incidents that can be staged on a broker that must not be harmed."""


class Place:
    """A place for a worker: one process after the other, as in a simulated life."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self._stays_away = False

    async def start(self) -> None:
        """Start a process, and wait until its parts run."""
        if not self._stays_away:
            await (await self.workers.start()).ready()

    @property
    def _process(self) -> WorkerProcess | None:
        return self.workers.living[-1] if self.workers.living else None

    async def strike(self, incident: Incident) -> None:
        """Bring an incident about, to its end."""
        process = self._process
        if process is None:
            return
        match incident.kind:
            case "kill":
                await process.kill()
            case "stop":
                await process.stop()
            case "leave":
                self._stays_away = True
                await process.stop()
            case _:
                process.pause()
                await asyncio.sleep(incident.seconds)
                process.resume()
                return
        await asyncio.sleep(incident.seconds)
        await self.start()


class Stage:
    """One scenario on a system of its own.

    Args:
        place: Where the workers' logs go.
    """

    def __init__(self, scenario: Scenario, settings: Settings, endpoint: Simulator, place: Path) -> None:
        self._scenario, self._settings, self._endpoint, self._place = scenario, settings, endpoint, place
        self._places: list[Place] = []
        self._stack = AsyncExitStack()

    async def _join(self) -> None:
        number = len(self._places)
        name = f"worker-{number}" if self._scenario.static else ""
        workers = Workers(replace(self._settings, worker_name=name), self._place / f"worker-{number}")
        place = Place(await self._stack.enter_async_context(workers))
        self._places.append(place)
        await place.start()

    async def play(self, expected: Mapping[JobId, Expected]) -> Evidence:
        """From the first goal to the last lag."""
        async with self._stack, KafkaLog(self._settings) as log:
            watch = gathering.Watch(self._settings, log)
            async with watch.watching():
                for _ in range(self._scenario.workers):
                    await self._join()
                await self._happen(Sender(log.producer))
                jobs = {job.name for job in self._scenario.jobs}
                await watch.answered(jobs, within_s=ANSWERED_S)
                await self._send(Sender(log.producer), GOALS, goal_value(FRESH), b"", 0)
                fresh = await watch.answered({FRESH.name}, within_s=ANSWERED_S)
                return await self._evidence(watch, expected, fresh_answered=fresh)

    async def _happen(self, sender: Sender) -> None:
        """All that is planned, side by side."""
        scenario = self._scenario
        async with asyncio.TaskGroup() as group:
            for job in scenario.jobs:
                send = partial(self._send, sender, GOALS, goal_value(job), b"", job.partition)
                for n in range(job.times):
                    group.create_task(_at(job.at + 0.1 * n, send))
            for poison in scenario.poison:
                group.create_task(_at(poison.at, partial(self._send_poison, sender, poison)))
            for incident in scenario.incidents:
                group.create_task(_at(incident.at, partial(self._strike, incident)))

    async def _send_poison(self, sender: Sender, poison: Poison) -> None:
        value = None if poison.value is None else poison.value.encode()
        if poison.binary and poison.value is not None:
            value = bytes.fromhex(poison.value)
        await self._send(sender, poison.topic, value, (poison.key or "").encode(), poison.partition)

    async def _send(
        self, sender: Sender, topic: str, value: bytes | None, key: bytes, partition: int
    ) -> None:
        await sender.deliver(topic, value, key=key, partition=partition % self._scenario.lanes)

    async def _strike(self, incident: Incident) -> None:
        match incident.kind:
            case "join":
                await self._join()
            case "stranger":
                number = incident.worker % self._scenario.lanes
                await stranger.take_over(self._settings, number, hold_s=incident.seconds)
            case "endpoint_down" | "endpoint_slow":
                usual = self._endpoint.behaviour
                slow = simulator.Fixed(incident.seconds)
                down = incident.kind == "endpoint_down"
                self._endpoint.behaviour = (
                    replace(usual, failures=(("cut", 1.0),)) if down else replace(usual, latency=slow)
                )
                await asyncio.sleep(incident.seconds)
                self._endpoint.behaviour = usual
            case _ if incident.worker < len(self._places):
                await self._places[incident.worker].strike(incident)
            case _:
                pass

    async def _evidence(
        self, watch: gathering.Watch, expected: Mapping[JobId, Expected], *, fresh_answered: bool
    ) -> Evidence:
        time = asyncio.get_running_loop().time
        ends = time() + LAG_S
        while True:
            done = await gathering.committed(self._settings)
            found = await gathering.read_whole(self._settings)
            behind = gathering.lag(found, done)
            if not behind or time() > ends:
                break
            await asyncio.sleep(0.5)
        return Evidence(
            lanes=self._settings.lanes,
            concurrency=self._settings.concurrency,
            records=found,
            seen=tuple(watch.seen),
            expected=expected,
            calls=gathering.calls(self._endpoint.counters),
            lives=self._lives(),
            committed=(*watch.committed, *done),
            open_transactions=await open_transactions(self._settings, within_s=OPEN_S),
            lag=behind,
            fresh_answered=fresh_answered,
        )

    def _lives(self) -> tuple[Life, ...]:
        return tuple(life for place in self._places for life in place.workers.lives())


async def _at(seconds: float, do: Callable[[], Awaitable[None]]) -> None:
    await asyncio.sleep(seconds)
    await do()


async def stage(
    scenario: Scenario, expected: Mapping[JobId, Expected], *, servers: str, place: Path
) -> Evidence:
    """Play a scenario on brokers that are there; their system is made for it and deleted afterwards.

    Args:
        expected: What the answers must be.
        place: A directory for the workers' logs.

    Raises:
        ValueError: an incident of it would harm the brokers.
        LogUnavailable, TimeoutError: it could not be played.
    """
    if others := {incident.kind for incident in scenario.incidents} - STAGED:
        raise ValueError(f"not on brokers that others use: {', '.join(sorted(others))}")
    latency = simulator.LogNormal(p50=scenario.latency_s / 8, p99=scenario.latency_s)
    endpoint = await simulator.start(simulator.Behaviour(seed=scenario.seed, latency=latency))
    try:
        settings = Settings(
            brokers=servers,
            prefix=f"scenario-{secrets.token_hex(3)}.",
            lanes=scenario.lanes,
            concurrency=scenario.concurrency,
            window=scenario.window,
            drain_s=scenario.drain_s,
            base_url=endpoint.url,
            model=simulator.MODEL,
        )
        async with _topics(settings):
            return await Stage(scenario, settings, endpoint, place).play(expected)
    finally:
        await endpoint.close()


@asynccontextmanager
async def _topics(settings: Settings) -> AsyncIterator[None]:
    await admin.create(settings)
    try:
        yield
    finally:
        await admin.delete(settings)
