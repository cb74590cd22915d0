"""One life: a scenario on the log in memory, from the first goal to the last lag, as evidence."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import cast

import orjson

from agents.simulator.behaviour import Behaviour, FailureKind, LogNormal
from streams.chaos.evidence import Committed, Evidence, Expected
from streams.chaos.scenarios import Incident, Job, Poison, Scenario
from streams.chaos.simulation.crew import crew
from streams.chaos.simulation.endpoint import MemoryEndpoint
from streams.chaos.simulation.expecting import expected, goal_record
from streams.chaos.simulation.tools import MemoryTools
from streams.chaos.simulation.worker import GROUP, Process, Worker
from streams.core.values import JobId
from streams.log import Fenced, LogUnavailable, Record
from streams.memory_log import Faults, Limits, MemoryCluster, virtual_time
from streams.memory_log.cluster import EPOCH_MS
from streams.settings import Settings
from streams.topics import ANSWERS, DEAD_LETTERS, GOALS, JOB_EVENTS, JOBS, SUBTASKS, TRANSCRIPTS

TOPICS = (GOALS, JOB_EVENTS, SUBTASKS, TRANSCRIPTS, JOBS, ANSWERS, DEAD_LETTERS)
FRESH = Job(goal={"id": "fresh", "goal": "Is all well again? [[plan 2]]"})

ANSWERED_WITHIN_S = 1_800.0
"""Seconds from the end of all faults in which every goal must be answered."""

FRESH_WITHIN_S, CAUGHT_UP_WITHIN_S = 300.0, 120.0
LOOK_S = 0.5
SESSION_S = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """A life that was lived.

    Attributes:
        evidence: For the verifier.
        digest: SHA-256 of all records of all topics: the same life has the same.
        recorded: Calls of the tool that must not run twice, by attempt and name.
        seconds: Virtual seconds that it took.
        steps: Steps that its workers took.
    """

    evidence: Evidence
    digest: str
    recorded: Mapping[str, int]
    seconds: float
    steps: int


def live(scenario: Scenario, answers: Mapping[JobId, Expected] | None = None) -> Lived:
    """Live a scenario.

    Args:
        answers: What the answers must be; by default as :func:`answers_to` finds it.
    """
    known = answers_to(scenario) if answers is None else answers
    with _no_collection():
        return virtual_time.run(_Living(scenario, known).live())


@contextmanager
def _no_collection() -> Iterator[None]:
    """Let the garbage collector wait until a life is over.

    It ends generators that nobody holds any more, each by a task of the loop, at moments that no
    scenario names.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def answers_to(scenario: Scenario) -> dict[JobId, Expected]:
    """What the answers to the goals of *scenario* must be, of those whose answers are certain."""

    async def ask() -> dict[JobId, Expected]:
        loop = asyncio.get_running_loop()
        endpoint = MemoryEndpoint(Behaviour(), lambda: round(loop.time() * 1000))
        jobs = [job for job in (*scenario.jobs, FRESH) if job.certain]
        answers = await expected(
            [goal_record(goal_value(job)) for job in jobs], crew(endpoint, MemoryTools())
        )
        for job in jobs:
            answers[job.name] = replace(answers[job.name], exact=job.exact)
        return answers

    return virtual_time.run(ask())


def goal_value(job: Job) -> bytes:
    """The value of its record."""
    goal = dict(job.goal)
    if job.padding:
        goal["input"] = {"given": goal.get("input"), "padding": "x" * job.padding}
    return orjson.dumps(goal)


class _Living:
    """The world of one life, in its running loop."""

    def __init__(self, scenario: Scenario, answers: Mapping[JobId, Expected]) -> None:
        self._scenario, self._answers = scenario, answers
        self._settings = Settings(
            lanes=scenario.lanes, concurrency=scenario.concurrency, session_timeout_s=SESSION_S
        )
        self._workers: list[Worker] = []
        self._seen: list[Record] = []
        self._answered: set[bytes] = set()
        self._inputs: list[asyncio.Task[None]] = []

    async def live(self) -> Lived:
        """From the first goal to the last lag."""
        scenario = self._scenario
        self._loop = asyncio.get_running_loop()
        self._cluster = MemoryCluster(
            dict.fromkeys(TOPICS, scenario.lanes),
            seed=scenario.seed,
            faults=Faults(
                delay_s=scenario.delay_s,
                lost_sends=scenario.lost_sends,
                lost_replies=scenario.lost_replies,
                unknown_commits=scenario.unknown_commits,
                short_batches=scenario.short_batches,
                outages=tuple((i.at, i.at + i.seconds) for i in scenario.incidents if i.kind == "outage"),
            ),
            limits=Limits(request_timeout_s=scenario.request_timeout_s, session_timeout_s=SESSION_S),
        )
        self._endpoint = MemoryEndpoint(
            Behaviour(
                seed=scenario.seed,
                latency=LogNormal(p50=scenario.latency_s / 8, p99=scenario.latency_s),
                failures=tuple((cast("FailureKind", kind), rate) for kind, rate in scenario.failures.items()),
            ),
            self._cluster.now_ms,
        )
        self._tools = MemoryTools()
        self._outside = self._cluster.connect("outside")
        watching = self._loop.create_task(self._watch())
        for _ in range(scenario.workers):
            self._join()
        for job in scenario.jobs:
            for n in range(job.times):
                self._at(job.at + 0.1 * n, partial(self._send_job, job))
        for poison in scenario.poison:
            self._at(poison.at, partial(self._send_poison, poison))
        for incident in scenario.incidents:
            self._at(incident.at, partial(self._strike, incident))
        await asyncio.sleep(self._faults_end())
        self._heal()
        await self._until(self._all_answered, ANSWERED_WITHIN_S)
        await self._send_job(FRESH)
        fresh = await self._until(lambda: b"default/fresh" in self._answered, FRESH_WITHIN_S)
        await asyncio.sleep(2.0)  # for answers that must not come
        await self._until(lambda: not self._lag(), CAUGHT_UP_WITHIN_S)
        await self._until(lambda: not self._cluster.coordinator.open(), CAUGHT_UP_WITHIN_S)
        evidence = self._evidence(fresh_answered=fresh)
        watching.cancel()
        return Lived(
            evidence=evidence,
            digest=_digest(evidence.records),
            recorded=self._tools.recorded,
            seconds=self._loop.time(),
            steps=sum(process.log.steps for process in self._processes()),
        )

    # What is sent.

    def _at(self, seconds: float, do: Callable[[], Awaitable[None] | None]) -> None:
        """Do something so many seconds from the start."""

        async def then() -> None:
            await asyncio.sleep(seconds)
            doing = do()
            if doing is not None:
                await doing

        self._inputs.append(self._loop.create_task(then()))

    async def _send_job(self, job: Job) -> None:
        await self._send(GOALS, goal_value(job), b"", job.partition)

    async def _send_poison(self, poison: Poison) -> None:
        value: bytes | None = None
        if poison.value is not None:
            value = bytes.fromhex(poison.value) if poison.binary else poison.value.encode()
        await self._send(poison.topic, value, (poison.key or "").encode(), poison.partition)

    async def _send(self, topic: str, value: bytes | None, key: bytes, partition: int) -> None:
        """Again and again until the log says that it has it, as any producer does."""
        while True:
            try:
                await (
                    await self._outside.producer.send(
                        topic, value, key=key, partition=partition % self._scenario.lanes
                    )
                )
            except LogUnavailable:
                await asyncio.sleep(1.0)
            else:
                return

    # What goes wrong.

    def _strike(self, incident: Incident) -> Awaitable[None] | None:
        known = self._workers[incident.worker] if incident.worker < len(self._workers) else None
        match incident.kind:
            case "kill" if known is not None:
                known.kill(incident.seconds, steps=incident.steps)
            case "stop" if known is not None:
                known.stop(incident.seconds)
            case "leave" if known is not None:
                known.stop(None)
            case "pause" if known is not None:
                known.pause(incident.seconds)
            case "join":
                self._join()
            case "stranger":
                return self._stranger(incident)
            case "endpoint_down":
                self._endpoint.down = True
                self._loop.call_later(incident.seconds, setattr, self._endpoint, "down", False)
            case "endpoint_slow":
                self._endpoint.slower_s = incident.seconds
                self._loop.call_later(incident.seconds, setattr, self._endpoint, "slower_s", 0.0)
            case _:
                pass
        return None

    async def _stranger(self, incident: Incident) -> None:
        number = incident.worker % self._scenario.lanes
        within = asyncio.timeout(incident.seconds + self._scenario.request_timeout_s)
        identity = self._outside.transactions(f"orchestrator-{number}")
        with suppress(_Aborted, Fenced, LogUnavailable, TimeoutError):
            async with within, identity as stranger, stranger.transaction():
                await stranger.send(ANSWERS, b"{}", key=b"default/nobody", partition=number)
                await asyncio.sleep(incident.seconds)
                raise _Aborted

    def _join(self) -> None:
        worker = Worker(
            f"worker-{len(self._workers)}",
            self._cluster,
            self._settings,
            lambda: crew(self._endpoint, self._tools),
            static=self._scenario.static,
        )
        self._workers.append(worker)
        worker.start()

    def _faults_end(self) -> float:
        """Seconds from the start after which nothing goes wrong any more of what is planned."""
        scenario = self._scenario
        ends = [incident.at + incident.seconds for incident in scenario.incidents]
        ends += [job.at + 0.1 * job.times for job in scenario.jobs]
        ends += [poison.at for poison in scenario.poison]
        return max(ends, default=0.0) + 0.5

    def _heal(self) -> None:
        """Somebody must be left to answer."""
        if all(worker.stays_away for worker in self._workers):
            self._join()

    # What is looked at.

    async def _watch(self) -> None:
        """Read answers all along."""
        partitions = range(self._scenario.lanes)
        while True:
            try:
                async with self._outside.follow(ANSWERS, partitions, since=0) as batches:
                    async for records in batches:
                        self._seen.extend(records)
                        self._answered.update(record.key or b"" for record in records)
            except LogUnavailable:
                self._seen.clear()

    def _all_answered(self) -> bool:
        return all(task.done() for task in self._inputs) and all(
            job.name.encode() in self._answered for job in self._scenario.jobs
        )

    async def _until(self, happens: Callable[[], bool], within_s: float) -> bool:
        """Wait until *happens*; whether it did in time."""
        end = self._loop.time() + within_s
        while not happens():
            if self._loop.time() >= end:
                return False
            await asyncio.sleep(LOOK_S)
        return True

    def _lag(self) -> dict[str, int]:
        """Records that nobody has said to be done, by group and partition, where there are any."""
        lag: dict[str, int] = {}
        for group, topic in ((GROUP, GOALS), (GROUP, SUBTASKS), ("orchestrator", JOB_EVENTS)):
            committed = self._cluster.committed(group, topic)
            for number in range(self._scenario.lanes):
                source = self._cluster.partition(topic, number)
                behind, _ = source.visible(committed.get(number, 0), source.end)
                if behind:
                    lag[f"{group} {topic}[{number}]"] = len(behind)
        return lag

    def _processes(self) -> list[Process]:
        return [process for worker in self._workers for process in worker.lives]

    def _evidence(self, *, fresh_answered: bool) -> Evidence:
        scenario, cluster = self._scenario, self._cluster
        return Evidence(
            lanes=scenario.lanes,
            concurrency=scenario.concurrency,
            records={topic: tuple(cluster.records(topic)) for topic in TOPICS},
            seen=tuple(self._seen),
            expected=self._answers,
            calls=self._endpoint.calls(),
            lives=tuple(process.told() for process in self._processes()),
            committed=tuple(
                Committed(
                    group=group,
                    topic=topic,
                    partition=partition,
                    offset=offset,
                    at=EPOCH_MS + round(at * 1000),
                )
                for (group, topic), each in cluster.groups().items()
                for at, partition, offset in each.commits
            ),
            open_transactions=cluster.coordinator.open(),
            lag=self._lag(),
            fresh_answered=fresh_answered,
            outages=tuple(self._outages()),
        )

    def _outages(self) -> Iterator[tuple[int, int]]:
        """When nothing could be journaled: no broker was there, or what was sent there got lost."""
        spans = [(i.at, i.at + i.seconds) for i in self._scenario.incidents if i.kind == "outage"]
        for process in self._processes():
            spans += process.log.stalls(TRANSCRIPTS)
        for since, until in sorted(spans):
            yield EPOCH_MS + round(since * 1000), EPOCH_MS + round(until * 1000)


class _Aborted(Exception):
    """The stranger's transaction does not commit."""


def _digest(records: Mapping[str, Sequence[Record]]) -> str:
    digest = sha256()
    for topic in sorted(records):
        for record in records[topic]:
            digest.update(repr(record).encode())
    return digest.hexdigest()
