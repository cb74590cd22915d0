"""The watchdog over lanes: it raises where work stands still, and leaves alone what only takes long."""

import asyncio
from collections.abc import Callable

import pytest

from agents.ports import Attempt, Done, GaveUp
from streams.core.commands import RunSubTask
from streams.lanes import LaneStalled
from streams.log import Headers, Producer
from streams.memory_log.virtual_time import run
from streams.topics import JOB_EVENTS
from tests.streams.lanes_in_memory import LanesInMemory, Worker, sub_task, until
from tests.streams.scripted import Work

STALL_S = 60.0


class FromTheSecondEventOn:
    """A producer that does as *instead* says, once an attempt has told that it began."""

    def __init__(self, inner: Producer, instead: Callable[[], "asyncio.Future[int]"]) -> None:
        self._inner, self._instead = inner, instead
        self._events = 0

    async def send(
        self, topic: str, value: bytes | None, *, key: bytes | None, partition: int, headers: Headers = ()
    ) -> "asyncio.Future[int]":
        self._events += topic == JOB_EVENTS
        if self._events > 1:
            return self._instead()
        return await self._inner.send(topic, value, key=key, partition=partition, headers=headers)


def never() -> "asyncio.Future[int]":
    """No answer, and no error either."""
    return asyncio.get_running_loop().create_future()


def broken() -> "asyncio.Future[int]":
    """An error that nobody expects."""
    raise RuntimeError("a broken client")


async def stalled(worker: Worker, *, within_s: float) -> LaneStalled:
    """What the watchdog raises."""
    await asyncio.wait([worker.watching], timeout=within_s)
    assert worker.watching.done(), "the watchdog has not noticed"
    error = worker.watching.exception()
    assert isinstance(error, LaneStalled)
    return error


def test_an_end_that_never_gets_to_the_log_is_a_stall() -> None:
    """It names what stands at the front."""

    async def story() -> None:
        world = LanesInMemory()
        worker = world.worker(lambda producer: FromTheSecondEventOn(producer, never), stall_s=STALL_S)
        await world.put(sub_task("a-5"))
        error = await stalled(worker, within_s=STALL_S + 10)
        assert "no progress for 60 s" in str(error)
        assert "subtasks[0]@0 default/g/a-5/1" in str(error)

    run(story())


def test_an_attempt_that_does_not_end_with_its_time_is_a_stall() -> None:
    """Also while others make progress, and with all slots taken."""

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        if command.task == "deaf":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.Event().wait()
        await asyncio.sleep(1)
        return Done(result=None)

    async def story() -> None:
        world = LanesInMemory(work=work)
        worker = world.worker(concurrency=2, stall_s=STALL_S)
        await world.put(sub_task("deaf", timeout_s=20.0), *(sub_task(f"t{n}") for n in range(200)))
        await asyncio.sleep(20 + STALL_S - 2)
        assert not worker.watching.done()
        error = await stalled(worker, within_s=5)
        assert "default/g/deaf/1 goes on" in str(error)

    run(story())


def test_an_attempt_that_ends_without_an_event_is_a_stall_at_once() -> None:
    """Nobody would ever hear of it; its cause is the error's."""

    async def story() -> None:
        world = LanesInMemory()
        worker = world.worker(lambda producer: FromTheSecondEventOn(producer, broken), stall_s=STALL_S)
        await world.put(sub_task("a-5"))
        error = await stalled(worker, within_s=10)
        assert "ended without an event" in str(error)
        assert isinstance(error.__cause__, RuntimeError)

    run(story())


async def asleep(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
    """At work for longer than a stall."""
    await asyncio.sleep(3 * STALL_S)
    return Done(result=None)


async def waiting(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
    """A provider wants us to wait for longer than a stall."""
    await attempt.wait(3 * STALL_S)
    return Done(result=None)


@pytest.mark.parametrize("work", [asleep, waiting])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_what_takes_long_within_its_time_is_no_stall(work: Work, count: int) -> None:
    """One alone; as many as there are slots; and more than can run."""

    async def story() -> None:
        world = LanesInMemory(work=work)
        worker = world.worker(concurrency=4, stall_s=STALL_S)
        await world.put(*(sub_task(f"t{n}", timeout_s=10 * STALL_S) for n in range(count)))
        await until(lambda: world.committed() == count, within_s=20 * STALL_S)
        assert not worker.watching.done()

    run(story())


def test_a_lane_without_work_is_no_stall_and_neither_is_the_first_work_after_it() -> None:
    """However long it was idle."""

    async def story() -> None:
        world = LanesInMemory()
        worker = world.worker(stall_s=STALL_S)
        for _ in range(2):
            await asyncio.sleep(10 * STALL_S)
            await world.put(sub_task("a-5", attempt=world.committed() + 1))
        await until(lambda: world.committed() == 2)
        assert not worker.watching.done()

    run(story())


def test_what_a_lane_left_behind_is_no_stall() -> None:
    """Its lane has moved while it ran; nothing here waits to be acknowledged."""

    async def story() -> None:
        world = LanesInMemory(work=asleep)
        first = world.worker(stall_s=STALL_S)
        await world.put(sub_task("t", timeout_s=10 * STALL_S), lane=1)
        await asyncio.sleep(1)
        world.worker()
        await until(lambda: world.committed(1) == 1)
        await asyncio.sleep(3 * STALL_S)
        assert not first.watching.done()

    run(story())
