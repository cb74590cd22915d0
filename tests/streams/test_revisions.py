"""Readers of a job that was opened again: the newest answer for who waits, each for who looks back."""

import asyncio
from contextlib import aclosing

import pytest

from streams.client import NotAnswered, Swarm
from streams.core.events import JobReopened, JobSubmitted
from streams.core.states import Finished, Open
from streams.log import LogUnavailable
from streams.memory_log import Faults
from streams.memory_log.virtual_time import run
from streams.replay.files import read_lines, write_lines
from streams.replay.folding import replay
from streams.replay.recording import record_job
from streams.report import report
from streams.wire.events import read_event
from tests.streams.redriving_in_memory import RedrivenSwarm
from tests.streams.scripted import Script
from tests.streams.test_redriving import GOAL, TWO, failed

JOB = "default/g"


def test_whoever_waits_gets_the_newest_answer_or_the_next_one() -> None:
    """The one that is there, without asking for more; the next revision for whoever redrove."""

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}))
        await failed(swarm, "a")
        async with Swarm(log=swarm.cluster.connect("client")) as client:
            first = await client.wait(JOB)
            with pytest.raises(NotAnswered):
                await client.wait(JOB, revision=2, within_s=5)
            waiting = asyncio.create_task(client.wait(JOB, revision=2))
            coming = client.answers(since=0)
            assert await anext(coming) == first
            await asyncio.sleep(1)
            await swarm.redrive()
            second = await waiting
            assert (first.revision, first.outcome) == (1, "failed")
            assert (second.revision, second.outcome) == (2, "succeeded")
            assert await anext(coming) == second
            assert await client.wait(JOB) == second
            assert await client.wait(JOB, revision=2) == second
            assert await client.published() == (second,)
            assert await client.answer("two", id="g", limits=GOAL["limits"], join=GOAL["join"]) == second  # type: ignore[arg-type]

    run(story())


def test_events_of_a_job_go_on_where_it_was_opened_again() -> None:
    """Up to its last end; an end that nothing follows yet is the last."""

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}))
        await failed(swarm, "a")
        async with Swarm(log=swarm.cluster.connect("client")) as client:
            early = [event async for event in client.events(JOB)]
            await swarm.redrive()
            async with aclosing(client.events(JOB)) as events:
                late = [event async for event in events]
        assert late[: len(early)] == early
        assert isinstance(late[len(early)], JobReopened)
        assert getattr(late[-1], "task", "") == "answer"

    run(story())


def test_a_replay_explains_each_answer() -> None:
    """From the log and from a file: what was kept, what ran again, and which answer that led to."""

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}))
        await failed(swarm, "a")
        log = swarm.cluster.connect("reader")
        await asyncio.sleep(1_000)  # long after the job's end
        await swarm.redrive()
        async with asyncio.timeout(60):
            while not isinstance((told := replay(await record_job(log, JOB))).job_after, Open):
                await asyncio.sleep(0.05)
        assert [verdict.agrees for verdict in told.verdicts] == [True]
        await asyncio.sleep(60)
        recording = await record_job(log, JOB)
        for made in (recording, read_lines(write_lines(recording))):
            told = replay(made)
            assert [(v.revision, v.agrees, v.published is not None) for v in told.verdicts] == [
                (1, True, True),
                (2, True, True),
            ]
            assert told.agrees
            assert told.answer is not None
            assert (told.answer.revision, told.answer.outcome) == (2, "succeeded")
            assert isinstance(told.job_after, Finished)
        orders = [order.command for step in told.steps for order in step.orders]
        # The redriven command is none of the fold's: it was given before, and is on its lane again.
        assert [f"{each.task}/{each.attempt}" for each in orders] == [
            *("plan/1", "a/1", "b/1"),
            *("c/1", "answer/1"),
        ]
        events = [read_event(record) for record in recording.events]
        told_of = report({JOB: events})
        assert (told_of.jobs.succeeded, told_of.subtasks.succeeded, told_of.usage.calls) == (1, 3, 3)

    run(story())


def test_a_replay_misses_no_answer_of_a_job() -> None:
    """One that was not published, and one that no event leads to, are found in any revision."""

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}))
        await failed(swarm, "a")
        await swarm.redrive()
        await asyncio.sleep(60)
        recording = await record_job(swarm.cluster.connect("reader"), JOB)
        first, second = recording.answers
        for answers in ((first,), (second,), ()):
            assert not replay(recording.__class__(job=JOB, events=recording.events, answers=answers)).agrees
        before = [r for r in recording.events if isinstance(read_event(r), JobSubmitted)]
        assert not replay(recording.__class__(job=JOB, events=tuple(before), answers=(first, second))).agrees

    run(story())


@pytest.mark.parametrize("seed", range(6))
def test_workers_that_die_answer_each_revision_once(seed: int) -> None:
    """Killed while the job is opened again, on a log that loses replies: two answers, no result lost."""

    async def story() -> None:
        faults = Faults(delay_s=0.05, lost_replies=0.02, unknown_commits=0.05)
        swarm = RedrivenSwarm(script=Script({"two": TWO}), seed=seed, faults=faults)
        old = swarm.old_worker("a")
        await swarm.submit_surely(GOAL)
        while not await swarm.revisions():
            await asyncio.sleep(5)
        await old.close()
        worker = swarm.worker()
        chosen = await swarm.letters()
        while True:
            try:
                await swarm.redrive(chosen)
            except LogUnavailable:
                continue
            break
        await asyncio.sleep(0.1 * seed)
        worker.kill()
        swarm.worker()
        while len((await swarm.revisions())["g"]) == 1:
            await asyncio.sleep(5)
        await asyncio.sleep(60)
        assert [answer.outcome for answer in (await swarm.revisions())["g"]] == ["failed", "succeeded"]
        assert ("default/g", "b", 2) not in swarm.script.ran

    run(story())
