"""What every log must do. Each scenario runs on the log in memory and on a real Kafka."""

# ruff: noqa: PT012 - a transaction raises at its end, so its body stands inside

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import pairwise
from typing import Any, Protocol

import pytest

from streams.log import Claim, Fenced, Log, LogUnavailable, Owner, Record, RecordRefused

EVENTS, ROWS = "job-events", "jobs"
PARTITIONS = 3
BATCH = 20
SOON_S = 30.0


class Elsewhere(Protocol):
    """A member of a group in another process."""

    async def owns(self) -> Sequence[int]:
        """Partitions it owns, once it owns some."""

    def kill(self) -> None:
        """End it without goodbye."""


class World(Protocol):
    """A cluster of one kind, with the topics EVENTS and ROWS of :data:`PARTITIONS` partitions.

    Attributes:
        too_large: Bytes that no record may have.
    """

    too_large: int

    def connect(self) -> AbstractAsyncContextManager[Log]:
        """A process's connection; batches have at most :data:`BATCH` records."""

    def elsewhere(self, topic: str, group: str) -> AbstractAsyncContextManager[Elsewhere]:
        """A member in another process."""

    async def committed(self, topic: str, group: str, partition: int) -> int | None:
        """What the group was told to be done."""


Scenario = Callable[[World], Awaitable[None]]
SCENARIOS: list[Scenario] = []


def scenario(run: Scenario) -> Scenario:
    """Add a scenario to the contract."""
    SCENARIOS.append(run)
    return run


async def put(log: Log, topic: str, count: int, *, partition: int = 0, first: int = 0) -> list[int]:
    """Send numbered records without waiting in between; their offsets."""
    sent = [
        await log.producer.send(topic, b"%d" % number, key=b"k%d" % number, partition=partition)
        for number in range(first, first + count)
    ]
    return list(await asyncio.gather(*sent))


async def everything(log: Log, topic: str, partition: int = 0, **where: Any) -> list[Record]:
    """What a reader sees up to the end of now."""
    return [record async for batch in log.read(topic, partition, **where) for record in batch]


async def soon(happens: Callable[[], bool], wake: asyncio.Event) -> None:
    """Wait until *happens*, looking again at each *wake*."""
    async with asyncio.timeout(SOON_S):
        while not happens():
            wake.clear()
            await wake.wait()


@asynccontextmanager
async def owning(log: Log, topic: str, group: str, owner: Owner) -> AsyncIterator["asyncio.Task[None]"]:
    """Run owners while the body runs."""
    task = asyncio.create_task(log.own(topic, group, owner))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


class Collector:
    """An owner that keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[Record] = []
        self.news = asyncio.Event()

    async def __call__(self, claim: Claim) -> None:
        while True:
            self.got += await claim.batch(None)
            self.news.set()

    def numbers(self, partition: int = 0) -> list[int]:
        return [int(record.value or b"-1") for record in self.got if record.partition == partition]


@scenario
async def sends_are_read_in_order(world: World) -> None:
    async with world.connect() as log:
        offsets = await put(log, EVENTS, 50)
        assert offsets == list(range(50))
        headers = (("traceparent", b"00-1"), ("empty", None), ("traceparent", b"00-2"))
        await (await log.producer.send(EVENTS, None, key=b"tombstone", partition=0, headers=headers))
        records = await everything(log, EVENTS)
        assert [record.offset for record in records] == list(range(51))
        assert [record.value for record in records[:50]] == [b"%d" % number for number in range(50)]
        last = records[-1]
        assert (last.topic, last.partition, last.key, last.value) == (EVENTS, 0, b"tombstone", None)
        assert last.headers == headers
        assert all(a.timestamp <= b.timestamp for a, b in pairwise(records))
        assert await everything(log, EVENTS, 1) == []


@scenario
async def reading_begins_where_it_is_told_to(world: World) -> None:
    async with world.connect() as log:
        await put(log, EVENTS, 30)
        records = await everything(log, EVENTS)
        assert await everything(log, EVENTS, offset=12) == records[12:]
        assert await everything(log, EVENTS, offset=30) == []
        last = records[-1].timestamp
        since = await everything(log, EVENTS, since=last)
        assert since == [record for record in records if record.timestamp >= last]
        assert await everything(log, EVENTS, since=last + 1) == []
        assert await everything(log, EVENTS, since=0) == records


@scenario
async def an_aborted_transaction_is_invisible_and_leaves_a_gap(world: World) -> None:
    async with world.connect() as log, log.transactions("aborts") as producer:
        async with producer.transaction():
            first = await producer.send(ROWS, b"1", key=b"a", partition=0)
        with pytest.raises(ZeroDivisionError):
            async with producer.transaction():
                await producer.send(ROWS, b"2", key=b"b", partition=0)
                raise ZeroDivisionError
        async with producer.transaction():
            third = await producer.send(ROWS, b"3", key=b"c", partition=0)
            elsewhere = await producer.send(EVENTS, b"3", key=b"c", partition=2)
        assert [r.value for r in await everything(log, ROWS)] == [b"1", b"3"]
        assert third.result() - first.result() > 2  # the aborted record and two ends stand between
        assert [r.offset for r in await everything(log, EVENTS, 2)] == [elsewhere.result()]
        collector = Collector()
        async with owning(log, ROWS, "aborts", collector):
            await soon(lambda: len(collector.got) >= 2, collector.news)
        assert [r.offset for r in collector.got] == [first.result(), third.result()]


@scenario
async def nothing_is_seen_behind_an_open_transaction(world: World) -> None:
    async with world.connect() as log, log.transactions("open") as producer:
        await put(log, EVENTS, 1)
        collector = Collector()
        async with owning(log, EVENTS, "open", collector):
            async with producer.transaction():
                await (await producer.send(EVENTS, b"1", key=b"k", partition=0))
                await put(log, EVENTS, 1, first=2)
                await put(log, EVENTS, 1, partition=1)  # other partitions go on
                await soon(lambda: bool(collector.numbers(1)), collector.news)
                assert collector.numbers() in ([], [0])
            await soon(lambda: len(collector.numbers()) >= 3, collector.news)
        assert collector.numbers() == [0, 1, 2]


@scenario
async def a_newer_producer_fences_the_older_one(world: World) -> None:
    async with world.connect() as old_log, world.connect() as new_log:
        async with old_log.transactions("fenced") as old:
            with pytest.raises((Fenced, LogUnavailable)) as raised:
                async with old.transaction():
                    await (await old.send(ROWS, b"old", key=b"k", partition=0))
                    async with new_log.transactions("fenced") as new, new.transaction():
                        await new.send(ROWS, b"new", key=b"k", partition=0)
                    await (await old.send(ROWS, b"zombie", key=b"k", partition=1))
            assert raised.type is Fenced
            with pytest.raises((Fenced, LogUnavailable)):
                async with old.transaction():
                    await old.send(ROWS, b"again", key=b"k", partition=0)
        assert [r.value for r in await everything(new_log, ROWS)] == [b"new"]
        assert await everything(new_log, ROWS, 1) == []


@scenario
async def what_the_older_producer_left_open_does_not_block(world: World) -> None:
    """A takeover reads the rows right after it has fenced the old owner, and must see all of them."""
    async with (
        world.connect() as old_log,
        world.connect() as new_log,
        old_log.transactions("left") as old,
    ):
        async with old.transaction():
            await old.send(ROWS, b"1", key=b"k", partition=0)
        with pytest.raises((Fenced, LogUnavailable)):
            async with old.transaction():
                await (await old.send(ROWS, b"2", key=b"k", partition=0))
                async with new_log.transactions("left") as new:
                    assert [r.value for r in await everything(new_log, ROWS)] == [b"1"]
                    async with new.transaction():
                        await new.send(ROWS, b"3", key=b"k", partition=0)
                    assert [r.value for r in await everything(new_log, ROWS)] == [b"1", b"3"]


@scenario
async def a_refused_record_aborts_its_transaction(world: World) -> None:
    async with world.connect() as log:
        async with log.transactions("refused") as producer:
            with pytest.raises(RecordRefused):
                async with producer.transaction():
                    await producer.send(ROWS, b"good", key=b"k", partition=0)
                    await producer.send(ROWS, bytes(world.too_large), key=b"k", partition=1)
        with pytest.raises(RecordRefused):
            await (await log.producer.send(EVENTS, bytes(world.too_large), key=b"k", partition=0))
        with pytest.raises(RecordRefused):
            await (await log.producer.send(EVENTS, b"", key=b"k", partition=PARTITIONS))
        await put(log, EVENTS, 1)
        assert await everything(log, ROWS) == []
        assert [r.value for r in await everything(log, EVENTS)] == [b"0"]


@scenario
async def many_records_at_once_are_as_many_sends(world: World) -> None:
    """More than fits in one batch, between single ones, in order; one that is refused aborts them all."""
    values = [bytes([65 + number]) * 90_000 for number in range(26)]
    headers = (("name", b"value"),)
    async with world.connect() as log:
        async with log.transactions("many") as producer:
            async with producer.transaction():
                await producer.send(ROWS, b"first", key=b"f", partition=0)
                await producer.send_all(ROWS, 0, [(b"k", value, headers) for value in values])
                await producer.send_all(ROWS, 0, [(b"tombstone", None, ())])
                await producer.send_all(ROWS, 0, [])
                await producer.send(ROWS, b"last", key=b"l", partition=0)
            with pytest.raises(RecordRefused):
                async with producer.transaction():
                    await producer.send_all(ROWS, 1, [(b"k", b"good", ())])
                    await producer.send_all(ROWS, 2, [(b"k", bytes(world.too_large), ())])
        records = await everything(log, ROWS)
        assert [record.value for record in records] == [b"first", *values, None, b"last"]
        assert {record.headers for record in records[1:-2]} == {headers}
        assert await everything(log, ROWS, 1) == await everything(log, ROWS, 2) == []


@scenario
async def a_send_outside_a_transaction_is_a_mistake(world: World) -> None:
    async with world.connect() as log, log.transactions("outside") as producer:
        with pytest.raises(RuntimeError):
            await producer.send(ROWS, b"1", key=b"k", partition=0)
        with pytest.raises(RuntimeError):
            await producer.send_all(ROWS, 0, [(b"k", b"1", ())])
        async with producer.transaction():
            pass  # an empty one is none
        async with producer.transaction():
            await producer.send(ROWS, b"2", key=b"k", partition=0)
        assert [r.value for r in await everything(log, ROWS)] == [b"2"]


@scenario
async def a_seek_throws_away_what_was_fetched(world: World) -> None:
    async with world.connect() as log:
        await put(log, EVENTS, 3 * BATCH)
        seen: list[list[int]] = []
        done = asyncio.Event()

        async def owner(claim: Claim) -> None:
            if claim.partition != 0:
                await Collector()(claim)
            for offset in (None, 5, 3 * BATCH - 2, 0, 2 * BATCH):
                if offset is not None:
                    claim.seek(offset)
                seen.append([record.offset for record in await claim.batch(None)])
            claim.seek(3 * BATCH)
            assert await claim.batch(0.05) == ()
            done.set()
            await asyncio.get_running_loop().create_future()

        async with owning(log, EVENTS, "seek", owner):
            await soon(done.is_set, done)
        assert [offsets[0] for offsets in seen] == [0, 5, 3 * BATCH - 2, 0, 2 * BATCH]
        for offsets in seen:
            assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
            assert len(offsets) <= BATCH


@scenario
async def an_owner_that_takes_its_time_gets_everything_in_order(world: World) -> None:
    """More than waits in any buffer, so that partitions pause and go on."""
    count = 40 * BATCH
    async with world.connect() as log:
        await asyncio.gather(*(put(log, EVENTS, count, partition=each) for each in range(2)))
        collector = Collector()

        async def owner(claim: Claim) -> None:
            while len(collector.numbers(claim.partition)) < count:
                collector.got += await claim.batch(None)
                collector.news.set()
                for _ in range(5):
                    await asyncio.sleep(0)
            await Collector()(claim)

        async with owning(log, EVENTS, "slow", owner):
            await soon(lambda: len(collector.got) >= 2 * count, collector.news)
        assert collector.numbers(0) == collector.numbers(1) == list(range(count))


@scenario
async def an_owner_that_fails_begins_again_where_all_is_done(world: World) -> None:
    async with world.connect() as log:
        await put(log, EVENTS, 10)
        seen: list[int] = []
        news = asyncio.Event()

        async def owner(claim: Claim) -> None:
            if claim.partition != 0:
                await Collector()(claim)
            records = await claim.batch(None)
            seen.append(records[0].offset)
            claim.done(4)
            while len(seen) == 1 and await world.committed(EVENTS, "fails", 0) != 4:
                await claim.batch(0.2)
            news.set()
            if len(seen) < 3:
                raise ZeroDivisionError
            await asyncio.get_running_loop().create_future()

        async with owning(log, EVENTS, "fails", owner):
            await soon(lambda: len(seen) >= 3, news)
        assert seen == [0, 4, 4]


class Diary:
    """Owners that note when they begin and end."""

    def __init__(self) -> None:
        self.owned: dict[int, list[str]] = {}
        self.overlaps: list[str] = []
        self.got: list[tuple[str, Record]] = []
        self.news = asyncio.Event()

    def owner(self, name: str) -> Owner:
        async def own(claim: Claim) -> None:
            holders = self.owned.setdefault(claim.partition, [])
            if holders:
                self.overlaps.append(f"{name} began {claim.partition} before {holders} ended")
            holders.append(name)
            self.news.set()
            try:
                while True:
                    records = await claim.batch(None)
                    self.got += [(name, record) for record in records]
                    claim.done(records[-1].offset + 1)
                    self.news.set()
            finally:
                await asyncio.sleep(0.05)  # an end that takes a while: the next owner waits for it
                holders.remove(name)
                self.news.set()

        return own

    def holds(self, name: str) -> list[int]:
        return sorted(partition for partition, holders in self.owned.items() if name in holders)


@scenario
async def an_owner_ends_before_the_next_one_begins(world: World) -> None:
    diary = Diary()
    async with world.connect() as one, world.connect() as two:
        everywhere = list(range(PARTITIONS))
        async with owning(one, EVENTS, "moves", diary.owner("one")):
            await soon(lambda: diary.holds("one") == everywhere, diary.news)
            async with owning(two, EVENTS, "moves", diary.owner("two")):
                await soon(
                    lambda: (
                        bool(diary.holds("two"))
                        and sorted(diary.holds("one") + diary.holds("two")) == everywhere
                    ),
                    diary.news,
                )
                assert diary.holds("one")
            await soon(lambda: diary.holds("one") == everywhere, diary.news)
    assert diary.overlaps == []
    assert all(holders == [] for holders in diary.owned.values())


@scenario
async def the_partitions_of_a_dead_member_move(world: World) -> None:
    diary = Diary()
    async with world.connect() as log, world.elsewhere(EVENTS, "dies") as dying:
        assert await dying.owns() == list(range(PARTITIONS))
        async with owning(log, EVENTS, "dies", diary.owner("heir")):
            await soon(lambda: len(diary.holds("heir")) >= 1, diary.news)
            assert len(diary.holds("heir")) < PARTITIONS
            dying.kill()
            await soon(lambda: diary.holds("heir") == list(range(PARTITIONS)), diary.news)
            for partition in range(PARTITIONS):
                await put(log, EVENTS, 1, partition=partition)
            await soon(lambda: len({record.partition for _, record in diary.got}) == PARTITIONS, diary.news)
