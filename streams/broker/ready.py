"""Whether a Kafka node can do what clients ask first: join a group and begin a transaction.

An open port is not enough: the topics behind groups and transactions are made when they are first
asked for, and until then clients see errors.
"""

import asyncio
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

_ANSWER_TIMEOUT_S: Final = 10.0
_LOOK_AGAIN_S: Final = 0.02
_TRANSACTION: Final = 1
_GROUP: Final = "anabranch-ready"
_NO_SUCH_GROUP: Final = 69  # the answer of a coordinator at work, to a group that nobody joined


async def is_ready(host: str, port: int) -> bool:
    """Ask the node at *host*, *port* once; waits while it answers that it is not ready yet."""
    try:
        async with asyncio.timeout(_ANSWER_TIMEOUT_S):
            _, writer = await asyncio.open_connection(host, port)
            writer.close()  # asked first because the Kafka client logs an error when nothing listens
            return await _coordinates(f"{host}:{port}")
    except (KafkaError, OSError):
        return False


async def _coordinates(servers: str) -> bool:
    client = AIOKafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=int(_ANSWER_TIMEOUT_S * 1_000))
    try:
        await client.start()
        while True:
            try:
                await client.find_coordinator(_GROUP, _TRANSACTION)
                (answer,) = await client.describe_consumer_groups([_GROUP])
                if answer.groups[0][0] in {0, _NO_SUCH_GROUP}:
                    return True
            except KafkaError as error:
                if not getattr(error, "retriable", False):
                    raise
            await asyncio.sleep(_LOOK_AGAIN_S)
    finally:
        await client.close()
