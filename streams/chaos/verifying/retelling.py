"""The log folded again by the core's own rules: what should have come of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streams.chaos.evidence import Finding
from streams.chaos.verifying.facts import Facts, Place, place_of, stands
from streams.core.commands import Answer, Bury, Command, StopAttempt
from streams.core.events import (
    UNREADABLE,
    Event,
    Planned,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
)
from streams.core.granting import releasable
from streams.core.job import absorb
from streams.core.money import charged
from streams.core.release import command
from streams.core.states import (
    Account,
    Backoff,
    Failed,
    Finished,
    Hedged,
    Job,
    New,
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
from streams.core.values import ANSWER, PLAN, JobId, TaskId
from streams.log import Record
from streams.suspension import run_key, stretch
from streams.topics import JOBS
from streams.transcript import attempt_key
from streams.wire.commands import write_command
from streams.wire.envelope import Unreadable
from streams.wire.rows import POSITION_KEY, PositionRow, read_row


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A command that the log asks for, from the append time *at* (milliseconds) of the event that did.

    Attributes:
        later: As it is written where it goes out after further events: with newer notes, or with fewer places
            for sub-tasks that it may propose.
    """

    command: Command
    at: int
    later: set[bytes] = field(default_factory=set)

    def is_given_by(self, record: Record) -> bool:
        """Whether a record is this command, word for word, as it was at some time since."""
        return write_command(self.command) == record.value or record.value in self.later


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A partition as its table should be.

    Attributes:
        jobs: Every job, as folded up to *position*.
        position: Up to where the table says that it is folded; None where it does not say.
        at: Append time of the last event before it, milliseconds since 1970.
        end: The offset behind the last event on the log.
    """

    jobs: Mapping[JobId, Job]
    position: int | None
    at: int
    end: int


@dataclass(slots=True, kw_only=True)
class Told:
    """What the log leads to.

    Attributes:
        answers: By job and revision, with the event that ended the job.
        commands: By the key of their attempt, as of :func:`streams.suspension.run_key`.
        stops: Of attempts that had begun, by key, with the event that each follows from.
        over: When the last event was appended that an attempt could matter for, by its key: its own end,
            a timer's, or its job's.
        digests: Of the goals that each job was opened with; empty for one that was rejected.
        buried: Places of events that cannot be folded.
        partitions: The tables, by partition.
        early: Events of attempts that could not have begun yet.
    """

    answers: dict[tuple[JobId, int], tuple[Record, Answer]] = field(default_factory=dict)
    commands: dict[bytes, Due] = field(default_factory=dict)
    stops: dict[bytes, tuple[Record, StopAttempt]] = field(default_factory=dict)
    over: dict[bytes, int] = field(default_factory=dict)
    digests: dict[JobId, set[str]] = field(default_factory=dict)
    buried: set[Place] = field(default_factory=set)
    partitions: dict[int, Folded] = field(default_factory=dict)
    early: list[Finding] = field(default_factory=list)


def retell(facts: Facts) -> Told:
    """Fold every partition of the log."""
    told = Told()
    logs: dict[int, list[tuple[Record, Event | None]]] = {n: [] for n in range(facts.evidence.lanes)}
    for record, event in facts.events:
        logs.setdefault(record.partition, []).append((record, event))
    positions = _positions(facts)
    for partition, log in logs.items():
        told.partitions[partition] = _fold(facts, told, log, positions.get(partition))
    return told


def _positions(facts: Facts) -> dict[int, int]:
    """Up to where each partition's table says that it is folded."""
    newest: dict[int, Record] = {}
    for record in facts.records(JOBS):
        if record.key == POSITION_KEY.encode():
            newest[record.partition] = record
    found: dict[int, int] = {}
    for partition, record in newest.items():
        try:
            row = read_row(record)
        except Unreadable:
            continue  # its bytes differ from what they should be: that is found there
        if isinstance(row, PositionRow):
            found[partition] = row.offset
    return found


def _fold(
    facts: Facts, told: Told, log: Sequence[tuple[Record, Event | None]], position: int | None
) -> Folded:
    jobs: dict[JobId, Job] = {}
    at, end = 0, log[-1][0].offset + 1 if log else 0
    table: Folded | None = None
    new = New()
    for record, event in log:
        if record.offset == position:
            table = Folded(jobs=dict(jobs), position=position, at=at, end=end)
        at = record.timestamp
        if event is None:
            told.buried.add(place_of(record))
            continue
        if place_of(record) in facts.refused:
            # What it asks for is no record that the log takes: buried unfolded, and its job ends.
            told.buried.add(place_of(record))
            continue
        before = jobs.get(event.job, new)
        after, effects = absorb(before, event)
        if early := _early(before, event):
            told.early.append(
                Finding(kind="too_early", where=f"{_of(event)} at {stands(record)}", what=early)
            )
        for effect in effects:
            if isinstance(effect, Answer):
                told.answers[effect.job, effect.revision] = record, effect
            elif isinstance(effect, Bury):
                told.buried.add(place_of(record))
            elif isinstance(effect, StopAttempt):
                told.stops[attempt_key(effect.job, effect.task, effect.attempt)] = record, effect
        if after is not before:
            jobs[event.job] = after
            _note(told, before, after, event)
    return table or Folded(jobs=jobs, position=position, at=at, end=end)


def _note(told: Told, before: Job, after: Job, event: Event) -> None:
    """What the event newly asks for, what it makes moot, and which goal its job has."""
    if isinstance(before, Open):
        _note_over(told, before, after, event)
    match after:
        case Finished(digest=digest):
            told.digests.setdefault(event.job, set()).add(digest)
        case Open(ready=ready, submitted=submitted):
            known: Mapping[TaskId, SubTaskState] = {}
            _note_later(told, after)
            if not isinstance(before, Open):
                told.digests.setdefault(event.job, set()).add(submitted.goal.digest)
            elif ready is before.ready and after.decided is before.decided and not charged(after):
                return
            else:
                known = {task: before.states[task] for task in releasable(before)}
            for task in releasable(after):
                if (state := after.states[task]) is not known.get(task):
                    key, due = attempt_key(event.job, task, _attempt(state)), command(after, task)
                    told.commands.setdefault(run_key(due, key), Due(command=due, at=event.at))
        case New() | Account():
            pass


def _note_later(told: Told, job: Open) -> None:
    """What is asked for already may go out only now, and then shows what has changed since."""
    if not job.submitted.goal.grow and not job.submitted.goal.notes:
        return
    for task in releasable(job):
        key, now = attempt_key(job.submitted.job, task, _attempt(job.states[task])), command(job, task)
        if (due := told.commands.get(run_key(now, key))) is not None:
            due.later.add(write_command(now))


def _note_over(told: Told, before: Open, after: Job, event: Event) -> None:
    if isinstance(after, Open):
        for task, was in before.states.items():
            if (now := after.states.get(task)) is was:
                continue
            goes_on = now is not None and _stretch(now) != _stretch(was)
            if now is None or goes_on or isinstance(now, (*OVER, Suspended)):
                _note_over_of(told, event, task, was)
        return
    for task, was in before.states.items():
        if not isinstance(was, Waiting | Skipped):
            _note_over_of(told, event, task, was)


def _stretch(state: SubTaskState) -> tuple[int, int]:
    """Which attempt, and how often it was suspended: it goes on at once where its child was faster."""
    resume = getattr(state, "resume", None)
    return _attempt(state), 0 if resume is None else resume.number


def _note_over_of(told: Told, event: Event, task: TaskId, was: SubTaskState) -> None:
    """Its attempt is over, or waits; the command by which it went on last is done in any case."""
    key = attempt_key(event.job, task, _attempt(was))
    told.over.setdefault(key, event.at)
    if isinstance(was, Ready | Released | Running) and was.resume is not None:
        told.over.setdefault(stretch(key, was.resume.number), event.at)


OVER = (Succeeded, Failed, Stopped, Hedged)
"""The states of a sub-task whose own attempts have ended, or are needed by nobody."""


def _attempt(state: SubTaskState) -> int:
    """The number of the attempt that it is at; 0 where there is none."""
    return getattr(state, "attempt", 0)


def _early(job: Job, event: Event) -> str:
    """Why the attempt that the event tells of cannot have begun yet; empty where it can."""
    if not isinstance(event, SubTaskStarted | Planned | SubTaskSucceeded | SubTaskFailed):
        return ""
    if isinstance(event, SubTaskFailed) and event.kind == UNREADABLE:
        return ""  # a lane that could not read the command knows no more than its key
    if isinstance(job, New):
        return "its job was not open yet"
    if not isinstance(job, Open):
        return ""  # late
    match job.states.get(event.task):
        case None:
            if event.task == PLAN:
                return ""  # late: it has its plan
            what = "the others had not ended" if event.task == ANSWER else "no plan had it"
            return f"it was not asked for yet: {what}"
        case Waiting(missing=missing):
            return f"{missing} of its dependencies had not ended"
        case Skipped(reason=reason):
            return f"it should never have run: {reason}"
        case Backoff(attempt=attempt) if event.attempt >= attempt:
            return f"attempt {attempt} was not due yet"
        case state if event.attempt > _attempt(state):
            return f"that attempt was not asked for: the newest is {_attempt(state)}"
        case _:
            return ""


def _of(event: SubTaskStarted | Planned | SubTaskSucceeded | SubTaskFailed | Event) -> str:
    return f"{event.job}/{getattr(event, 'task', '')}/{getattr(event, 'attempt', '')}"
