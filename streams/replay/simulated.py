"""Whether a job's model was the simulated one; its events do not say, its journal does."""

from typing import Final

from streams.core.events import JobSubmitted
from streams.core.release import lane_of
from streams.following import readable
from streams.log import Reader
from streams.topics import TRANSCRIPTS
from streams.transcript import ModelCalled
from streams.wire.transcripts import read_transcript

EARLIER_MS: Final = 60_000
"""Milliseconds by which the clocks of two topics' partitions may differ."""


async def was_simulated(log: Reader, submitted: JobSubmitted) -> bool:
    """True where the first model call found of the job says so; False where there is none.

    The lane of its planning comes first, so the others are read only where the goal brought its plan.

    Raises:
        LogUnavailable: the log cannot be read.
    """
    ours = f"{submitted.job}/".encode()
    since = max(0, submitted.at - EARLIER_MS)
    for ordinal in range(submitted.lanes):
        lane = lane_of(submitted.job, ordinal, 1, submitted.lanes)
        async for records in log.read(TRANSCRIPTS, lane, since=since):
            for record in records:
                if not (record.key or b"").startswith(ours):
                    continue
                if isinstance(entry := readable(read_transcript, record), ModelCalled):
                    return entry.reply.simulated
    return False
