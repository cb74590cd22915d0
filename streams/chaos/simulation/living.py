"""One life: a scenario on the log in memory, from the first goal to the last lag, as evidence."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Final

from agents.simulator.behaviour import Behaviour
from streams.chaos.evidence import Evidence, Expected
from streams.chaos.scenarios import Job, Scenario
from streams.chaos.simulation.crew import crew
from streams.chaos.simulation.endpoint import MemoryEndpoint
from streams.chaos.simulation.expecting import expected, goal_record
from streams.chaos.simulation.outside import goal_value
from streams.chaos.simulation.tools import MemoryTools
from streams.chaos.simulation.world import World
from streams.core.values import JobId
from streams.log import Record
from streams.memory_log import virtual_time

FRESH: Final = Job(goal={"id": "fresh", "goal": "Is all well again? [[plan 2]]"})

ANSWERED_WITHIN_S: Final = 1_800.0
"""Seconds from the end of all faults in which every goal must be answered."""

FRESH_WITHIN_S: Final = 300.0
CAUGHT_UP_WITHIN_S: Final = 600.0
LOOK_S: Final = 0.5
LATE_S: Final = 2.0
"""Seconds in which answers that must not come would come."""

REPEATED_S: Final = 0.1
"""Seconds between two times that a goal is sent."""


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
        return virtual_time.run(_live(scenario, known))


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


async def _live(scenario: Scenario, answers: Mapping[JobId, Expected]) -> Lived:
    """From the first goal to the last lag."""
    world = World(scenario)
    outside, loop = world.outside, asyncio.get_running_loop()
    watching = loop.create_task(outside.watch())
    happening = [
        *(
            loop.create_task(_at(job.at + REPEATED_S * n, partial(outside.send_job, job)))
            for job in scenario.jobs
            for n in range(job.times)
        ),
        *(loop.create_task(_at(each.at, partial(outside.send_poison, each))) for each in scenario.poison),
        *(loop.create_task(_at(each.at, partial(world.strike, each))) for each in scenario.incidents),
    ]

    happening += [
        loop.create_task(_at(job.at + job.cancelled_s, partial(outside.send_word, "cancel", job)))
        for job in scenario.jobs
        if job.cancelled_s
    ]
    people = [loop.create_task(outside.approve(job)) for job in scenario.jobs if job.approved_s]

    def all_answered() -> bool:
        sent = all(task.done() for task in happening)
        return sent and all(job.name in outside.answered for job in scenario.jobs)

    await asyncio.sleep(_faults_end(scenario))
    world.heal()
    await _until(all_answered, ANSWERED_WITHIN_S)
    await outside.send_job(FRESH)
    fresh = await _until(lambda: FRESH.name in outside.answered, FRESH_WITHIN_S)
    await asyncio.sleep(LATE_S)
    await _until(lambda: not world.lag() and not world.open_transactions(), CAUGHT_UP_WITHIN_S)
    evidence = world.evidence(answers, fresh_answered=fresh)
    for each in (watching, *people):
        each.cancel()
    world.end()
    return Lived(
        evidence=evidence,
        digest=_digest(evidence.records),
        recorded=world.tools.recorded,
        seconds=loop.time(),
        steps=world.steps,
    )


async def _at(seconds: float, do: Callable[[], Awaitable[None] | None]) -> None:
    """Do something so many seconds from now."""
    await asyncio.sleep(seconds)
    doing = do()
    if doing is not None:
        await doing


def _faults_end(scenario: Scenario) -> float:
    """Seconds from the start after which nothing goes wrong any more of what is planned."""
    ends = [incident.at + incident.seconds for incident in scenario.incidents]
    ends += [job.at + REPEATED_S * job.times for job in scenario.jobs]
    ends += [job.at + job.cancelled_s for job in scenario.jobs]
    ends += [poison.at for poison in scenario.poison]
    return max(ends, default=0.0) + LOOK_S


async def _until(happens: Callable[[], bool], within_s: float) -> bool:
    """Wait until *happens*; whether it did in time."""
    time = asyncio.get_running_loop().time
    end = time() + within_s
    while not happens():
        if time() >= end:
            return False
        await asyncio.sleep(LOOK_S)
    return True


def _digest(records: Mapping[str, Sequence[Record]]) -> str:
    digest = sha256()
    for topic in sorted(records):
        for record in records[topic]:
            digest.update(repr(record).encode())
    return digest.hexdigest()
