"""Stopped means stopped: in flight, while it waits, before it begins, and after a lane has moved."""

import asyncio
from dataclasses import dataclass, field, replace
from functools import partial

import pytest

from agents.ports import Attempt, Done, GaveUp, ModelReply, ModelRequest, ToolCall, ToolReply
from streams.core.commands import RunSubTask, StopAttempt
from streams.core.events import STOPPED, SubTaskFailed
from streams.core.values import Usage
from streams.memory_log.virtual_time import run
from streams.topics import TRANSCRIPTS
from streams.transcript import AttemptEnded, ModelFailed, ToolCalled, TranscriptRecord
from streams.wire.transcripts import read_transcript
from tests.streams.lanes_in_memory import Asleep, LanesInMemory, sub_task, until
from tests.streams.test_handover import Asking

LONG_S = 50.0


def stop(task: str, *, attempt: int = 1) -> StopAttempt:
    """The word that nobody needs it any more."""
    return StopAttempt(job="default/g", task=task, attempt=attempt, ordinal=1, reason="the job has ended")


def journal(world: LanesInMemory) -> list[TranscriptRecord]:
    """Of all attempts."""
    return [read_transcript(record) for record in world.cluster.records(TRANSCRIPTS)]


def stopped(world: LanesInMemory) -> dict[str, SubTaskFailed]:
    """Whose stop was told, by task."""
    return {
        event.task: event
        for event in world.events()
        if isinstance(event, SubTaskFailed) and event.kind == STOPPED
    }


def test_a_call_in_flight_is_cancelled_at_once_and_its_cost_told() -> None:
    """Within a second of the closure; the journal has the call as stopped, with what it may have cost."""

    async def story() -> None:
        work = Asking(times=3, takes_s=LONG_S)
        world = LanesInMemory(work=work)
        worker = world.worker()
        await world.put(sub_task("t", timeout_s=600.0))
        await asyncio.sleep(LONG_S + 10)
        await world.put(stop("t"))
        await until(lambda: world.committed() == 2, within_s=1.0)
        assert (work.now, len(work.asked), len(work.answered)) == (0, 2, 1)
        told = stopped(world)["t"]
        assert told.final
        assert told.reason == "stopped: the job has ended"
        assert (told.usage.calls, told.usage.estimated) == (2, 1)
        (call,) = (entry for entry in journal(world) if isinstance(entry, ModelFailed))
        assert (call.n, call.tried, call.kind, call.decision) == (2, 1, STOPPED, "give_up")
        assert call.usage.estimated == 1
        (ended,) = (entry for entry in journal(world) if isinstance(entry, AttemptEnded))
        assert ended.event == replace(told, at=0, offset=-1)
        await asyncio.sleep(200)
        assert not worker.watching.done(), "nobody takes a stop for a fault"

    run(story())


def test_one_that_waits_for_a_slot_never_starts() -> None:
    """And gives its place to the next."""

    async def story() -> None:
        work = Asleep()
        world = LanesInMemory(work=work)
        world.worker(concurrency=2)  # one for each lane
        await world.put(sub_task("a-50"), sub_task("b-50"), sub_task("c-50"), sub_task("d-1"))
        await asyncio.sleep(5)
        await world.put(stop("c-50"))
        await until(lambda: "c-50" in stopped(world), within_s=1.0)
        assert stopped(world)["c-50"].usage == Usage()
        await until(lambda: world.committed() == 5)
        assert work.began == ["a-50", "b-50", "d-1"]

    run(story())


def test_a_stop_that_comes_with_its_command_leaves_nothing_running() -> None:
    """Both in one batch."""

    async def story() -> None:
        work = Asleep()
        world = LanesInMemory(work=work)
        world.worker()
        await asyncio.sleep(5)
        await world.put(sub_task("a-50"), stop("a-50"), sub_task("b-1"))
        await until(lambda: world.committed() == 3, within_s=3.0)
        assert work.ended == {"b-1": 1}
        assert set(stopped(world)) == {"a-50"}

    run(story())


def test_a_stop_of_what_has_ended_does_nothing() -> None:
    """Nor does one of what was never here."""

    async def story() -> None:
        world = LanesInMemory()
        worker = world.worker()
        await world.put(sub_task("a-1"))
        await until(lambda: world.committed() == 1)
        await world.put(stop("a-1"), stop("never-1"))
        await until(lambda: world.committed() == 3)
        assert world.told() == ["a-1"]
        assert not stopped(world)
        assert not worker.watching.done()

    run(story())


def test_another_attempt_of_the_same_sub_task_goes_on() -> None:
    """An overdue one is stopped while its successor is on its way."""

    async def story() -> None:
        work = Asleep()
        world = LanesInMemory(work=work)
        world.worker()
        await world.put(sub_task("a-50"), sub_task("a-50", attempt=2))
        await asyncio.sleep(5)
        await world.put(stop("a-50"))
        await until(lambda: world.committed() == 3)
        assert [event.attempt for event in stopped(world).values()] == [1]
        assert work.ended == {"a-50": 1}

    run(story())


@pytest.mark.parametrize("began", [True, False])
def test_what_was_stopped_does_not_begin_at_the_next_owner(began: bool) -> None:
    """A slow one before it holds both back, command and stop, and both are delivered again."""

    async def story() -> None:
        work = Asking(times=2, takes_s=LONG_S)
        world = LanesInMemory(work=work)
        first = world.worker(concurrency=20 if began else 2)
        await world.put(sub_task("slow", timeout_s=900.0))
        await asyncio.sleep(1)
        if began:
            await world.put(sub_task("t"))
            await asyncio.sleep(5)
            await world.put(stop("t"))
        else:
            await world.put(sub_task("other", timeout_s=900.0), sub_task("t"), stop("t"))
        await asyncio.sleep(5)
        first.log.kill()
        world.worker()
        await until(lambda: world.committed() == (3 if began else 4))
        assert [call.run for call in work.asked if call.task == "t"] == (["run-1"] if began else [])
        assert "slow" in world.told()
        assert set(stopped(world)) == {"t"}
        assert (stopped(world)["t"].usage.estimated == 1) is began

    run(story())


def test_a_command_stopped_while_nobody_had_its_lane_never_begins() -> None:
    """Its stop is read before it may begin, and what its earlier calls cost is told."""

    async def story() -> None:
        work = Asking(times=3, takes_s=10.0)
        world = LanesInMemory(work=work)
        first = world.worker()
        await world.put(sub_task("t"))
        await asyncio.sleep(15)
        first.log.kill()
        await world.put(stop("t"))
        world.worker()
        await until(lambda: world.committed() == 2)
        assert {call.run for call in work.asked} == {"run-1"}
        assert stopped(world)["t"].usage == Usage(calls=1, tokens_out=1)

    run(story())


def test_a_command_put_back_behind_its_stop_runs() -> None:
    """It could not be read, and somebody redrove it: the stop was for the one before."""

    async def story() -> None:
        work = Asleep()
        world = LanesInMemory(work=work)
        await world.put(b"{}", key=b"default/g/a-1/1")
        await world.put(stop("a-1"), sub_task("a-1"))
        world.worker()
        await until(lambda: world.committed() == 3)
        assert not stopped(world)
        assert work.ended == {"a-1": 1}

    run(story())


@dataclass(kw_only=True)
class ToolWork:
    """Work that runs a tool of 20 s, and asks for another one after it."""

    once: bool
    log: list[str] = field(default_factory=list)

    async def __call__(self, command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        async def make(number: int, timeout_s: float) -> ToolReply:
            self.log.append(f"{number} began")
            await asyncio.sleep(20)
            self.log.append(f"{number} ended")
            return ToolReply(output=number)

        for number in range(2):
            call = ToolCall(id=f"c{number}", name="pay", arguments="{}")
            await attempt.tool(call, partial(make, number), once=self.once)
        return Done(result=None)


def test_a_tool_that_must_not_run_twice_comes_to_its_end() -> None:
    """It might be half done: it ends, is journaled, and then the attempt is stopped."""

    async def story() -> None:
        work = ToolWork(once=True)
        world = LanesInMemory(work=work)
        world.worker()
        await world.put(sub_task("t"))
        await asyncio.sleep(5)
        await world.put(stop("t"))
        await asyncio.sleep(5)
        assert not stopped(world)
        await until(lambda: world.committed() == 2)
        assert work.log == ["0 began", "0 ended"]
        (call,) = (entry for entry in journal(world) if isinstance(entry, ToolCalled))
        assert call.error is None
        assert stopped(world)["t"].usage == Usage(tool_calls=1)

    run(story())


def test_another_tool_is_cut_short() -> None:
    """The journal says that it was stopped."""

    async def story() -> None:
        work = ToolWork(once=False)
        world = LanesInMemory(work=work)
        world.worker()
        await world.put(sub_task("t"))
        await asyncio.sleep(5)
        await world.put(stop("t"))
        await until(lambda: world.committed() == 2, within_s=1.0)
        assert work.log == ["0 began"]
        (call,) = (entry for entry in journal(world) if isinstance(entry, ToolCalled))
        assert call.error == STOPPED
        assert stopped(world)["t"].usage == Usage(tool_calls=1)

    run(story())


def test_a_drain_hears_of_stops() -> None:
    """A call that nobody needs is not waited for."""

    async def story() -> None:
        work = Asleep()
        world = LanesInMemory(work=work)
        worker = world.worker(drain_s=100.0)
        await world.put(sub_task("a-90"))
        await asyncio.sleep(5)
        draining = asyncio.create_task(worker.lanes.drain())
        await asyncio.sleep(5)
        await world.put(stop("a-90"))
        async with asyncio.timeout(2):
            await draining
        assert set(stopped(world)) == {"a-90"}
        assert work.cancelled == {"a-90": 1}

    run(story())


def test_an_agent_that_lets_no_cancellation_through_makes_no_further_call() -> None:
    """The next one it asks for ends it."""
    asked = []

    async def stubborn(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        async def call(request: ModelRequest, timeout_s: float) -> ModelReply:
            asked.append(request.call_id)
            await asyncio.sleep(50)
            raise AssertionError

        try:
            await attempt.model(ModelRequest(messages=[]), call)
        except asyncio.CancelledError:
            await attempt.model(ModelRequest(messages=[]), call)
        return Done(result=None)

    async def story() -> None:
        world = LanesInMemory(work=stubborn)
        world.worker()
        await world.put(sub_task("t"))
        await asyncio.sleep(5)
        await world.put(stop("t"))
        await until(lambda: world.committed() == 2, within_s=1.0)
        assert len(asked) == 1
        assert set(stopped(world)) == {"t"}

    run(story())


def test_calls_at_the_last_owner_come_to_their_end() -> None:
    """The lane moved with a call under way: it is paid for and told, and no further one is made."""

    async def story() -> None:
        work = Asking(times=3, takes_s=30.0)
        world = LanesInMemory(work=work)
        world.worker()
        await world.put(sub_task("t"), lane=1)
        await asyncio.sleep(5)
        world.worker()  # it is given the other lane
        await asyncio.sleep(5)
        await world.put(stop("t"), lane=1)
        await until(lambda: world.committed(1) == 2)
        assert [call.run for call in work.asked] == ["run-1"]
        assert len(work.answered) == 1
        assert stopped(world)["t"].usage == Usage(calls=1, tokens_out=1)

    run(story())


def test_a_run_from_before_the_lane_went_and_came_back_is_stopped() -> None:
    """Its call is cancelled as well, and what waits for its end does not begin."""

    async def story() -> None:
        work = Asking(times=3, takes_s=100.0)
        world = LanesInMemory(work=work)
        worker = world.worker()
        await world.put(sub_task("t", timeout_s=600.0), lane=1)
        await asyncio.sleep(5)
        other = world.worker()  # it is given the other lane
        await asyncio.sleep(10)
        await other.log.close()
        await asyncio.sleep(10)
        assert work.now == 1
        await world.put(stop("t"), lane=1)
        await until(lambda: world.committed(1) == 2, within_s=5.0)
        assert (work.now, len(work.asked)) == (0, 1)
        assert stopped(world)["t"].usage.estimated == 1
        assert not worker.watching.done()

    run(story())
