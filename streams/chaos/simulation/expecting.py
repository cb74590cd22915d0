"""What the answers must be: the same goals, one command after the other, without a log and without faults.

The rules of the core say which commands a job has, and the agents run them, each attempt to its end.
Nothing of the streams is in between, so nothing of theirs can be wrong here and there alike.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

import orjson

from agents.plain_attempt import PlainAttempt
from agents.ports import Crew, Done, GaveUp, PlanMade, PlanRefused, ToolCall
from streams.chaos.evidence import Expected
from streams.children import child_goal
from streams.core.commands import Answer, CallEnded, Command, Judge, MakeAnswer, MakePlan, RunSubTask
from streams.core.events import ApprovalGiven, Event, JobSubmitted, Planned, SubTaskFailed, SubTaskSucceeded
from streams.core.holding import waits_for_person
from streams.core.job import absorb
from streams.core.release import places, release
from streams.core.states import Job, New, Open
from streams.core.values import Inline, JobId, Json
from streams.fingerprinting import fingerprint
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


class _Attended(PlainAttempt):
    """An attempt with somebody to wait for: who approves all calls, and its child goals have answers."""

    def __init__(self, command: Command, crew: Crew) -> None:
        super().__init__(command.timeout_s, command.grant)
        self._command, self._crew = command, crew

    async def wait_outside(
        self,
        call: ToolCall,
        *,
        on: Literal["approval", "child"],  # noqa: ARG002 - the port's
        args: Json = None,  # noqa: ARG002 - the port's
        child: JobId | None = None,
    ) -> CallEnded:
        """Go on at once."""
        return CallEnded(call=call.id, outcome="approved", child=child)

    async def ask_child(self, call: ToolCall, goal: Mapping[str, Json]) -> CallEnded:
        """Work on it meanwhile."""
        child, value = child_goal(self._command, call, dict(goal))
        read = read_goal(goal_record(value), lanes=1)
        if isinstance(read, BadGoal):
            return CallEnded(call=call.id, outcome="rejected", child=child, reason=read.reason)
        made = await _answer(read, self._crew)
        return CallEnded(
            call=call.id, outcome=made.outcome, child=child, answer=made.answer, reason=made.reason
        )


async def answer_to(submitted: JobSubmitted, crew: Crew) -> Expected:
    """Fold the life of one job."""
    made = await _answer(submitted, crew)
    return Expected(outcome=made.outcome, answer=made.value if isinstance(made.answer, Inline) else None)


async def _answer(submitted: JobSubmitted, crew: Crew) -> Answer:
    """Fold the life of one job."""
    job: Job
    job, effects = absorb(New(), submitted)
    at = 0
    while isinstance(job, Open):
        orders: tuple[Command, ...] = ()
        if not waits_for_person(job):
            job, orders = release(job, places(job), at)
        events: list[Event] = [await perform(each, crew) for each in orders]
        for event in events or [ApprovalGiven(job=submitted.job)]:
            at += 1
            job, effects = absorb(job, replace(event, at=at, offset=at))
            for effect in effects:
                if isinstance(effect, Answer):
                    return effect
    raise AssertionError(f"{submitted.job} ended without an answer")


async def perform(command: Command, crew: Crew) -> AttemptEvent:
    """One attempt."""
    attempt = _Attended(command, crew)
    try:
        async with asyncio.timeout(command.timeout_s):
            return await _event(command, await _ended(command, attempt, crew))
    except TimeoutError:
        reason = f"no result within {command.timeout_s:g} s"  # as lanes and orchestrator say it
        return await _event(command, GaveUp(kind="timeout", reason=reason, final=False))


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


async def _event(command: Command, ended: PlanMade | PlanRefused | Done | GaveUp) -> AttemptEvent:
    job, task, number = command.job, command.task, command.attempt
    match ended:
        case PlanMade(plan=plan):
            return Planned(job=job, task=task, attempt=number, plan=plan)
        case Done(result=result, proposed=proposed):
            written = orjson.dumps(result)
            compared = isinstance(command, RunSubTask) and command.fingerprint
            return SubTaskSucceeded(
                job=job,
                task=task,
                attempt=number,
                result=Inline(value=orjson.loads(written)),
                size=len(written),
                fingerprint=await fingerprint(result) if compared else "",
                proposed=proposed,
                cites=ended.cites,
            )
        case PlanRefused(reasons=reasons):
            reason = "; ".join(reasons)
            return SubTaskFailed(
                job=job, task=task, attempt=number, kind="no_plan", reason=reason, final=True
            )
        case GaveUp(kind=kind, reason=reason, final=final):
            return SubTaskFailed(job=job, task=task, attempt=number, kind=kind, reason=reason, final=final)
