"""What waits, and for whom: read from the table's rows, without taking part in anything."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from streams.core.states import Suspended
from streams.core.values import JobId, Json, TaskId
from streams.log import Reader
from streams.table import newest_rows
from streams.wire.envelope import Unreadable
from streams.wire.rows import JobRow, SubTaskRow, parse_row

On: TypeAlias = Literal["place", "money", "plan", "answer", "tools", "child"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Something that does not go on by itself.

    Attributes:
        on: ``place`` (its tenant's turn), ``money`` (of its tenant's day), ``plan``, ``answer`` or ``tools``
            (a person), ``child`` (another job).
        since: Broker time since when, milliseconds since 1970.
        task: The sub-task that waits; None: the whole job.
        tool, args: The call that a person is to approve.
        child: The job that is waited for.
    """

    job: JobId
    on: On
    since: int
    task: TaskId | None = None
    tool: str = ""
    args: Json = None
    child: JobId | None = None


async def waiting(log: Reader, lanes: int, tenant: str | None = None) -> AsyncIterator[Waits]:
    """All that waits, partition by partition.

    Args:
        lanes: Partitions of the system.
        tenant: Only of this one.

    Raises:
        LogUnavailable: the log cannot be read.
    """
    for partition in range(lanes):
        for key, value in (await newest_rows(log, partition)).items():
            if tenant is not None and not key.startswith(f"{tenant}/"):
                continue
            for each in in_row(key, value):
                yield each


def in_row(key: str, value: bytes) -> Iterator[Waits]:
    """What a row says of somebody who waits."""
    if b'"hold":{' not in value and b'"Suspended"' not in value:
        return
    try:
        row = parse_row(value)
    except Unreadable:
        return  # whoever owns the partition mends it
    match row:
        case JobRow(decided=decided) if (hold := decided.hold) is not None:
            yield Waits(job=key, on=hold.on, since=hold.since)
        case SubTaskRow(state=Suspended() as state):
            job, _, task = key.rpartition("/")
            on: On = "child" if state.on == "child" else "tools"
            yield Waits(
                job=job,
                on=on,
                since=state.since,
                task=task,
                tool=state.tool,
                args=state.args,
                child=state.child,
            )
