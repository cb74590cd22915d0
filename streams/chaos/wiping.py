"""The table lost: its topic deleted with all rows, and made anew, empty."""

import asyncio
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, UnknownTopicOrPartitionError, for_code

from streams.kafka import admin
from streams.log import LogUnavailable
from streams.settings import Settings
from streams.topics import JOBS

WIPE_S: Final = 60.0
"""Seconds that it may take in all."""

_LOOK_AGAIN_S: Final = 0.1


async def wipe_table(settings: Settings, *, replication: int = 1) -> None:
    """Delete the topic ``jobs`` and make it again. No worker may run meanwhile.

    One that does would go on from its memory and write the rows that change, and its position, to
    the new topic; whoever restored from that later would miss all other jobs.

    Args:
        replication: Replicas of each partition.

    Raises:
        LogUnavailable, TopicRefused: Kafka does not do it, or not in time.
    """
    name = settings.prefix + JOBS
    try:
        async with asyncio.timeout(WIPE_S):
            await _delete(settings, name)
            # Its name may be free a little later only.
            while name not in await admin.create(settings, replication=replication):
                await asyncio.sleep(_LOOK_AGAIN_S)
    except (KafkaError, OSError, TimeoutError) as error:
        raise LogUnavailable(f"wiping {name} at {settings.brokers}: {error!r}") from error


async def _delete(settings: Settings, name: str) -> None:
    client = AIOKafkaAdminClient(bootstrap_servers=settings.brokers, request_timeout_ms=int(WIPE_S * 1000))
    try:
        await client.start()
        answer = await client.delete_topics([name])
        for _, code in answer.topic_error_codes:
            if code and (error := for_code(code)) is not UnknownTopicOrPartitionError:
                raise error(f"{name} was not deleted")
    finally:
        await client.close()
