"""What the log says of some jobs: their events, and their rows of the table where they have finished."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streams.core.events import Event
from streams.core.reopening import standing
from streams.core.results import partition_of
from streams.core.states import Finished, Job
from streams.core.values import JobId
from streams.following import readable
from streams.log import Reader
from streams.topics import JOB_EVENTS, JOBS
from streams.wire.envelope import Unreadable
from streams.wire.events import read_event
from streams.wire.rows import parse_row


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLog:
    """One job, as the log has it.

    Attributes:
        events: All that are within retention and can be read, in order.
        marker: Its row, where that says that it has finished.
        job: As the last event leaves it.
    """

    events: tuple[Event, ...]
    marker: Finished | None
    job: Job


class JobLogs:
    """Reads the logs of some jobs; each partition once from its beginning, then only what is new.

    Args:
        lanes: Partitions of the system.
        jobs: Those that may be asked for.
    """

    def __init__(self, log: Reader, lanes: int, jobs: Iterable[JobId]) -> None:
        self._log, self._lanes = log, lanes
        self._events: dict[JobId, list[Event]] = {job: [] for job in jobs}
        self._markers: dict[JobId, Finished] = {}
        self._read_to: dict[int, int] = {}

    def also(self, job: JobId) -> None:
        """This one may be asked for, too."""
        if job not in self._events:
            partition = partition_of(job, self._lanes)
            for known in (*self._keys(partition).values(), job):
                self._events[known] = []
            self._read_to.pop(partition, None)  # what was passed over is read again

    async def of(self, job: JobId) -> JobLog:
        """A job as it stands now.

        Raises:
            KeyError: it is none of those named at the beginning.
            LogUnavailable: the log cannot be read.
        """
        partition = partition_of(job, self._lanes)
        events = self._events[job]
        if partition not in self._read_to:
            # The rows first: an event that they know of is on the log by then.
            self._markers |= await markers(self._log, partition, self._keys(partition).values())
        await self._read_events(partition)
        marker = self._markers.get(job)
        return JobLog(events=tuple(events), marker=marker, job=standing(events, marker))

    async def _read_events(self, partition: int) -> None:
        keys = self._keys(partition)
        async for records in self._log.read(JOB_EVENTS, partition, offset=self._read_to.get(partition)):
            for record in records:
                job = keys.get(record.key) if record.key is not None else None
                if job is not None and (event := readable(read_event, record)) is not None:
                    self._events[job].append(event)
            self._read_to[partition] = records[-1].offset + 1
            await asyncio.sleep(0)
        self._read_to.setdefault(partition, 0)

    def _keys(self, partition: int) -> dict[bytes, JobId]:
        jobs: Sequence[JobId] = [j for j in self._events if partition_of(j, self._lanes) == partition]
        return {job.encode(): job for job in jobs}


async def markers(log: Reader, partition: int, jobs: Iterable[JobId]) -> dict[JobId, Finished]:
    """How those of some jobs of a partition ended that have, by their rows.

    Raises:
        LogUnavailable: the log cannot be read.
    """
    rows: dict[bytes, bytes | None] = {job.encode(): None for job in jobs}
    async for records in log.read(JOBS, partition):
        rows.update((record.key, record.value) for record in records if record.key in rows)
    found: dict[JobId, Finished] = {}
    for key, value in rows.items():
        try:
            row = None if value is None else parse_row(value)
        except Unreadable:
            continue  # the events tell as much
        if isinstance(row, Finished):
            found[key.decode()] = row
    return found
