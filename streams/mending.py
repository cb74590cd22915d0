"""Rows of a table that cannot be read are mended from the log, job by job, before anything is folded.

Only Anabranch writes rows, so this is somebody's mistake or a disk's. The log is the source of truth:
each job of which a row is damaged is folded anew, up to the position, and its rows are written again;
what its events asked for was given then, since it landed with the position. The damaged rows are dead
letters. Of a job whose beginning is past the log's retention nothing can be made but its end.
"""

from collections.abc import AsyncIterator
from typing import Final

import structlog

from streams import dead_letters
from streams.core.events import GoalRejected
from streams.core.goal import Source
from streams.core.states import Finished, Job, New
from streams.core.values import JobId
from streams.damage import is_account
from streams.effects import Sending, land, row_of
from streams.log import Log, Record, Transactions
from streams.rebuilding import fold_past, parts, read_given
from streams.table import Table
from streams.topics import ANSWERS, DEAD_LETTERS, JOB_EVENTS, JOBS
from streams.wire.answers import read_answer
from streams.wire.envelope import Unreadable
from streams.wire.events import write_event

FORGOTTEN: Final = (
    "the rows of this job cannot be read, and its beginning is past the retention of job-events: see the "
    "dead letters of the topic jobs; send the goal again under a new id"
)


class Mending:
    """The mending of one partition's table.

    Args:
        table: Restored, with damage.
        lanes: Partitions of the system.
        batch: Records of one transaction at most.
    """

    def __init__(
        self,
        table: Table,
        log: Log,
        transactions: Transactions,
        partition: int,
        *,
        lanes: int,
        batch: int,
    ) -> None:
        self._table, self._log, self._transactions = table, log, transactions
        self._partition, self._lanes, self._batch = partition, lanes, batch
        self._logger = structlog.get_logger().bind(part="orchestrator", partition=partition)

    async def run(self) -> None:
        """Write the rows of damaged jobs again, and bury the damaged rows.

        A crash before the end begins anew: the damaged rows go with the last transaction.

        Raises:
            Fenced, LogUnavailable, RecordRefused: begin anew, with a new producer.
        """
        damage = self._table.damage
        mended = await self._folded(damage.jobs)
        forgotten = [job for job in damage.jobs if job not in mended]
        for job in forgotten:
            if not is_account(job):  # one that nothing is left of begins anew with the next job that asks
                await self._end(job)
        for job, state in mended.items():
            self._table[job] = state
        owed = [(0, sending) for sending in self._rows()]
        owed += [(0, sending) async for sending in self._letters()]
        for part in parts(owed, self._batch):
            await land(self._transactions, [sending for _, sending in part])
        self._table.committed()
        self._logger.warning("table_mended", rows=damage.reasons, jobs=len(mended), forgotten=forgotten)

    async def _folded(self, jobs: set[JobId]) -> dict[JobId, Job]:
        """These jobs as they were at the table's position; without those of which nothing is known."""
        if not jobs:
            return {}
        given = await read_given(self._log, self._partition)
        keys, scratch = {job.encode() for job in jobs}, Table()
        async for records in self._log.read(JOB_EVENTS, self._partition):
            for record in records:
                if record.key in keys and record.offset < (self._table.position or 0):
                    fold_past(scratch, record, given, self._lanes)
        known = {job: scratch[job] for job in jobs if not isinstance(scratch[job], New)}
        return known | await self._answered(jobs - known.keys())

    async def _answered(self, jobs: set[JobId]) -> dict[JobId, Job]:
        """The markers of those of these jobs that have an answer."""
        keys, markers = {job.encode() for job in jobs}, dict[JobId, Job]()
        async for records in self._log.read(ANSWERS, self._partition):
            for record in records:
                if record.key in keys:
                    markers |= _marker(record)
        return markers

    async def _end(self, job: JobId) -> None:
        """Nobody knows any more how far this job was: whoever waits for its answer gets one."""
        place = Source(topic=JOBS, partition=self._partition, offset=0)
        event = GoalRejected(job=job, reason=FORGOTTEN, source=place)
        delivery = await self._log.producer.send(
            JOB_EVENTS, write_event(event), key=job.encode(), partition=self._partition
        )
        await delivery

    def _rows(self) -> list[Sending]:
        """The rows of the mended jobs, and the end of those that no job has."""
        rows = dict(self._table.changes())
        left = self._table.leftovers - rows.keys() if self._table.position is not None else ()
        ends = [row_of(self._partition, name, None) for name in left]
        return [*(row_of(self._partition, name, row) for name, row in rows.items()), *ends]

    async def _letters(self) -> AsyncIterator[Sending]:
        """The damaged rows as dead letters, and their end; but the end of a row that is written again."""
        written = {name for name, row in self._table.changes() if row is not None}
        reasons = {name.encode(errors="surrogateescape"): name for name in self._table.damage.reasons}
        newest: dict[bytes, Record] = {}
        async for records in self._log.read(JOBS, self._partition):
            newest.update({each.key or b"": each for each in records if (each.key or b"") in reasons})
        for key, name in reasons.items():
            record, reason = newest.get(key), self._table.damage.reasons[name]
            if record is None or record.value is None:
                continue  # a row that is missing
            yield DEAD_LETTERS, self._partition, dead_letters.write(record, reason)
            if name not in written:
                yield JOBS, self._partition, (key, None, ())


def _marker(record: Record) -> dict[JobId, Job]:
    try:
        answer = read_answer(record)
    except Unreadable:
        return {}
    at, outcome = answer.answered_at, answer.outcome
    return {answer.job: Finished(digest="", outcome=outcome, offset=-1, at=at, revision=answer.revision)}
