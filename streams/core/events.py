"""What happened to a job: the records of ``job-events``, the source of truth.

Every event has two fields that the reader sets from the record and that are not in its JSON:
``at``, the broker's append time in milliseconds since 1970, the only clock the fold knows; and
``offset``, the event's place on its partition.
"""

from dataclasses import dataclass
from typing import TypeAlias, get_args

from streams.core.goal import Goal, Header, Source
from streams.core.plan import Plan
from streams.core.values import NO_USAGE, JobId, TaskId, Usage, Value

UNREADABLE = "unreadable"
"""The kind of failure of an attempt whose command its lane could not read; nothing of it was run."""

BUDGET = "budget"
"""The kind of failure of an attempt that needed more than its grant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubmitted:
    """Intake accepted a goal.

    Attributes:
        source: Where the goal's record stands, for whoever asks where this job came from.
        lanes: Partitions of the system; fixed for its life, and kept here so that the job's
            commands and claim checks follow from its state alone.
        headers: The goal record's headers, which come back on the answer.
        plan: The plan that the goal brought, admitted; empty where a planner is to make one.
    """

    job: JobId
    goal: Goal
    source: Source
    lanes: int = 8
    headers: tuple[Header, ...] = ()
    plan: Plan = ()
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalRejected:
    """Intake could not accept a goal whose id it could read; its record is a dead letter too."""

    job: JobId
    reason: str
    source: Source
    headers: tuple[Header, ...] = ()
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class SubTaskStarted:
    """A lane began an attempt. One from another run than before resets its clock.

    A lane sends it only for an attempt that goes on for a moment: what ends at once says so itself.

    Attributes:
        attempt: Counts from 1.
        run: The worker process's own name for its life, new at every start.
    """

    job: JobId
    task: TaskId
    attempt: int
    run: str
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The planner's plan, admitted, as the result of sub-task ``plan``.

    Attributes:
        ran_ms: Milliseconds the attempt ran, by the lane's clock.
    """

    job: JobId
    task: TaskId
    attempt: int
    plan: Plan
    usage: Usage = NO_USAGE
    ran_ms: int = 0
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class SubTaskSucceeded:
    """A sub-agent has its result.

    Attributes:
        size: Bytes of the result's JSON.
        ran_ms: Milliseconds the attempt ran, by the lane's clock.
    """

    job: JobId
    task: TaskId
    attempt: int
    result: Value
    size: int = 0
    usage: Usage = NO_USAGE
    ran_ms: int = 0
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class SubTaskFailed:
    """A sub-agent gave up on one attempt.

    Attributes:
        kind: The kind of error, one word, such as ``timeout`` or ``content_filter``.
        reason: What happened, for a person.
        final: No further attempt can help.
        retry_in: Seconds to wait before the next attempt, jitter included, chosen by the lane.
        ran_ms: Milliseconds the attempt ran, by the lane's clock.
    """

    job: JobId
    task: TaskId
    attempt: int
    kind: str
    reason: str
    final: bool = False
    retry_in: float = 0.0
    usage: Usage = NO_USAGE
    ran_ms: int = 0
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOverdue:
    """A timer of the orchestrator: an attempt neither started nor ended in its time.

    Attributes:
        retry_in: As of :class:`SubTaskFailed`, chosen by the orchestrator.
    """

    job: JobId
    task: TaskId
    attempt: int
    retry_in: float = 0.0
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDue:
    """A timer of the orchestrator: the wait before an attempt is over."""

    job: JobId
    task: TaskId
    attempt: int
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlinePassed:
    """A timer of the orchestrator: the job's time is over."""

    job: JobId
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBroken:
    """An event of this job could not be handled and is a dead letter; the job ends with the reason.

    Attributes:
        revision: Of the answer that the job was on its way to; a later one is not broken by it.
    """

    job: JobId
    reason: str
    revision: int = 1
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A result that a job has already when it is opened again; as of :class:`states.Succeeded`."""

    task: TaskId
    attempt: int
    result: Value
    size: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The number of a sub-task's last attempt before its job was opened again."""

    task: TaskId
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReopened:
    """Somebody redrove a dead letter of a job that ended without success: it goes on from what it has.

    Of a finished job only a marker stays, so the event brings all that the job needs, read from its log.

    Attributes:
        revision: Of the answer that follows. The event counts only where the last one is its predecessor.
        submitted: The event that opened the job, with its time and place; a plan stands in *plan*.
        plan: The plan, empty where there never was one.
        kept: Results that the job has; every other sub-task runs again.
        tried: How often those were tried; their attempts count on from there.
        redriven: Sub-tasks whose last command no lane could read, and which is on its lane again: what
            that attempt brings counts.
        spent: What the job has spent so far; its budget goes on, too.
        by: Who asked for it.
    """

    job: JobId
    revision: int
    submitted: JobSubmitted
    plan: Plan = ()
    kept: tuple[Kept, ...] = ()
    tried: tuple[Tried, ...] = ()
    redriven: tuple[TaskId, ...] = ()
    spent: Usage = NO_USAGE
    by: str = ""
    at: int = 0
    offset: int = -1


SubTaskEvent: TypeAlias = (
    SubTaskStarted | Planned | SubTaskSucceeded | SubTaskFailed | AttemptOverdue | RetryDue
)
Event: TypeAlias = JobSubmitted | GoalRejected | SubTaskEvent | DeadlinePassed | JobBroken | JobReopened
EVENT_TYPES: tuple[type[Event], ...] = get_args(Event)
