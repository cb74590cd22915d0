"""Gathers what the verifier looks at: while a round runs, and once it is over."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from agents.simulator import Counters
from streams.chaos.evidence import Call, Committed
from streams.chaos.workers import now_ms
from streams.kafka.reading import PROGRESS_S, make_consumer, records, stop_consumer
from streams.kafka.told import offsets_told
from streams.log import Log, LogUnavailable, Record
from streams.settings import Settings
from streams.topics import ANSWERS, GOALS, JOB_EVENTS, SUBTASKS, topics

GROUPS: Final = {"agents": (GOALS, SUBTASKS), "orchestrator": (JOB_EVENTS,)}
"""The groups of a system, without its prefix, and the topics that each reads."""

LOOK_S: Final = 1.0
"""Seconds between two looks at what the groups said is done."""

_ASK_S: Final = 5.0


class Watch:
    """Watches a system for as long as a round goes on.

    Attributes:
        seen: Answers in the order in which a reader saw them that read all along.
        committed: Looks at the groups' offsets.
    """

    def __init__(self, settings: Settings, log: Log) -> None:
        self._settings, self._log = settings, log
        self.seen: list[Record] = []
        self.committed: list[Committed] = []
        self._changed = asyncio.Condition()
        self._failed: BaseException | None = None

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch until it is left."""
        begun = asyncio.Event()
        tasks = [asyncio.create_task(self._read(begun)), asyncio.create_task(self._look())]
        try:
            async with asyncio.timeout(PROGRESS_S):
                await begun.wait()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def answered(self, jobs: Iterable[str], *, within_s: float) -> bool:
        """Wait until all these jobs have an answer; False where they have not in time.

        Raises:
            LogUnavailable: the reader cannot read on.
        """
        missing = set(jobs)

        def complete() -> bool:
            missing.difference_update((record.key or b"").decode(errors="replace") for record in self.seen)
            return not missing or self._failed is not None

        with suppress(TimeoutError):
            async with asyncio.timeout(within_s), self._changed:
                await self._changed.wait_for(complete)
        if self._failed is not None:
            raise LogUnavailable(f"the reader of the answers ended: {self._failed!r}") from self._failed
        return not missing

    async def _read(self, begun: asyncio.Event) -> None:
        try:
            async with self._log.follow(ANSWERS, range(self._settings.lanes), since=0) as coming:
                begun.set()
                async for fetched in coming:
                    async with self._changed:
                        self.seen += fetched
                        self._changed.notify_all()
        except LogUnavailable as error:
            self._failed = error
            async with self._changed:
                self._changed.notify_all()

    async def _look(self) -> None:
        while True:
            with suppress(KafkaError, OSError, TimeoutError):
                async with _administration(self._settings) as client:
                    while True:
                        async with asyncio.timeout(_ASK_S):
                            self.committed += await _committed(client, self._settings)
                        await asyncio.sleep(LOOK_S)
            await asyncio.sleep(LOOK_S)


async def committed(settings: Settings) -> tuple[Committed, ...]:
    """What the groups say is done now.

    Raises:
        LogUnavailable: the brokers do not say.
    """
    try:
        async with asyncio.timeout(PROGRESS_S), _administration(settings) as client:
            return await _committed(client, settings)
    except (KafkaError, OSError, TimeoutError) as error:
        raise LogUnavailable(f"the groups' offsets at {settings.brokers}: {error!r}") from error


def lag(found: Mapping[str, Sequence[Record]], done: Iterable[Committed]) -> dict[str, int]:
    """Records behind what the groups say is done, where it is not 0.

    Counted in records: the offsets of a topic that is written in transactions have gaps at the end.
    """
    offsets = {(each.topic, each.partition): each.offset for each in done}
    behind: dict[str, int] = {}
    for group, read in GROUPS.items():
        for topic in read:
            for record in found[topic]:
                if record.offset >= offsets.get((topic, record.partition), 0):
                    place = f"{group} {topic}-{record.partition}"
                    behind[place] = behind.get(place, 0) + 1
    return behind


async def read_whole(settings: Settings) -> dict[str, tuple[Record, ...]]:
    """Every committed record of a system, by topic without its prefix, by partition and offset.

    Raises:
        LogUnavailable: the brokers give nothing for :data:`~streams.kafka.reading.PROGRESS_S` seconds.
    """
    names = {topic.name: topic.partitions for topic in topics(settings)}
    found: dict[str, list[Record]] = {name: [] for name in names}
    places = [
        TopicPartition(settings.prefix + name, number)
        for name, count in names.items()
        for number in range(count)
    ]
    consumer = make_consumer(settings)
    try:
        async with asyncio.timeout(PROGRESS_S) as deadline:
            await consumer.start()
            consumer.assign(places)
            ends = await consumer.end_offsets(places)
            for place, offset in (await consumer.beginning_offsets(places)).items():
                consumer.seek(place, offset)
            behind = set(places)
            while behind:
                for place, fetched in (await consumer.getmany(timeout_ms=200)).items():
                    below = [each for each in fetched if each.offset < ends[place]]
                    found[place.topic.removeprefix(settings.prefix)] += records(
                        place.topic.removeprefix(settings.prefix), below
                    )
                    deadline.reschedule(asyncio.get_running_loop().time() + PROGRESS_S)
                behind = {place for place in behind if await consumer.position(place) < ends[place]}
    except (KafkaError, TimeoutError) as error:
        raise LogUnavailable(f"reading {settings.prefix}* at {settings.brokers}: {error!r}") from error
    finally:
        await stop_consumer(consumer)
    return {
        name: tuple(sorted(those, key=lambda each: (each.partition, each.offset)))
        for name, those in found.items()
    }


def calls(counters: Counters) -> tuple[Call, ...]:
    """The endpoint's log of calls.

    Raises:
        RuntimeError: it has dropped some: it should keep more.
    """
    log = counters.log()
    if log["dropped"]:
        raise RuntimeError(f"the endpoint's log has dropped {log['dropped']} calls: keep more")
    return tuple(
        Call(
            call_id=call.call_id,
            began=round(call.at * 1000),
            ended=None if call.seconds is None else round((call.at + call.seconds) * 1000),
            status=call.failure if call.status == "200" and call.failure else call.status,
        )
        for call in log["calls"]
    )


async def _committed(client: AIOKafkaAdminClient, settings: Settings) -> tuple[Committed, ...]:
    found: list[Committed] = []
    for group, read in GROUPS.items():
        places = [
            TopicPartition(settings.prefix + topic, number)
            for topic in read
            for number in range(settings.lanes)
        ]
        offsets = await offsets_told(client, settings.prefix + group, places)
        at = now_ms()
        found += [
            Committed(
                group=group,
                topic=place.topic.removeprefix(settings.prefix),
                partition=place.partition,
                offset=offset,
                at=at,
            )
            for place, offset in offsets.items()
        ]
    return tuple(found)


@asynccontextmanager
async def _administration(settings: Settings) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=settings.brokers, request_timeout_ms=int(_ASK_S * 1000))
    try:
        async with asyncio.timeout(_ASK_S):
            await client.start()
        yield client
    finally:
        await client.close()
