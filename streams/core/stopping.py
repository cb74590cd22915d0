"""Stopping: attempts whose results nobody needs any more are stopped at their lanes."""

from collections.abc import Iterable

from streams.core.commands import Effect, StopAttempt
from streams.core.money import charge, lose, lost_attempts
from streams.core.moves import put
from streams.core.states import (
    Backoff,
    Failed,
    Hedged,
    Open,
    Ready,
    Released,
    Running,
    Skipped,
    Stopped,
    SubTaskState,
    Succeeded,
    Suspended,
    Waiting,
)
from streams.core.telling import orphaned
from streams.core.values import ANSWER, PLAN, TaskId


def stops(job: Open, reason: str, tasks: Iterable[TaskId]) -> tuple[StopAttempt, ...]:
    """What stops the attempts of these sub-tasks that are out.

    A replay, which releases nothing, sees fewer of them; they change no job.
    """
    found = []
    for task in tasks:
        state = job.states[task]
        if isinstance(state, Released | Running):
            found.append(
                StopAttempt(
                    job=job.submitted.job,
                    task=task,
                    attempt=state.attempt,
                    ordinal=ordinal_of(job, task),
                    reason=reason,
                )
            )
    return tuple(found)


def leave(job: Open, reason: str, tasks: Iterable[TaskId] | None = None) -> tuple[Open, tuple[Effect, ...]]:
    """Stop all that has not ended: nobody needs its result any more, and the job goes on without it.

    What was granted to an attempt that is out counts as spent until its end is told. A child job that one
    waits for is cancelled.

    Args:
        reason: Why, for a person.
        tasks: Of these; None: of all.
    """
    names = tuple(job.states if tasks is None else tasks)
    effects: list[Effect] = [*stops(job, reason, names)]
    changes: dict[TaskId, SubTaskState] = {}
    for task in names:
        match state := job.states[task]:
            case Succeeded() | Failed() | Skipped() | Stopped():
                continue
            case Waiting():
                changes[task] = Stopped(attempt=0, tried=0, reason=reason, told=True)
            case Backoff(attempt=attempt):
                changes[task] = Stopped(attempt=attempt, tried=attempt - 1, reason=reason, told=True)
            case Hedged(attempt=attempt):
                changes[task] = Stopped(attempt=attempt, tried=attempt, reason=reason, told=True)
            case Ready(attempt=attempt) | Released(attempt=attempt):
                lost = state.grant is not None or (task, attempt) in lost_attempts(job)
                job = lose(job, task, state) if lost else job
                changes[task] = Stopped(attempt=attempt, tried=attempt - 1, reason=reason, told=lost)
            case Running(attempt=attempt):
                lost = state.grant is not None or (task, attempt) in lost_attempts(job)
                job = lose(job, task, state) if lost else job
                changes[task] = Stopped(attempt=attempt, tried=attempt, reason=reason, told=lost)
            case Suspended(attempt=attempt, so_far=so_far):
                job = charge(job, task, so_far)
                effects += orphaned(job, state, f"goes on without it: {reason}")
                changes[task] = Stopped(attempt=attempt, tried=attempt, reason=reason, told=True)
    return put(job, changes), tuple(effects)


def ordinal_of(job: Open, task: TaskId) -> int:
    """The place of a sub-task in its job, which with job and attempt names the lane."""
    if task == PLAN:
        return 0
    if task == ANSWER:
        return len(job.nodes) + 1
    return job.steps[task].ordinal if task in job.steps else job.nodes[task].ordinal
