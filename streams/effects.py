"""What folding an event asks for, as records that land together."""

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import structlog

from streams import dead_letters
from streams.core.commands import Answer, Bury, StopAttempt
from streams.core.events import Event, GoalRejected, JobBroken, JobSubmitted
from streams.core.goal import Source
from streams.core.release import lane_of
from streams.core.states import Job, Open
from streams.core.values import JobId
from streams.log import Entry, Record, Transactions
from streams.topics import ANSWERS, DEAD_LETTERS, JOBS, MAX_RECORD_BYTES, SUBTASKS, partition_of
from streams.transcript import attempt_key
from streams.wire.answers import write_fitting
from streams.wire.bounds import NAME
from streams.wire.commands import write_command
from streams.wire.envelope import NewerVersion, Unreadable
from streams.wire.events import read_event
from streams.wire.rows import Row, write_row

Sending: TypeAlias = tuple[str, int, Entry]
"""Topic, partition and record."""

ANSWER_BYTES: Final = MAX_RECORD_BYTES - 131_072
"""Bytes of an answer's value and headers: what Kafka adds to 4,096 headers fits beside them."""

COMMAND_BYTES: Final = MAX_RECORD_BYTES - 65_536
"""Bytes of a command's value; what does not fit was made of results that say a wrong size."""

REFUSED: Final = "what this event asks for was refused by Kafka twice, the second time by itself"
"""The reason on the dead letter of an event that was not folded, since what it asks for cannot land."""


def record_of(effect: Answer | Bury | StopAttempt, event: Record, *, lanes: int) -> Sending:
    """The record that an effect of this event is; on the event's partition, or on the attempt's lane.

    Args:
        lanes: Partitions of the system.
    """
    match effect:
        case Answer():
            value, headers = write_fitting(effect, ANSWER_BYTES)
            return ANSWERS, event.partition, (effect.job.encode(), value, headers)
        case Bury(reason=reason, source=source):
            log = structlog.get_logger().bind(part="orchestrator", partition=event.partition)
            log.warning("event_buried", offset=event.offset, reason=reason)
            return DEAD_LETTERS, event.partition, dead_letters.write(event, reason, source=source)
        case StopAttempt(job=job, task=task, attempt=attempt):
            lane = lane_of(job, effect.ordinal, attempt, lanes)
            return SUBTASKS, lane, (attempt_key(job, task, attempt), write_command(effect), ())


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


def read_here(record: Record, lanes: int) -> Event:
    """The event of a record that stands on its job's partition: nobody would look for it elsewhere.

    Args:
        lanes: Partitions of the system.

    Raises:
        NewerVersion, Unreadable: as of :func:`streams.wire.events.read_event`.
    """
    event = read_event(record)
    if (right := partition_of(event.job, lanes)) != record.partition:
        raise Unreadable(f"stands on partition {record.partition}, events of {event.job} on {right}")
    return event


def last_word(record: Record, job_of: Callable[[JobId], Job], why: str = REFUSED) -> Event | None:
    """What ends the job of an event that cannot be taken: for a goal that opened none, its rejection.

    None where no job is known, or where the event is such a last word itself: another would fare no
    better.

    Args:
        job_of: Jobs as they are before the event.
        why: The reason.
    """
    try:
        event = read_event(record)
    except NewerVersion as newer:
        return _of_newer(record, newer, job_of)
    except Unreadable:
        return None
    if isinstance(event, JobBroken | GoalRejected) and event.reason == why:
        return None
    if isinstance(event, JobSubmitted | GoalRejected):
        return GoalRejected(job=event.job, reason=why, source=event.source)
    return _broken(event.job, why, job_of)


def _of_newer(record: Record, error: NewerVersion, job_of: Callable[[JobId], Job]) -> Event | None:
    """An event that a later version wrote is part of its job's life, which nobody here can follow."""
    job = (record.key or b"").decode(errors="replace")
    if JOB.fullmatch(job) is None:
        return None
    if error.kind in (JobSubmitted.__name__, GoalRejected.__name__):
        place = Source(topic=record.topic, partition=record.partition, offset=record.offset)
        return GoalRejected(job=job, reason=str(error), source=place)
    return _broken(job, f"{error.kind or 'an event'}: {error}", job_of)


def _broken(job: JobId, why: str, job_of: Callable[[JobId], Job]) -> JobBroken:
    now = job_of(job)
    return JobBroken(job=job, reason=why, revision=now.revision.number if isinstance(now, Open) else 1)


JOB: Final = re.compile(f"{NAME}/{NAME}")
"""``tenant/id``."""
