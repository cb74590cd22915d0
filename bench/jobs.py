"""Jobs of known shapes, and what they took: at the client, and on the log's own clock."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bench.stage import Stage
from streams import Swarm
from streams.core.commands import Answer
from streams.core.events import Event, Planned, SubTaskSucceeded
from streams.core.values import ANSWER, PLAN
from streams.wire.goal_writing import GoalOptions

WITHIN_S = 120.0
NOTHING = "Do nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Some jobs, measured.

    Attributes:
        wall_s: Seconds from the first goal sent to the last answer received.
        work_s: Seconds from the first sub-task's start to the last one's end, by the log's clock;
            planning before and synthesis after are not in it.
        steady_s: Of these, the seconds in which the middle eight tenths of the results came: before,
            calls begin side by side, and after, ever fewer are in flight.
        cpu_s: CPU seconds of the worker.
        subtasks: Sub-tasks that succeeded.
    """

    wall_s: float
    work_s: float
    steady_s: float
    cpu_s: float
    subtasks: int


@asynccontextmanager
async def client(stage: Stage) -> AsyncIterator[Swarm]:
    """A client whose system has answered once, so that every part is warm."""
    async with Swarm(stage.settings.brokers, prefix=stage.settings.prefix) as swarm:
        await ask(swarm, NOTHING, noops=20, count=2)
        await ask(swarm, "[[plan 20]]", count=4)
        yield swarm


async def ask(swarm: Swarm, goal: str, *, noops: int = 0, count: int = 1) -> list[Answer]:
    """The answers to *count* jobs of one shape, sent at once.

    Args:
        noops: The goal brings its plan, of so many direct calls of tool ``noop``; 0: it is planned.

    Raises:
        RuntimeError: one of them did not succeed; its figures would mean nothing.
    """
    options: GoalOptions = {"limits": {"concurrency": 100}}
    if noops:
        # Whoever is offered a tool calls it, and asks the model again: only direct calls get theirs.
        options["tools"] = ["noop"]
        options["plan"] = [
            {"id": f"t{n}", "tool": "noop", "args": {}, "dep": []} for n in range(1, noops + 1)
        ]
    answers = await asyncio.gather(*(swarm.answer(goal, within_s=WITHIN_S, **options) for _ in range(count)))
    for answer in answers:
        if answer.outcome != "succeeded":
            raise RuntimeError(f"{answer.job} {answer.outcome}: {answer.reason}")
    return answers


async def measure(stage: Stage, swarm: Swarm, goal: str, *, count: int = 1) -> Run:
    """Ask, and account what it took."""
    cpu, began = stage.cpu_s(), time.perf_counter()
    answers = await ask(swarm, goal, count=count)
    wall = time.perf_counter() - began
    cpu = stage.cpu_s() - cpu
    starts, ends = [], []
    for answer in answers:
        events = await events_of(swarm, answer)
        starts += [
            start for event in events if is_work(event, SubTaskSucceeded) and (start := started(event))
        ]
        ends += [event.at for event in events if is_work(event, SubTaskSucceeded)]
    ends.sort()
    return Run(
        wall_s=wall,
        work_s=(ends[-1] - min(starts)) / 1000,
        steady_s=(ends[len(ends) * 9 // 10 - 1] - ends[len(ends) // 10 - 1]) / 1000,
        cpu_s=cpu,
        subtasks=len(ends),
    )


async def events_of(swarm: Swarm, answer: Answer) -> list[Event]:
    """The events of an answered job."""
    return [event async for event in swarm.events(answer.job, values=False)]


def is_work(event: Event, kind: type[Event]) -> bool:
    """Whether it is an event of this kind of a sub-task of the plan."""
    return isinstance(event, kind) and getattr(event, "task", PLAN) not in (PLAN, ANSWER)


def started(event: Event) -> int:
    """When the sub-task that ended began, by the log's clock less the time it ran."""
    assert isinstance(event, Planned | SubTaskSucceeded)
    return event.at - event.ran_ms


def steps(events: Sequence[Event]) -> list[float]:
    """Milliseconds from each result to the start of what it unblocked, in a chain."""
    ends = [event for event in events if isinstance(event, Planned | SubTaskSucceeded)]
    return [float(started(after) - before.at) for before, after in itertools.pairwise(ends)]
