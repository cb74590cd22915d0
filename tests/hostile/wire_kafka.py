"""Batches of records as no client of ours would send them, put on a real Kafka byte by byte."""

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
    """Put a batch on a partition; Kafka's code for what it says to it, 0 where it took it."""
    producer = AIOKafkaProducer(bootstrap_servers=servers)
    await producer.start()
    try:
        await producer.client._wait_on_metadata(topic)
        node = producer.client.cluster.leader_for_partition(TopicPartition(topic, partition))
        request = ProduceRequest(
            required_acks=-1, timeout=10_000, transactional_id=None, topics=[(topic, [(partition, data)])]
        )
        answer = await producer.client.send(node, request)
    finally:
        await producer.stop()
    ((_, ((_, code, *_),)),) = answer.topics
    return int(code)
