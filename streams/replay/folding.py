"""A job's events folded again, one by one: what each changed, and what it led to."""

from dataclasses import dataclass, fields

from streams.core.commands import Answer, Command, Effect
from streams.core.events import Event
from streams.core.job import absorb
from streams.core.release import lane_of, places, release
from streams.core.states import Account, Finished, Job, New, Open, SubTaskState
from streams.core.values import ANSWER, JobId, TaskId
from streams.following import readable
from streams.log import Record
from streams.replay.recording import Recording
from streams.wire.answers import read_answer
from streams.wire.envelope import Unreadable
from streams.wire.events import read_event


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A sub-task went from one state to another; None where it was not, or is no more."""

    task: TaskId
    before: SubTaskState | None
    after: SubTaskState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A command, and the lane it goes to."""

    command: Command
    lane: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What the fold made of one record.

    Attributes:
        at: Broker time, milliseconds since 1970.
        event: None where the record is *unreadable*, for this reason.
        before, after: How far the job was, in words: see :func:`phase`.
        changes: Sub-tasks whose state it changed, released ones among them.
        orders: Commands it led to, where nothing but the job's own concurrency paces them.
        effects: The answer, or that the event is a dead letter.
        changed: The job is another one than before; by a note, or by what waits for whom, without a change
            of any state.
    """

    partition: int
    offset: int
    at: int
    event: Event | None
    unreadable: str = ""
    before: str
    after: str
    changes: tuple[Change, ...] = ()
    orders: tuple[Order, ...] = ()
    effects: tuple[Effect, ...] = ()
    changed: bool = False

    @property
    def absorbed(self) -> bool:
        """It changed nothing and asked for nothing: a repetition, or too late."""
        return self.event is not None and not self.changed and not self.effects


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A field in which the answer published is not the one that the fold makes."""

    field: str
    folded: object
    published: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One revision of a job's answer: what its events lead to, beside what was published.

    Attributes:
        answer: As the fold makes it; None where it makes none.
        published: As it is on the log; None where it is not there.
        differences: Between the two; empty where one of them is missing.
    """

    revision: int
    answer: Answer | None
    published: Answer | None
    differences: tuple[Difference, ...]

    @property
    def agrees(self) -> bool:
        """The answer on the log is the one that the events lead to."""
        return (self.answer is None) == (self.published is None) and not self.differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A job's life, told again.

    Attributes:
        job_after: The job as its last event left it.
        verdicts: Of each revision of its answer, the newest last; none while it has no answer.
    """

    job: JobId
    steps: tuple[Step, ...]
    job_after: Job
    verdicts: tuple[Verdict, ...]

    @property
    def answer(self) -> Answer | None:
        """The newest answer as the fold makes it; None while there is none."""
        return self.verdicts[-1].answer if self.verdicts else None

    @property
    def published(self) -> Answer | None:
        """The newest answer as it is on the log; None where it is not there."""
        return self.verdicts[-1].published if self.verdicts else None

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Between the two; empty where one of them is missing."""
        return self.verdicts[-1].differences if self.verdicts else ()

    @property
    def agrees(self) -> bool:
        """Every answer on the log is one that its events lead to, and none is missing."""
        return all(verdict.agrees for verdict in self.verdicts)


def replay(recording: Recording) -> Replay:
    """Fold a job's events by today's rules. Never raises over what stands on the log."""
    state: Job = New()
    steps: list[Step] = []
    folded: dict[int, Answer] = {}
    for record in recording.events:
        step, state = _step(state, record)
        steps.append(step)
        for effect in step.effects:
            if isinstance(effect, Answer):
                folded[effect.revision] = effect
    answers = [found for record in recording.answers if (found := readable(read_answer, record)) is not None]
    published = {answer.revision: answer for answer in answers}
    return Replay(
        job=recording.job,
        steps=tuple(steps),
        job_after=state,
        verdicts=tuple(
            Verdict(
                revision=number,
                answer=folded.get(number),
                published=published.get(number),
                differences=compare(folded.get(number), published.get(number)),
            )
            for number in sorted(folded.keys() | published.keys())
        ),
    )


def phase(job: Job) -> str:
    """How far a job is: ``new``, ``planning``, ``running``, ``answering`` or its outcome."""
    match job:
        case New() | Account():
            return "new"
        case Finished(outcome=outcome):
            return outcome
        case Open():
            return "answering" if ANSWER in job.states else "running" if job.nodes else "planning"


def compare(folded: Answer | None, published: Answer | None) -> tuple[Difference, ...]:
    """Where two answers differ."""
    if folded is None or published is None:
        return ()
    return tuple(
        Difference(field=field.name, folded=ours, published=theirs)
        for field in fields(Answer)
        if (ours := getattr(folded, field.name)) != (theirs := getattr(published, field.name))
    )


def _step(before: Job, record: Record) -> tuple[Step, Job]:
    try:
        event = read_event(record)
    except Unreadable as error:
        return Step(
            partition=record.partition,
            offset=record.offset,
            at=record.timestamp,
            event=None,
            unreadable=str(error),
            before=phase(before),
            after=phase(before),
        ), before
    after, effects = absorb(before, event)
    changed = after is not before
    orders: tuple[Order, ...] = ()
    if isinstance(after, Open) and (free := places(after)) > 0:
        lanes = after.submitted.lanes
        after, commands = release(after, free, event.at)
        orders = tuple(
            Order(command=command, lane=lane_of(command.job, command.ordinal, command.attempt, lanes))
            for command in commands
        )
    return Step(
        partition=record.partition,
        offset=record.offset,
        at=record.timestamp,
        event=event,
        before=phase(before),
        after=phase(after),
        changes=_changes(before, after),
        orders=orders,
        effects=effects,
        changed=changed,
    ), after


def _changes(before: Job, after: Job) -> tuple[Change, ...]:
    if not isinstance(after, Open):
        return ()
    known = before.states if isinstance(before, Open) else {}
    gone = [task for task in known if task not in after.states]
    return tuple(
        Change(task=task, before=known.get(task), after=after.states.get(task))
        for task in (*gone, *after.states)
        if known.get(task) is not after.states.get(task)
    )
