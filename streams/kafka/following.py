"""Reading partitions as they grow, outside any group."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import ConsumerStoppedError, KafkaError

from streams.kafka.connection import client_options
from streams.kafka.errors import in_our_words
from streams.kafka.reading import make_consumer, records, start_consumer, stop_consumer
from streams.log import LogUnavailable, NoSuchTopic, Record
from streams.settings import Settings

BEGIN_S = 30.0
"""Seconds that finding the place to begin may take, and asking for the number of partitions."""
LOOK_UP_MS = 1_000
"""Longest wait for records before looking whether it is still wanted; records end it at once."""


async def partitions(settings: Settings, topic: str) -> int:
    """How many partitions *topic* has.

    Asks for all topics, since some brokers make a topic that is asked for by its name.

    Raises:
        LogUnavailable: the brokers do not say in time.
        NoSuchTopic: there is no such topic.
    """
    name = settings.prefix + topic
    what = f"asking {settings.brokers} for the topic {name}"
    client = AIOKafkaClient(**client_options(settings))
    try:
        async with asyncio.timeout(BEGIN_S):
            await client.bootstrap()
            cluster = await client.fetch_all_metadata()
    except TimeoutError as error:
        raise LogUnavailable(f"{what}: no answer in {BEGIN_S:g} s") from error
    except KafkaError as error:
        raise in_our_words(error, what) from error
    finally:
        await client.close()
    found = cluster.partitions_for_topic(name)
    if not found:
        raise NoSuchTopic(
            f"there is no topic {name} at {settings.brokers}: make it by `anabranch topics create`"
        )
    return len(found)


async def ends(settings: Settings, topic: str, numbers: Sequence[int]) -> dict[int, int]:
    """By partition the offset after the last committed record.

    Raises:
        LogUnavailable: the brokers do not say in time.
    """
    places = [TopicPartition(settings.prefix + topic, number) for number in numbers]
    what = f"asking {settings.brokers} where {settings.prefix}{topic} ends"
    consumer = make_consumer(settings)
    try:
        async with asyncio.timeout(BEGIN_S):
            await start_consumer(consumer, settings.prefix + topic)
            found = await consumer.end_offsets(places)
    except TimeoutError as error:
        raise LogUnavailable(f"{what}: no answer in {BEGIN_S:g} s") from error
    except KafkaError as error:
        raise in_our_words(error, what) from error
    finally:
        await stop_consumer(consumer)
    return {place.partition: offset for place, offset in found.items()}


@asynccontextmanager
async def follow(
    settings: Settings, topic: str, numbers: Sequence[int], since: int | None
) -> AsyncIterator[AsyncIterator[Sequence[Record]]]:
    """Committed records of these partitions as they come; entered once the places to begin are known.

    Raises:
        LogUnavailable: the brokers did not tell the places in time.
    """
    places = [TopicPartition(settings.prefix + topic, number) for number in numbers]
    what = f"following {settings.prefix}{topic} at {settings.brokers}"
    consumer = make_consumer(settings)
    try:
        try:
            async with asyncio.timeout(BEGIN_S):
                await start_consumer(consumer, settings.prefix + topic)
                # Before the assignment: an assigned partition begins to fetch from its own idea of a place.
                begins = await _begins(consumer, places, since)
                consumer.assign(places)
                for place, offset in begins.items():
                    consumer.seek(place, offset)
        except TimeoutError as error:
            raise LogUnavailable(f"{what}: not begun in {BEGIN_S:g} s") from error
        except KafkaError as error:
            raise in_our_words(error, what) from error
        yield _as_they_come(consumer, topic, what)
    finally:
        await stop_consumer(consumer)


async def _begins(
    consumer: AIOKafkaConsumer, places: Sequence[TopicPartition], since: int | None
) -> dict[TopicPartition, int]:
    if since is None:
        return dict(await consumer.end_offsets(places))
    if since <= 0:
        return dict(await consumer.beginning_offsets(places))
    found = await consumer.offsets_for_times(dict.fromkeys(places, since))
    ends = await consumer.end_offsets(places)
    return {place: ends[place] if at is None else at.offset for place, at in found.items()}


async def _as_they_come(consumer: AIOKafkaConsumer, topic: str, what: str) -> AsyncIterator[Sequence[Record]]:
    while True:
        try:
            fetched = await consumer.getmany(timeout_ms=LOOK_UP_MS)
        except ConsumerStoppedError:
            return  # it was left
        except KafkaError as error:
            raise in_our_words(error, what) from error
        for batch in fetched.values():
            yield records(topic, batch)
