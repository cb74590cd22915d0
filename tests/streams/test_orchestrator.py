"""The orchestrator: what lands together, what waits for it, and what it does with events it cannot take."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from streams import dead_letters
from streams.core.commands import Answer, MakePlan, RunSubTask
from streams.core.events import Event, JobSubmitted, Planned, SubTaskFailed, SubTaskStarted, SubTaskSucceeded
from streams.core.goal import Goal, Source
from streams.core.values import PLAN, Inline
from streams.log import Claim, Record
from streams.memory_log import Faults, Limits, MemoryCluster, MemoryLog
from streams.memory_log.virtual_time import run
from streams.orchestrator import Orchestrator
from streams.settings import Settings
from streams.table import GapInLog
from streams.topics import ANSWERS, DEAD_LETTERS, JOB_EVENTS, JOBS, SUBTASKS
from streams.wire.answers import read_answer
from streams.wire.commands import read_command
from streams.wire.events import write_event
from streams.wire.rows import POSITION_KEY, PositionRow, read_row
from tests.streams.scripted import Script, chain, flat
from tests.streams.swarm_in_memory import SwarmInMemory

TOPICS = (JOB_EVENTS, JOBS, SUBTASKS, ANSWERS, DEAD_LETTERS)
STAGE_S = 10.0
GOAL = Goal(text=Inline(value="2"))


def submitted(name: str = "g") -> Event:
    return JobSubmitted(job=f"default/{name}", goal=GOAL, source=Source(topic="goals", partition=0, offset=0))


def planned(name: str = "g", count: int = 2) -> Event:
    return Planned(job=f"default/{name}", task=PLAN, attempt=1, plan=flat(count))


def started(task: str, name: str = "g") -> Event:
    return SubTaskStarted(job=f"default/{name}", task=task, attempt=1, run="run")


def succeeded(task: str, name: str = "g", result: str = "done") -> Event:
    size = len(result) + 2
    return SubTaskSucceeded(
        job=f"default/{name}", task=task, attempt=1, result=Inline(value=result), size=size
    )


class OnePartition:
    """A system of one partition: events in, rows, commands and answers out. No lane works."""

    def __init__(self, *, record_bytes: int = 1_048_576) -> None:
        limits = Limits(record_bytes=record_bytes, topic_bytes={DEAD_LETTERS: record_bytes + 1_000})
        self.cluster = MemoryCluster(dict.fromkeys(TOPICS, 1), limits=limits)
        self.outside = self.cluster.connect("outside")
        self.settings = Settings(lanes=1, stage_s=STAGE_S)

    def orchestrator(self) -> MemoryLog:
        """Start one."""
        log = self.cluster.connect("worker")
        log.start(Orchestrator(log, self.settings, chance=lambda: 0.5).run())
        return log

    async def put(self, *events: Event | bytes) -> None:
        """Put events on the log, and let them be folded."""
        for event in events:
            value, key = (
                (event, b"k") if isinstance(event, bytes) else (write_event(event), event.job.encode())
            )
            await (await self.outside.producer.send(JOB_EVENTS, value, key=key, partition=0))
        await asyncio.sleep(0.1)

    def records(self, topic: str) -> Sequence[Record]:
        return self.cluster.records(topic, 0)

    def positions(self) -> list[int]:
        """The positions committed so far, in order."""
        rows = [read_row(r) for r in self.records(JOBS) if r.value and r.key == POSITION_KEY.encode()]
        return [row.offset for row in rows if isinstance(row, PositionRow)]

    def asked(self) -> list[str]:
        """Tasks of the commands so far."""
        return [read_command(record).task for record in self.records(SUBTASKS)]

    def answers(self) -> dict[str, Answer]:
        answers = [read_answer(record) for record in self.records(ANSWERS)]
        assert len({answer.id for answer in answers}) == len(answers)
        return {answer.id: answer for answer in answers}


def test_what_an_event_asks_for_lands_at_once_with_its_rows_and_position() -> None:
    """The plan's command, then a command for each sub-task, then the answer's."""

    async def story() -> None:
        here = OnePartition()
        here.orchestrator()
        await here.put()  # it begins before there is anything
        await here.put(submitted())
        assert (here.asked(), here.positions()) == ([PLAN], [1])
        (command,) = [read_command(record) for record in here.records(SUBTASKS)]
        assert isinstance(command, MakePlan)
        await here.put(planned())
        assert (here.asked(), here.positions()) == ([PLAN, "t0", "t1"], [1, 2])
        assert [r.key for r in here.records(SUBTASKS)][1:] == [b"default/g/t0/1", b"default/g/t1/1"]
        assert isinstance(read_command(here.records(SUBTASKS)[1]), RunSubTask)
        await here.put(succeeded("t0"), succeeded("t1"))
        assert here.asked()[3:] == ["answer"]
        await here.put(succeeded("answer", result="42"))
        assert here.answers()["g"].value == "42"
        assert here.positions()[-1] == 5

    run(story())


def test_no_more_is_out_than_keeps_every_slot_busy() -> None:
    """Of a flood of goals; the rest wait where their priority still counts, and their end costs nothing."""

    async def story() -> None:
        here = OnePartition()
        here.settings = replace(here.settings, concurrency=2)
        here.orchestrator()
        await here.put(*(submitted(f"g{number}") for number in range(10)))
        assert here.asked() == [PLAN] * 4
        await here.put(planned("g0", count=1))
        assert here.asked() == [*[PLAN] * 4, "t0"]

    run(story())


def test_a_batch_that_asks_for_nothing_lands_with_the_next_that_does() -> None:
    """One transaction for all of them."""

    async def story() -> None:
        here = OnePartition()
        here.orchestrator()
        await here.put(submitted(), planned())
        before = here.positions()
        await here.put(started("t0"))
        await here.put(started("t1"))
        await here.put(succeeded("t0"))
        assert here.positions() == before, "these ask for nothing"
        await here.put(succeeded("t1"))
        assert here.asked()[-1] == "answer"
        assert here.positions() == [*before, 6]

    run(story())


def test_a_batch_that_asks_for_nothing_lands_alone_once_its_time_is_over() -> None:
    """The time of the first of them counts."""

    async def story() -> None:
        here = OnePartition()
        here.orchestrator()
        await here.put(submitted(), planned())
        before = here.positions()
        await here.put(started("t0"))
        await asyncio.sleep(STAGE_S - 2)
        await here.put(started("t1"))
        assert here.positions() == before
        await asyncio.sleep(2)
        assert here.positions() == [*before, 4]
        await asyncio.sleep(5 * STAGE_S)
        assert here.positions() == [*before, 4], "nothing new, nothing written"

    run(story())


def test_what_is_staged_and_not_landed_is_folded_again_after_a_kill() -> None:
    """The next owner begins at the position that landed."""

    async def story() -> None:
        here = OnePartition()
        first = here.orchestrator()
        await here.put(submitted())
        await here.put(planned())
        await here.put(started("t0"), succeeded("t0"))
        first.kill()
        assert here.positions()[-1] == 2
        here.orchestrator()
        await asyncio.sleep(30)
        await here.put(succeeded("t1"), succeeded("answer"))
        answer = here.answers()["g"]
        assert {report.task: report.outcome for report in answer.subtasks} == {
            "t0": "succeeded",
            "t1": "succeeded",
        }
        assert sorted(here.asked()) == ["answer", PLAN, "t0", "t1"], "nothing is asked for twice"

    run(story())


def test_whoever_takes_over_tells_the_group_what_is_done() -> None:
    """Also where nothing is left to do: lag is 0 although the owner before could not tell any more."""

    async def story() -> None:
        here = OnePartition()
        first = here.orchestrator()
        await here.put(submitted())
        assert set(here.positions()) == {1}
        assert not here.cluster.committed("orchestrator", JOB_EVENTS)
        first.kill()
        here.orchestrator()
        await asyncio.sleep(60)
        assert here.cluster.committed("orchestrator", JOB_EVENTS) == {0: 1}

    run(story())


def test_events_that_cannot_be_read_are_buried_and_hold_up_nobody() -> None:
    """A tombstone's place is the log's; poison of any kind is a dead letter with its place."""

    async def story() -> None:
        here = OnePartition()
        here.orchestrator()
        with capture_logs():
            await here.put(
                submitted("a"), b"\xff", b'{"v": 99}', b'{"v": 1, "type": "Nonsense"}', submitted("b")
            )
        letters = [dead_letters.read(record) for record in here.records(DEAD_LETTERS)]
        assert [(letter.place.topic, letter.place.offset) for letter in letters] == [
            ("job-events", offset) for offset in (1, 2, 3)
        ]
        assert [letter.value for letter in letters] == [
            b"\xff",
            b'{"v": 99}',
            b'{"v": 1, "type": "Nonsense"}',
        ]
        assert all(letter.reason for letter in letters)
        assert [read_command(record).job for record in here.records(SUBTASKS)] == ["default/a", "default/b"]
        assert here.positions()[-1] == 5

    run(story())


def test_an_event_of_a_job_under_way_that_cannot_be_committed_ends_its_job_with_the_reason() -> None:
    """Here a result that fits on the log as an event, and does not as a row. Other jobs go on."""

    async def story() -> None:
        here = OnePartition(record_bytes=9_000)
        here.orchestrator()
        await here.put(submitted("a"), submitted("b"), planned("a"), planned("b"))
        with capture_logs():  # to print the tracebacks takes most of the time
            room = 9_000 - len("default/a") - len(write_event(succeeded("t0", "a", ""))) - 3  # of its size
            event = succeeded("t0", "a", "x" * room)
            await here.put(
                started("t0", "b"), succeeded("t0", "b"), event, succeeded("t1", "b"), succeeded("t1", "a")
            )
            await asyncio.sleep(300)
            await here.put(succeeded("answer", "b"))
        (letter,) = [dead_letters.read(record) for record in here.records(DEAD_LETTERS)]
        assert letter.place.offset == 6
        broken, whole = here.answers()["a"], here.answers()["b"]
        assert (broken.rule, whole.rule) == ("broken", "all_done")
        assert "refused" in broken.reason
        assert whole.outcome == "succeeded"

    run(story())


def test_a_gap_in_the_log_is_an_error_that_names_it() -> None:
    """Each time anew, and nothing of what comes behind it is folded."""

    async def story() -> None:
        here = OnePartition()
        log, told = here.cluster.connect("worker"), list[str]()
        orchestrator = Orchestrator(log, here.settings)

        async def lead(claim: Claim) -> None:
            try:
                await orchestrator.lead(claim)
            except GapInLog as error:
                told.append(str(error))
                raise

        with capture_logs() as lines:
            log.start(log.own(JOB_EVENTS, "orchestrator", lead))
            await here.put(submitted("a"), submitted("b"))
            await asyncio.sleep(1)
            log.pause()
            await here.put(submitted("lost"))
            here.cluster.partition(JOB_EVENTS, 0).delete_before(3)
            await here.put(submitted("c"))
            log.resume()
            await asyncio.sleep(60)
        assert len(told) > 2
        assert {line.partition(":")[0] for line in told} == {"job-events[0] goes from offset 2 to 3"}
        assert "owner_failed" in {line["event"] for line in lines}
        assert [read_command(record).job for record in here.records(SUBTASKS)] == ["default/a", "default/b"]
        assert max(here.positions()) <= 2

    run(story())


@pytest.mark.parametrize("wiped", [False, True])
def test_a_strangers_transaction_closes_no_partition(wiped: bool) -> None:
    """Its end is a gap in which no event is missing; also where the table is rebuilt over it."""

    async def story() -> None:
        here = OnePartition()
        worker = here.orchestrator()
        await here.put(submitted("a"))
        for number, name in enumerate(("b", "c", "d")):
            async with here.outside.transactions(f"stranger-{number}") as foreign:
                with contextlib.suppress(RuntimeError):
                    async with foreign.transaction():
                        await foreign.send(JOB_EVENTS, b"x", key=b"k", partition=0)
                        if number:
                            raise RuntimeError
            await here.put(submitted(name))
        if wiped:
            await asyncio.sleep(1)
            worker.kill()
            here.cluster.wipe(JOBS)
            here.orchestrator()
        await asyncio.sleep(60)
        assert {read_command(record).job for record in here.records(SUBTASKS)} == {
            f"default/{name}" for name in "abcd"
        }
        letters = [dead_letters.read(record).value for record in here.records(DEAD_LETTERS)]
        assert letters == [b"x"]  # what was committed; the rest is seen by nobody

    run(story())


DELAYS = Faults(delay_s=0.04)
MOMENTS = [0.0, 0.05, 0.2, 0.31, 0.32, 0.5, 0.61, 0.65, 0.8, 0.91, 0.95, 1.1, 1.21, 1.25, 1.5, 1.6, 2.0]


def what_was_answered(*kills_s: float) -> dict[str, Any]:
    """All answers, with workers killed so many seconds after the last one began."""

    async def story() -> dict[str, Any]:
        script = Script({"chain": chain(3), "flat": flat(6)})
        swarm = SwarmInMemory(script=script, settings=Settings(lanes=2, concurrency=8), faults=DELAYS)
        worker = swarm.worker()
        for goal in ("chain", "flat", "1"):
            await swarm.submit({"id": goal, "goal": goal})
        for seconds in kills_s:
            await asyncio.sleep(seconds)
            worker.kill()
            worker = swarm.worker()
            await asyncio.sleep(6)  # until the partitions of the dead have moved
        answers = await swarm.answers(3)
        return {
            name: (answer.outcome, answer.rule, answer.value, answer.subtasks, answer.usage)
            for name, answer in answers.items()
        }

    return run(story())


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_any_moment_the_answers_are_the_same(moment: float) -> None:
    """Outcome, value, reports, attempts and what was spent; killed once, and once more."""
    assert what_was_answered(moment, moment / 2) == what_was_answered()


def test_events_of_unknown_jobs_change_nothing() -> None:
    """Late words of a job that nobody knows any more."""

    async def story() -> None:
        here = OnePartition()
        here.orchestrator()
        failed = SubTaskFailed(job="default/none", task="t", attempt=1, kind="x", reason="")
        await here.put(started("t", "none"), succeeded("t", "none"), failed)
        await asyncio.sleep(2 * STAGE_S)
        assert here.positions() == [3]
        assert [record.key for record in here.records(JOBS)] == [POSITION_KEY.encode()]
        assert not here.records(SUBTASKS)
        assert not here.records(ANSWERS)

    run(story())
