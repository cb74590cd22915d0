"""Marks: what became of a dead letter, said behind it on its own partition of ``dead-letters``.

A mark and what it tells of land in one transaction, so that nothing is redriven twice. A header tells
marks from dead letters; its value is JSON, as of all records of ours.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias, get_args

from streams.core.values import JobId
from streams.log import Headers, Record
from streams.wire.envelope import Kinds

MARK: Final = "anabranch-mark"
"""The header of every mark; its value is the mark's type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redriven:
    """A dead letter went back to where it came from.

    Attributes:
        letter: The dead letter's offset, on the mark's partition.
        by: Who asked for it.
        topic, partition: Where it went.
        to: Its offset there; None where it was not sent, since its job gave a new command in its place.
        job: The job that was opened again for it.
        revision: Of that job's next answer.
    """

    letter: int
    by: str
    topic: str
    partition: int
    to: int | None = None
    job: JobId | None = None
    revision: int | None = None
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Somebody is done with a dead letter.

    Attributes:
        letter: The dead letter's offset, on the mark's partition.
        by: Who says so.
        reason: Why, for whoever looks at it later.
    """

    letter: int
    by: str
    reason: str = ""
    at: int = 0
    offset: int = -1


Mark: TypeAlias = Redriven | Dropped

MARKS: Kinds[Mark] = Kinds(get_args(Mark), depth=10, placed=True)


def is_mark(record: Record) -> bool:
    """Whether a record of ``dead-letters`` is a mark; else it is a dead letter."""
    return len(record.headers) == 1 and record.headers[0][0] == MARK


def read_mark(record: Record) -> Mark:
    """The mark of a record, with the time and place at which it stands.

    Raises:
        Unreadable: it is no mark that this version knows.
    """
    return MARKS.read(record)


def write_mark(mark: Mark) -> tuple[bytes, Headers]:
    """Value and headers of a mark's record.

    Raises:
        Unwritable: a part of it has no JSON.
    """
    return MARKS.write(mark), ((MARK, type(mark).__name__.encode()),)
