"""Reading a partition to its end, outside any group."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError

from streams.kafka.connection import client_options
from streams.kafka.errors import in_our_words
from streams.log import LogUnavailable, Record
from streams.settings import Settings

PROGRESS_S = 30.0
"""Seconds without a record, a marker or an answer after which reading fails."""
STOP_S = 10.0
"""Seconds that stopping a consumer is waited for."""
FETCH_WAIT_MS = 50
"""Longest wait of a fetch on the broker. It is woken by data, but a consumer has one fetch under way
per broker, and a partition that was left out of it has to wait for it."""
log = structlog.get_logger()


def make_consumer(settings: Settings, **group: object) -> AIOKafkaConsumer:
    """A consumer of committed records; without *group* options it belongs to no group."""
    return AIOKafkaConsumer(
        **client_options(settings),
        enable_auto_commit=False,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        fetch_max_wait_ms=FETCH_WAIT_MS,
        request_timeout_ms=int(PROGRESS_S * 1000),
        **group,
    )


_stopping: set[asyncio.Task[None]] = set()


async def stop_consumer(consumer: AIOKafkaConsumer) -> None:
    """Stop it, within a bound, in a task of its own.

    aiokafka ends its tasks by cancelling and awaiting them, and takes a cancellation of ours that
    comes meanwhile for theirs: whoever was told to end would go on as if nothing had been said.
    """
    stopping = asyncio.create_task(_stop(consumer))
    _stopping.add(stopping)
    stopping.add_done_callback(_stopping.discard)
    await asyncio.wait([stopping], timeout=STOP_S)


async def _stop(consumer: AIOKafkaConsumer) -> None:
    try:
        await consumer.stop()
    except KafkaError as error:  # it leaves its group by the group's timeout then
        log.debug("consumer_stopped_with_error", reason=str(error))


async def start_consumer(consumer: AIOKafkaConsumer, topic: str) -> None:
    """Start a consumer without a group, and have its topic known.

    Raises:
        TopicAuthorizationFailedError: we may not see it. By itself aiokafka would go on asking where
            its partitions are for as long as a request may take.
    """
    await consumer.start()
    client = consumer._client  # noqa: SLF001 - it tells nobody else
    await client.set_topics([topic])
    if topic in client.cluster.unauthorized_topics:
        raise TopicAuthorizationFailedError(topic)


def records(topic: str, fetched: "Iterable[ConsumerRecord[bytes | None, bytes | None]]") -> list[Record]:
    """What aiokafka fetched, under the topic's name without prefix."""
    return [
        Record(topic, each.partition, each.offset, each.timestamp, each.key, each.value, tuple(each.headers))
        for each in fetched
    ]


async def read(
    settings: Settings, topic: str, partition: int, offset: int | None, since: int | None
) -> AsyncIterator[Sequence[Record]]:
    """Committed records of one partition, up to the end that it had at the start.

    Raises:
        LogUnavailable: the brokers gave nothing for :data:`PROGRESS_S` seconds.
    """
    place = TopicPartition(settings.prefix + topic, partition)
    what = f"reading {place.topic}-{partition} at {settings.brokers}"
    consumer = make_consumer(settings)
    try:
        async with asyncio.timeout(PROGRESS_S) as deadline:
            await start_consumer(consumer, place.topic)
            consumer.assign([place])
            end = (await consumer.end_offsets([place]))[place]
            position = await _begin(consumer, place, offset, since, end)
            if position < end:
                consumer.seek(place, position)
            while position < end:
                fetched = (await consumer.getmany(place, timeout_ms=1000)).get(place, [])
                after = await consumer.position(place)
                if after != position:
                    position = after
                    deadline.reschedule(asyncio.get_running_loop().time() + PROGRESS_S)
                below = [each for each in fetched if each.offset < end]
                if below:
                    deadline.reschedule(None)  # the caller's time is not ours
                    yield records(topic, below)
                    deadline.reschedule(asyncio.get_running_loop().time() + PROGRESS_S)
    except TimeoutError as error:
        raise LogUnavailable(f"{what}: no progress in {PROGRESS_S} s") from error
    except KafkaError as error:
        raise in_our_words(error, what) from error
    finally:
        await stop_consumer(consumer)


async def _begin(
    consumer: AIOKafkaConsumer, place: TopicPartition, offset: int | None, since: int | None, end: int
) -> int:
    if offset is not None:
        return offset
    if since is None:
        return int((await consumer.beginning_offsets([place]))[place])
    found = (await consumer.offsets_for_times({place: since}))[place]
    return end if found is None else int(found.offset)
