"""What becomes due when: the timers of a job, derived from its state."""

from typing import TypeAlias

from streams.core.events import (
    AttemptOverdue,
    DeadlinePassed,
    MoneyAsked,
    PlaceAsked,
    PlaceGiven,
    RetryDue,
)
from streams.core.seconds import seconds_of
from streams.core.states import Backoff, Open, Released, Running, SubTaskState
from streams.core.values import JobId, TaskId

Timer: TypeAlias = AttemptOverdue | RetryDue | DeadlinePassed | PlaceAsked | MoneyAsked | PlaceGiven

AGAIN_MS, AGAIN_AT_LAST_MS = 4_000, 300_000
"""A job that waits for its account asks again after so many milliseconds, then when it has waited twice as
long, and so on, up to the longest: its word or the answer may be lost."""

AGAIN_EACH_MS = 50
"""Milliseconds for each job of a partition that waits so: however many do, they ask 20 times a second."""


def again_at(since: int, now: int, waiting: int) -> int:
    """When a job that waits for its account since *since* asks again, milliseconds of broker time.

    Args:
        waiting: How many jobs of the partition wait so.
    """
    return now + max(AGAIN_MS, min(now - since, AGAIN_AT_LAST_MS), waiting * AGAIN_EACH_MS)


def deadline(job: Open) -> int | None:
    """When the job's time is over, milliseconds of broker time; None without a deadline.

    A job that was opened again has its time once more.
    """
    seconds = job.submitted.goal.deadline_s
    began = job.revision.opened_at or job.submitted.at
    return None if seconds is None else began + int(seconds * 1000)


def due_at(job: Open, task: TaskId, state: SubTaskState, *, grace_ms: int, ahead: float = 0.0) -> int | None:
    """When a sub-task in this state needs a timer, milliseconds of broker time.

    Args:
        grace_ms: Milliseconds to wait for the lane's own word on a late attempt.
        ahead: Attempts that may run before a released one, one after the other, in all lanes at once.
    """
    limits = job.submitted.goal.limits
    match state:
        case Running(since=since):
            return since + int(seconds_of(job, task) * 1000) + grace_ms
        case Released(at=at):
            return at + int((limits.start_timeout_s + ahead * limits.longest_s) * 1000)
        case Backoff(until=until):
            return until
        case _:
            return None


def timer(job: JobId, task: TaskId, state: SubTaskState, *, retry_in: float) -> Timer | None:
    """The event that a due sub-task in this state needs, or None where nothing is due.

    Args:
        retry_in: Seconds before the attempt after an overdue one, jitter included.
    """
    match state:
        case Running(attempt=attempt, resume=resume) | Released(attempt=attempt, resume=resume):
            number = 0 if resume is None else resume.number
            return AttemptOverdue(job=job, task=task, attempt=attempt, retry_in=retry_in, number=number)
        case Backoff(attempt=attempt):
            return RetryDue(job=job, task=task, attempt=attempt)
        case _:
            return None
