"""Batches of records as no client of ours would send them, put on a real Kafka byte by byte."""

import asyncio
import gzip
import struct

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from streams.log import Headers

_CRC, _SUMMED, _ATTRIBUTES, _RECORDS = 17, 21, 21, 61
"""Where a batch has its checksum, what is summed from where, its attributes, and its records."""
_GZIP = 1
_NOT_YET = frozenset({3, 5, 6})
"""What a broker says while a new topic's leader is being found: UNKNOWN_TOPIC_OR_PARTITION,
LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER."""
_LEADER_S, _AGAIN_S = 30.0, 0.1


def batch(
    *records: tuple[bytes | None, bytes | None, Headers],
    names: dict[bytes, bytes] | None = None,
    zipped: bool = False,
    at: int = 1_790_000_000_000,
) -> bytes:
    """A batch of records.

    Args:
        records: Key, value and headers of each.
        names: Bytes to put in place of others of the same length, wherever they stand.
        zipped: Compressed by gzip.
        at: Their time, milliseconds since 1970.
    """
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 2**30)
    for offset, (key, value, headers) in enumerate(records):
        builder.append(offset, at, key, value, list(headers))
    data = bytearray(builder.build())
    for old, new in (names or {}).items():
        data = data.replace(old, new)
    if zipped:
        data = data[:_RECORDS] + gzip.compress(data[_RECORDS:], 9)
        struct.pack_into(">h", data, _ATTRIBUTES, _GZIP)
        struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">I", data, _CRC, calc_crc32c(bytes(data[_SUMMED:])))
    return bytes(data)


async def send(servers: str, topic: str, partition: int, data: bytes) -> int:
    """Put a batch on a partition; Kafka's code for what it says to it, 0 where it took it.

    Raises:
        TimeoutError: The partition had no leader for 30 s.
    """
    producer = AIOKafkaProducer(bootstrap_servers=servers)
    await producer.start()
    try:
        async with asyncio.timeout(_LEADER_S):
            while (code := await _put(producer, topic, partition, data)) in _NOT_YET:
                await asyncio.sleep(_AGAIN_S)
    finally:
        await producer.stop()
    return code


async def _put(producer: AIOKafkaProducer, topic: str, partition: int, data: bytes) -> int:
    """One request, without idempotence, to whom the metadata says leads now."""
    await producer.client._wait_on_metadata(topic)
    await producer.client.force_metadata_update()
    node = producer.client.cluster.leader_for_partition(TopicPartition(topic, partition))
    if node in (None, -1):
        return 5
    request = ProduceRequest(
        required_acks=-1, timeout=10_000, transactional_id=None, topics=[(topic, [(partition, data)])]
    )
    answer = await producer.client.send(node, request)
    ((_, ((_, code, *_),)),) = answer.topics
    return int(code)
