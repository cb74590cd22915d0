"""What is particular to the log in memory: deliveries, kills, sleeps, faults, and that it is repeatable."""

# ruff: noqa: PT012 - a transaction raises at its end, so its body stands inside

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.log import Claim, Delivery, Fenced, LogUnavailable
from streams.memory_log import Faults, Limits, MemoryCluster, MemoryLog, virtual_time
from streams.memory_log.partition import Partition
from streams.memory_log.transactions import Coordinator
from streams.memory_log.wire import Busy

IN, OUT, ROWS = "in", "out", "rows"
TOPICS = {IN: 2, OUT: 2, ROWS: 2}
HARD = Faults(
    delay_s=0.3,
    lost_sends=0.03,
    lost_replies=0.03,
    unknown_commits=0.05,
    short_batches=0.3,
    outages=((20.0, 30.0), (61.0, 66.0)),
)


async def put(log: MemoryLog, topic: str, numbers: range, *, partitions: int = 2) -> None:
    """Send each number until the log says it has it: it may be there twice, never not at all."""
    for number in numbers:
        while True:
            try:
                sent = await log.producer.send(
                    topic, b"%d" % number, key=b"%d" % number, partition=number % partitions
                )
                await sent
                break
            except LogUnavailable:
                await asyncio.sleep(0.5)


def orchestrate(
    log: MemoryLog, *, identity: str = "fold", restores: bool = True
) -> Callable[[Claim], Awaitable[None]]:
    """A transactional fold as the orchestrator is one: output and position land together.

    Args:
        identity: Prefix of its transactional identities.
        restores: Goes on with a new producer and from the committed row after a failure; else it
            makes the mistake to go on where it believes to be.
    """
    believed: dict[int, int] = {}

    async def owner(claim: Claim) -> None:
        number = claim.partition
        async with log.transactions(f"{identity}-{number}") as producer:
            rows = [record async for batch in log.read(ROWS, number) for record in batch]
            position = int(rows[-1].value or b"0") if rows else 0
            if not restores:
                position = believed.get(number, position)
            claim.seek(position)
            while True:
                records = await claim.batch(None)
                believed[number] = position = records[-1].offset + 1
                async with producer.transaction():
                    for record in records:
                        await producer.send(OUT, record.value, key=record.key or b"", partition=number)
                    await producer.send(ROWS, b"%d" % position, key=b"position", partition=number)

    return owner


async def storm(
    seed: int, faults: Faults, owner: Callable[[MemoryLog], Callable[[Claim], Awaitable[None]]]
) -> tuple[Counter[bytes], Counter[bytes]]:
    """Two workers fold while they are killed and put to sleep; what came in and what went out, by key."""
    cluster = MemoryCluster(TOPICS, seed=seed, faults=faults)
    feeder = cluster.connect("feeder")
    feeding = asyncio.create_task(put(feeder, IN, range(150)))
    workers: list[MemoryLog] = []

    def begin() -> None:
        log = cluster.connect("worker")
        log.start(log.own(IN, "fold", owner(log)))
        workers.append(log)

    begin()
    begin()
    for _ in range(8):
        await asyncio.sleep(cluster.chance.uniform(0, 10))
        victim = workers.pop(cluster.chance.randrange(len(workers)))
        if cluster.chance.random() < 0.5:
            victim.kill()
            begin()
        else:
            victim.pause()
            await asyncio.sleep(cluster.chance.uniform(5, 15))
            victim.resume()
            workers.append(victim)
    await feeding
    reader = cluster.connect("reader")
    async with asyncio.timeout(1000):
        while len(cluster.records(OUT)) < len(cluster.records(IN)):
            await asyncio.sleep(1)
    await asyncio.sleep(60)
    await reader.close()
    return (
        Counter(record.key or b"" for record in cluster.records(IN)),
        Counter(record.key or b"" for record in cluster.records(OUT)),
    )


@pytest.mark.parametrize("seed", range(10))
def test_a_transactional_fold_is_exactly_once(seed: int) -> None:
    """Whatever the log does and whoever dies, each record that is in comes out once."""
    came, went = virtual_time.run(storm(seed, HARD, orchestrate))
    assert came == went


@pytest.mark.parametrize(
    "mistaken",
    [
        pytest.param(lambda log: orchestrate(log, restores=False), id="goes on after a failure"),
        pytest.param(lambda log: orchestrate(log, identity=f"fold-{log.name}"), id="does not fence"),
    ],
)
def test_mistakes_are_found(mistaken: Callable[[MemoryLog], Callable[[Claim], Awaitable[None]]]) -> None:
    """A model that forgives would prove nothing: some seed shows each planted mistake."""

    def wrong(seed: int) -> bool:
        try:
            came, went = virtual_time.run(storm(seed, HARD, mistaken))
        except TimeoutError:
            return True  # something never came out
        return came != went

    assert any(wrong(seed) for seed in range(10))


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_a_seed_repeats_its_run(seed: int) -> None:
    """Records, offsets and times are the same again."""

    async def history() -> list[object]:
        cluster = MemoryCluster(TOPICS, seed=seed, faults=HARD)
        log = cluster.connect("worker")
        log.start(log.own(IN, "fold", orchestrate(log)))
        feeding = asyncio.create_task(put(cluster.connect("feeder"), IN, range(6)))
        await asyncio.sleep(5)
        log.kill()
        other = cluster.connect("worker")
        other.start(other.own(IN, "fold", orchestrate(other)))
        await feeding
        await asyncio.sleep(30)
        return [cluster.records(topic) for topic in TOPICS]

    assert virtual_time.run(history()) == virtual_time.run(history())


class Agent:
    """Keeps what is delivered to it; acknowledges what *acks* says."""

    def __init__(self, acks: Callable[[int], bool] = lambda _: True) -> None:
        self.acks = acks
        self.got: dict[int, list[int]] = {}
        self.held: list[Delivery] = []
        self.lost: list[int] = []
        self.begun: list[int] = []

    async def __call__(self, partition: int, deliveries: AsyncIterator[Delivery]) -> None:
        self.begun.append(partition)
        try:
            async for delivery in deliveries:
                self.got.setdefault(partition, []).append(delivery.record.offset)
                if self.acks(delivery.record.offset):
                    delivery.ack()
                else:
                    self.held.append(delivery)
        except asyncio.CancelledError:
            self.lost.append(partition)


def test_what_is_not_acknowledged_is_delivered_again_to_whoever_comes_next() -> None:
    async def story() -> None:
        cluster = MemoryCluster(TOPICS)
        first, second = cluster.connect("first"), cluster.connect("second")
        await put(first, IN, range(20))
        one, two = Agent(lambda offset: offset < 6), Agent()
        first.start(first.deliveries(IN, "lanes", one))
        await asyncio.sleep(2)
        assert one.got == {0: list(range(10)), 1: list(range(10))}
        assert cluster.committed("lanes", IN) == {0: 6, 1: 6}
        first.kill()
        second.start(second.deliveries(IN, "lanes", two))
        await asyncio.sleep(20)
        assert sorted(one.lost) == [0, 1]
        assert two.got == {0: [6, 7, 8, 9], 1: [6, 7, 8, 9]}
        assert cluster.committed("lanes", IN) == {0: 10, 1: 10}

    virtual_time.run(story())


def test_the_agent_of_a_partition_that_stays_goes_on_and_gets_what_it_holds_again() -> None:
    """As Faust does it: redelivered while it may still be at work on it."""

    async def story() -> None:
        cluster = MemoryCluster(TOPICS)
        first, second = cluster.connect("a"), cluster.connect("b")
        await put(first, IN, range(8))
        one, two = Agent(lambda offset: offset < 2), Agent()
        first.start(first.deliveries(IN, "lanes", one))
        await asyncio.sleep(0.1)
        second.start(second.deliveries(IN, "lanes", two))
        await asyncio.sleep(5)
        (kept,) = {0, 1} - set(one.lost)
        assert one.begun.count(kept) == 1
        assert one.got[kept] == [0, 1, 2, 3, 2, 3]
        (moved,) = one.lost
        assert two.got == {moved: [2, 3]}
        for delivery in one.held[:4]:  # of the generation before
            delivery.ack()
        await asyncio.sleep(5)
        assert cluster.committed("lanes", IN) == {kept: 2, moved: 4}
        one.held[-1].ack()
        await asyncio.sleep(5)
        assert cluster.committed("lanes", IN) == {kept: 4, moved: 4}

    virtual_time.run(story())


def test_a_clean_leave_commits_what_is_acknowledged_on_the_way_out() -> None:
    async def story() -> None:
        cluster = MemoryCluster(TOPICS)
        log = cluster.connect("a")
        await put(log, IN, range(4))

        async def drains(partition: int, deliveries: AsyncIterator[Delivery]) -> None:
            running: list[Delivery] = []
            try:
                async for delivery in deliveries:
                    running.append(delivery)  # noqa: PERF401 - what came before the cancellation counts
            except asyncio.CancelledError:
                await asyncio.sleep(3)  # what runs may finish
                running[-1].ack()

        lanes = log.start(log.deliveries(IN, "lanes", drains))
        await asyncio.sleep(1)
        lanes.cancel()
        await asyncio.wait([lanes])
        assert cluster.committed("lanes", IN) == {0: 2, 1: 2}

    virtual_time.run(story())


def test_an_agent_that_raises_ends_the_deliveries() -> None:
    """Faust's worker ends, too: an agent must never raise."""

    async def story() -> None:
        cluster = MemoryCluster(TOPICS)
        log = cluster.connect("a")

        async def raises(partition: int, deliveries: AsyncIterator[Delivery]) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await log.deliveries(IN, "lanes", raises)

    virtual_time.run(story())


async def _tick(ticks: list[float]) -> None:
    while True:
        ticks.append(asyncio.get_running_loop().time())
        await asyncio.sleep(1)


def test_a_process_asleep_takes_no_step_and_wakes_as_a_zombie() -> None:
    async def story() -> None:
        cluster = MemoryCluster(TOPICS)
        zombie, heir = cluster.connect("zombie"), cluster.connect("heir")
        ticks: list[float] = []
        fenced: list[Exception] = []

        async def owner(claim: Claim) -> None:
            async with zombie.transactions("t") as producer:
                try:
                    async with producer.transaction():
                        await (await producer.send(OUT, b"zombie", key=b"k", partition=0))
                        await asyncio.sleep(2)
                except Fenced as error:
                    fenced.append(error)
                    raise
            await asyncio.get_running_loop().create_future()

        async def clock() -> None:  # a task of a task of the process
            await asyncio.create_task(_tick(ticks))

        agent = Agent(lambda offset: offset == 0)
        await put(heir, IN, range(6))
        zombie.start(clock())
        zombie.start(zombie.own(ROWS, "t", owner))
        zombie.start(zombie.deliveries(IN, "lanes", agent))
        await asyncio.sleep(0.4)
        zombie.pause()  # before what it acknowledged is committed
        await asyncio.sleep(1.1)
        async with heir.transactions("t") as producer, producer.transaction():
            await producer.send(OUT, b"heir", key=b"k", partition=0)
        inherited = Agent()
        heir.start(heir.deliveries(IN, "lanes", inherited))
        await asyncio.sleep(10.5)
        assert ticks == [0.0]
        assert inherited.got == {0: [0, 1, 2], 1: [0, 1, 2]}
        zombie.resume()
        assert cluster.committed("lanes", IN) == {0: 3, 1: 3}
        for delivery in agent.held:
            delivery.ack()
        await asyncio.sleep(0.1)
        assert ticks == [0.0, 12.0]
        assert fenced
        assert [record.value for record in cluster.records(OUT)] == [b"heir"]
        assert cluster.committed("lanes", IN) == {0: 3, 1: 3}

    virtual_time.run(story())


def test_a_cancellation_reaches_a_sleeper_when_it_wakes() -> None:
    async def story() -> None:
        cluster = MemoryCluster(TOPICS)
        log = cluster.connect("sleeper")
        ended: list[float] = []

        async def sleeper() -> None:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                ended.append(asyncio.get_running_loop().time())
                raise

        task = log.start(sleeper())
        await asyncio.sleep(1)
        log.pause()
        task.cancel()
        await asyncio.sleep(5)
        assert not ended
        log.resume()
        await asyncio.wait([task])
        assert ended == [6.0]
        assert task.cancelled()

    virtual_time.run(story())


def test_a_killed_process_reaches_nothing_any_more() -> None:
    """Its tasks end, tasks of its tasks too, and whatever tries to go on with its log."""

    async def story() -> None:
        cluster = MemoryCluster(TOPICS)
        log = cluster.connect("killed")
        stubborn: list[str] = []

        async def inner() -> None:
            try:
                await asyncio.sleep(100)
            finally:
                stubborn.append("cancelled")
                try:
                    await (await log.producer.send(IN, b"late", key=b"k", partition=0))
                except Exception:  # noqa: BLE001 - none at all may come
                    stubborn.append("error")

        async def outer() -> None:
            await asyncio.create_task(inner())

        task = log.start(outer())
        await asyncio.sleep(1)
        log.kill()
        await asyncio.wait([task])
        await asyncio.sleep(1)
        assert stubborn == ["cancelled"]
        assert cluster.records(IN) == []

    virtual_time.run(story())


def test_what_was_under_way_at_a_kill_may_or_may_not_have_landed() -> None:
    async def landed(seed: int) -> int:
        cluster = MemoryCluster(TOPICS, seed=seed, faults=Faults(delay_s=1.0))
        log = cluster.connect("killed")
        for number in range(3):
            await log.producer.send(IN, b"%d" % number, key=b"k", partition=0)
        log.kill()
        await asyncio.sleep(5)
        values = [record.value for record in cluster.records(IN)]
        assert values == [b"0", b"1", b"2"][: len(values)]  # never a later one without an earlier one
        return len(values)

    assert {virtual_time.run(landed(seed)) for seed in range(40)} == {0, 1, 2, 3}


@pytest.mark.parametrize("steps", range(1, 8))
def test_a_process_dies_in_place_of_any_step_it_would_take(steps: int) -> None:
    """Between two awaits, and nothing of it happens that would come after."""

    async def story() -> None:
        log = MemoryCluster(TOPICS).connect("worker")
        taken: list[int] = []

        async def work(place: int) -> None:
            while True:
                taken.append(place)
                await asyncio.sleep(1)

        tasks = [log.start(work(place)) for place in (0, 1)]
        log.after_steps(steps, log.kill)
        await asyncio.sleep(20)
        assert taken == [0, 1, 0, 1, 0, 1, 0, 1][: steps - 1]
        assert all(task.cancelled() for task in tasks)

    virtual_time.run(story())


def test_a_member_whose_goodbye_gets_lost_is_gone_after_its_session() -> None:
    """The process ended before it had left."""

    async def story() -> None:
        cluster = MemoryCluster(TOPICS, faults=Faults(outages=((5.0, 15.0),)))
        first, second = cluster.connect("first"), cluster.connect("second")
        await put(cluster.connect("feeder"), IN, range(4))
        first.start(first.deliveries(IN, "lanes", Agent(lambda _: False)))
        await asyncio.sleep(6)
        closing = asyncio.create_task(first.close())
        await asyncio.sleep(1)
        first.kill()
        await closing
        other = Agent()
        second.start(second.deliveries(IN, "lanes", other))
        await asyncio.sleep(30)
        assert other.got == {0: [0, 1], 1: [0, 1]}

    virtual_time.run(story())


def test_a_member_that_is_told_twice_to_close_is_gone_after_its_session() -> None:
    """The second time cuts off what the first one had begun."""

    async def story() -> None:
        cluster = MemoryCluster(TOPICS, faults=Faults(delay_s=0.5))
        first, second = cluster.connect("first"), cluster.connect("second")
        await put(cluster.connect("feeder"), IN, range(4))
        first.start(first.deliveries(IN, "lanes", Agent()))
        await asyncio.sleep(4)
        closing = [asyncio.create_task(first.close())]
        await asyncio.sleep(0.05)
        closing.append(asyncio.create_task(first.close()))
        await asyncio.wait(closing)
        first.kill()
        await put(cluster.connect("feeder"), IN, range(4, 8))
        other = Agent()
        second.start(second.deliveries(IN, "lanes", other))
        await asyncio.sleep(30)
        assert {partition: got[-2:] for partition, got in other.got.items()} == {0: [2, 3], 1: [2, 3]}

    virtual_time.run(story())


def test_sends_tell_when_they_stood_still() -> None:
    """For whoever judges what could not be written then."""

    async def story() -> None:
        cluster = MemoryCluster(TOPICS, faults=Faults(lost_replies=1.0), limits=Limits(request_timeout_s=3.0))
        log = cluster.connect("worker")
        sent = await log.producer.send(OUT, b"1", key=b"k", partition=0)
        with pytest.raises(LogUnavailable):
            await sent
        assert [*log.stalls(OUT)] == [(0.0, 3.0)]
        assert not log.stalls(IN)

    virtual_time.run(story())


def test_a_static_member_that_is_back_in_time_moves_nothing() -> None:
    async def story() -> None:
        cluster = MemoryCluster(TOPICS)
        begun: list[tuple[str, int, float]] = []

        def owner(name: str) -> Callable[[Claim], Awaitable[None]]:
            async def own(claim: Claim) -> None:
                begun.append((name, claim.partition, asyncio.get_running_loop().time()))
                await claim.batch(None)

            return own

        first, second = cluster.connect("w1", static=True), cluster.connect("w2", static=True)
        first.start(first.own(IN, "g", owner("w1")))
        second.start(second.own(IN, "g", owner("w2")))
        await asyncio.sleep(1)
        began, begun[:] = list(begun), []
        (mine,) = [partition for name, partition, _ in began if name == "w1"]
        first.kill()
        await asyncio.sleep(3)
        again = cluster.connect("w1", static=True)
        again.start(again.own(IN, "g", owner("w1")))
        await asyncio.sleep(60)
        assert begun == [("w1", mine, 4.0)]
        await again.close()  # a static member says no goodbye
        begun.clear()
        await asyncio.sleep(3)
        assert begun == []
        await asyncio.sleep(10)
        assert [(name, partition) for name, partition, _ in begun] == [("w2", 0), ("w2", 1)]

    virtual_time.run(story())


def test_sends_outlast_an_outage_that_is_shorter_than_their_patience() -> None:
    async def story() -> None:
        faults = Faults(outages=((1.0, 11.0), (20.0, 80.0)))
        cluster = MemoryCluster(TOPICS, faults=faults)
        log = cluster.connect("a")
        await asyncio.sleep(2)
        await (await log.producer.send(IN, b"1", key=b"k", partition=0))
        assert asyncio.get_running_loop().time() == pytest.approx(11.0)
        await asyncio.sleep(10)
        with pytest.raises(LogUnavailable, match="in-0"):
            await (await log.producer.send(IN, b"2", key=b"k", partition=0))
        assert asyncio.get_running_loop().time() == pytest.approx(51.0)
        assert [record.value for record in cluster.records(IN)] == [b"1"]

    virtual_time.run(story())


def test_a_transaction_that_stays_open_is_aborted_and_its_producer_fenced() -> None:
    async def story() -> None:
        cluster = MemoryCluster(TOPICS, limits=Limits(transaction_timeout_s=15))
        log = cluster.connect("a")
        async with log.transactions("t") as producer:
            with pytest.raises(Fenced):
                async with producer.transaction():
                    await (await producer.send(OUT, b"1", key=b"k", partition=0))
                    await (await log.producer.send(OUT, b"2", key=b"k", partition=0))
                    assert cluster.records(OUT) == []
                    await asyncio.sleep(16)
                    assert [record.value for record in cluster.records(OUT)] == [b"2"]

    virtual_time.run(story())


def test_the_older_epoch_is_over_before_the_newer_one_begins() -> None:
    """While the markers of its aborted transaction are being written, the older producer writes no more."""

    async def story() -> None:
        coordinator, partition = Coordinator(Random(1), 1.0, 15.0), Partition(OUT, 0)  # noqa: S311 - repeatable
        old = coordinator.begin_epoch("t")
        coordinator.append("t", old, partition, (b"k", b"1", ()), 0)
        with pytest.raises(Busy):
            coordinator.begin_epoch("t")
        with pytest.raises(Fenced):
            coordinator.append("t", old, partition, (b"k", b"2", ()), 0)
        with pytest.raises(Fenced):
            coordinator.end("t", old, committed=True)
        await asyncio.sleep(1)
        assert coordinator.begin_epoch("t") > old
        assert partition.visible(0, 10) == ([], 2)

    virtual_time.run(story())


def test_an_unknown_commit_may_have_landed_and_ends_the_producer() -> None:
    async def landed(seed: int) -> bool:
        cluster = MemoryCluster(TOPICS, seed=seed, faults=Faults(unknown_commits=1.0))
        log = cluster.connect("a")
        async with log.transactions("t") as producer:
            with pytest.raises(LogUnavailable):
                async with producer.transaction():
                    await producer.send(OUT, b"1", key=b"k", partition=0)
            with pytest.raises(LogUnavailable, match="new producer"):
                async with producer.transaction():
                    pass
        await asyncio.sleep(20)
        return bool(cluster.records(OUT))

    assert {virtual_time.run(landed(seed)) for seed in range(10)} == {True, False}
