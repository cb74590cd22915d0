"""Three brokers that are one cluster: one may be lost, and comes back as what it was."""

from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from streams.broker import start_cluster
from streams.kafka import admin
from streams.settings import Settings
from streams.topics import GOALS

pytestmark = pytest.mark.xdist_group("kafka")


async def test_one_of_three_may_be_lost(kafka_home: Path, tmp_path: Path) -> None:
    """Killed at once: what was written stays readable, more can be written, and it catches up when back."""
    async with await start_cluster(kafka_home, tmp_path) as cluster:
        system = Settings(brokers=cluster.servers, lanes=3)
        await admin.create(system, replication=3)
        assert len(cluster.servers.split(",")) == len(cluster) == 3
        await write(system, "before")
        await cluster.whole()
        await cluster.kill(0)
        assert [cluster.runs(number) for number in range(3)] == [False, True, True]
        await write(system, "meanwhile")
        await cluster.start(0)
        await cluster.whole()
        assert await read(system) == ["before"] * 3 + ["meanwhile"] * 3


async def write(system: Settings, value: str) -> None:
    """A record on each partition, so also where the lost broker led."""
    async with AIOKafkaProducer(
        bootstrap_servers=system.brokers, acks="all", enable_idempotence=True
    ) as producer:
        for partition in range(system.lanes):
            await producer.send_and_wait(system.prefix + GOALS, value.encode(), partition=partition)


async def read(system: Settings) -> list[str]:
    """All records, those written last at the end."""
    places = [TopicPartition(system.prefix + GOALS, partition) for partition in range(system.lanes)]
    async with AIOKafkaConsumer(bootstrap_servers=system.brokers, auto_offset_reset="earliest") as consumer:
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        found = [await consumer.getone() for _ in range(sum(ends.values()))]
    return [record.value.decode() for record in sorted(found, key=lambda record: record.offset)]
