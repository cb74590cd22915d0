"""Which transactions are still open: asked of Kafka's coordinators, and seen on the partitions.

Either way alone would miss some: a coordinator does not know of a transaction that it lost (KIP-664
calls it hanging), and on the partitions nothing shows of one that has written nothing yet.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError, for_code
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import CompactArray, CompactString, Int16, Int32, Int64, Schema, TaggedFields

from streams.log import LogUnavailable
from streams.settings import Settings
from streams.topics import topics

ASK_S: Final = 30.0
"""Seconds that asking may take in all."""

_LOOK_AGAIN_S: Final = 0.1
_UNDER_WAY: Final = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
"""Kafka's words for a transaction that is open, or ended and not yet marked on every partition."""


class _Answer(Response):  # type: ignore[misc]  # aiokafka has no types
    """ListTransactions (KIP-664), version 0; aiokafka itself does not have it."""

    API_KEY = 66
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("unknown_state_filters", CompactArray(CompactString("utf-8"))),
        (
            "transaction_states",
            CompactArray(
                ("transactional_id", CompactString("utf-8")),
                ("producer_id", Int64),
                ("transaction_state", CompactString("utf-8")),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _Question(RequestStruct):  # type: ignore[misc]  # as above
    FLEXIBLE_VERSION = True
    API_KEY = 66
    API_VERSION = 0
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        ("state_filters", CompactArray(CompactString("utf-8"))),
        ("producer_id_filters", CompactArray(Int64)),
        ("tags", TaggedFields),
    )


class _ListTransactions(Request[_Question]):  # type: ignore[misc]  # as above
    API_KEY = 66

    def build(self, request_struct_class: type[_Question]) -> _Question:
        """The request, for those that are under way."""
        return request_struct_class(list(_UNDER_WAY), [], {})


async def open_transactions(settings: Settings, *, within_s: float = 0.0) -> tuple[str, ...]:
    """A system's transactions that are still open, for a person; none is what should be.

    Args:
        within_s: Seconds to give them to end.

    Raises:
        LogUnavailable: the brokers do not say.
    """
    ends = asyncio.get_running_loop().time() + within_s
    try:
        while True:
            async with asyncio.timeout(ASK_S):
                found = await _known(settings) + await _seen(settings)
            if not found or asyncio.get_running_loop().time() > ends:
                return found
            await asyncio.sleep(_LOOK_AGAIN_S)
    except (KafkaError, OSError, TimeoutError) as error:
        raise LogUnavailable(f"the open transactions at {settings.brokers}: {error!r}") from error


async def _known(settings: Settings) -> tuple[str, ...]:
    """What the coordinators know of: every broker coordinates some."""
    client = AIOKafkaClient(
        bootstrap_servers=settings.brokers.split(","), request_timeout_ms=int(ASK_S * 1000)
    )
    found = []
    try:
        await client.bootstrap()
        for broker in client.cluster.brokers():
            answer = await client.send(broker.nodeId, _ListTransactions())
            if answer.error_code:
                raise for_code(answer.error_code)(f"listing transactions of broker {broker.nodeId}")
            found += [
                f"{identity}: {state}"
                for identity, _, state, _ in answer.transaction_states
                if identity.startswith(settings.prefix)
            ]
    finally:
        await client.close()
    return tuple(sorted(found))


async def _seen(settings: Settings) -> tuple[str, ...]:
    """Partitions that readers of committed records cannot read to their end."""
    places = [
        TopicPartition(settings.prefix + topic.name, number)
        for topic in topics(settings)
        for number in range(topic.partitions)
    ]
    whole = await _ends(settings, places, "read_uncommitted")  # first, or what lands between would seem open
    stable = await _ends(settings, places, "read_committed")
    return tuple(
        f"{place.topic}[{place.partition}]: open since offset {stable[place]}, of {whole[place]}"
        for place in places
        if stable[place] < whole[place]
    )


async def _ends(
    settings: Settings, places: Sequence[TopicPartition], isolation: str
) -> dict[TopicPartition, int]:
    async with AIOKafkaConsumer(
        bootstrap_servers=settings.brokers.split(","),
        enable_auto_commit=False,
        isolation_level=isolation,
        request_timeout_ms=int(ASK_S * 1000),
    ) as consumer:
        consumer.assign(places)  # or it would look up topic after topic, 0.1 s each
        ends: dict[TopicPartition, int] = await consumer.end_offsets(places)
        return ends
