"""The states of a job and of its sub-tasks. What is still to do is derived from them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from streams.core.commands import CallEnded, Contradiction, Duplicate, Outcome, Part, Resume, Votes
from streams.core.events import JobSubmitted, Tried
from streams.core.goal import Approval, Source
from streams.core.guests import Guests
from streams.core.plan import SubTask
from streams.core.values import NO_USAGE, Grant, JobId, Json, TaskId, Usage, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """*missing* dependencies have not succeeded yet."""

    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """May be released; in a job with a budget once it has a *grant* of it.

    Attributes:
        resume: How it goes on, where it was suspended.
    """

    attempt: int = 1
    grant: Grant | None = None
    resume: Resume | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waits until *until* (milliseconds of broker time) before the next attempt."""

    attempt: int
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Its command is out since *at* (milliseconds of broker time), and no lane has started it."""

    attempt: int
    at: int
    grant: Grant | None = None
    resume: Resume | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A lane began the attempt at *since* (milliseconds of broker time) in its life *run*."""

    attempt: int
    run: str
    since: int
    grant: Grant | None = None
    resume: Resume | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspended:
    """The attempt waits for a person or a child job, with neither slot nor place.

    Attributes:
        on: What it waits for.
        call: The id of the tool call that waits.
        tool: The tool's name.
        args: Its arguments, for a person.
        child: The child job.
        since: Broker time since when, milliseconds since 1970.
        resume: With which it will go on.
        so_far: What it has spent, which its job counts at its end.
    """

    attempt: int
    on: Literal["approval", "child"]
    call: str
    since: int
    resume: Resume
    tool: str = ""
    args: Json = None
    child: JobId | None = None
    grant: Grant | None = None
    so_far: Usage = NO_USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Hedged:
    """Its own attempts have failed, the last one for this reason; the hedge beside them still runs."""

    attempt: int
    kind: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeeded:
    """Has its result; *offset* is the event's place on the log, *size* the result's bytes of JSON."""

    attempt: int
    result: Value
    size: int
    offset: int
    fingerprint: str = ""
    cites: tuple[TaskId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Failed for good, in its last attempt."""

    attempt: int
    kind: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Never ran, since a dependency failed for good."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Nobody needs its result any more: the rules of its job are content with those of others.

    Attributes:
        attempt: The one that was out, or would have been next; 0 where none ever could be.
        tried: Attempts that a lane began.
        told: The end of that attempt is told, and what it cost is counted, or counts as lost.
    """

    attempt: int
    tried: int
    reason: str
    told: bool = False


SubTaskState: TypeAlias = (
    Waiting
    | Ready
    | Backoff
    | Released
    | Running
    | Suspended
    | Hedged
    | Succeeded
    | Failed
    | Skipped
    | Stopped
)

Role: TypeAlias = Literal["gate", "replan", "hedge", "check", "tie", "judge", "reduce"]
"""What a step is for: to let a goal in; to plan again; to overtake a slow attempt; to look for
contradictions; to settle one; to compare votes or candidates; to sum up some of the results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A sub-task of the system's own, beside ``plan`` and ``answer``: its id begins with ``~``.

    Attributes:
        ordinal: With job and attempt it names the lane.
        of: The sub-tasks and steps that it works on.
        text: What it is to do, where that is not in its role.
        beside: The attempt that it is to overtake, of the sub-task that it works on; 0 where it is no hedge.
    """

    role: Role
    ordinal: int
    of: tuple[Part, ...] = ()
    text: str = ""
    beside: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A shared note.

    Attributes:
        version: Counts from 1.
        writes: The calls that it is made of (``task/attempt/call``), so that none is taken in twice.
        size: Bytes of the value's JSON.
    """

    topic: str
    version: int
    value: Value
    writes: tuple[str, ...] = ()
    size: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Nothing of the job is released while it waits: for its tenant's turn, more money, or a person.

    Attributes:
        on: ``place`` and ``money`` are the tenant's account's to give, the others a person's.
        since: Broker time since when, milliseconds since 1970.
        rule, reason, failed: How the job ends once its answer is approved.
        then: What it waits for once it has its place.
    """

    on: Literal["place", "money", "plan", "answer"]
    since: int
    rule: str = ""
    reason: str = ""
    failed: bool = False
    then: Literal["", "plan", "answer"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Early:
    """A child's answer that came before the word that this attempt waits for it."""

    task: TaskId
    attempt: int
    ended: CallEnded


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What the job's rules have decided so far.

    Attributes:
        hold: What the job waits for.
        approved: What a person has let pass.
        by: Who that was, last.
        heard: Where the records stand by which they said so, the newest ones.
        early: Answers of children that nobody waits for yet, a few a sub-task at most.
        lease: What the job may spend of its tenant's day. None: any amount.
        asked: How often it has asked the account in this revision.
        given: The last asking that the account has answered.
        short: Why it gave less than was asked for; empty where it did not.
        before: What earlier revisions spent, which the account knows of.
        hedged: Sub-tasks beside whose attempts a second one began.
        replans: How often a planner was asked again.
        replaced: Sub-tasks that failed, and that another plan took the place of.
        used: The sub-tasks whose results are joined, once the join has begun.
        duplicates, contradictions, votes, refused: As on the answer.
        rule, reason: Which rule ended the work early, while the join is still made.
    """

    hold: Hold | None = None
    approved: tuple[Approval, ...] = ()
    by: str = ""
    heard: tuple[Source, ...] = ()
    early: tuple[Early, ...] = ()
    lease: Grant | None = None
    asked: int = 0
    given: int = 0
    short: str = ""
    before: Usage = NO_USAGE
    hedged: tuple[TaskId, ...] = ()
    replans: int = 0
    replaced: tuple[TaskId, ...] = ()
    used: tuple[TaskId, ...] = ()
    duplicates: tuple[Duplicate, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    votes: tuple[Votes, ...] = ()
    refused: tuple[str, ...] = ()
    rule: str = ""
    reason: str = ""


UNDECIDED: Final = Decided()
NO_STEPS: Final[Mapping[TaskId, Step]] = MappingProxyType({})
NO_NOTES: Final[Mapping[str, Note]] = MappingProxyType({})
NO_SPENDING: Final[Mapping[TaskId, Usage]] = MappingProxyType({})
NO_GUESTS: Final = Guests()


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A sub-task of an admitted plan.

    Attributes:
        ordinal: Its place: 0 is ``plan``, then the plan's order from 1, ``answer`` last.
        dependants: Sub-tasks that wait for its result.
    """

    task: SubTask
    ordinal: int
    dependants: tuple[TaskId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """Which of its answers an open job is on its way to.

    Attributes:
        number: Counts from 1.
        opened_at: Broker time at which it began, milliseconds since 1970; 0 where that is the goal's.
        tried: Attempts that sub-tasks had before it.
    """

    number: int = 1
    opened_at: int = 0
    tried: tuple[Tried, ...] = ()

    def before(self, task: TaskId) -> int:
        """The number of the sub-task's last attempt before this revision; 0 without any."""
        return next((tried.attempt for tried in self.tried if tried.task == task), 0)


FIRST = Revision()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """An attempt whose time was over before its end was told: what it spent is not known.

    Attributes:
        grant: What it may have spent, and counts as spent until its end is told after all.
    """

    task: TaskId
    attempt: int
    grant: Grant


@dataclass(frozen=True, slots=True, kw_only=True)
class New:
    """No goal with this id has been accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A job under way. Planning while there are no nodes, joining once ``answer`` has a state.

    A goal that brings its plan is never planning, and a plan of one sub-task is never joined.

    Attributes:
        submitted: The event that opened it: goal, source, headers. A plan that the goal brought is
            in *nodes*, and not here.
        nodes: The plan, in its order; never changes once made.
        states: Of ``plan`` until there are nodes, then of every node, and of ``answer`` once all
            have ended and their results are to be joined.
        ready: Sub-tasks in state Ready, in the order in which they became so.
        outstanding: Sub-tasks released or running.
        succeeded: Nodes that have their result.
        failed: Nodes that failed for good.
        skipped: Nodes that will never run, or were stopped.
        usage: What the job has spent so far, in all revisions, by what its attempts told.
        lost: Attempts that told nothing yet and may have spent their grants: at most one a sub-task.
        need: What a further attempt is likely to need of the budget, by those so far; None: not known.
        steps: Sub-tasks of the system's own, beside ``plan`` and ``answer``; each has a state.
        notes: The shared notes, by topic.
        decided: What its rules have decided.
        spending: What each sub-task of the plan has spent in its attempts, those of its hedges among them;
            only where the goal limits that.
    """

    submitted: JobSubmitted
    nodes: Mapping[TaskId, Node]
    states: Mapping[TaskId, SubTaskState]
    ready: tuple[TaskId, ...] = ()
    outstanding: int = 0
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    usage: Usage = NO_USAGE
    revision: Revision = FIRST
    lost: tuple[Lost, ...] = ()
    need: Grant | None = None
    steps: Mapping[TaskId, Step] = field(default_factory=lambda: NO_STEPS)
    notes: Mapping[str, Note] = field(default_factory=lambda: NO_NOTES)
    decided: Decided = UNDECIDED
    spending: Mapping[TaskId, Usage] = field(default_factory=lambda: NO_SPENDING)

    @property
    def ended(self) -> int:
        """Nodes that will change no more."""
        return self.succeeded + self.failed + self.skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The job is answered: a marker that outlives the topics' retention.

    Attributes:
        digest: Of the goal, so that a redelivered goal is told from another one.
        offset: The place on the log of the event that ended the job.
        at: Its broker time, milliseconds since 1970.
        revision: Of its last answer.
    """

    digest: str
    outcome: Outcome
    offset: int
    at: int
    revision: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What a tenant may do over all partitions: how many jobs, and how much money a day.

    Attributes:
        day: The day that *spent* is of: days since 1970, UTC, by the broker's clock.
        spent: What jobs have returned as spent on that day.
        jobs, limit: As configured when the newest goal that asked came in.
        told_at: Broker time of that goal, milliseconds since 1970.
        turns: Places given so far: now and then one goes to who has waited longest.
        guests: Jobs that have a place or wait for one, by id.
    """

    key: JobId
    day: int = 0
    spent: Usage = NO_USAGE
    jobs: int | None = None
    limit: Grant | None = None
    told_at: int = 0
    turns: int = 0
    guests: Guests = NO_GUESTS


Job: TypeAlias = New | Open | Finished | Account
