"""What the answers must be: the same goals, one command after the other, without a log and without faults.

The rules of the core say which commands a job has, and the agents run them, each attempt to its end.
Nothing of the streams is in between, so nothing of theirs can be wrong here and there alike.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

import orjson

from agents.plain_attempt import PlainAttempt
from agents.ports import Crew, Done, GaveUp, PlanMade, PlanRefused
from streams.chaos.evidence import Expected
from streams.core.commands import Answer, Command, Judge, MakeAnswer, MakePlan, RunSubTask
from streams.core.events import JobSubmitted, Planned, SubTaskFailed, SubTaskSucceeded
from streams.core.job import absorb
from streams.core.release import places, release
from streams.core.states import Job, New, Open
from streams.core.values import Inline, JobId, Json
from streams.log import Record
from streams.topics import GOALS
from streams.transcript import AttemptEvent
from streams.wire.goals import BadGoal, read_goal


async def expected(records: Iterable[Record], crew: Crew) -> dict[JobId, Expected]:
    """By job the answer to each of these records of ``goals``; one that names no job has none."""
    answers: dict[JobId, Expected] = {}
    for record in records:
        read = read_goal(record, lanes=1)
        job = read.job
        if job is None or job in answers:
            continue
        if isinstance(read, BadGoal):
            answers[job] = Expected(outcome="rejected", answer=None)
        else:
            answers[job] = await answer_to(read, crew)
    return answers


def goal_record(value: bytes) -> Record:
    """A record as it stands on ``goals``."""
    return Record(GOALS, 0, 0, 0, b"", value)


async def answer_to(submitted: JobSubmitted, crew: Crew) -> Expected:
    """Fold the life of one job."""
    job: Job
    job, _ = absorb(New(), submitted)
    at = 0
    while isinstance(job, Open):
        job, commands = release(job, places(job), at)
        for command in commands:
            event = await perform(command, crew)
            at += 1
            job, effects = absorb(job, replace(event, at=at, offset=at))
            for effect in effects:
                if isinstance(effect, Answer):
                    value = effect.value if isinstance(effect.answer, Inline) else None
                    return Expected(outcome=effect.outcome, answer=value)
    raise AssertionError(f"{submitted.job} ended without an answer")


async def perform(command: Command, crew: Crew) -> AttemptEvent:
    """One attempt."""
    attempt = PlainAttempt(command.timeout_s, command.grant)
    try:
        async with asyncio.timeout(command.timeout_s):
            return _event(command, await _ended(command, attempt, crew))
    except TimeoutError:
        reason = f"no result within {command.timeout_s:g} s"  # as lanes and orchestrator say it
        return _event(command, GaveUp(kind="timeout", reason=reason, final=False))


async def _ended(
    command: Command, attempt: PlainAttempt, crew: Crew
) -> PlanMade | PlanRefused | Done | GaveUp:
    match command:
        case MakePlan():
            return await crew.planner.plan(command, attempt)
        case RunSubTask():
            return await crew.sub_agent.run(command, attempt)
        case MakeAnswer():
            return await crew.synthesiser.answer(command, attempt)
        case Judge():
            return await crew.judge.judge(command, attempt)


def _event(command: Command, ended: PlanMade | PlanRefused | Done | GaveUp) -> AttemptEvent:
    job, task, number = command.job, command.task, command.attempt
    match ended:
        case PlanMade(plan=plan):
            return Planned(job=job, task=task, attempt=number, plan=plan)
        case Done(result=result, proposed=proposed):
            as_read: Json = orjson.loads(orjson.dumps(result))
            return SubTaskSucceeded(
                job=job, task=task, attempt=number, result=Inline(value=as_read), proposed=proposed
            )
        case PlanRefused(reasons=reasons):
            reason = "; ".join(reasons)
            return SubTaskFailed(
                job=job, task=task, attempt=number, kind="no_plan", reason=reason, final=True
            )
        case GaveUp(kind=kind, reason=reason, final=final):
            return SubTaskFailed(job=job, task=task, attempt=number, kind=kind, reason=reason, final=final)
