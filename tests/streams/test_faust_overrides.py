"""What the overrides in streams/kafka/faust_agents.py rely on, and how Faust behaves with them.

The first half fails when an upgrade changes a private member that an override touches: look at the
new version's source, try the stories of the second half, then set :data:`TESTED`.
"""

import asyncio
import inspect
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.consumer.group_coordinator import CoordinatorGroupRebalance, GroupCoordinator
from faust.app.base import App as FaustApp
from faust.streams import Stream
from faust.transport.conductor import ConductorCompiler
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, ConsumerMessage
from mode.threads import ServiceThread, WorkerThread
from mode.utils.queues import FlowControlEvent, ThrowableQueue

from streams.kafka.faust_agents import (
    FETCH_WAIT_MS,
    App,
    Consumer,
    ConsumerThread,
    FaustAgents,
    FaustDelivery,
)
from streams.kafka.log import KafkaLog
from streams.log import Delivery, Member, Record
from streams.settings import Settings
from streams.topics import SUBTASKS
from tests.conftest import NewSystem

TESTED = {"faust-streaming": "0.15.3", "mode-streaming": "0.7.1", "aiokafka": "0.14.0"}
PLACE = TP("t", 0)


@pytest.mark.parametrize("library", TESTED)
def test_the_installed_version_is_the_tested_one(library: str) -> None:
    assert version(library) == TESTED[library]


def parameters(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (driver.AIOKafkaConsumerThread._create_worker_consumer, ["self", "transport"]),
        (driver.Consumer._new_consumer_thread, ["self"]),
        (driver.Consumer._new_offset, ["self", "tp"]),
        (driver.Consumer._add_gap, ["self", "tp", "offset_from", "offset_to"]),
        (driver.Consumer.on_partitions_revoked, ["self", "revoked"]),
        (driver.Consumer.on_partitions_assigned, ["self", "assigned", "generation_id"]),
        (driver.Consumer.wait_first, ["self", "coros", "timeout"]),
        (driver.AIOKafkaConsumerThread.on_start, ["self"]),
        (driver.AIOKafkaConsumerThread.seek_to_committed, ["self"]),
        (driver.AIOKafkaConsumerThread.seek_to_beginning, ["self", "partitions"]),
        (GroupCoordinator._send_req, ["self", "request"]),
        (FaustApp._new_transport, ["self"]),
        (FaustApp._create_directories, ["self"]),
        (WorkerThread.__init__, ["self", "service", "kwargs"]),
        (WorkerThread.run, ["self"]),
        (Stream.noack, ["self"]),
    ],
)
def test_what_is_overridden_or_called_takes_what_it_took(
    function: Callable[..., Any], expected: list[str]
) -> None:
    assert parameters(function) == expected


@pytest.mark.parametrize(
    ("function", "uses"),
    [
        (driver.Consumer._filter_committable_offsets, "self._new_offset(tp)"),
        (driver.Consumer.on_partitions_revoked, "self._acked.pop(tp, None)"),
        (driver.Consumer.ack, "self._acked_index[tp]"),
        (driver.Consumer._drain_messages, "self._add_gap("),
        (ConductorCompiler.build, "queue.put_nowait_enhanced("),
        (driver.Consumer._drain_messages, "callback(message), self.suspend_flow.wait()"),
        (driver.Consumer._to_message, "generation_id=self.app.consumer_generation_id"),
        (driver.Consumer.getmany, "await self.perform_seek()"),
        (driver.Consumer.perform_seek, "await self.seek_to_committed()"),
        (AIOKafkaConsumer.seek_to_committed, "if offset and offset > 0:"),
        (driver.AIOKafkaConsumerThread._create_worker_consumer, "fetch_max_wait_ms=1500"),
        (driver.AIOKafkaConsumerThread._create_consumer, "self._create_worker_consumer(transport)"),
        (AIOKafkaConsumer.start, "isolation_level=self._isolation_level"),
        (AIOKafkaConsumer.start, "fetch_max_wait_ms=self._fetch_max_wait_ms"),
        (ServiceThread.start, "self._thread = self.Worker(self)"),
        (FaustApp.on_first_start, "self._create_directories()"),
        (driver.AIOKafkaConsumerThread.on_start, "await self._consumer.start()"),
        (driver.ConsumerRebalanceListener.on_partitions_assigned, "_coordinator.generation"),
        (AIOKafkaConsumer.start, "self._coordinator = GroupCoordinator("),
        (GroupCoordinator._do_heartbeat, "await self._send_req(request)"),
        (CoordinatorGroupRebalance._send_sync_group_request, "await self._coordinator._send_req(request)"),
    ],
)
def test_the_overridden_is_still_used_where_it_was(function: Callable[..., Any], uses: str) -> None:
    assert uses in inspect.getsource(function)


@asynccontextmanager
async def faust_consumer(kind: type[Consumer] = Consumer) -> AsyncIterator[Any]:
    """Our consumer as Faust makes it, not started."""
    agents = FaustAgents(Settings(brokers="127.0.0.1:1"), {SUBTASKS: acknowledge_all})
    assert type(agents._app.transport).Consumer is Consumer

    async def nothing(*_: object) -> None:
        pass

    consumer = kind(
        agents._app.transport,
        callback=nothing,
        on_partitions_revoked=nothing,
        on_partitions_assigned=nothing,
        loop=asyncio.get_running_loop(),
    )
    try:
        yield consumer
    finally:
        consumer._thread.thread_loop.close()


async def test_a_message_is_handed_on_in_the_same_turn_of_the_loop() -> None:
    """In a rebalance it is given up, as Faust does it."""
    handed_on = []

    async def hand_on(message: str) -> None:
        handed_on.append(message)

    async with faust_consumer() as consumer:
        consumer.flow_active = True
        for message in "abc":
            step = consumer.wait_first(hand_on(message), consumer.suspend_flow.wait())
            with pytest.raises(StopIteration):
                step.send(None)  # not one wait in it
        assert handed_on == ["a", "b", "c"]
        consumer.stop_flow()
        never = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(10):
            await consumer.wait_first(asyncio.wait([never]), consumer.suspend_flow.wait())


class OneEventATurn:
    """A stream as Faust's, which gives one event in each turn of the loop."""

    def __init__(self, *offsets: int) -> None:
        self.channel, self.queue = self, ThrowableQueue[Any](flow_control=FlowControlEvent())
        for offset in offsets:
            message = SimpleNamespace(
                partition=3, offset=offset, timestamp=0.0, key=b"k", value=b"v", headers=None, generation_id=1
            )
            self.queue.put_nowait(SimpleNamespace(message=message))

    def noack(self) -> "OneEventATurn":
        return self

    async def events(self) -> AsyncIterator[Any]:
        while True:
            await asyncio.sleep(0)
            yield await self.queue.get()


async def test_an_actor_takes_all_that_waits_at_once() -> None:
    """In order; an error that Faust puts in the queue comes first, and from Faust."""
    turns, taken = 0, list[tuple[int, int]]()

    async def agent(partition: int, deliveries: AsyncIterator[Delivery]) -> None:
        async for delivery in deliveries:
            taken.append((turns, delivery.record.offset))
            if delivery.record.offset == 4:
                stream.queue._errors.append(asyncio.CancelledError())

    stream = OneEventATurn(*range(6))
    actor = asyncio.create_task(FaustAgents._actor(cast("App", None), SUBTASKS, agent)(stream))
    while not actor.done():
        turns += 1
        await asyncio.sleep(0)
    assert [offset for _, offset in taken] == [0, 1, 2, 3, 4]
    assert len({turn for turn, _ in taken[1:]}) == 1


async def acknowledge_all(partition: int, deliveries: AsyncIterator[Delivery]) -> None:
    """An agent."""
    async for delivery in deliveries:
        delivery.ack()


async def test_the_consumer_reads_committed_records_and_waits_a_little_for_a_fetch() -> None:
    """Neither can be set from outside."""
    async with faust_consumer() as consumer:
        assert type(consumer._thread) is ConsumerThread
        inner = consumer._thread._create_worker_consumer(consumer.transport)
        assert isinstance(inner, AIOKafkaConsumer)
        assert (inner._isolation_level, inner._fetch_max_wait_ms) == ("read_committed", FETCH_WAIT_MS)
        theirs = driver.AIOKafkaConsumerThread._create_worker_consumer(consumer._thread, consumer.transport)
        assert vars(theirs).keys() == vars(inner).keys()
        assert (theirs._isolation_level, theirs._fetch_max_wait_ms) == ("read_uncommitted", 1500)


async def test_the_consumers_thread_does_not_keep_the_process() -> None:
    async with faust_consumer() as consumer:
        assert consumer._thread.Worker(consumer._thread).daemon
        assert not WorkerThread(consumer._thread).daemon


def message(offset: int, *, generation: int = 0, topic: str = PLACE.topic) -> ConsumerMessage:
    """A record as Faust gives it to streams."""
    place = TP(topic, PLACE.partition)
    return ConsumerMessage(
        topic, place.partition, offset, 1.5, 0, [("h", b"1")], b"k", b"v", None, 1, 1, place,
        generation_id=generation,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("acked", "expected"),
    [
        ([], None),
        ([0], 1),
        ([0, 1, 2], 3),
        ([5, 6, 9, 11], 12),  # a transaction's markers at 7, 8 and 10
        ([200], 201),
    ],
)
async def test_the_highest_acknowledged_is_the_last_that_is_done(
    acked: list[int], expected: int | None
) -> None:
    """Agents acknowledge in order, so what is missing below is no record."""
    async with faust_consumer() as consumer:
        await consumer._add_gap(PLACE, 7, 8)
        assert not consumer._gap
        for offset in acked:
            consumer._acked[PLACE].append(offset)
            consumer._acked_index[PLACE].add(offset)
        assert consumer._new_offset(PLACE) == expected
        assert consumer._new_offset(PLACE) is None, "once committed there is nothing new"
        assert PLACE not in consumer._acked
        assert PLACE not in consumer._acked_index


async def test_a_rebalance_commits_before_it_forgets() -> None:
    """Faust's own forgets what was acknowledged since the last commit."""
    committed: list[dict[TP, int]] = []

    class Recording(Consumer):
        async def _commit_offsets(self, offsets: Any, start_new_transaction: bool = True) -> bool:
            committed.append(dict(offsets))
            return True

    async with faust_consumer(Recording) as consumer:
        for offset in (3, 4):
            consumer._acked[PLACE].append(offset)
            consumer._acked_index[PLACE].add(offset)
        await consumer.on_partitions_revoked({PLACE})
        assert committed == [{PLACE: 5}]
        assert not consumer._acked


async def test_an_acknowledgement_counts_in_its_own_generation_only() -> None:
    """A record that was delivered before a rebalance is delivered again."""
    agents = FaustAgents(Settings(), {SUBTASKS: acknowledge_all})
    app = agents._app
    acked = []

    class Event:
        def __init__(self, generation: int) -> None:
            self.message = message(generation, generation=generation)

        def ack(self) -> None:
            acked.append(self.message.offset)

    assert FaustApp.consumer_generation_id == 0
    app.consumer_generation_id = 2
    for generation in (1, 2, 3):
        delivery = FaustDelivery(app, Event(generation), SUBTASKS)
        assert delivery.record == Record(SUBTASKS, 0, generation, 1500, b"k", b"v", (("h", b"1"),))
        delivery.ack()
    assert acked == [2]


class Collector:
    """An agent that keeps what it gets and acknowledges below an offset."""

    def __init__(self, *, acknowledge_below: int) -> None:
        self._below = acknowledge_below
        self.got: list[Record] = []
        self.news = asyncio.Event()

    async def __call__(self, partition: int, deliveries: AsyncIterator[Delivery]) -> None:
        async for delivery in deliveries:
            self.got.append(delivery.record)
            if delivery.record.offset < self._below:
                delivery.ack()
            self.news.set()

    async def has(self, count: int) -> Sequence[Record]:
        async with asyncio.timeout(60):
            while len(self.got) < count:
                self.news.clear()
                await self.news.wait()
        return self.got


@asynccontextmanager
async def at_work(
    settings: Settings, agent: Collector, member: Member | None = None
) -> AsyncIterator[FaustAgents]:
    """Agents that run while the body runs, and leave no thread."""
    before = set(threading.enumerate())
    agents = FaustAgents(settings, {SUBTASKS: agent}, {SUBTASKS: member} if member else None)
    running = asyncio.create_task(agents.run())
    try:
        yield agents
        await agents.commit()
    finally:
        async with asyncio.timeout(60):
            await agents.stop()
            await running
    assert [t for t in set(threading.enumerate()) - before if isinstance(t, WorkerThread)] == []


async def committed(settings: Settings, partition: int) -> int:
    """What the agents' group has committed."""
    client = AIOKafkaAdminClient(bootstrap_servers=settings.brokers)
    await client.start()
    try:
        offsets = await client.list_consumer_group_offsets(f"{settings.prefix}agents")
        return int(offsets[TopicPartition(settings.prefix + SUBTASKS, partition)].offset)
    finally:
        await client.close()


class Told:
    """A member that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.at: list[float] = []
        self.news = asyncio.Event()

    async def let_go(self) -> None:
        self._note("let go")

    def take(self, partitions: Sequence[int], generation: int) -> None:
        self._note(f"take {sorted(partitions)} in {generation}")

    def heard(self, at: float) -> None:
        self.at.append(at)
        self.news.set()

    def _note(self, what: str) -> None:
        self.told.append(what)
        self.news.set()

    async def until(self, happens: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not happens():
                self.news.clear()
                await self.news.wait()


async def test_a_member_is_told_of_rebalances_and_heard_by_the_group(new_system: NewSystem) -> None:
    """Before the partitions move, after it, and at every heartbeat; of its own topic's partitions only."""
    settings = replace(await new_system(lanes=2), heartbeat_s=0.1)
    first, second = Told(), Told()
    before = time.monotonic()
    async with at_work(settings, Collector(acknowledge_below=0), first):
        await first.until(lambda: len(first.at) > 2)
        async with at_work(settings, Collector(acknowledge_below=0), second):
            await second.until(lambda: bool(second.at))
        await first.until(lambda: first.told[-1].startswith("take [0, 1]") and len(first.told) > 3)
    assert first.told[:2] == ["let go", first.told[1]]
    taken = [told for told in first.told if told != "let go"]
    assert [told.partition(" in ")[0] for told in taken[::2]] == ["take [0, 1]"] * len(taken[::2])
    generations = [int(told.rpartition(" ")[2]) for told in taken]
    assert generations == sorted(set(generations))
    assert any(told.startswith(("take [0] ", "take [1] ")) for told in second.told)
    assert all(before < at < time.monotonic() for at in first.at)


async def test_back_to_what_is_committed_where_nothing_is(new_system: NewSystem) -> None:
    """What a fetch brought in the middle of a rebalance is thrown away: it must come again."""
    settings = await new_system(lanes=1)
    agent = Collector(acknowledge_below=0)
    async with KafkaLog(settings) as log, at_work(settings, agent) as agents:
        for value in (b"a", b"b"):
            await (await log.producer.send(SUBTASKS, value, key=b"k", partition=0))
        await agent.has(2)
        await agents._app.consumer.perform_seek()  # as Faust does then
        assert [record.value for record in await agent.has(4)] == [b"a", b"b"] * 2


class Unwanted(Exception):
    """Aborts a transaction."""


def unwanted_if(unwanted: bool) -> None:
    if unwanted:
        raise Unwanted


async def put_in_transactions(settings: Settings, count: int) -> list[bytes]:
    """Numbered records in transactions of one to three, every second aborted; what is committed."""
    landed = []
    async with KafkaLog(settings) as log, log.transactions("writer") as producer:
        for number in range(count):
            values = [b"%d-%d" % (number, part) for part in range(number % 3 + 1)]
            with suppress(Unwanted):
                async with producer.transaction():
                    for value in values:
                        await (await producer.send(SUBTASKS, value, key=b"k", partition=0))
                    unwanted_if(number % 2 == 1)
                landed += values
    return landed


async def test_deliveries_go_on_at_the_first_unacknowledged_over_gaps_and_restarts(
    new_system: NewSystem,
) -> None:
    """In order, committed records only; and no thread stays behind."""
    settings = await new_system(lanes=2)
    landed = await put_in_transactions(settings, 20)
    async with KafkaLog(settings) as log:
        records = [record async for batch in log.read(SUBTASKS, 0) for record in batch]
    assert [record.value for record in records] == landed
    middle, end = records[len(records) // 2].offset, records[-1].offset + 1

    first = Collector(acknowledge_below=middle)
    async with at_work(settings, first):
        assert await first.has(len(landed)) == records
    last_done = max(record.offset for record in records if record.offset < middle)
    assert await committed(settings, 0) == last_done + 1

    second = Collector(acknowledge_below=end)
    async with at_work(settings, second):
        left = [record for record in records if record.offset >= middle]
        assert await second.has(len(left)) == left
    assert await committed(settings, 0) == end

    third = Collector(acknowledge_below=end + 100)
    async with at_work(settings, third):
        more = await put_in_transactions(settings, 1)
        assert [record.value for record in await third.has(1)] == more
