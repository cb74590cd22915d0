"""All that the log has of one job: its events, its journal, its answers."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, cast

from streams.core.job import absorb
from streams.core.states import Finished, Job, New, Open
from streams.core.values import JobId
from streams.following import readable
from streams.job_logs import markers
from streams.log import Log, Record
from streams.topics import ANSWERS, JOB_EVENTS, TRANSCRIPTS, partition_of
from streams.wire.events import read_event

LATE_MS: Final = 60_000
"""Milliseconds by which a record of a job may be written before its goal was accepted, or after its
end and the timeout of the attempts that were under way then."""
SKEW_MS: Final = 3_600_000
"""Milliseconds by which a worker's clock, which dates answers, may be behind the brokers'."""


class JobUnknown(Exception):
    """The log has no event of this job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One job's records, as they stand on their topics.

    Attributes:
        events: Of ``job-events``, in order.
        transcripts: Of ``transcripts``, by partition and offset: journal entries of all attempts,
            and the chunks of values too large for a record.
        answers: Of ``answers``: one, or one a revision.
    """

    job: JobId
    events: tuple[Record, ...] = ()
    transcripts: tuple[Record, ...] = ()
    answers: tuple[Record, ...] = ()

    @property
    def records(self) -> tuple[Record, ...]:
        """All of them."""
        return (*self.events, *self.transcripts, *self.answers)


class RecordedLog:
    """A recording to be read as the log it came from (a :class:`streams.log.Reader`)."""

    def __init__(self, recording: Recording) -> None:
        self._records = recording.records

    async def read(
        self, topic: str, partition: int, *, offset: int | None = None, since: int | None = None
    ) -> AsyncIterator[Sequence[Record]]:
        """Records as of :meth:`streams.log.Reader.read`."""
        found = [
            record
            for record in self._records
            if record.topic == topic
            and record.partition == partition
            and record.offset >= (offset or 0)
            and (offset is not None or record.timestamp >= (since or 0))
        ]
        if found:
            yield found


async def record_job(log: Log, job: JobId, *, since: int = 0, calls: bool = True) -> Recording:
    """Read a job from the log, without a group: nobody notices.

    Args:
        since: The job's goal came at or after this (milliseconds since 1970). Without it the job's
            partition is read from its beginning.
        calls: Whether to read the transcripts, which stand on all partitions.

    Raises:
        JobUnknown: there is no event of it.
        LogUnavailable: the log cannot be read.
    """
    lanes = await log.partitions(JOB_EVENTS)
    place = partition_of(job, lanes)
    marker = (await markers(log, place, [job])).get(job)
    events, over = await _events(log, job, place, since, marker)
    if not events:
        raise JobUnknown(
            f"no event of {job} on {JOB_EVENTS}[{place}]: is the id right, and is it within retention?"
        )
    began = events[0].timestamp
    prefix, key = f"{job}/".encode(), job.encode()

    def of_attempts(record: Record) -> bool:
        return record.key is not None and record.key.startswith(prefix)

    transcripts: list[Record] = []
    for lane in range(lanes if calls else 0):
        transcripts += await _read(log, TRANSCRIPTS, lane, of_attempts, since=began - LATE_MS, over=over)
    answers = await _read(log, ANSWERS, place, lambda record: record.key == key, since=began - SKEW_MS)
    return Recording(job=job, events=events, transcripts=tuple(transcripts), answers=tuple(answers))


async def _events(
    log: Log, job: JobId, partition: int, since: int, marker: Finished | None
) -> tuple[tuple[Record, ...], int | None]:
    """The job's events, and the time (ms) after which nothing of it comes any more, if it ended.

    Args:
        marker: How it ended for the last time; it may have been opened again before.
    """
    key = job.encode()
    events: list[Record] = []
    state: Job = New()
    timeout_ms, over = 0, None
    async with aclosing(_batches(log, JOB_EVENTS, partition, since)) as batches:
        async for records in batches:
            if over is not None and records[0].timestamp > over:
                break
            for record in records:
                if record.key != key:
                    continue
                events.append(record)
                if (event := readable(read_event, record)) is not None:
                    state, _ = absorb(state, event)
                if isinstance(state, Open):
                    timeout_ms = int(state.submitted.goal.limits.longest_s * 1000)
                if marker is not None and record.offset >= marker.offset:
                    over = marker.at + timeout_ms + LATE_MS
    return tuple(events), over


async def _read(
    log: Log,
    topic: str,
    partition: int,
    wanted: Callable[[Record], bool],
    *,
    since: int,
    over: int | None = None,
) -> list[Record]:
    found: list[Record] = []
    async with aclosing(_batches(log, topic, partition, max(0, since))) as batches:
        async for records in batches:
            if over is not None and records[0].timestamp > over:
                break
            found += filter(wanted, records)
    return found


def _batches(log: Log, topic: str, partition: int, since: int) -> AsyncGenerator[Sequence[Record], None]:
    # Both implementations are generators; one that is left early must be closed, or its reader stays.
    return cast("AsyncGenerator[Sequence[Record], None]", log.read(topic, partition, since=since))
