"""The world of one life: the log, the model endpoint, the tools and the workers, and what befalls them."""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from typing import Final, cast

from agents.simulator.behaviour import Behaviour, FailureKind, LogNormal
from streams.chaos.evidence import Committed, Evidence, Expected
from streams.chaos.scenarios import Incident, Scenario
from streams.chaos.simulation.crew import crew
from streams.chaos.simulation.endpoint import MemoryEndpoint
from streams.chaos.simulation.outside import Outside
from streams.chaos.simulation.tenants import configured
from streams.chaos.simulation.tools import MemoryTools
from streams.chaos.simulation.worker import GROUP, Process, Worker
from streams.core.values import JobId
from streams.memory_log import Faults, Limits, MemoryCluster
from streams.memory_log.cluster import EPOCH_MS
from streams.settings import Settings
from streams.topics import ANSWERS, DEAD_LETTERS, GOALS, JOB_EVENTS, JOBS, SUBTASKS, TRANSCRIPTS

TOPICS: Final = (GOALS, JOB_EVENTS, SUBTASKS, TRANSCRIPTS, JOBS, ANSWERS, DEAD_LETTERS)
SESSION_S: Final = 6.0
READ: Final = ((GROUP, GOALS), (GROUP, SUBTASKS), ("orchestrator", JOB_EVENTS))
"""Which group reads which topic."""


class World:
    """Everything of one life, in its running loop.

    Attributes:
        outside: Who uses the system.
        tools: Those of all workers.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._loop = asyncio.get_running_loop()
        self._settings = Settings(
            lanes=scenario.lanes,
            concurrency=scenario.concurrency,
            session_timeout_s=SESSION_S,
            window=scenario.window,
            batch=scenario.batch,
            drain_s=scenario.drain_s,
            configured=configured(),
        )
        self._cluster = MemoryCluster(
            dict.fromkeys(TOPICS, scenario.lanes),
            seed=scenario.seed,
            faults=Faults(
                delay_s=scenario.delay_s,
                lost_sends=scenario.lost_sends,
                lost_replies=scenario.lost_replies,
                unknown_commits=scenario.unknown_commits,
                short_batches=scenario.short_batches,
                outages=tuple(self._without_broker()),
            ),
            limits=Limits(request_timeout_s=scenario.request_timeout_s, session_timeout_s=SESSION_S),
        )
        failures = tuple((cast("FailureKind", kind), rate) for kind, rate in scenario.failures.items())
        latency = LogNormal(p50=scenario.latency_s / 8, p99=scenario.latency_s)
        self._endpoint = MemoryEndpoint(
            Behaviour(seed=scenario.seed, latency=latency, failures=failures), self._cluster.now_ms
        )
        self.tools = MemoryTools()
        self.outside = Outside(self._cluster.connect("outside"), scenario.lanes)
        self._workers: list[Worker] = []
        for _ in range(scenario.workers):
            self._join()

    def _join(self) -> None:
        worker = Worker(
            f"worker-{len(self._workers)}",
            self._cluster,
            self._settings,
            lambda: crew(self._endpoint, self.tools),
            static=self._scenario.static,
        )
        self._workers.append(worker)
        worker.start()

    def strike(self, incident: Incident) -> Awaitable[None] | None:
        """Bring an incident about; what takes a while is to be awaited."""
        known = self._workers[incident.worker] if incident.worker < len(self._workers) else None
        seconds = incident.seconds
        match incident.kind:
            case "kill" if known is not None:
                known.kill(seconds, steps=incident.steps)
            case "stop" if known is not None:
                known.stop(seconds)
            case "leave" if known is not None:
                known.stop(None)
            case "pause" if known is not None:
                known.pause(seconds)
            case "join":
                self._join()
            case "stranger":
                patience = self._scenario.request_timeout_s
                return self.outside.take_over(incident.worker, seconds=seconds, patience_s=patience)
            case "endpoint_down":
                self._endpoint.down = True
                self._loop.call_later(seconds, setattr, self._endpoint, "down", False)
            case "endpoint_slow":
                self._endpoint.slower_s = seconds
                self._loop.call_later(seconds, setattr, self._endpoint, "slower_s", 0.0)
            case _:
                pass  # outages are the log's from the beginning on; a worker that is not there stays so
        return None

    def heal(self) -> None:
        """Somebody must be left to answer."""
        if all(worker.stays_away for worker in self._workers):
            self._join()

    def end(self) -> None:
        """Nobody is started any more: the loop may run on for a moment as it is closed."""
        for worker in self._workers:
            worker.stays_away = True

    def lag(self) -> dict[str, int]:
        """Records that nobody has said to be done, by group and partition, where there are any."""
        lag: dict[str, int] = {}
        for group, topic in READ:
            committed = self._cluster.committed(group, topic)
            for number in range(self._scenario.lanes):
                source = self._cluster.partition(topic, number)
                behind, _ = source.visible(committed.get(number, 0), source.end)
                if behind:
                    lag[f"{group} {topic}[{number}]"] = len(behind)
        return lag

    def open_transactions(self) -> tuple[str, ...]:
        """The identities that have one."""
        return self._cluster.coordinator.open()

    @property
    def steps(self) -> int:
        """Steps that all workers have taken."""
        return sum(process.log.steps for process in self._processes())

    def _processes(self) -> list[Process]:
        return [process for worker in self._workers for process in worker.lives]

    def evidence(self, answers: Mapping[JobId, Expected], *, fresh_answered: bool) -> Evidence:
        """All that is known by now."""
        return Evidence(
            lanes=self._scenario.lanes,
            concurrency=self._scenario.concurrency,
            records={topic: tuple(self._cluster.records(topic)) for topic in TOPICS},
            seen=tuple(self.outside.seen),
            expected=answers,
            calls=self._endpoint.calls(),
            lives=tuple(process.told() for process in self._processes()),
            committed=tuple(self._committed()),
            open_transactions=self.open_transactions(),
            lag=self.lag(),
            fresh_answered=fresh_answered,
            outages=tuple(self._outages()),
        )

    def _committed(self) -> Iterator[Committed]:
        for (group, topic), each in self._cluster.groups().items():
            for at, partition, offset in each.commits:
                yield Committed(
                    group=group, topic=topic, partition=partition, offset=offset, at=_milliseconds(at)
                )

    def _without_broker(self) -> Iterator[tuple[float, float]]:
        for incident in self._scenario.incidents:
            if incident.kind == "outage":
                yield incident.at, incident.at + incident.seconds

    def _outages(self) -> Iterator[tuple[int, int]]:
        """When nothing could be journaled: no broker was there, or what was sent there got lost."""
        spans = [*self._without_broker()]
        for process in self._processes():
            spans += process.log.stalls(TRANSCRIPTS)
        for since, until in sorted(spans):
            yield _milliseconds(since), _milliseconds(until)


def _milliseconds(loop_time: float) -> int:
    """The broker's clock at a time of a loop that began with the cluster."""
    return EPOCH_MS + round(loop_time * 1000)
