"""What folding an event asks for, as records that land together."""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import structlog

from streams import dead_letters
from streams.core.commands import Answer, Bury, Effect
from streams.core.events import Event, GoalRejected, JobBroken, JobSubmitted
from streams.core.states import Job, Open
from streams.core.values import JobId
from streams.log import Entry, Record, Transactions
from streams.topics import ANSWERS, DEAD_LETTERS, JOBS, MAX_RECORD_BYTES
from streams.wire.answers import write_answer
from streams.wire.envelope import Unreadable
from streams.wire.events import read_event
from streams.wire.rows import Row, write_row

Sending: TypeAlias = tuple[str, int, Entry]
"""Topic, partition and record."""

LARGE_BYTES: Final = MAX_RECORD_BYTES - 65_536
"""Above this a record and the headers of a dead letter may be too large together."""

REFUSED: Final = "what this event asks for was refused by Kafka twice, the second time by itself"
"""The reason on the dead letter of an event that was not folded, since what it asks for cannot land."""


def record_of(effect: Effect, event: Record) -> Sending:
    """The record that an effect of this event is; on the event's partition."""
    match effect:
        case Answer():
            value, headers = write_answer(effect)
            return ANSWERS, event.partition, (effect.job.encode(), value, headers)
        case Bury(reason=reason, source=source):
            log = structlog.get_logger().bind(part="orchestrator", partition=event.partition)
            log.warning("event_buried", offset=event.offset, reason=reason)
            large = len(event.value or b"") > LARGE_BYTES
            write = dead_letters.write_without_value if large else dead_letters.write
            return DEAD_LETTERS, event.partition, write(event, reason, source=source)


def row_of(partition: int, name: str, row: Row | None) -> Sending:
    """The record of a row; None deletes it."""
    return JOBS, partition, (name.encode(), None if row is None else write_row(row), ())


async def land(transactions: Transactions, sendings: Iterable[Sending]) -> None:
    """Put these records on the log in one transaction, those of a partition in their order.

    Raises:
        Fenced, LogUnavailable, RecordRefused: as of the transaction.
    """
    places: dict[tuple[str, int], list[Entry]] = {}
    for topic, partition, entry in sendings:
        places.setdefault((topic, partition), []).append(entry)
    async with transactions.transaction():
        for (topic, partition), entries in places.items():
            await transactions.send_all(topic, partition, entries)


def last_word(record: Record, job_of: Callable[[JobId], Job]) -> Event | None:
    """What ends the job of an event that cannot be taken: for a goal that opened none, its rejection.

    None where the record is no event: then no job is known.

    Args:
        job_of: Jobs as they are before the event.
    """
    try:
        event = read_event(record)
    except Unreadable:
        return None
    if isinstance(event, JobSubmitted | GoalRejected):
        return GoalRejected(job=event.job, reason=REFUSED, source=event.source)
    job = job_of(event.job)
    revision = job.revision.number if isinstance(job, Open) else 1
    return JobBroken(job=event.job, reason=REFUSED, revision=revision)
