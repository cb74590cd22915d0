"""What a consumer group has told to be done."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from aiokafka import TopicPartition
from aiokafka.structs import OffsetAndMetadata

AGAIN_S: Final = 0.2
"""Seconds between two questions, while the group's coordinator is on its way to another broker."""


class Administration(Protocol):
    """What is needed of :class:`aiokafka.admin.AIOKafkaAdminClient`."""

    async def list_consumer_group_offsets(
        self, group_id: str, *, partitions: list[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """The offsets of a group for these partitions, -1 where it told none."""


async def offsets_told(
    administration: Administration, group: str, places: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """The offset that a group has told for each of *places*; places without one are left out.

    A broker that is not the group's coordinator any more, or has yet to load it, answers with an error
    and no partitions. aiokafka 0.14 looks at the errors of partitions only, so that such an answer reads
    as a group that never told anything. Here it is asked again, for as long as the caller's own deadline
    lets it.

    Raises:
        KafkaError: as the client raises it.
    """
    while True:
        found = await administration.list_consumer_group_offsets(group, partitions=list(places))
        if all(place in found for place in places):
            return {place: found[place].offset for place in places if found[place].offset >= 0}
        await asyncio.sleep(AGAIN_S)
