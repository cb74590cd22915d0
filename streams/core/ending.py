"""How a job ends: its outcome, its answer, and the marker that stays."""

from typing import TypeAlias

from streams.core.commands import Answer, Effect, Outcome, TaskReport
from streams.core.events import Event, Planned, SubTaskFailed, SubTaskSucceeded
from streams.core.money import spent
from streams.core.results import ended, joined
from streams.core.states import (
    Backoff,
    Failed,
    Finished,
    Hedged,
    Job,
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
from streams.core.stopping import stops
from streams.core.telling import told
from streams.core.values import ANSWER, TaskId, Value

Folded: TypeAlias = tuple[Job, tuple[Effect, ...]]
"""A job after an event, and what the event newly asks of the world."""


def finish(
    job: Open, event: Event, *, rule: str, reason: str = "", failed: bool = False
) -> tuple[Finished, tuple[Effect, ...]]:
    """End the job by *rule* with the answer that its results allow.

    The synthesis where there is one, else the only result, else all results by sub-task; ``partial``
    as soon as one sub-task has no result, ``failed`` with fewer successes than the goal's join rule
    asks for, or where *failed* says that results do not matter.
    """
    submitted = job.submitted
    total = len(job.nodes)
    outcome: Outcome
    answer: Value | None
    if failed or job.succeeded == 0 or job.succeeded / total < submitted.goal.join.min_success_ratio:
        outcome, answer = "failed", None
    else:
        outcome = "succeeded" if job.succeeded == total and rule == "all_done" else "partial"
        # Of a plan with one sub-task that one is the answer: enough succeeded, so it did.
        last = job.states.get(ANSWER if total > 1 else next(iter(job.nodes)))
        answer = last.result if isinstance(last, Succeeded) else joined(job)
    if outcome != "succeeded" and not reason:
        reason = f"{job.succeeded} of {total} sub-tasks succeeded"
    made = Answer(
        job=submitted.job,
        id=submitted.job.partition("/")[2],
        tenant=submitted.goal.tenant,
        outcome=outcome,
        rule=rule,
        reason=reason,
        answer=answer,
        subtasks=tuple(report(name, job.states[name]) for name in job.nodes),
        usage=spent(job),
        submitted_at=submitted.at,
        answered_at=event.at,
        revision=job.revision.number,
        source=submitted.source,
        headers=submitted.headers,
    )
    marker = Finished(
        digest=submitted.goal.digest,
        outcome=outcome,
        offset=event.offset,
        at=event.at,
        revision=job.revision.number,
    )
    unneeded = (task for task in job.states if not is_end_of(event, task, job.states[task]))
    return marker, (made, *stops(job, f"the job has ended by the rule {rule}", unneeded), *told(job, made))


def is_end_of(event: Event, task: TaskId, state: SubTaskState) -> bool:
    """Whether the event says that the sub-task's present attempt has come to its end by itself."""
    return (
        isinstance(event, Planned | SubTaskSucceeded | SubTaskFailed)
        and event.task == task
        and event.attempt == getattr(state, "attempt", 0)
    )


def report(task: str, state: SubTaskState) -> TaskReport:
    """A sub-task's line of the answer."""
    outcome, reason = ended(state)
    return TaskReport(task=task, outcome=outcome, attempts=begun(state), reason=reason)


def begun(state: SubTaskState) -> int:
    """Attempts that a lane began, or should have."""
    match state:
        case Waiting() | Skipped():
            return 0
        case Ready(attempt=following) | Backoff(attempt=following) | Released(attempt=following):
            return following - 1
        case Stopped(tried=tried):
            return tried
        case (
            Running(attempt=attempt)
            | Suspended(attempt=attempt)
            | Hedged(attempt=attempt)
            | Succeeded(attempt=attempt)
            | Failed(attempt=attempt)
        ):
            return attempt
