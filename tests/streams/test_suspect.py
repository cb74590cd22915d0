"""Events that cannot be committed: the one at fault is found and buried, the others are not held up."""

import asyncio
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from streams import dead_letters
from streams.core.events import (
    Event,
    GoalRejected,
    JobSubmitted,
    Planned,
    SubTaskStarted,
    SubTaskSucceeded,
)
from streams.core.goal import Goal, Source
from streams.core.plan import SubTask
from streams.core.values import PLAN, Inline
from streams.log import Record
from streams.memory_log import Limits, MemoryCluster
from streams.memory_log.virtual_time import run
from streams.orchestrator import Orchestrator
from streams.settings import Settings
from streams.suspect import Suspect, parts
from streams.topics import ANSWERS, DEAD_LETTERS, JOB_EVENTS, JOBS, SUBTASKS
from streams.wire.answers import read_answer
from streams.wire.events import write_event

RECORD_BYTES = 20_000
LIMITS = Limits(record_bytes=RECORD_BYTES, topic_bytes={DEAD_LETTERS: 2 * RECORD_BYTES})


def asks_for_nothing(number: int) -> Event:
    """As most events of a job under way."""
    return SubTaskStarted(job="default/none", task=f"t{number}", attempt=1, run="run")


def rejected(name: str, reason: str = "no goal") -> Event:
    """Its answer is a little larger than itself."""
    return GoalRejected(
        job=f"default/{name}", reason=reason, source=Source(topic="goals", partition=0, offset=0)
    )


def too_large(name: str) -> Event:
    """It has room on the log, and its answer has not."""
    return rejected(name, "x" * (RECORD_BYTES - 200))


class OnePartition:
    """A log of one partition that holds some events. To be made inside the running loop."""

    def __init__(self) -> None:
        topics = dict.fromkeys((JOB_EVENTS, JOBS, SUBTASKS, ANSWERS, DEAD_LETTERS), 1)
        self.cluster = MemoryCluster(topics, limits=LIMITS)
        self.outside = self.cluster.connect("outside")

    async def put(self, events: Sequence[Event]) -> None:
        for event in events:
            sent = self.outside.producer.send(
                JOB_EVENTS, write_event(event), key=event.job.encode(), partition=0
            )
            await (await sent)

    async def orchestrate(self, seconds: float) -> None:
        log = self.cluster.connect("worker")
        with capture_logs():  # to print the tracebacks takes most of the time
            log.start(Orchestrator(log, Settings(lanes=1)).run())
            await asyncio.sleep(seconds)
        log.kill()

    def answered(self) -> list[str]:
        return sorted(read_answer(record).id for record in self.cluster.records(ANSWERS, 0))

    def buried(self) -> list[int]:
        return [dead_letters.read(record).place.offset for record in self.cluster.records(DEAD_LETTERS, 0)]


@settings(max_examples=10)
@given(bad=st.sets(st.integers(0, 30), max_size=3), asking=st.sets(st.integers(0, 30), max_size=8))
def test_whatever_stands_around_it_the_one_at_fault_is_buried_alone(bad: set[int], asking: set[int]) -> None:
    """Every other event has its effect, and the partition goes on."""

    def event(number: int) -> Event:
        if number in bad:
            return too_large(f"bad{number}")
        return rejected(f"good{number}") if number in asking else asks_for_nothing(number)

    async def story() -> None:
        here = OnePartition()
        await here.put([event(number) for number in range(31)])
        await here.orchestrate(600)
        assert here.buried() == sorted(bad)
        # A goal that is buried is answered all the same, with the reason why.
        assert here.answered() == sorted(
            [f"good{number}" for number in asking - bad] + [f"bad{number}" for number in bad]
        )

    run(story())


def test_an_event_whose_row_is_refused_is_found_among_those_that_ask_for_nothing() -> None:
    """Rows are staged and fail later, at a place where no event is at fault."""

    async def story() -> None:
        here = OnePartition()
        job, half = "default/wide", RECORD_BYTES * 6 // 10
        plan = (SubTask(id="large", goal="x" * half), SubTask(id="small", goal="do it"))
        goal = Goal(text=Inline(value="a goal"))
        await here.put(
            [
                JobSubmitted(
                    job=job, goal=goal, source=Source(topic="goals", partition=0, offset=0), lanes=1
                ),
                Planned(job=job, task=PLAN, attempt=1, plan=plan),
            ]
        )
        await here.orchestrate(10)
        result = Inline(value="y" * half)
        await here.put(
            [
                *(asks_for_nothing(number) for number in range(5)),
                SubTaskSucceeded(job=job, task="large", attempt=1, result=result, size=half),
                *(asks_for_nothing(number) for number in range(5)),
            ]
        )
        await here.orchestrate(600)
        assert here.buried() == [7]
        assert here.answered() == ["wide"]

    run(story())


def test_a_gap_in_the_log_is_never_skipped() -> None:
    """What comes behind it is neither folded nor buried, however often it is tried."""

    async def story() -> None:
        here = OnePartition()
        await here.put([rejected("before")])
        await here.orchestrate(10)
        await here.put([rejected("lost")])
        log = here.cluster.partition(JOB_EVENTS, 0)
        log.delete_before(log.end)
        await here.put([rejected("after")])
        await here.orchestrate(120)
        assert "after" not in here.answered()
        assert all(offset < 3 for offset in here.buried())

    run(story())


@given(
    count=st.integers(0, 40),
    limit=st.integers(1, 12),
    offset=st.integers(0, 40),
    size=st.integers(0, 40),
)
def test_parts_are_all_records_in_order_and_suspects_are_halved(
    count: int, limit: int, offset: int, size: int
) -> None:
    """No part holds suspects and others, nor more of them than half."""
    records = [Record("t", 0, number, 0, None, None) for number in range(count)]
    suspect = Suspect(offset=offset, size=size)
    cut = list(parts(records, limit, suspect))
    assert [record for part in cut for record in part] == records
    for part in cut:
        inside = [suspect.offset <= record.offset < suspect.end for record in part]
        assert len(set(inside)) == 1
        assert len(part) <= max(limit, (size + 1) // 2)
        if inside[0]:
            assert len(part) <= (size + 1) // 2
