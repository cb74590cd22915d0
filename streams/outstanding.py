"""Which attempts are still open, by the table: for a lane that does not know where it was."""

from contextlib import suppress

from streams.core.states import Backoff, Ready, Released, Running
from streams.log import Reader
from streams.table import apply
from streams.topics import JOBS
from streams.transcript import attempt_key
from streams.wire.envelope import Unreadable
from streams.wire.rows import Row, SubTaskRow


async def outstanding(log: Reader, lanes: int) -> frozenset[bytes]:
    """The keys of all attempts that are not over, as committed now.

    A command and its row land in one transaction, so a command that can be read and is not here
    is over: it was answered, or its job has ended. Reads the whole table, all partitions of it.

    Raises:
        LogUnavailable: the log did not give it in time.
    """
    keys: set[bytes] = set()
    for partition in range(lanes):
        rows: dict[str, Row] = {}
        async for records in log.read(JOBS, partition):
            for record in records:
                # One that cannot be read is mended by its partition's owner, and its command given again.
                with suppress(Unreadable):
                    apply(rows, record)
        for name, row in rows.items():
            if isinstance(row, SubTaskRow) and isinstance(row.state, Ready | Released | Running | Backoff):
                job, _, task = name.rpartition("/")
                keys.add(attempt_key(job, task, row.state.attempt))
    return frozenset(keys)
