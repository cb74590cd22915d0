"""What happened to a job: the records of ``job-events``, the source of truth.

Every event has two fields that the reader sets from the record and that are not in its JSON:
``at``, the broker's append time in milliseconds since 1970, the only clock the fold knows; and
``offset``, the event's place on its partition.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from streams.core.goal import Approval, Goal, Header, Source
from streams.core.plan import Plan
from streams.core.values import NO_USAGE, Grant, JobId, Json, TaskId, Usage, Value

UNREADABLE = "unreadable"
"""The kind of failure of an attempt whose command its lane could not read; nothing of it was run."""

BUDGET = "budget"
"""The kind of failure of an attempt that needed more than its grant."""

STOPPED = "stopped"
"""The kind of failure of an attempt that was stopped, since nobody needs its result any more."""


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
    """Intake could not accept a goal whose id it could read; its record is a dead letter too.

    Attributes:
        rule: ``rejected``, or ``gate`` where the rules of its tenant's gate refuse it.
    """

    job: JobId
    reason: str
    source: Source
    headers: tuple[Header, ...] = ()
    rule: str = "rejected"
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class SubTaskStarted:
    """A lane began an attempt. One from another run than before resets its clock.

    A lane sends it only for an attempt that goes on for a moment: what ends at once says so itself.

    Attributes:
        attempt: Counts from 1.
        run: The worker process's own name for its life, new at every start.
        number: How often the attempt was suspended before.
    """

    job: JobId
    task: TaskId
    attempt: int
    run: str
    number: int = 0
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
        fingerprint: What the fold compares results by, made by the lane where the command asked for it:
            see :mod:`streams.core.fingerprints`. Empty: none.
        proposed: Further sub-tasks that the sub-agent proposes.
        cites: Sub-tasks that an answer names as its sources.
    """

    job: JobId
    task: TaskId
    attempt: int
    result: Value
    size: int = 0
    usage: Usage = NO_USAGE
    ran_ms: int = 0
    fingerprint: str = ""
    proposed: Plan = ()
    cites: tuple[TaskId, ...] = ()
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
        number: As of :class:`SubTaskStarted`: the time before it was suspended is over for good.
    """

    job: JobId
    task: TaskId
    attempt: int
    retry_in: float = 0.0
    number: int = 0
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
    fingerprint: str = ""


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
        heard: Where the records stand by which people said what it has heard: told again they count no more.
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
    heard: tuple[Source, ...] = ()
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class HedgeDue:
    """A timer of the orchestrator: an attempt runs longer than nearly all others of its kind.

    Attributes:
        after_ms: Milliseconds after which attempts of its kind are hedged now, as the orchestrator learned.
    """

    job: JobId
    task: TaskId
    attempt: int
    after_ms: int
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class SubTaskSuspended:
    """An attempt waits for a person or for a child job, without slot and place; it goes on from its journal.

    Attributes:
        number: How often it was suspended, this time among them.
        on: What it waits for.
        call: The id of the tool call that waits.
        tool: The tool's name, for a person.
        args: Its arguments, for a person.
        child: The job that was submitted, where *on* is ``child``.
        journal: Offsets of all of the attempt's calls on its partition of ``transcripts`` so far.
        so_far: What the attempt has spent; its end tells all of it once more.
        ran_ms: Milliseconds the attempt ran since it last began.
    """

    job: JobId
    task: TaskId
    attempt: int
    on: Literal["approval", "child"]
    call: str
    tool: str = ""
    args: Json = None
    child: JobId | None = None
    journal: tuple[int, ...] = ()
    number: int = 1
    so_far: Usage = NO_USAGE
    ran_ms: int = 0
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildAnswered:
    """A child job has its answer, for the attempt of its parent that waits for it.

    Attributes:
        call: The tool call that waits.
        answer: The child's answer, None where there is none.
        size: Bytes of its JSON, as far as that is known.
        reason: Why there is none, or not a whole one.
    """

    job: JobId
    task: TaskId
    attempt: int
    call: str
    child: JobId
    outcome: str
    answer: Value | None = None
    size: int = 0
    reason: str = ""
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteWritten:
    """A sub-agent wrote one of its job's shared notes.

    Attributes:
        call: The id of the tool call that wrote it: the same call writes once.
        topic: What it is about; each topic has versions of its own.
        base: The version that the writer had seen; 0: none.
    """

    job: JobId
    task: TaskId
    attempt: int
    call: str
    topic: str
    value: Value
    base: int = 0
    size: int = 0
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalGiven:
    """A person lets a job go on that waits for them.

    Attributes:
        what: Which of the things that wait; None: all.
        task: The sub-task whose tool call waits; None: all.
        by: Who says so.
        source: Where the record stands that says so: told twice it counts once, whatever waits by then.
    """

    job: JobId
    what: Approval | None = None
    task: TaskId | None = None
    by: str = ""
    reason: str = ""
    source: Source | None = None
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRefused:
    """A person does not let a job go on that waits for them: it ends. As of :class:`ApprovalGiven`."""

    job: JobId
    what: Approval | None = None
    task: TaskId | None = None
    by: str = ""
    reason: str = ""
    source: Source | None = None
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCancelled:
    """A person ends a job under way."""

    job: JobId
    by: str = ""
    reason: str = ""
    source: Source | None = None
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceAsked:
    """A job asks its tenant's account whether it may begin; *job* is the account's key.

    Attributes:
        of: The job that asks.
        revision: Of the answer it is on its way to.
        since: Broker time of its goal, milliseconds since 1970: among equals the oldest goes first.
        jobs: Jobs of the tenant that may run at once, as configured when its goal came in.
        day: What the tenant may spend in a day, likewise.
        want: What the job asks of it to begin with, at most. None: as much as the account gives.
        parent: The job that waits for its answer; a child takes no place beside its parent's.
    """

    job: JobId
    of: JobId
    revision: int = 1
    priority: int = 5
    since: int = 0
    jobs: int | None = None
    day: Grant | None = None
    want: Grant | None = None
    parent: JobId | None = None
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceGiven:
    """The account lets a job begin.

    Attributes:
        lease: What the job may spend of the tenant's day. None: any amount.
    """

    job: JobId
    revision: int = 1
    lease: Grant | None = None
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyAsked:
    """A job asks its tenant's account for more; *job* is the account's key.

    Attributes:
        n: Counts the job's askings of this revision from 1; the first is :class:`PlaceAsked`.
        want: How much more.
    """

    job: JobId
    of: JobId
    revision: int
    n: int
    want: Grant
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyGiven:
    """The account gives a job more of the tenant's day, or says that nothing is left.

    Attributes:
        more: What is added to its lease; nothing of it where the day is spent.
        reason: Why there is less than was asked for, for a person.
    """

    job: JobId
    revision: int
    n: int
    more: Grant
    reason: str = ""
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceReturned:
    """A job has ended, and tells its tenant's account what it spent; *job* is the account's key.

    Attributes:
        spent: In this revision, and what its attempts may still spend. None: not known any more; all that
            was leased to it counts.
    """

    job: JobId
    of: JobId
    revision: int
    spent: Usage | None = NO_USAGE
    at: int = 0
    offset: int = -1


SubTaskEvent: TypeAlias = (
    SubTaskStarted | Planned | SubTaskSucceeded | SubTaskFailed | AttemptOverdue | RetryDue
)
Told: TypeAlias = HedgeDue | SubTaskSuspended | ChildAnswered | NoteWritten
"""What is told of one sub-task beside its attempts' beginning and end."""

FromOutside: TypeAlias = ApprovalGiven | ApprovalRefused | JobCancelled
ForAnAccount: TypeAlias = PlaceAsked | MoneyAsked | PlaceReturned
FromAnAccount: TypeAlias = PlaceGiven | MoneyGiven
Event: TypeAlias = (
    JobSubmitted
    | GoalRejected
    | SubTaskEvent
    | DeadlinePassed
    | JobBroken
    | JobReopened
    | Told
    | FromOutside
    | ForAnAccount
    | FromAnAccount
)
EVENT_TYPES: tuple[type[Event], ...] = get_args(Event)
