"""Taking a lane over: each command that is delivered again finds what was done of it."""

import asyncio

from streams.core.commands import StopAttempt
from streams.core.events import SubTaskFailed
from streams.delivery import Sender
from streams.journal import Journal
from streams.log import Record
from streams.memory_log import MemoryCluster
from streams.memory_log.virtual_time import run
from streams.past import NO_PAST, Pasts
from streams.takeover import TakeOver
from streams.topics import SUBTASKS, TRANSCRIPTS
from streams.wire.commands import write_command
from tests.streams.desk import asks, says, user
from tests.streams.lanes_in_memory import sub_task


def test_a_new_command_that_comes_as_the_journal_is_read_takes_nobodys_past() -> None:
    """It is ahead of those delivered again, which still wait for the journal."""

    async def story() -> None:
        cluster = MemoryCluster({SUBTASKS: 1, TRANSCRIPTS: 1})
        log = cluster.connect("worker")
        journal = Journal(Sender(log.producer), sub_task("old"), partition=0, run="before")
        request = asks(user("one"))
        await journal.model_called(1, 0, request, await says("yes")(request, 1.0))

        async def one_command() -> dict[int, int]:
            await asyncio.sleep(1)
            return {0: 1}

        def command(offset: int, key: bytes) -> Record:
            return Record(SUBTASKS, 0, offset, cluster.now_ms(), key, b"")

        async def new_one_as_soon_as_it_may() -> object:
            await asyncio.sleep(1)
            while not takeover._ready.is_set():
                await asyncio.sleep(0)
            return await takeover.past(command(1, b"default/g/new/1"), b"default/g/new/1")

        old = command(0, b"default/g/old/1")
        takeover = TakeOver(log, 0, ends=asyncio.create_task(one_command()), first=old, lanes=1)
        past, nothing = await asyncio.gather(
            takeover.past(old, b"default/g/old/1"), new_one_as_soon_as_it_may()
        )
        assert nothing is NO_PAST
        assert past is not None
        assert list(past.replies) == [1]
        takeover.reading.cancel()

    run(story())


def test_a_stop_is_known_before_the_command_before_it_may_begin() -> None:
    """Both are delivered again, and the stop may come later; one behind it is another command."""

    async def story() -> None:
        cluster = MemoryCluster({SUBTASKS: 1, TRANSCRIPTS: 1})
        stop = StopAttempt(job="default/g", task="t", attempt=1, ordinal=1, reason="over")
        key = b"default/g/t/1"
        for order in (sub_task("t"), stop, sub_task("t")):
            cluster.partition(SUBTASKS, 0).append(key, write_command(order), (), cluster.now_ms())
        before, _, behind = cluster.records(SUBTASKS)

        async def ends() -> dict[int, int]:
            return {0: 3}

        log = cluster.connect("worker")
        takeover = TakeOver(log, 0, ends=asyncio.create_task(ends()), first=before, lanes=1)
        assert await takeover.past(before, key) is not None
        assert (takeover.stopped(before), takeover.stopped(behind)) == ("over", "")
        takeover.reading.cancel()

    run(story())


def test_what_was_handed_over_and_is_over_takes_nobodys_place() -> None:
    """Its command is not delivered again: nobody would ever give its place back."""

    async def story() -> None:
        cluster = MemoryCluster({TRANSCRIPTS: 1})
        sender = Sender(cluster.connect("worker").producer)
        pasts = Pasts(lambda _: True)
        request = asks(user("one"))

        def take_in() -> int:
            for record in cluster.records(TRANSCRIPTS):
                pasts.add(record)
            return pasts.elsewhere

        answered = Journal(sender, sub_task("answered"), partition=0, run="before")
        silent = Journal(sender, sub_task("silent"), partition=0, run="before")
        await answered.handed_over([1], within_s=10.0)
        await silent.handed_over([1], within_s=10.0)
        assert take_in() == 2
        await answered.model_called(1, 0, request, await says("yes")(request, 1.0))
        assert take_in() == 1
        await asyncio.sleep(10)
        assert take_in() == 0, "whoever handed it over is gone"

    run(story())


def test_a_call_under_way_elsewhere_counts_until_it_lands_there() -> None:
    """Also where its reply is known already, since a process that slept had made the same call before."""

    async def story() -> None:
        cluster = MemoryCluster({TRANSCRIPTS: 1})
        sender = Sender(cluster.connect("worker").producer)
        pasts = Pasts(lambda _: True)
        request, key = asks(user("one")), b"default/g/t/1"
        reply = await says("yes")(request, 1.0)

        def take_in() -> int:
            for record in cluster.records(TRANSCRIPTS):
                pasts.add(record)
            return pasts.elsewhere

        slept, last, ours = (Journal(sender, sub_task("t"), partition=0, run=name) for name in "abc")
        await slept.model_called(1, 0, request, reply)
        await last.handed_over([1], within_s=10.0)
        assert take_in() == 1
        past = pasts.begin(key)
        await asyncio.wait_for(pasts.settle(key, past), 0.1)
        assert list(past.replies) == [1]
        await asyncio.sleep(5)
        await ours.model_called(2, 0, request, reply)
        assert take_in() == 1, "the last owner still runs it"
        await asyncio.sleep(5)
        assert take_in() == 0, "or it is gone: what we journal says nothing of it"
        await last.handed_over([1], within_s=10.0)
        await last.model_called(1, 0, request, reply)
        assert take_in() == 0

    run(story())


def test_calls_under_way_elsewhere_are_followed_until_they_land() -> None:
    """Long after their attempt's end is known here: they count against the lane's cap as long as they run."""

    async def story() -> None:
        cluster = MemoryCluster({TRANSCRIPTS: 1, SUBTASKS: 1})
        log = cluster.connect("worker")
        sender = Sender(log.producer)
        slept, last = (Journal(sender, sub_task("t"), partition=0, run=name) for name in "ab")
        await last.handed_over([1], within_s=10.0)

        async def ends() -> dict[int, int]:
            return {0: 1}

        key = b"default/g/t/1"
        command = Record(SUBTASKS, 0, 0, cluster.now_ms(), key, b"")
        takeover = TakeOver(log, 0, ends=asyncio.create_task(ends()), first=command, lanes=1)
        failed = SubTaskFailed(
            job="default/g", task="t", attempt=1, kind="timeout", reason="late", final=False
        )
        await slept.ended(failed)
        past = await takeover.past(command, key)
        assert past is not None
        assert past.ended is not None
        takeover.over(key)
        for _ in range(20):
            await asyncio.sleep(2)
            await last.handed_over([1], within_s=10.0)
        await asyncio.sleep(1)
        assert takeover.elsewhere == 1, "its last owner says that it still runs"
        await asyncio.sleep(30)
        assert takeover.elsewhere == 0
        assert takeover.reading.done(), "nobody looks back any more"

    run(story())
