"""Waiting for the answers of goals, with their progress and the run report."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

import typer

from streams.cli.exits import Exit
from streams.cli.live import LiveJobs
from streams.cli.output import console, print_answer
from streams.cli.report_view import print_report
from streams.cli.submit import send_all
from streams.client import NotAnswered, Swarm
from streams.core.commands import Answer
from streams.core.events import Event, JobSubmitted
from streams.core.values import JobId
from streams.replay.simulated import was_simulated
from streams.report import report

LAST_EVENTS_S: Final = 2.0
"""Seconds that the last events may come after the answers."""


async def wait_for(
    swarm: Swarm, goals: list[dict[str, Any]], jobs: list[JobId], *, within_s: float, as_json: bool
) -> None:
    """Send the goals and print their answers; progress and report go to stderr.

    Raises:
        typer.Exit: with the code that the answers ask for.
    """
    live = LiveJobs(jobs, console(stderr=True))
    async with swarm.watching() as events:
        following = asyncio.create_task(_feed(live, events))
        try:
            with live:
                await send_all(swarm, goals)
                answers = await asyncio.gather(
                    *(_answer(swarm, job, within_s, as_json=as_json) for job in jobs)
                )
                with suppress(TimeoutError):
                    async with asyncio.timeout(LAST_EVENTS_S if all(answers) else 0):
                        await live.finished.wait()
        finally:
            following.cancel()
            await asyncio.wait([following])
    late = [job for job, answer in zip(jobs, answers, strict=True) if answer is None]
    if not as_json:
        for answer in filter(None, answers):
            print_answer(answer, as_json=False)
    first = next((e for events in live.events.values() for e in events if isinstance(e, JobSubmitted)), None)
    simulated = first is not None and await was_simulated(swarm.log, first)
    print_report(report(live.events, simulated=simulated), as_json=as_json)
    for job in late:
        typer.secho(f"anabranch: {NotAnswered(job, within_s)}", fg=typer.colors.RED, err=True)
    if late:
        raise typer.Exit(Exit.LATE)
    if any(answer and answer.outcome != "succeeded" for answer in answers):
        raise typer.Exit(Exit.POOR)


async def _answer(swarm: Swarm, job: JobId, within_s: float, *, as_json: bool) -> Answer | None:
    try:
        answer = await swarm.wait(job, within_s=within_s)
    except NotAnswered:
        return None
    if as_json:
        print_answer(answer, as_json=True)
    return answer


async def _feed(live: LiveJobs, events: AsyncIterator[Event]) -> None:
    async for event in events:
        live.feed(event)
