"""A stranger that takes over the transactional identity of a partition's owner.

As a second orchestrator would that believes it owns the partition. The owner is fenced at its next
transaction, ends, and takes the identity back; what the stranger wrote is seen by nobody.
"""

import asyncio
from typing import Final

from aiokafka.errors import KafkaError

from streams.kafka.errors import in_our_words
from streams.kafka.producers import END_S, start_producer, stop_producer
from streams.log import Fenced
from streams.settings import Settings
from streams.topics import ANSWERS, JOBS

STRANGE: Final = b'{"strange":true}'
"""What it writes: no answer, no row."""


async def take_over(settings: Settings, partition: int, *, hold_s: float = 0.0, abort: bool = True) -> bool:
    """Be the stranger: write to ``answers`` and ``jobs`` in a transaction that is never committed, and go.

    Args:
        hold_s: Seconds to keep the transaction open.
        abort: End the transaction; else it stays open when the stranger goes, until its owner or
            its timeout (15 s) ends it.

    Returns:
        Whether the identity was still the stranger's at the end. The owner may have it back by then.

    Raises:
        LogUnavailable: the brokers gave no identity, or took no records, in time.
    """
    identity = f"{settings.prefix}orchestrator-{partition}"
    producer = await start_producer(settings, identity)
    try:
        async with asyncio.timeout(hold_s + END_S):
            await producer.begin_transaction()
            for topic in (ANSWERS, JOBS):
                await producer.send_and_wait(
                    settings.prefix + topic, STRANGE, key=b"strange", partition=partition
                )
            await asyncio.sleep(hold_s)
            if abort:
                await producer.abort_transaction()
    except KafkaError as error:
        ours = in_our_words(error, f"the stranger's transaction as {identity}")
        if isinstance(ours, Fenced):
            return False
        raise ours from error
    finally:
        await stop_producer(producer)
    return True
