"""Gaps in a partition of ``job-events``: lost events, or transactions of somebody who should not write there.

None of ours writes transactions to it, so that its offsets have no gaps and a missing event is noticed.
But Kafka keeps nobody who may write from doing so in a transaction, whose end is a record that no reader
sees; a partition must not stay closed for that.
"""

from collections.abc import AsyncGenerator

import structlog

from streams.log import Reader, Record
from streams.table import GapInLog, Table
from streams.topics import JOB_EVENTS


async def awaits(table: Table, event: Record, log: Reader) -> bool:
    """As :meth:`streams.table.Table.awaits`; a gap in which no event can be missing is passed over.

    Retention and whoever deletes records take a partition's beginning, never its middle. So while the
    event before a gap is still there, nothing behind it was deleted.

    Raises:
        GapInLog: events may be missing.
        LogUnavailable: the log does not say in time.
    """
    try:
        return table.awaits(event)
    except GapInLog:
        before = (table.position or 0) - 1
        if not await _there(log, event.partition, before):
            raise
    log_line = structlog.get_logger().bind(part="orchestrator", partition=event.partition)
    log_line.warning("gap_passed_over", position=table.position, offset=event.offset)
    table.position = event.offset
    return True


async def _there(log: Reader, partition: int, offset: int) -> bool:
    reading = log.read(JOB_EVENTS, partition, offset=offset)
    try:
        async for records in reading:
            return records[0].offset == offset
    finally:
        if isinstance(reading, AsyncGenerator):
            await reading.aclose()
    return False
