"""What happens to one job, event by event, from its goal to its end."""

import asyncio
from collections.abc import AsyncGenerator

from streams.answer_reader import NotAnswered
from streams.core.events import Event
from streams.core.job import absorb
from streams.core.states import Finished, Job, New
from streams.core.values import JobId
from streams.following import Following, readable, until
from streams.log import Log, Record
from streams.topics import JOB_EVENTS, partition_of
from streams.wire.events import read_event


async def life(
    log: Log, following: Following, job: JobId, *, lanes: int, since: int, within_s: float
) -> AsyncGenerator[Event, None]:
    """The events of a job up to the one that ends it, for the last time that the log knows of.

    Raises:
        NotAnswered: the job did not end in time.
        LogUnavailable: the log cannot be read.
    """
    state: Job = New()
    key = job.encode()
    coming = following.records(JOB_EVENTS, [partition_of(job, lanes)], since)
    try:
        async for record in until(coming, asyncio.get_running_loop().time() + within_s):
            if record.key != key or (event := readable(read_event, record)) is None:
                continue
            state, _ = absorb(state, event)
            yield event
            if isinstance(state, Finished) and not await _goes_on(log, state, record):
                return
    except TimeoutError:
        raise NotAnswered(job, within_s) from None
    finally:
        await coming.aclose()


async def _goes_on(log: Log, state: Job, last: Record) -> bool:
    """Whether a finished job was opened again since."""
    async for records in log.read(JOB_EVENTS, last.partition, offset=last.offset + 1):
        for record in records:
            if record.key != last.key or (event := readable(read_event, record)) is None:
                continue
            if absorb(state, event)[0] is not state:
                return True
    return False
