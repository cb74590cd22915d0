"""Lanes that move: between live workers nothing is repeated, after a kill only what was in flight."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from agents.ports import Attempt, Done, GaveUp, ModelReply, ModelRequest
from streams.core.commands import RunSubTask
from streams.core.events import SubTaskFailed, SubTaskSucceeded
from streams.core.states import Released
from streams.core.values import Inline, Usage
from streams.memory_log import Faults
from streams.memory_log.virtual_time import run
from streams.topics import JOBS, TRANSCRIPTS
from streams.transcript import Asked, CallId, HandedOver, ModelCalled, attempt_key
from streams.wire.rows import SubTaskRow, write_row
from streams.wire.transcripts import read_transcript, write_transcript
from tests.streams.lanes_in_memory import LanesInMemory, sub_task, until


@dataclass(kw_only=True)
class Asking:
    """Work that asks a model some times in a row, and counts who asked what.

    Attributes:
        asked: Calls that began, by attempt and number, with the run that made each.
        answered: Those that came to their end.
    """

    times: int = 4
    takes_s: float = 10.0
    asked: list[CallId] = field(default_factory=list)
    answered: list[CallId] = field(default_factory=list)
    now: int = 0
    most: int = 0

    async def __call__(self, command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        async def call(request: ModelRequest, timeout_s: float) -> ModelReply:
            name = CallId.read(request.call_id)
            assert name is not None
            self.asked.append(name)
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                await asyncio.sleep(self.takes_s)
            finally:
                self.now -= 1
            self.answered.append(name)
            usage = Usage(calls=1, tokens_out=1)
            return ModelReply(message={"content": f"{name.n}"}, finish_reason="stop", usage=usage, model="m")

        said = [
            (await attempt.model(ModelRequest(messages=[{"content": f"{turn}"}]), call)).text
            for turn in range(self.times)
        ]
        return Done(result=[command.task, *said], usage=Usage(calls=self.times))

    def repeated(self) -> dict[tuple[str, int], int]:
        """Calls that began more than once, and how often."""
        counts = Counter((name.task, name.n) for name in self.asked)
        return {name: count for name, count in counts.items() if count > 1}


def results(world: LanesInMemory) -> list[str]:
    """What was told, without what was told again."""
    told = [event for event in world.events() if isinstance(event, SubTaskSucceeded)]
    return sorted({str(event.result.value) for event in told if isinstance(event.result, Inline)})


def expected(count: int, times: int) -> list[str]:
    return sorted(str([f"t{n}", *(f"{turn}" for turn in range(1, times + 1))]) for n in range(count))


@pytest.mark.parametrize("after_s", [3.0, 13.7, 25.0, 39.9])
def test_a_handover_between_live_workers_repeats_nothing(after_s: float) -> None:
    """One joins, then one leaves, in whichever phase of the calls."""

    async def story() -> None:
        work = Asking()
        world = LanesInMemory(work=work)
        first = world.worker(drain_s=30)
        await world.put(*(sub_task(f"t{n}") for n in range(6)), lane=1)
        await asyncio.sleep(after_s)
        world.worker()
        await asyncio.sleep(after_s)
        await first.lanes.drain()
        await first.log.close()
        await until(lambda: world.committed(1) == 6)
        assert work.repeated() == {}
        assert results(world) == expected(6, 4)

    run(story())


def test_a_rebalance_that_moves_nothing_repeats_nothing() -> None:
    """Workers come and go; the attempts of a lane that stays go on."""

    async def story() -> None:
        work = Asking()
        world = LanesInMemory(work=work)
        world.worker()
        await world.put(*(sub_task(f"t{n}") for n in range(4)), lane=0)
        for _ in range(4):
            other = world.worker()
            await asyncio.sleep(4)
            await other.log.close()
            await asyncio.sleep(3)
        await until(lambda: world.committed(0) == 4)
        assert work.repeated() == {}
        assert {name.run for name in work.asked} == {"run-1"}

    run(story())


def test_after_a_kill_only_what_was_in_flight_is_made_again() -> None:
    """Each attempt goes on from its last reply, at once."""

    async def story() -> None:
        work = Asking()
        world = LanesInMemory(work=work)
        first = world.worker()
        await world.put(*(sub_task(f"t{n}") for n in range(6)))
        await asyncio.sleep(25)
        world.worker()  # a rebalance: it was handed over, and taken back
        await asyncio.sleep(2)
        before = list(work.asked)
        first.log.kill()
        await until(lambda: world.committed() == 6)
        assert set(work.repeated()) == {(name.task, 3) for name in before if name.n == 3}
        assert asyncio.get_running_loop().time() < 27 + 6 + 1 + 20 + 5
        assert results(world) == expected(6, 4)

    run(story())


def test_a_lane_that_comes_back_with_nothing_left_to_do_is_no_stall() -> None:
    """While its process slept, another did all that it held."""

    async def story() -> None:
        work = Asking(takes_s=2.0, times=3)
        world = LanesInMemory(work=work)
        world.worker()
        second = world.worker(stall_s=60)
        await until(lambda: bool(second.lanes._standing.owned))
        (lane,) = second.lanes._standing.owned
        await world.put(sub_task("t0"), lane=lane)
        await asyncio.sleep(3)
        second.log.pause()
        await until(lambda: world.committed(lane) == 1)
        second.log.resume()
        await until(lambda: bool(second.lanes._standing.owned), within_s=30)
        await asyncio.sleep(100)
        assert not second.watching.done()

    run(story())


def test_a_call_that_takes_long_at_the_last_owner_is_no_stall_at_the_next() -> None:
    """It is waited for, longer than a lane may stand still."""

    async def story() -> None:
        work = Asking(takes_s=110.0, times=1)
        world = LanesInMemory(work=work)
        world.worker(stall_s=60)
        await world.put(sub_task("t0"), lane=1)
        await asyncio.sleep(5)
        second = world.worker(stall_s=60)
        await until(lambda: world.committed(1) == 1)
        assert not second.watching.done()
        assert work.repeated() == {}

    run(story())


@pytest.mark.parametrize("kill", [True, False])
def test_an_attempt_that_failed_asks_nobody_again(kill: bool) -> None:
    """It is delivered again since a slow one before it is not over; its job is told again what came of it."""

    async def story() -> None:
        work = Asking(takes_s=100.0, times=1)
        world = LanesInMemory(work=work)
        first = world.worker()
        await world.put(sub_task("slow"), sub_task("late", timeout_s=5.0))
        await asyncio.sleep(20)
        world.worker()
        if kill:
            first.log.kill()
        else:
            await first.lanes.drain()
            await first.log.close()
        await until(lambda: world.committed() == 2)
        assert Counter(name.task for name in work.asked) == {"slow": 2, "late": 1}
        told = [event for event in world.events() if isinstance(event, SubTaskFailed)]
        assert {(event.task, event.kind, event.retry_in) for event in told} == {("late", "timeout", 0.5)}
        assert len(told) == 2

    run(story())


def test_a_process_woken_after_its_session_starts_no_further_call() -> None:
    """Whatever it had begun before comes to its end; the rest is the new owner's."""

    async def story() -> None:
        work = Asking()
        world = LanesInMemory(work=work)
        first = world.worker()
        await world.put(*(sub_task(f"t{n}") for n in range(6)))
        await asyncio.sleep(5)
        world.worker()
        await asyncio.sleep(1)
        first.log.pause()
        await asyncio.sleep(20)
        mine = [name for name in work.asked if name.run == "run-1"]
        first.log.resume()
        await until(lambda: world.committed() == 6 and world.committed(1) == 0)
        late = [name for name in work.asked if name.run == "run-1"][len(mine) :]
        owned_again = [name for name in late if (name.task, name.n) in work.repeated()]
        assert owned_again == []
        assert results(world) == expected(6, 4)

    run(story())


def test_a_short_stop_changes_nothing() -> None:
    """Its session outlives it."""

    async def story() -> None:
        work = Asking()
        world = LanesInMemory(work=work)
        first = world.worker()
        await world.put(*(sub_task(f"t{n}") for n in range(6)))
        for _ in range(4):
            await asyncio.sleep(5)
            first.log.pause()
            await asyncio.sleep(3)
            first.log.resume()
        await until(lambda: world.committed() == 6)
        assert work.repeated() == {}

    run(story())


def test_the_cap_holds_while_lanes_move() -> None:
    """Calls under way at the last owner count at the new one."""

    async def story() -> None:
        work = Asking(times=3, takes_s=20)
        world = LanesInMemory(work=work)  # 20 over two lanes
        first = world.worker(drain_s=60)
        await world.put(*(sub_task(f"t{n}") for n in range(30)), lane=0)
        await world.put(*(sub_task(f"u{n}") for n in range(30)), lane=1)
        await asyncio.sleep(7)
        second = world.worker(drain_s=60)
        await asyncio.sleep(7)
        third = world.worker()
        await asyncio.sleep(30)
        await second.lanes.drain()
        await second.log.close()
        await until(lambda: world.committed(0) == world.committed(1) == 30, within_s=2_000)
        assert work.most == 20
        assert work.repeated() == {}
        assert first.lanes.caps.taken == third.lanes.caps.taken == 0

    run(story())


def test_while_the_log_is_away_no_call_begins() -> None:
    """Its reply could not be kept, and a crash would make it again."""

    async def story() -> None:
        work = Asking()
        world = LanesInMemory(work=work, faults=Faults(outages=((5.0, 55.0),)))
        world.worker()
        await world.put(*(sub_task(f"t{n}") for n in range(30)))
        await asyncio.sleep(54)
        assert Counter(name.n for name in work.asked) == {1: 10}
        await until(lambda: world.committed() == 30, within_s=2_000)
        assert work.repeated() == {}

    run(story())


def test_ten_thousand_outstanding_commands_are_read_up_on_in_one_bounded_read() -> None:
    """The journal from the first of them on; nothing of before."""

    async def story() -> None:
        work = Asking(times=1)
        world = LanesInMemory(work=work)
        journal = world.cluster.partition(TRANSCRIPTS, 0)
        names: dict[str, Any] = {"job": "default/g", "attempt": 1, "run": "gone"}
        asked = Asked(seen=0, messages=Inline(value=[]))
        reply = ModelReply(message={"content": "1"}, finish_reason="stop", usage=Usage(), model="m")

        def journaled(task: str) -> None:
            entry = ModelCalled(**names, task=task, n=1, request=asked, request_hash="", reply=reply)
            key = attempt_key("default/g", task, 1)
            journal.append(key, write_transcript(entry), (), world.cluster.now_ms())

        for n in range(1_000):
            journaled(f"old{n}")
        await asyncio.sleep(200)
        for n in range(10_000):
            journaled(f"t{n}")
        await world.put(*(sub_task(f"t{n}") for n in range(10_000)))
        with capture_logs() as logged:
            world.worker()
            await until(lambda: world.committed() == 10_000)
        (read,) = [entry for entry in logged if entry["event"] == "journal_read"]
        assert (read["records"], read["attempts"]) == (10_000, 10_000)
        assert work.asked == []
        assert len(results(world)) == 10_000

    run(story())


def test_a_lane_without_its_group_offset_runs_what_the_table_says_is_open() -> None:
    """The group's offsets were lost: all that is on the topic comes again, and most of it is over."""

    async def story() -> None:
        work = Asking(times=1, takes_s=0.1)
        world = LanesInMemory(work=work)
        await world.put(*(sub_task(f"t{n}") for n in range(10_050)))
        table = world.cluster.partition(JOBS, 1)
        for task in ("t7", "t10040"):
            row = SubTaskRow(ordinal=1, state=Released(attempt=1, at=1))
            table.append(f"default/g/{task}".encode(), write_row(row), (), 1)
        world.worker()
        await asyncio.sleep(5)
        await world.put(sub_task("new"))
        await until(lambda: world.committed() == 10_051)
        assert sorted({name.task for name in work.asked}) == ["new", "t10040", "t7"]

    run(story())


def test_who_was_handed_over_to_a_lane_that_stayed_is_told_so() -> None:
    """The journal says what was under way, and then that it is not."""

    async def story() -> None:
        world = LanesInMemory(work=Asking())
        world.worker()
        await world.put(sub_task("t0"))
        await asyncio.sleep(3)
        world.worker()
        await until(lambda: world.committed() == 1)
        journal = [read_transcript(record) for record in world.cluster.records("transcripts")]
        assert [entry.model_calls for entry in journal if isinstance(entry, HandedOver)] == [(1,), ()]

    run(story())
