"""Dead letters found on their topic, with what became of them since: who looks for which."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from streams import dead_letters
from streams.core.values import JobId
from streams.dead_letters import DeadLetter
from streams.log import Reader, Record
from streams.topics import DEAD_LETTERS, GOALS, JOB_EVENTS, SUBTASKS
from streams.transcript import attempt_of
from streams.wire.commands import read_command
from streams.wire.envelope import Unreadable
from streams.wire.goals import read_goal
from streams.wire.marks import Dropped, Mark, Redriven, is_mark, read_mark

Lot: TypeAlias = Literal["waiting", "redriven", "dropped"]
"""What became of a dead letter."""

Place: TypeAlias = tuple[int, int]
"""Partition and offset of a dead letter."""

FOREVER: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A dead letter, found.

    Attributes:
        dead: The dead letter; without its value, which may be large, unless it was asked for.
        size: Bytes of the original's value.
        job: The job that it names, where its key or its value names one.
        attempt: Number of the attempt whose command it is, where it can be read now; else None.
        mark: What became of it; None while it waits.
    """

    dead: DeadLetter
    size: int
    job: JobId | None = None
    attempt: int | None = None
    mark: Mark | None = None

    @property
    def place(self) -> Place:
        """Where it stands."""
        return self.dead.partition, self.dead.offset

    @property
    def lot(self) -> Lot:
        """What became of it."""
        match self.mark:
            case Redriven():
                return "redriven"
            case Dropped():
                return "dropped"
            case None:
                return "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which dead letters are looked for. What is empty or None does not matter.

    Attributes:
        topic, partition: Where the original stands.
        job: The job that it names.
        key: The original's key, whole.
        reason: A part of the reason, in any case.
        since, until: When it was buried, milliseconds since 1970; *until* itself is not included.
        lot: What became of it.
    """

    topic: str = ""
    partition: int | None = None
    job: JobId = ""
    key: str = ""
    reason: str = ""
    since: int = 0
    until: int = FOREVER
    lot: Lot | None = "waiting"

    def takes(self, dead: DeadLetter) -> bool:
        """Whether this is one of them, whatever became of it."""
        return (
            self.topic in {"", dead.place.topic}
            and self.partition in {None, dead.place.partition}
            and (not self.key or (dead.key is not None and dead.key == self.key.encode()))
            and self.reason.casefold() in dead.reason.casefold()
            and self.since <= dead.at < self.until
            and (not self.job or job_of(dead) == self.job)
        )


def job_of(dead: DeadLetter) -> JobId | None:
    """The job that a dead letter names, if it does."""
    topic = dead.place.topic
    if topic == SUBTASKS:
        named = attempt_of(dead.key)
        return named[0] if named else None
    if topic == JOB_EVENTS:
        return dead.key.decode(errors="replace") if dead.key else None
    if topic == GOALS and dead.lost_bytes is None:
        return read_goal(original_of(dead), lanes=1).job
    return None


def original_of(dead: DeadLetter) -> Record:
    """The record that was buried, as it stood on its topic; its time is that of its burial."""
    place = dead.place
    return Record(place.topic, place.partition, place.offset, dead.at, dead.key, dead.value, dead.headers)


def readable_attempt(original: Record) -> int | None:
    """Number of the attempt that a command asks for, where it is one that can be read and is its key's."""
    try:
        command = read_command(original)
    except Unreadable:
        return None
    named = attempt_of(original.key)
    return command.attempt if named == (command.job, command.task, command.attempt) else None


async def find(log: Reader, partitions: Iterable[int], wanted: Wanted) -> list[Letter]:
    """The dead letters that are *wanted*, in the order of their burial.

    Raises:
        LogUnavailable: the log cannot be read.
    """
    found: list[Letter] = []
    for partition in partitions:
        letters: dict[int, Letter] = {}
        async for records in log.read(DEAD_LETTERS, partition, since=wanted.since):
            for record in records:
                _take(letters, record, wanted)
        found += (each for each in letters.values() if wanted.lot in {None, each.lot})
    return sorted(found, key=lambda letter: (letter.dead.at, letter.place))


async def those(log: Reader, partitions: int, places: Iterable[Place]) -> list[Letter]:
    """The dead letters at these places, as far as there are any, whatever became of them.

    Args:
        partitions: Of the topic.

    Raises:
        LogUnavailable: the log cannot be read.
    """
    offsets: dict[int, set[int]] = {}
    for partition, offset in places:
        offsets.setdefault(partition, set()).add(offset)
    found: list[Letter] = []
    for partition, wanted in sorted(offsets.items()):
        if partition >= partitions:
            continue
        letters: dict[int, Letter] = {}
        async for records in log.read(DEAD_LETTERS, partition, offset=min(wanted)):
            for record in records:
                if record.offset in wanted or is_mark(record):
                    _take(letters, record, Wanted(lot=None))
        found += letters.values()
    return found


async def at(log: Reader, place: Place) -> Letter | None:
    """The dead letter at a place, whole; None where there is none.

    Raises:
        LogUnavailable: the log cannot be read.
    """
    partition, offset = place
    letter: Letter | None = None
    async for records in log.read(DEAD_LETTERS, partition, offset=offset):
        for record in records:
            if is_mark(record):
                mark = readable_mark(record)
                if letter is not None and mark is not None and mark.letter == offset:
                    letter = replace(letter, mark=letter.mark or mark)
            elif record.offset == offset:
                letter = letter_of(dead_letters.read(record))
    return letter


def letter_of(dead: DeadLetter) -> Letter:
    """A dead letter of which nothing is known to have become anything."""
    size = len(dead.value or b"") if dead.lost_bytes is None else dead.lost_bytes
    attempt = readable_attempt(original_of(dead)) if dead.place.topic == SUBTASKS else None
    return Letter(dead=dead, size=size, job=job_of(dead), attempt=attempt)


def readable_mark(record: Record) -> Mark | None:
    """The mark of a record; None for what is none, which somebody else put there."""
    try:
        return read_mark(record)
    except Unreadable:
        return None


def _take(letters: dict[int, Letter], record: Record, wanted: Wanted) -> None:
    if is_mark(record):
        mark = readable_mark(record)
        letter = letters.get(mark.letter) if mark else None
        if mark and letter:
            letters[mark.letter] = replace(letter, mark=letter.mark or mark)  # the first one counts
    elif wanted.takes(dead := dead_letters.read(record)):
        letter = letter_of(dead)
        letters[record.offset] = replace(letter, dead=replace(dead, value=None))
