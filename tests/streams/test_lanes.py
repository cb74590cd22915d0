"""Lanes: nothing lost, nothing twice in one process, acknowledged in order, within their capacity."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from agents.ports import Attempt, Crew, Done, GaveUp
from streams import dead_letters
from streams.claims import Resolver
from streams.core.commands import RunSubTask
from streams.core.events import SubTaskFailed, SubTaskSucceeded
from streams.core.values import INLINE_BYTES, Inline, Reference
from streams.log import Headers, Producer, Record
from streams.memory_log import Faults
from streams.memory_log.virtual_time import run
from streams.topics import DEAD_LETTERS, JOB_EVENTS, SUBTASKS
from streams.wire.commands import write_command
from tests.streams.lanes_in_memory import Asleep, LanesInMemory, sub_task, until
from tests.streams.scripted import Script


def test_what_is_behind_a_slow_one_runs_and_is_acknowledged_after_it() -> None:
    """One slow sub-task holds back nothing but commits."""

    async def story() -> None:
        world = LanesInMemory()
        world.worker()
        await world.put(sub_task("a-1"), sub_task("b-60"), sub_task("c-1"), sub_task("d-1"))
        await asyncio.sleep(10)
        assert world.told() == ["a-1", "c-1", "d-1"]
        assert world.committed() == 1
        await asyncio.sleep(60)
        assert world.told() == ["a-1", "b-60", "c-1", "d-1"]
        assert world.committed() == 4

    run(story())


def test_nothing_is_acknowledged_whose_event_the_log_does_not_have() -> None:
    """A broker that is away when the attempt ends: it is told when it is back, then acknowledged."""

    async def story() -> None:
        world = LanesInMemory(faults=Faults(outages=((5.0, 300.0),)))
        worker = world.worker(stall_s=60.0)
        await world.put(sub_task("a-10"))
        await asyncio.sleep(295)
        assert (world.told(), world.committed()) == ([], 0)
        assert not worker.watching.done(), "an outage is no stall"
        await until(lambda: world.committed() == 1)
        assert world.told() == ["a-10"]
        await asyncio.sleep(100)
        assert not worker.watching.done()

    run(story())


def test_what_is_delivered_again_while_it_runs_is_joined() -> None:
    """Each rebalance delivers everything again to the lane that stays; each runs once, and counts."""

    async def story() -> None:
        work = Asleep()
        world = LanesInMemory(work=work)
        world.worker()
        await world.put(*(sub_task(f"t{n}-{10 * n}") for n in range(10)))
        for _ in range(5):
            await asyncio.sleep(7)
            other = world.worker()  # it is given the other lane
            await asyncio.sleep(7)
            await other.log.close()
        await until(lambda: world.committed() == 10)
        assert Counter(work.began).most_common(1)[0][1] == 1
        assert len(world.told()) == 10

    run(story())


def test_after_a_rebalance_what_is_done_is_committed_without_waiting_for_what_runs() -> None:
    """Acknowledgements of the generation before have no effect, and stand in nobody's way."""

    async def story() -> None:
        world = LanesInMemory()
        world.worker()
        await world.put(sub_task("a-20"), sub_task("b-100"), sub_task("c-1"))
        await asyncio.sleep(5)
        world.worker()  # it is given the other lane
        await asyncio.sleep(20)
        assert world.told() == ["a-20", "c-1"]
        assert world.committed() == 1

    run(story())


def test_what_has_ended_behind_a_slow_one_is_remembered_until_it_is_acknowledged() -> None:
    """However long that takes: a rebalance delivers it again, and it is paid for."""

    async def story() -> None:
        work = Asleep()
        world = LanesInMemory(work=work)
        world.worker()
        await world.put(sub_task("a-100"), sub_task("b-1"), sub_task("c-1"))
        for _ in range(3):
            await asyncio.sleep(25)
            other = world.worker()  # it is given the other lane
            await asyncio.sleep(1)
            await other.log.close()
        await until(lambda: world.committed() == 3)
        assert work.began == ["a-100", "b-1", "c-1"]

    run(story())


def test_a_lane_lost_and_given_back_in_the_same_moment_begins_again() -> None:
    """It joins nothing that is being cancelled."""

    async def story() -> None:
        work = Asleep()
        world = LanesInMemory(work=work)
        lanes = world.worker(concurrency=1).lanes
        commands = [sub_task(f"t{n}-5") for n in range(4)]

        class Again:
            def __init__(self, offset: int, acked: list[int]) -> None:
                self._acked = acked
                self.record = Record(SUBTASKS, 1, offset, 0, None, write_command(commands[offset]))

            def ack(self) -> None:
                self._acked.append(self.record.offset)

        async def deliveries(acked: list[int]) -> AsyncIterator[Again]:
            for offset in range(len(commands)):
                yield Again(offset, acked)
            await asyncio.Event().wait()

        await asyncio.sleep(1)  # it is given its lanes
        acked: list[int] = []
        lost = asyncio.create_task(lanes.lane(1, deliveries([])))
        await asyncio.sleep(1)
        assert lanes.caps.waiting == 3
        lost.cancel()
        given = asyncio.create_task(lanes.lane(1, deliveries(acked)))
        await until(lambda: acked == [0, 1, 2, 3], within_s=30)
        given.cancel()
        assert sorted(work.ended.elements()) == [command.task for command in commands]

    run(story())


def test_what_waits_begins_when_a_lane_is_gained() -> None:
    """Not only when another one ends."""

    async def story() -> None:
        world = LanesInMemory()
        first, second = world.worker(concurrency=10), world.worker(concurrency=10)
        await asyncio.sleep(1)
        for lane in range(2):
            await world.put(*(sub_task(f"t{n}{lane}-1000") for n in range(20)), lane=lane)
        await asyncio.sleep(1)
        assert first.lanes.caps.taken == 5
        await second.log.close()
        await asyncio.sleep(1)
        assert first.lanes.caps.taken == 10

    run(story())


def test_a_lane_that_comes_back_joins_what_still_runs_and_leaves_it_running() -> None:
    """The attempt belongs to the process, not to the lane that it came by first."""

    async def story() -> None:
        work = Asleep()
        world = LanesInMemory(work=work)
        first = world.worker()
        await world.put(sub_task("t-100"), lane=1)
        await asyncio.sleep(1)
        for _ in range(3):
            other = world.worker()  # it is given lane 1, and runs the sub-task as well
            await asyncio.sleep(10)
            other.log.kill()
            await asyncio.sleep(10)  # lane 1 is back
        await until(lambda: world.committed(1) == 1)
        assert work.began == ["t-100"] * 4
        assert (work.ended, work.cancelled) == ({"t-100": 1}, {"t-100": 3})
        assert first.lanes.caps.taken == 0

    run(story())


def test_what_had_not_begun_when_its_lane_moved_begins_where_it_is() -> None:
    """Nobody waits for a slot on behalf of another process."""

    async def story() -> None:
        work = Asleep()
        world = LanesInMemory(work=work)
        first = world.worker(concurrency=4)
        await world.put(*(sub_task(f"t{n}-5") for n in range(10)), lane=1)
        await asyncio.sleep(1)
        world.worker(concurrency=20)
        await until(lambda: world.committed(1) == 10)
        assert Counter(work.began) == {f"t{n}-5": 2 if n < 2 else 1 for n in range(10)}
        assert (first.lanes.caps.taken, first.lanes.caps.waiting) == (0, 0)

    run(story())


@pytest.mark.parametrize("value", [None, b"\xff", b"[]", b'{"v": 1, "type": "RunSubTask"}', b"x" * 2_000_000])
def test_an_unreadable_command_is_buried_and_its_job_told(value: bytes | None) -> None:
    """With its reason; what is behind it runs."""

    async def story() -> None:
        world = LanesInMemory()
        world.worker()
        await world.put(value, key=b"default/g/t7/2")
        await world.put(sub_task("a-1"))
        await until(lambda: world.committed() == 2)
        (letter,) = [dead_letters.read(record) for record in world.cluster.records(DEAD_LETTERS)]
        assert (letter.place.topic, letter.place.partition, letter.place.offset) == ("subtasks", 0, 0)
        assert letter.value == (value if value is None or len(value) < 1_000_000 else None)
        failed, *_ = [event for event in world.events() if isinstance(event, SubTaskFailed)]
        assert (failed.job, failed.task, failed.attempt, failed.kind) == ("default/g", "t7", 2, "unreadable")
        assert letter.reason.startswith(failed.reason)
        assert world.told() == ["a-1", "t7"]

    run(story())


@pytest.mark.parametrize("key", [None, b"", b"\xff\xfe", b"no/attempt", b"a/b/c/d", b"a/b/c/1/1"])
def test_an_unreadable_command_that_names_no_attempt_is_buried(key: bytes | None) -> None:
    """One on each lane at the same place: two dead letters."""

    async def story() -> None:
        world = LanesInMemory()
        world.worker()
        for lane in (0, 1):
            await world.put(b"poison", lane=lane, key=key)
            await world.put(sub_task(f"t{lane}-1"), lane=lane)
        await until(lambda: world.committed(0) == world.committed(1) == 2)
        letters = [dead_letters.read(record) for record in world.cluster.records(DEAD_LETTERS)]
        assert sorted(letter.place.partition for letter in letters) == [0, 1]
        assert world.told() == ["t0-1", "t1-1"]

    run(story())


def test_a_result_without_json_fails_its_attempt_for_good() -> None:
    """Another attempt would end the same."""
    deep: list[object] = []
    for _ in range(200):
        deep = [deep]
    results: dict[str, object] = {"deep": deep, "large": 2**70, "strange": {"set": {1}}, "half": "\ud800"}

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        return Done(result=results[command.task])  # type: ignore[arg-type]

    async def story() -> None:
        world = LanesInMemory(work=work)
        world.worker()
        await world.put(*(sub_task(name) for name in results))
        await until(lambda: world.committed() == len(results))
        failed = [event for event in world.events() if isinstance(event, SubTaskFailed)]
        assert {event.task: (event.kind, event.final) for event in failed} == dict.fromkeys(
            results, ("unwritable", True)
        )

    run(story())


@pytest.mark.parametrize("size", [INLINE_BYTES, INLINE_BYTES + 1, 3_000_000])
def test_a_large_result_goes_by_claim_check(size: int) -> None:
    """Up to 8 KB it stands in the event; beyond, its chunks are on the log before the event is."""
    result = "x" * (size - 2)  # and two quotes

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        return Done(result=result)

    async def story() -> None:
        world = LanesInMemory(work=work)
        worker = world.worker()
        await world.put(sub_task("t"))
        await until(lambda: world.committed() == 1)
        (event,) = world.events()
        assert isinstance(event, SubTaskSucceeded)
        assert event.size == size
        assert isinstance(event.result, Inline if size <= INLINE_BYTES else Reference)
        assert await Resolver(worker.log).resolve(event.result) == result

    run(story())


def test_an_agent_that_breaks_fails_its_attempt_not_the_lane() -> None:
    """Whatever it raises."""

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        raise {"a": ValueError("no"), "b": KeyError("k"), "c": ExceptionGroup("g", [OSError()])}[command.task]

    async def story() -> None:
        world = LanesInMemory(work=work)
        worker = world.worker()
        await world.put(sub_task("a"), sub_task("b"), sub_task("c"))
        await until(lambda: world.committed() == 3)
        kinds = [(e.kind, e.final) for e in world.events() if isinstance(e, SubTaskFailed)]
        assert kinds == [("broken", False)] * 3
        assert worker.lanes.caps.taken == 0
        assert not worker.watching.done()

    run(story())


def test_capacity_follows_the_lanes_that_a_process_owns() -> None:
    """The share of the cluster-wide limit: all of it, half of it, and all of it again."""

    async def story() -> None:
        work = Asleep()
        world = LanesInMemory(work=work)
        first = world.worker(concurrency=10)
        for lane in (0, 1):
            await world.put(*(sub_task(f"l{lane}t{n}-8") for n in range(60)), lane=lane)
        await asyncio.sleep(1)
        assert first.lanes.caps.taken == 10
        second = world.worker(concurrency=10)
        await asyncio.sleep(17)
        assert (first.lanes.caps.taken, second.lanes.caps.taken) == (5, 5)
        await second.log.close()
        await asyncio.sleep(2)
        assert first.lanes.caps.taken == 10
        await until(lambda: world.committed(0) == world.committed(1) == 60)
        assert (first.lanes.caps.taken, first.lanes.caps.waiting) == (0, 0)

    run(story())


def test_a_crew_is_told_its_share_of_all_lanes_before_it_works_and_whenever_that_changes() -> None:
    """Limits of accounts are divided by it: all of them, half of them, and all of them again."""
    told: list[list[float]] = []
    together: list[float] = []

    class Told(Script):
        """Keeps what its worker's crew is told."""

        def crew(self) -> Crew:
            """With somebody who listens."""
            self.shares: list[float] = []
            told.append(self.shares)
            return replace(super().crew(), share=self.shares.append)

        async def run(self, command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
            """Look at what all were told."""
            assert self.shares
            together.append(sum(shares[-1] for shares in told if shares))
            return await super().run(command, attempt)

    async def work(command: RunSubTask, attempt: Attempt) -> Done:
        await asyncio.sleep(8)
        return Done(result=command.task)

    async def story() -> None:
        world = LanesInMemory(work=work, script=Told)
        world.worker()
        for lane in (0, 1):
            await world.put(*(sub_task(f"l{lane}t{n}") for n in range(60)), lane=lane)
        await asyncio.sleep(1)
        assert told == [[1.0]]
        second = world.worker()
        await asyncio.sleep(17)
        assert [shares[-1] for shares in told] == [0.5, 0.5]
        await second.log.close()
        told.pop()
        await asyncio.sleep(2)
        assert told[0][-1] == 1.0
        await until(lambda: world.committed(0) == world.committed(1) == 60)
        assert max(together) == 1.0

    run(story())


def test_jobs_take_turns() -> None:
    """A job of forty sub-tasks lets one of a single sub-task go second."""

    async def story() -> None:
        work = Asleep()
        world = LanesInMemory(work=work)
        world.worker(concurrency=2)
        await world.put(*(sub_task(f"wide{n}-1", job="default/wide") for n in range(40)))
        await world.put(sub_task("narrow-1", job="default/narrow"), lane=1)
        await until(lambda: world.committed() == 40)
        assert work.began.index("narrow-1") <= 4
        assert work.most == 2

    run(story())


@pytest.mark.parametrize("seed", range(6))
def test_slots_never_leak(seed: int) -> None:
    """Attempts that end, fail, hang, wait, are cancelled or move: in the end every slot is free."""

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        place = int(command.task)
        if place < 2:
            raise ValueError(place)
        if place % 5 == 1:
            await asyncio.Event().wait()
        for _ in range(3):
            await asyncio.sleep(0.1 * (place % 7))
            await attempt.wait(0.3 * (place % 4))
        return GaveUp(kind="later", reason="", final=False) if place % 5 == 2 else Done(result=place)

    async def story() -> None:
        world = LanesInMemory(work=work, faults=Faults(delay_s=0.1))
        workers = [world.worker(concurrency=6)]
        for lane in (0, 1):
            await world.put(*(sub_task(f"{n}", timeout_s=4.0) for n in range(lane, 80, 2)), lane=lane)
        for n in range(6):
            await asyncio.sleep(0.5 + ((seed + n) % 3) * 0.7)
            other = world.worker(concurrency=6)
            workers.append(other)
            await asyncio.sleep(0.5 + ((seed + n) % 4) * 0.6)
            await other.lanes.drain()
            await other.log.close()
        await until(lambda: world.committed(0) == world.committed(1) == 40)
        await asyncio.sleep(20)
        assert [(w.lanes.caps.taken, w.lanes.caps.waiting) for w in workers] == [(0, 0)] * len(workers)

    run(story())


def test_draining_lets_what_runs_end_and_begins_nothing() -> None:
    """In ``drain_s`` seconds; what ended is acknowledged, the rest is cancelled and left to others."""

    async def story() -> None:
        work = Asleep()
        world = LanesInMemory(work=work)
        worker = world.worker(concurrency=8, drain_s=10.0)
        await world.put(*(sub_task(name) for name in ("a-3", "b-5", "c-99", "d-7", "e-1", "f-1")))
        await asyncio.sleep(1)
        draining = asyncio.create_task(worker.lanes.drain())
        await asyncio.sleep(0)
        await world.put(sub_task("new-1"))
        began = asyncio.get_running_loop().time()
        await draining
        assert asyncio.get_running_loop().time() - began == pytest.approx(10.0)
        await worker.log.close()
        assert work.began == ["a-3", "b-5", "c-99", "d-7"]
        assert world.told() == ["a-3", "b-5", "d-7"]
        assert world.committed() == 2
        assert worker.lanes.caps.taken == 0
        world.worker()
        await until(lambda: world.committed() == 7)
        assert work.ended == {"d-7": 2} | dict.fromkeys(("a-3", "b-5", "c-99", "e-1", "f-1", "new-1"), 1)

    run(story())


def test_draining_waits_for_the_word_of_what_has_just_ended() -> None:
    """A result that is paid for is told, also when it takes the log a moment to take it."""

    async def story() -> None:
        world = LanesInMemory(faults=Faults(outages=((2.0, 5.0),)))
        worker = world.worker(drain_s=10.0)
        await world.put(sub_task("t-3"))
        await asyncio.sleep(3.5)  # it has ended; its word is on the way
        assert world.told() == []
        await worker.lanes.drain()
        await worker.log.close()
        assert world.told() == ["t-3"]
        assert world.committed() == 1

    run(story())


class SlowToTell:
    """A producer that takes its time over the word of an attempt's end, with no error."""

    def __init__(self, inner: Producer) -> None:
        self._inner = inner

    async def send(
        self, topic: str, value: bytes | None, *, key: bytes | None, partition: int, headers: Headers = ()
    ) -> "asyncio.Future[int]":
        if topic == JOB_EVENTS and b"SubTaskStarted" not in (value or b""):
            await asyncio.sleep(5)
        return await self._inner.send(topic, value, key=key, partition=partition, headers=headers)


def test_the_end_of_a_long_attempt_is_no_stall_while_it_is_told() -> None:
    """Nothing else happened for as long as it ran, and its slot is free already."""

    async def story() -> None:
        world = LanesInMemory()
        worker = world.worker(SlowToTell, stall_s=60.0)
        await world.put(sub_task("a-110"))
        await until(lambda: world.told() == ["a-110"])
        assert not worker.watching.done()

    run(story())
