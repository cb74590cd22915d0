"""The aggregation table of one partition: its jobs in memory, its rows on ``jobs``.

Rows, commands, answers and our position on the log are committed in one transaction. Between two
commits the table keeps, of every job touched, how it was at the last one; what changed is the
difference, so that ten events of one sub-task are one row. Finished jobs are kept as small as can be.
"""

from collections.abc import Iterator
from typing import Self

from streams.core.states import (
    NO_GUESTS,
    Account,
    Finished,
    Job,
    New,
    Open,
)
from streams.core.values import JobId
from streams.damage import Damage, is_account, job_of, left_out, misplaced
from streams.from_rows import build
from streams.log import Log, Reader, Record
from streams.markers import Markers
from streams.sharing import shared
from streams.topics import JOBS
from streams.wire.envelope import NewerVersion, Unreadable
from streams.wire.markers import packed_row
from streams.wire.rows import (
    GOAL_ROW,
    NOTE_ROW,
    POSITION_KEY,
    AccountRow,
    GoalRow,
    GuestRow,
    JobRow,
    NoteRow,
    PositionRow,
    Row,
    SubTaskRow,
    parse_row,
    read_row,
)

NEW = New()


class GapInLog(Exception):
    """Events are missing on ``job-events``: it lost records, or its retention is too short."""


class Table:
    """The jobs of one partition.

    Attributes:
        position: Offset of the next event to fold; None before the first.
        at: Broker time of the last event folded, milliseconds since 1970.
        leftovers: Keys of rows that stand on the topic and mean nothing: without a position all of
            them, else those of jobs with *damage*.
        damage: Rows that could not be read.
    """

    def __init__(self) -> None:
        self.position: int | None = None
        self.at = 0
        self.leftovers: frozenset[str] = frozenset()
        self.damage = Damage()
        self._jobs: dict[JobId, Job] = {}  # open ones, and those that finished since the last commit
        self._markers = Markers()
        self._outlived: tuple[JobId, ...] = ()
        self._before: dict[JobId, Job] = {}

    def __getitem__(self, job: JobId) -> Job:
        return self._jobs.get(job) or self._markers.get(job) or NEW

    def __setitem__(self, job: JobId, after: Job) -> None:
        before = self[job]
        if after is not before:
            self._before.setdefault(job, before)
            if isinstance(after, Open) and not isinstance(before, Open):
                after = shared(after)
            self._jobs[job] = after
            self._markers.discard(job)

    def awaits(self, event: Record) -> bool:
        """Whether this event is the next to fold; False where it is folded already.

        Raises:
            GapInLog: an event is missing between the last one folded and this one.
        """
        if self.position is None or event.offset == self.position:
            return True
        if event.offset > self.position:
            raise GapInLog(
                f"job-events[{event.partition}] goes from offset {self.position} to {event.offset}: events "
                "are missing; see 'anabranch topics check' for its retention"
            )
        return False

    def passed(self, event: Record) -> None:
        """All up to this event is folded."""
        self.position, self.at = event.offset + 1, event.timestamp

    def open_jobs(self) -> Iterator[Open]:
        """Every job under way."""
        return (job for job in self._jobs.values() if isinstance(job, Open))

    def accounts(self) -> Iterator[Account]:
        """Every account of a tenant."""
        return (job for job in self._jobs.values() if isinstance(job, Account))

    @property
    def finished(self) -> int:
        """How many jobs are finished."""
        fresh = sum(isinstance(self._jobs[job], Finished) for job in self._before)
        return len(self._markers) + fresh

    def changes(self) -> Iterator[tuple[str, Row | None]]:
        """Key and row of all that changed since the last commit, our position last; None deletes."""
        for job, before in self._before.items():
            yield from difference(job, before, self._jobs[job])
        self._outlived = tuple(self._markers.outlived(self.at))
        for job in self._outlived:
            yield job, None
        if self.position is not None:
            yield POSITION_KEY, PositionRow(offset=self.position, at=self.at)

    def committed(self) -> None:
        """What changed is on the log now."""
        for job in self._before:
            if isinstance(after := self._jobs[job], Finished):
                self._markers.put(job, after)
                del self._jobs[job]
        for job in self._outlived:
            self._markers.discard(job)
        self._before.clear()

    @classmethod
    async def restore(cls, log: Log, partition: int) -> Self:
        """Read a partition's rows to their end.

        Rows without a position are of no use: nobody knows which events they have seen, and which
        rows are missing beside them. Then the table is to be rebuilt, see ``streams/rebuilding.py``.
        Rows that cannot be read, and all others of their jobs, are left out and are *damage*, to be
        mended before anything is folded: see ``streams/mending.py``.

        Raises:
            NewerVersion: a program of a later version wrote a row; only that may go on from it.
            LogUnavailable: the log did not give them in time.
        """
        table = cls()
        newest = await newest_rows(log, partition)
        rows: dict[str, Row] = {}
        damage = table.damage
        for key in list(newest):
            value = newest.pop(key)
            if (packed := packed_row(value)) and key.count("/") == 1 and job_of(key) and not is_account(key):
                table._markers.put_packed(key, packed)
                continue
            try:
                row = parse_row(value)
            except NewerVersion as error:
                raise NewerVersion(f"row {key} of jobs[{partition}]: {error}") from error
            except Unreadable as error:
                damage.note(key, str(error))
                continue
            if wrong := misplaced(key, row):
                damage.note(key, wrong)
            elif isinstance(row, Finished):
                table._markers.put(key, row)
            else:
                rows[key] = row
        position = rows.pop(POSITION_KEY, None)
        if not isinstance(position, PositionRow):
            leftovers = cls()
            leftovers.damage, damage.jobs = damage, set()
            leftovers.leftovers = frozenset((*rows, *table._markers))
            return leftovers
        table.position, table.at = position.offset, position.at
        table._jobs = build(left_out(rows, damage.jobs), damage)
        for job in damage.jobs:
            table._jobs.pop(job, None)
            table._markers.discard(job)
        table.leftovers = frozenset(key for key in rows if job_of(key) in damage.jobs)
        return table


async def newest_rows(log: Reader, partition: int) -> dict[str, bytes]:
    """The newest version of every row of a partition, unread, the oldest first.

    Before Kafka has compacted the topic most of what is on it has been superseded: it is not looked at.

    Bytes of a key that are no UTF-8 come as surrogate escapes: no key of ours has any.

    Raises:
        LogUnavailable: the log did not give them in time.
    """
    rows: dict[bytes, bytes] = {}
    async for records in log.read(JOBS, partition):
        for record in records:
            key = record.key or b""
            rows.pop(key, None)
            if record.value is not None:
                rows[key] = record.value
    return {key.decode(errors="surrogateescape"): value for key, value in rows.items()}


def apply(rows: dict[str, Row], record: Record) -> None:
    """Take one record of the topic into the rows.

    Raises:
        NewerVersion, Unreadable: it is no row; the one that stood under its key is out of them.
    """
    key = (record.key or b"").decode(errors="surrogateescape")
    rows.pop(key, None)
    if record.value is not None:
        rows[key] = read_row(record)


def difference(job: JobId, before: Job, after: Job) -> Iterator[tuple[str, Row | None]]:
    """Rows that turn *before* into *after*."""
    old: Open | None = before if isinstance(before, Open) else None
    match after:
        case Finished():
            yield job, after
            if old is not None:
                yield f"{job}/{GOAL_ROW}", None
                for task in old.states:
                    yield f"{job}/{task}", None
                for topic in old.notes:
                    yield f"{job}/{NOTE_ROW}{topic}", None
        case Open():
            if old is None or old.revision is not after.revision or old.submitted is not after.submitted:
                yield f"{job}/{GOAL_ROW}", GoalRow(submitted=after.submitted, revision=after.revision)
            if (
                old is None
                or old.usage is not after.usage
                or old.lost is not after.lost
                or old.need is not after.need
                or old.decided is not after.decided
                or len(old.nodes) != len(after.nodes)
            ):
                yield (
                    job,
                    JobRow(
                        usage=after.usage,
                        nodes=len(after.nodes),
                        lost=after.lost,
                        need=after.need,
                        decided=after.decided,
                    ),
                )
            yield from _sub_tasks(job, old, after)
            notes = {} if old is None else old.notes
            for topic, note in after.notes.items():
                if notes.get(topic) is not note:
                    yield f"{job}/{NOTE_ROW}{topic}", NoteRow(note=note)
            for topic in notes.keys() - after.notes.keys():  # of before it ended and was opened again
                yield f"{job}/{NOTE_ROW}{topic}", None
        case Account():
            yield from _account(before if isinstance(before, Account) else None, after)
        case New():
            pass


def _account(old: Account | None, after: Account) -> Iterator[tuple[str, Row | None]]:
    """An account's row changes with most of its events, those of its guests by themselves."""
    row = account_row(after)
    if old is None or account_row(old) != row:
        yield after.key, row
    for job, guest in after.guests.changed(NO_GUESTS if old is None else old.guests):
        yield f"{after.key}/{job.partition('/')[2]}", None if guest is None else GuestRow(guest=guest)


def account_row(account: Account) -> AccountRow:
    """The row of an account."""
    return AccountRow(
        day=account.day,
        spent=account.spent,
        jobs=account.jobs,
        limit=account.limit,
        told_at=account.told_at,
        turns=account.turns,
        guests=len(account.guests),
    )


def _sub_tasks(job: JobId, old: Open | None, after: Open) -> Iterator[tuple[str, Row | None]]:
    """A sub-task's row changes with its state, and where a plan that grew gives it more to wait for."""
    states, nodes = ({}, {}) if old is None else (old.states, old.nodes)
    for task, state in after.states.items():
        node, step, before = after.nodes.get(task), after.steps.get(task), nodes.get(task)
        spent = after.spending.get(task)
        same = node is before or (node and before and node.task is before.task)
        if same and states.get(task) is state and spent is (None if old is None else old.spending.get(task)):
            continue
        ordinal = node.ordinal if node else step.ordinal if step else 0
        row = SubTaskRow(
            ordinal=ordinal, state=state, task=node.task if node else None, step=step, spent=spent
        )
        yield f"{job}/{task}", row
    for task in states.keys() - after.states.keys():
        yield f"{job}/{task}", None
