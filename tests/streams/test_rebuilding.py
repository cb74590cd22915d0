"""A lost table: rebuilt from the log as it was, and nothing that was given is given again."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from streams import dead_letters
from streams.core.commands import Answer
from streams.core.events import Event, JobSubmitted
from streams.core.goal import Goal, Source
from streams.core.values import PLAN, Inline
from streams.effects import REFUSED
from streams.memory_log import Faults
from streams.memory_log.virtual_time import run
from streams.rebuilding import LAND_BYTES, Owed, parts
from streams.settings import Settings
from streams.topics import ANSWERS, DEAD_LETTERS, JOB_EVENTS, JOBS
from streams.wire.answers import read_answer, write_answer
from streams.wire.events import read_event, write_event
from streams.wire.rows import POSITION_KEY
from tests.streams.scripted import Script, chain, flat
from tests.streams.swarm_in_memory import SwarmInMemory
from tests.streams.test_orchestrator import OnePartition, planned, started, submitted, succeeded

POISON = b"\xff"
LIFE: tuple[Event | bytes, ...] = (
    submitted("whole"),
    planned("whole"),
    succeeded("t0", "whole"),
    POISON,
    succeeded("t1", "whole"),
    succeeded("answer", "whole", "42"),
    submitted("open"),
    planned("open", 3),
    succeeded("t0", "open"),
    started("t1", "open"),
    JobSubmitted(
        job="default/whole",
        goal=Goal(text=Inline(value="another"), digest="another"),
        source=Source(topic="goals", partition=0, offset=9),
    ),
)


def rows(here: OnePartition) -> dict[bytes, bytes]:
    """The newest value of every row but the position."""
    found = {record.key or b"": record.value for record in here.records(JOBS)}
    return {key: value for key, value in found.items() if value is not None and key != POSITION_KEY.encode()}


def given(here: OnePartition) -> list[tuple[str, bytes | None, bytes | None]]:
    """Every answer and dead letter, in order."""
    return [(r.topic, r.key, r.value) for topic in (ANSWERS, DEAD_LETTERS) for r in here.records(topic)]


def test_the_rows_are_what_they_were_and_nothing_is_given_again() -> None:
    """Of a finished job its marker; of one under way all but what was released and has not begun."""

    async def story() -> None:
        here = OnePartition()
        with capture_logs():
            first = here.orchestrator()
            await here.put(*LIFE)
            await asyncio.sleep(30)
            first.kill()
            before, answered = rows(here), given(here)
            assert Counter(topic for topic, *_ in answered) == {ANSWERS: 1, DEAD_LETTERS: 2}
            here.cluster.wipe(JOBS)
            asked = here.asked()
            here.orchestrator()
            await asyncio.sleep(30)
        assert rows(here) | {b"default/open/t2": b""} == before | {b"default/open/t2": b""}
        assert given(here) == answered
        assert here.positions()[-1] == len(LIFE)
        assert here.asked()[len(asked) :] == ["t2"], "the same attempt, which its lane knows again"
        await here.put(succeeded("t1", "open"), succeeded("t2", "open"), succeeded("answer", "open", "43"))
        assert {name: each.value for name, each in here.answers().items()} == {"whole": "42", "open": "43"}

    run(story())


def test_what_was_never_given_is_given_once() -> None:
    """Events that nobody had folded when the table was lost, or ever: a system that begins anew."""

    async def story() -> None:
        here = OnePartition()
        with capture_logs():
            await here.put(*LIFE)
            for _ in range(3):
                worker = here.orchestrator()
                await asyncio.sleep(30)
                worker.kill()
                here.cluster.wipe(JOBS)
        assert Counter(topic for topic, *_ in given(here)) == {ANSWERS: 1, DEAD_LETTERS: 2}
        assert here.answers()["whole"].value == "42"
        assert PLAN not in here.asked(), "that was done before anybody asked"

    run(story())


def test_an_answer_past_its_retention_is_not_given_again() -> None:
    """Where the oldest answers are gone, what was answered before the oldest that is left was answered."""

    async def story() -> None:
        here = OnePartition()
        with capture_logs():
            await here.put(
                *LIFE[:6], submitted("b"), planned("b"), succeeded("t0", "b"), succeeded("t1", "b")
            )
            await asyncio.sleep(60)
            at = here.cluster.now_ms()
            await here.put(succeeded("answer", "b"))
            await here.put(submitted("c"), planned("c", 1), succeeded("t0", "c"))
            answer = Answer(
                job="default/b",
                id="b",
                tenant="default",
                outcome="succeeded",
                rule="all_done",
                answered_at=at,
            )
            value, _ = write_answer(answer)
            for each in (b"somebody else's, where older ones stood", value):
                await (await here.outside.producer.send(ANSWERS, each, key=b"default/b", partition=0))
            here.orchestrator()
            await asyncio.sleep(30)
        assert [read_answer(record).id for record in here.records(ANSWERS)[1:]] == ["b", "c"]

    run(story())


def test_rows_without_a_position_are_replaced() -> None:
    """What a crash in the middle of a rebuilding left, or a table that was lost in part."""

    async def story() -> None:
        here = OnePartition()
        with capture_logs():
            first = here.orchestrator()
            await here.put(*LIFE)
            await asyncio.sleep(30)
            first.kill()
            right = rows(here)
            for key, value in ((POSITION_KEY, None), ("default/none/t9", right[b"default/open/t0"])):
                await (await here.outside.producer.send(JOBS, value, key=key.encode(), partition=0))
            await here.put(succeeded("t1", "open"), succeeded("t2", "open"), succeeded("answer", "open"))
            here.orchestrator()
            await asyncio.sleep(30)
        assert rows(here).keys() == {b"default/whole", b"default/open"}
        assert len(here.answers()) == 2

    run(story())


def test_what_was_buried_is_not_folded_though_it_could_be_by_now() -> None:
    """A later version may read it, or have its rules mended: the job's life is what it was then."""

    async def story() -> None:
        here = OnePartition()
        with capture_logs():
            await here.put(submitted("a"), planned("a"), submitted("b"), planned("b"))
            await here.put(succeeded("t0", "a"), succeeded("t0", "b"))
            for offset, reason in (
                (4, "schema version 2"),
                (5, "SubTaskSucceeded could not be folded: Oops"),
            ):
                record = here.records(JOB_EVENTS)[offset]
                key, value, headers = dead_letters.write(record, reason)
                await (
                    await here.outside.producer.send(
                        DEAD_LETTERS, value, key=key, partition=0, headers=headers
                    )
                )
            answer = Answer(job="default/b", id="b", tenant="default", outcome="failed", rule="broken")
            value, _ = write_answer(answer)
            await (await here.outside.producer.send(ANSWERS, value, key=b"default/b", partition=0))
            before = given(here)
            here.orchestrator()
            await asyncio.sleep(30)
        assert given(here) == before
        assert set(here.asked()) == {"t0", "t1"}, "of a, whose t0 nobody heard of"
        assert b"default/b" in rows(here)
        assert {key for key in rows(here) if key.startswith(b"default/b/")} == set()

    run(story())


def test_an_event_whose_row_is_refused_ends_its_job_and_holds_up_nobody() -> None:
    """As where it comes while the table is there; and the same when the table is lost again."""

    def goal(text: str) -> Event:
        place = Source(topic="goals", partition=0, offset=0)
        return JobSubmitted(job="default/c", goal=Goal(text=Inline(value=text)), source=place)

    def as_large_as_can_be(event: Callable[[str], Event]) -> Event:
        """It fits on the log, and not into a row, which holds a little more."""
        return event("x" * (9_000 - len("default/a") - len(write_event(event("x" * 1_000))) + 1_000))

    async def story() -> None:
        here = OnePartition(record_bytes=9_000)
        result = as_large_as_can_be(lambda text: succeeded("t0", "a", text))
        with capture_logs():
            await here.put(submitted("a"), planned("a"), submitted("b"), planned("b", 1))
            await here.put(result, succeeded("t0", "b"), as_large_as_can_be(goal), succeeded("t1", "a"))
            for _ in range(2):
                worker = here.orchestrator()
                await asyncio.sleep(300)
                worker.kill()
                rules = {name: (answer.rule, answer.reason) for name, answer in here.answers().items()}
                assert rules == {"a": ("broken", REFUSED), "b": ("all_done", ""), "c": ("rejected", REFUSED)}
                letters = [dead_letters.read(record) for record in here.records(DEAD_LETTERS)]
                assert {(letter.place.offset, letter.reason) for letter in letters} == {
                    (4, REFUSED),
                    (6, REFUSED),
                }
                assert len(letters) == 2
                assert rows(here).keys() == {b"default/a", b"default/b", b"default/c"}
                here.cluster.wipe(JOBS)

    run(story())


DELAYS = Faults(delay_s=0.04)
MOMENTS = [0.02 + 0.09 * n for n in range(12)]


def what_was_answered(*kills_s: float) -> dict[str, Any]:
    """All answers, where the table is lost in the middle and workers are killed while it is rebuilt."""

    async def story() -> dict[str, Any]:
        script = Script({"chain": chain(3), "flat": flat(6)})
        settings = Settings(lanes=1, concurrency=8, batch=2)
        swarm = SwarmInMemory(script=script, settings=settings, faults=DELAYS)
        worker = swarm.worker()
        for goal in ("chain", "flat", "1"):
            await swarm.submit({"id": goal, "goal": goal})
        await swarm.submit(b"\xff")
        await asyncio.sleep(0.9)
        if kills_s:
            worker.kill()
            swarm.cluster.wipe(JOBS)
            worker = swarm.worker()
            await asyncio.sleep(6)  # until the partitions of the dead have moved
        for seconds in kills_s:
            await asyncio.sleep(seconds)
            worker.kill()
            worker = swarm.worker()
            await asyncio.sleep(6)
        answers = await swarm.answers(3)
        events = [read_event(record) for record in await swarm.records(JOB_EVENTS)]
        assert len({each.job for each in events}) == 3
        return {
            name: (answer.outcome, answer.rule, answer.value, answer.subtasks)
            for name, answer in answers.items()
        }

    return run(story())


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_any_moment_of_the_rebuilding_the_answers_are_the_same(moment: float) -> None:
    """With parts of two records, so that there are many moments."""
    assert what_was_answered(moment, moment / 2) == what_was_answered()


def test_what_lands_together_is_bounded_by_number_and_by_size() -> None:
    """In order; what is larger than the bound lands by itself."""

    def owed(*sizes: int) -> list[Owed]:
        return [(n, (JOBS, 0, (b"", bytes(size), ()))) for n, size in enumerate(sizes)]

    whole = LAND_BYTES
    assert list(parts([], 2)) == []
    assert [len(part) for part in parts(owed(1, 1, 1, 1, 1), 2)] == [2, 2, 1]
    assert [len(part) for part in parts(owed(whole, 1, whole - 1, 1, whole + 1), 9)] == [1, 2, 1, 1]
    assert [each for part in parts(owed(1, whole, 1), 2) for each in part] == owed(1, whole, 1)
