"""A run of the demo: goals in, events watched, one answer each out."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

from streams.client import Swarm
from streams.core.commands import Answer
from streams.core.events import Event
from streams.demo.goals import DemoGoal
from streams.demo.worker import Worker

ANSWER_S: Final = 1_800.0
"""Seconds until all goals must be answered."""


class Late(Exception):
    """Not all goals were answered in time; the message holds the end of the worker's log."""


class Watcher(Protocol):
    """Who wants to see the events of a run.

    Attributes:
        finished: It has seen the last event of every job.
    """

    finished: asyncio.Event

    def feed(self, event: Event) -> None:
        """Take the next event."""


async def answer_all(
    swarm: Swarm,
    goals: Sequence[DemoGoal],
    worker: Worker,
    watcher: Watcher,
    *,
    within_s: float = ANSWER_S,
) -> tuple[Answer, ...]:
    """Submit the goals and wait for their answers, while *watcher* is shown all that happens.

    Raises:
        WorkerDied: the worker ended meanwhile.
        Late: there were not all answers in *within_s* seconds.
        LogUnavailable, RecordRefused: as of the client.
    """
    async with swarm.watching() as events:
        following = asyncio.create_task(_follow(events, watcher))
        answering = asyncio.create_task(_answers(swarm, goals, watcher))
        watch = {asyncio.create_task(worker.died()), following}
        try:
            async with asyncio.timeout(within_s):
                done, _ = await asyncio.wait({answering, *watch}, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise Late(f"the goals were not all answered within {within_s:g} s.{worker.told()}") from None
        finally:
            for task in {answering, *watch}:
                task.cancel()
            await asyncio.wait({answering, *watch})
        for task in done - {answering}:
            task.result()
        return answering.result()


async def _answers(swarm: Swarm, goals: Sequence[DemoGoal], watcher: Watcher) -> tuple[Answer, ...]:
    for goal in goals:
        await swarm.submit(goal.text, **goal.options)
    await watcher.finished.wait()
    return tuple([await swarm.wait(goal.job) for goal in goals])


async def _follow(events: AsyncIterator[Event], watcher: Watcher) -> None:
    async for event in events:
        watcher.feed(event)
