"""What a waiting goal costs: memory that is bounded, also where a hundred thousand wait."""

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import orjson
import pytest
from hypothesis import given

from streams.core.events import Event, JobSubmitted
from streams.core.job import absorb
from streams.core.pacing import Pacing
from streams.core.states import Job, New, Open
from streams.core.values import Json
from streams.log import Headers, Record
from streams.memory_log import MemoryCluster
from streams.memory_log.virtual_time import run
from streams.sharing import shared
from streams.table import Table
from streams.timers import Timers
from streams.topics import JOBS
from streams.wire.events import read_event, write_event
from streams.wire.goals import read_goal
from streams.wire.rows import write_row
from tests.core.histories import histories, walk

JOBS_WAITING = 1_000
BYTES = 2_800
"""Of Python's objects a goal; the allocator adds about an eighth, and then it is 3,000."""

PLAIN: dict[str, Json] = {
    "goal": "Audit the licences of package %d, and say which of them are not permissive"
}
PLANNED: dict[str, Json] = {"goal": "Audit package %d", "plan": [{"id": "audit", "goal": "Audit package %d"}]}
DIRECT: dict[str, Json] = {
    "goal": "Audit package %d",
    "tools": ["noop"],
    "plan": [{"id": "t1", "tool": "noop", "args": {"name": "package-%d"}, "dep": []}],
}
LIMITED: dict[str, Json] = {
    **PLAIN,
    "tenant": "acme",
    "priority": 9,
    "deadline_s": 3_600,
    "limits": {"concurrency": 5, "timeout_s": 60},
    "budget": {"tokens": 50_000},
}
HEADERS: Headers = (
    ("content-type", b"application/json"),
    ("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
)


def events(goal: dict[str, Json], headers: Headers) -> list[Record]:
    """As intake puts them on the log."""
    records = []
    for number in range(JOBS_WAITING):
        value = orjson.dumps({"id": f"{number:032x}", **goal}).replace(b"%d", b"%d" % number)
        event = read_goal(Record("goals", 0, number, 0, b"", value, headers), lanes=8)
        assert isinstance(event, JobSubmitted)
        at = 1_800_000_000_000 + number
        records.append(Record("job-events", 0, 10**6 + number, at, event.job.encode(), write_event(event)))
    return records


@contextmanager
def traced(taken: list[float]) -> Iterator[None]:
    """Bytes that live at the end and did not at the beginning, a waiting job."""
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        yield
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        taken.append((after - before) / JOBS_WAITING)
    finally:
        tracemalloc.stop()


class Waiting:
    """What a partition keeps of jobs while its window is full."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._pacing = Pacing(0)
        self._timers = Timers(monotonic=lambda: 0.0, chance=lambda: 0.5, grace_s=5.0)

    def take(self, job: Job) -> None:
        """As the orchestrator does with a job that is new to it."""
        self._pacing.touch(New(), job)
        self._timers.arm(New(), job)

    def fold(self, record: Record) -> None:
        """A goal came."""
        event = read_event(record)
        self.table[event.job], _ = absorb(New(), event)
        self.take(self.table[event.job])
        if record.offset % 100 == 0:
            self.table.committed()


KINDS = pytest.mark.parametrize(
    ("goal", "headers"),
    [(PLAIN, ()), (PLANNED, ()), (DIRECT, ()), (LIMITED, HEADERS)],
    ids=["plain", "planned", "direct", "limited"],
)


@KINDS
def test_a_goal_that_waits_costs_less_than_three_kilobytes(goal: dict[str, Json], headers: Headers) -> None:
    """In all that a worker keeps of it."""
    records, taken = events(goal, headers), list[float]()
    with traced(taken):
        waiting = Waiting(Table())
        for record in records:
            waiting.fold(record)
        waiting.table.committed()
    assert taken[0] < BYTES


@KINDS
def test_after_a_restore_it_costs_no_more(goal: dict[str, Json], headers: Headers) -> None:
    """From the rows as they were committed."""
    records, taken = events(goal, headers), list[float]()

    async def story() -> None:
        log = MemoryCluster({JOBS: 1}).connect("worker")
        before = Waiting(Table())
        before.table.position = 0
        for record in records:
            event = read_event(record)
            before.table[event.job], _ = absorb(New(), event)
        async with log.transactions("orchestrator-0") as transactions, transactions.transaction():
            for key, row in before.table.changes():
                value = None if row is None else write_row(row)
                await transactions.send(JOBS, value, key=key.encode(), partition=0)
        with traced(taken):
            after = Waiting(await Table.restore(log, 0))
            for job in after.table.open_jobs():
                after.take(job)
        assert sum(1 for _ in after.table.open_jobs()) == JOBS_WAITING

    run(story())
    assert taken[0] < BYTES


@given(histories())
def test_a_job_of_shared_parts_is_the_same_job(history: list[Event]) -> None:
    """And goes on as it would have."""
    for step in walk(history):
        if isinstance(step.before, Open):
            assert shared(step.before) == step.before
            assert absorb(shared(step.before), step.event) == (step.after, step.effects)
