"""A member of a consumer group, to be killed: prints the partitions that it owns, a line a change.

python -m tests.streams.group_member SERVERS PREFIX TOPIC GROUP
"""

import asyncio
import json
import logging
import sys

import structlog

from streams.kafka.log import KafkaLog
from streams.log import Claim
from streams.settings import Settings


async def main(servers: str, prefix: str, topic: str, group: str) -> None:
    """Own until killed."""
    owned: set[int] = set()

    async def owner(claim: Claim) -> None:
        owned.add(claim.partition)
        sys.stdout.write(json.dumps(sorted(owned)) + "\n")
        sys.stdout.flush()
        try:
            while True:
                await claim.batch(None)
        finally:
            owned.discard(claim.partition)

    async with KafkaLog(Settings(brokers=servers, prefix=prefix)) as log:
        await log.own(topic, group, owner)


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    asyncio.run(main(*sys.argv[1:]))
