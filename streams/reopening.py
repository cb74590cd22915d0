"""What a redriven record means to its job: a job that ended for want of it goes on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from streams.core.commands import Answer
from streams.core.events import ApprovalGiven, Event, JobReopened, Planned, SubTaskSucceeded
from streams.core.holding import waits_for_person
from streams.core.job import absorb
from streams.core.reopening import reopening
from streams.core.states import Account, Finished, Job, New, Open, Ready, Released, Running
from streams.core.values import JobId, TaskId
from streams.job_logs import JobLog, JobLogs
from streams.letters import Letter, readable_attempt
from streams.log import Log, Record
from streams.topics import JOB_EVENTS, partition_of
from streams.transcript import attempt_of
from streams.wire.envelope import Unreadable
from streams.wire.events import read_event, write_event


class Refused(Exception):
    """A dead letter is not redriven, for this reason, and nothing was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a dead letter goes back.

    Attributes:
        goes: Its record is sent; else its job gives a new command in its place.
        job: The job that goes on for it.
        revision: Of that job's next answer.
    """

    goes: bool = True
    job: JobId | None = None
    revision: int | None = None


class Reopening:
    """Opens jobs again for dead letters that are redriven.

    Args:
        lanes: Partitions of the system.
        by: Who asks.
        chosen: All that are redriven together: those of one job open it once.
    """

    def __init__(self, log: Log, *, lanes: int, by: str, chosen: Iterable[Letter]) -> None:
        self._log, self._lanes, self._by = log, lanes, by
        self._commands: dict[JobId, set[tuple[TaskId, int]]] = {}
        jobs: set[JobId] = set()
        for letter in chosen:
            if letter.job is not None:
                jobs.add(letter.job)
            named = attempt_of(letter.dead.key)
            if named is not None and letter.attempt is not None and letter.mark is None:
                self._commands.setdefault(named[0], set()).add(named[1:])
        self._logs = JobLogs(log, lanes, jobs)

    async def of_command(self, original: Record) -> Way:
        """A command goes back if its job waits for it, for which it is opened again where it has ended.

        One that cannot be read goes back in any case: whoever reads it buries it again.

        Raises:
            Refused: its job's log is past its retention, or the job needs nothing any more.
            LogUnavailable: the log was not to be read, or did not take the event.
        """
        named = attempt_of(original.key)
        if named is None:
            return Way()
        name, task, attempt = named
        can_run = readable_attempt(original) is not None
        if can_run:
            self._commands.setdefault(name, set()).add((task, attempt))
        log = await self._known(name)
        if opened := ended_poorly(log.job):
            log = await self._open(name, log, self._event(name, log))
        elif isinstance(log.job, Finished) and can_run:
            raise Refused(f"{name} was answered without it ({log.job.outcome}); there is nothing left to do")
        now, number = log.job, revision_of(log.job)
        state = now.states.get(task) if isinstance(now, Open) else None
        waits = isinstance(state, Ready | Released | Running) and state.attempt == attempt
        needed = waits or opened or (isinstance(now, Open) and attempt <= now.revision.before(task))
        if can_run and not needed:
            raise Refused(f"{name} has gone on without it: {task} is {_told(state)}; nothing is left to do")
        return Way(
            goes=waits or not can_run,
            job=name if number > 1 else None,
            revision=number if number > 1 else None,
        )

    async def of_event(self, original: Record) -> Way:
        """An event goes back; where it brings a result to a job that ended without it, that goes on first.

        Raises:
            LogUnavailable: the log was not to be read, or did not take the event.
        """
        try:
            event = read_event(original)
        except Unreadable:
            return Way()
        if not isinstance(event, Planned | SubTaskSucceeded):
            return Way()
        self._logs.also(event.job)
        log = await self._logs.of(event.job)
        if not ended_poorly(log.job):
            return Way()
        again = self._event(event.job, replace(log, events=_with(log.events, event)))
        if again is None or not _counts(event, again):
            return Way()
        log = await self._open(event.job, log, again)
        return Way(job=event.job, revision=revision_of(log.job))

    async def _known(self, name: JobId) -> JobLog:
        self._logs.also(name)
        log = await self._logs.of(name)
        if isinstance(log.job, New) or not log.events:
            raise Refused(
                f"{JOB_EVENTS}[{partition_of(name, self._lanes)}] has no event of {name} (any more): "
                "there is nothing to go on from"
            )
        return log

    def _event(self, name: JobId, log: JobLog) -> JobReopened | None:
        assert isinstance(log.job, Finished)
        wanted = self._commands.get(name, set())
        return reopening(log.events, log.job, redriven=sorted(wanted), by=self._by)

    async def _open(self, name: JobId, log: JobLog, event: JobReopened | None) -> JobLog:
        """Let the job go on; how it stands then, whoever else may have done the same.

        Raises:
            Refused: it would not go on.
        """
        assert isinstance(log.job, Finished)
        if event is None:
            if log.job.outcome in ("cancelled", "rejected"):
                raise Refused(f"{name} is {log.job.outcome}: it was ended on purpose, and does not go on")
            raise Refused(
                f"the beginning of {name} is not on {JOB_EVENTS}[{partition_of(name, self._lanes)}] any "
                "more: there is nothing to go on from"
            )
        again, effects = absorb(log.job, replace(event, at=log.job.at, offset=log.job.offset + 1))
        if isinstance(again, Open) and waits_for_person(again) == "answer":
            _, effects = absorb(again, ApprovalGiven(job=name))  # nothing of it would run before
        for effect in effects:
            if isinstance(effect, Answer) and effect.outcome != "succeeded":
                raise Refused(f"{name} would end as it did before: {effect.reason}")
        await (
            await self._log.producer.send(
                JOB_EVENTS, write_event(event), key=name.encode(), partition=partition_of(name, self._lanes)
            )
        )
        return await self._logs.of(name)


def ended_poorly(job: Job) -> bool:
    """Whether a job has ended without success, and could do better."""
    return isinstance(job, Finished) and job.outcome in {"failed", "partial"}


def revision_of(job: Job) -> int:
    """Of the answer that a job has, or is on its way to; 0 where it has none."""
    match job:
        case Finished(revision=number):
            return number
        case Open():
            return job.revision.number
        case New() | Account():
            return 0


def _counts(event: Planned | SubTaskSucceeded, again: JobReopened) -> bool:
    """Whether the job goes on with what the event brings."""
    if isinstance(event, Planned):
        return bool(again.plan) and again.plan == event.plan and not again.kept
    return any((kept.task, kept.attempt) == (event.task, event.attempt) for kept in again.kept)


def _with(events: Sequence[Event], event: Event) -> tuple[Event, ...]:
    """The events of a job, with one that may not be among them, for want of a reader or of room."""
    known = {each.offset: each for each in events} | {event.offset: event}
    return tuple(known[offset] for offset in sorted(known))


def _told(state: object) -> str:
    attempt = getattr(state, "attempt", None)
    name = type(state).__name__.lower()
    return name if attempt is None else f"{name} in attempt {attempt}"
