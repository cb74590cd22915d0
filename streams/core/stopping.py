"""Stopping: attempts whose results nobody needs any more are stopped at their lanes."""

from collections.abc import Iterable

from streams.core.commands import StopAttempt
from streams.core.states import Open, Released, Running
from streams.core.values import ANSWER, PLAN, TaskId


def stops(job: Open, reason: str, tasks: Iterable[TaskId] | None = None) -> tuple[StopAttempt, ...]:
    """What stops the attempts that are out.

    A replay, which releases nothing, sees fewer of them; they change no job.

    Args:
        tasks: Of these sub-tasks; None: of all.
    """
    found = []
    for task in job.states if tasks is None else tasks:
        state = job.states[task]
        if isinstance(state, Released | Running):
            found.append(
                StopAttempt(
                    job=job.submitted.job,
                    task=task,
                    attempt=state.attempt,
                    ordinal=ordinal_of(job, task),
                    lanes=job.submitted.lanes,
                    reason=reason,
                )
            )
    return tuple(found)


def ordinal_of(job: Open, task: TaskId) -> int:
    """The place of a sub-task in its job, which with job and attempt names the lane."""
    if task == PLAN:
        return 0
    if task == ANSWER:
        return len(job.nodes) + 1
    return job.steps[task].ordinal if task in job.steps else job.nodes[task].ordinal
