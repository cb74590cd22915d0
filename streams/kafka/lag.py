"""How far the groups of a system are behind on its topics."""

import asyncio
from typing import Final

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from streams.kafka.connection import client_options
from streams.kafka.errors import in_our_words
from streams.kafka.reading import make_consumer, stop_consumer
from streams.kafka.told import offsets_told
from streams.log import LogUnavailable
from streams.settings import Settings
from streams.topics import GOALS, JOB_EVENTS, SUBTASKS

TIMEOUT_S: Final = 15.0

_READ: Final = {GOALS: "agents", JOB_EVENTS: "orchestrator", SUBTASKS: "agents"}
"""Topics that a group reads, and which: without the prefix."""


async def lag(settings: Settings) -> dict[str, int]:
    """Records by topic, without its prefix, that its group has not told to be done.

    Groups tell once a second. On ``subtasks`` the mark that ends a transaction counts as a record, and
    acknowledgements go in order: a few are left when all is done, and all that wait behind a slow one
    count although they may be finished.

    Raises:
        LogUnavailable: Kafka does not answer, or has no such topics.
    """
    topics = {settings.prefix + topic: topic for topic in _READ}
    places = [TopicPartition(name, number) for name in topics for number in range(settings.lanes)]
    consumer = make_consumer(settings)
    admin = AIOKafkaAdminClient(**client_options(settings))
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await consumer.start()
            await admin.start()
            told: dict[TopicPartition, int] = {}
            for group in set(_READ.values()):
                read = [place for place in places if _READ[topics[place.topic]] == group]
                told |= await offsets_told(admin, settings.prefix + group, read)
            begins = await consumer.beginning_offsets(places)
            ends = await consumer.end_offsets(places)
    except (KafkaError, OSError, TimeoutError) as error:
        what = f"the groups' offsets at {settings.brokers}"
        if isinstance(error, KafkaError):
            raise in_our_words(error, what) from error
        raise LogUnavailable(f"{what}: no answer in {TIMEOUT_S:g} s") from error
    finally:
        await stop_consumer(consumer)
        await admin.close()
    behind = dict.fromkeys(_READ, 0)
    for place in places:
        done = max(told.get(place, 0), begins[place])
        behind[topics[place.topic]] += max(0, ends[place] - done)
    return behind
