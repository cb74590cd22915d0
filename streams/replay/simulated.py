"""Whether a job's model was the simulated one; its events do not say, its journal does."""

from typing import Final

from streams.core.events import JobSubmitted
from streams.core.release import lane_of
from streams.core.values import PLAN
from streams.following import readable
from streams.log import Reader
from streams.topics import TRANSCRIPTS
from streams.transcript import ModelCalled, attempt_key
from streams.wire.transcripts import read_transcript

EARLIER_MS: Final = 60_000
"""Milliseconds by which the clocks of two topics' partitions may differ."""


async def was_simulated(log: Reader, submitted: JobSubmitted) -> bool:
    """True where the first model call of the job's planning says so; False where there is none.

    Raises:
        LogUnavailable: the log cannot be read.
    """
    lane = lane_of(submitted.job, 0, 1, submitted.lanes)
    key = attempt_key(submitted.job, PLAN, 1)
    async for records in log.read(TRANSCRIPTS, lane, since=max(0, submitted.at - EARLIER_MS)):
        for record in records:
            if record.key == key and isinstance(entry := readable(read_transcript, record), ModelCalled):
                return entry.reply.simulated
    return False
