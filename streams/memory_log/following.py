"""Reading partitions as they grow."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from streams.log import Record
from streams.memory_log.partition import Partition, any_change
from streams.memory_log.reach import Reach


@asynccontextmanager
async def follow(
    reach: Reach, sources: Sequence[Partition], since: int | None
) -> AsyncIterator[AsyncIterator[Sequence[Record]]]:
    """Records of these partitions as they come; entered once the places to begin are known."""

    def begins() -> list[int]:
        return [source.stable if since is None else source.at(since) for source in sources]

    left = asyncio.Event()
    try:
        yield _as_they_come(reach, sources, await reach.call("read", "follow", begins), left)
    finally:
        left.set()
        for source in sources:
            source.wake()


async def _as_they_come(
    reach: Reach, sources: Sequence[Partition], positions: list[int], left: asyncio.Event
) -> AsyncIterator[Sequence[Record]]:
    while not left.is_set():
        await reach.there()
        behind = False
        for place, source in enumerate(sources):
            records, positions[place] = source.visible(positions[place], reach.cluster.limits.batch)
            behind = behind or positions[place] < source.stable
            if records and not left.is_set():
                behind = True  # while the caller had them, others may have come
                yield records
        if not behind:
            await any_change(sources)
