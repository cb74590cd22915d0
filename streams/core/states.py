"""The states of a job and of its sub-tasks. What is still to do is derived from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from streams.core.commands import Outcome
from streams.core.events import JobSubmitted, Tried
from streams.core.plan import SubTask
from streams.core.values import NO_USAGE, Grant, TaskId, Usage, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """*missing* dependencies have not succeeded yet."""

    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """May be released; in a job with a budget once it has a *grant* of it."""

    attempt: int = 1
    grant: Grant | None = None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A lane began the attempt at *since* (milliseconds of broker time) in its life *run*."""

    attempt: int
    run: str
    since: int
    grant: Grant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeeded:
    """Has its result; *offset* is the event's place on the log, *size* the result's bytes of JSON."""

    attempt: int
    result: Value
    size: int
    offset: int


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


SubTaskState: TypeAlias = Waiting | Ready | Backoff | Released | Running | Succeeded | Failed | Skipped


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
        skipped: Nodes that will never run.
        usage: What the job has spent so far, in all revisions, by what its attempts told.
        lost: Attempts that told nothing yet and may have spent their grants: at most one a sub-task,
            and only where the goal has a budget.
        need: What a further attempt is likely to need of the budget, by those so far; None: not known.
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


Job: TypeAlias = New | Open | Finished
