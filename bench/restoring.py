"""How long a table takes to restore, and what a finished job costs in memory from then on."""

import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager

import psutil

from bench.figures import Figure
from bench.folding import history
from streams.app import quieten_collector
from streams.core.events import Event, JobSubmitted, Planned, SubTaskStarted
from streams.core.job import absorb
from streams.kafka import admin
from streams.kafka.log import KafkaLog
from streams.log import Entry
from streams.settings import Settings
from streams.table import Table
from streams.topics import JOBS
from streams.wire.rows import write_row

FINISHED, OPEN = 100_000, 1_000
OPEN_SUBTASKS = 10
AT_ONCE = 400
"""Jobs that change between two commits."""


async def restoring(servers: str) -> list[Figure]:
    """100,000 finished and 1,000 open jobs: all on one partition, and spread over eight.

    Once Kafka has compacted the topic a finished job is one row. Before that every version of every
    row is there to be read, and that it was deleted: ten records a job.
    """
    figures: list[Figure] = []
    for compacted in (True, False):
        state = "compacted" if compacted else "not compacted yet"
        for lanes in (1, 8):
            where = "one partition" if lanes == 1 else "eight partitions, one after the other"
            async with filled(servers, lanes=lanes, compacted=compacted) as (settings, count):
                found = await in_a_process_of_its_own(settings)
            name = f"{where}, {state}"
            figures.append(Figure(name=name, value=found["seconds"], unit="s", floor=5))
            if lanes == 1:
                figures.append(Figure(name=f"{name}: records read", value=count, unit=""))
                figures.append(Figure(name=f"{name}: memory", value=found["bytes"] / 1e6, unit="MB"))
    return figures


@asynccontextmanager
async def filled(servers: str, *, lanes: int, compacted: bool) -> AsyncIterator[tuple[Settings, int]]:
    """A system with such a table on Kafka, and how many records it is."""
    settings = Settings(brokers=servers, prefix=f"bench-restoring-{time.time_ns()}.", lanes=lanes)
    await admin.create(settings)
    count = 0
    async with KafkaLog(settings) as log:
        for partition in range(lanes):
            async with log.transactions(f"orchestrator-{partition}") as transactions:
                for entries in commits(partition, lanes, compacted=compacted):
                    count += len(entries)
                    async with transactions.transaction():
                        await transactions.send_all(JOBS, partition, entries)
    yield settings, count
    await admin.delete(settings)


def commits(partition: int, lanes: int, *, compacted: bool) -> Iterator[list[Entry]]:
    """The rows of one partition, by transactions, as the orchestrator writes them."""
    for first in range(partition, FINISHED, AT_ONCE * lanes):
        table = Table()
        numbers = range(first, min(first + AT_ONCE * lanes, FINISHED), lanes)
        lives = [history(f"default/{number:032x}", 1) for number in numbers]
        for events in zip(*lives, strict=True):
            fold(table, events)
            if not compacted:
                yield changed(table)
        yield changed(table)
    table = Table()
    table.position = 0
    for number in range(partition, OPEN, lanes):
        life = history(f"default/open-{number}", OPEN_SUBTASKS)
        fold(table, [each for each in life if isinstance(each, JobSubmitted | Planned | SubTaskStarted)])
    yield changed(table)


def fold(table: Table, events: Iterable[Event]) -> None:
    """Fold them into the table."""
    for event in events:
        table[event.job], _ = absorb(table[event.job], event)


def changed(table: Table) -> list[Entry]:
    """What is to be committed."""
    rows: list[Entry] = [
        (name.encode(), None if row is None else write_row(row), ()) for name, row in table.changes()
    ]
    table.committed()
    return rows


async def in_a_process_of_its_own(settings: Settings) -> dict[str, float]:
    """Restore there, for memory that nothing else has used before."""
    arguments = (sys.executable, "-m", "bench.restoring", settings.brokers, settings.prefix)
    running = await asyncio.create_subprocess_exec(
        *arguments, str(settings.lanes), stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(300):
        output, _ = await running.communicate()
    found: dict[str, float] = json.loads(output)
    return found


async def restore(settings: Settings) -> dict[str, float]:
    """Seconds that all partitions take, one after the other, and bytes that the tables grew by."""
    async with KafkaLog(settings) as log:
        quieten_collector()  # as a worker does
        before, began = psutil.Process().memory_info().rss, time.perf_counter()
        tables = [await Table.restore(log, partition) for partition in range(settings.lanes)]
        took = time.perf_counter() - began
        gc.collect()
        grown = psutil.Process().memory_info().rss - before
        finished, under_way = (
            sum(table.finished for table in tables),
            sum(1 for table in tables for _ in table.open_jobs()),
        )
    assert (finished, under_way) == (FINISHED, OPEN)
    return {"seconds": took, "bytes": grown}


if __name__ == "__main__":
    servers, prefix, lanes = sys.argv[1:]
    found = asyncio.run(restore(Settings(brokers=servers, prefix=prefix, lanes=int(lanes))))
    sys.stdout.write(json.dumps(found))
