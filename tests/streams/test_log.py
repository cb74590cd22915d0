"""The contract of the log, on the log in memory (virtual time) and on a real Kafka."""

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streams.kafka.log import KafkaLog
from streams.log import Claim, Log
from streams.memory_log import Limits, MemoryCluster, MemoryLog, virtual_time
from streams.settings import Settings
from streams.topics import MAX_RECORD_BYTES
from tests.streams.log_contract import BATCH, EVENTS, PARTITIONS, ROWS, SCENARIOS, Elsewhere, Scenario

both = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)


class MemoryMember:
    """A member on a connection of its own."""

    def __init__(self, log: MemoryLog, topic: str, group: str) -> None:
        self._log = log
        self._owned: set[int] = set()
        self._owns = asyncio.Event()
        log.start(log.own(topic, group, self._owner))

    async def owns(self) -> Sequence[int]:
        await self._owns.wait()
        return sorted(self._owned)

    def kill(self) -> None:
        self._log.kill()

    async def _owner(self, claim: Claim) -> None:
        self._owned.add(claim.partition)
        await asyncio.sleep(0.01)
        self._owns.set()
        await claim.batch(None)


class InMemory:
    """Implements ``World``."""

    too_large = Limits().record_bytes + 1

    def __init__(self) -> None:
        self._cluster = MemoryCluster({EVENTS: PARTITIONS, ROWS: PARTITIONS}, limits=Limits(batch=BATCH))

    def connect(self) -> MemoryLog:
        return self._cluster.connect("member")

    @asynccontextmanager
    async def elsewhere(self, topic: str, group: str) -> AsyncIterator[Elsewhere]:
        log = self._cluster.connect("elsewhere")
        yield MemoryMember(log, topic, group)
        log.kill()

    async def committed(self, topic: str, group: str, partition: int) -> int | None:
        return self._cluster.committed(group, topic).get(partition)


class KafkaMember:
    """A member in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def owns(self) -> Sequence[int]:
        assert self._process.stdout is not None
        async with asyncio.timeout(30):
            while len(owned := json.loads(await self._process.stdout.readline())) < PARTITIONS:
                pass
        return list(owned)

    def kill(self) -> None:
        self._process.kill()


@asynccontextmanager
async def administration(servers: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


class OnKafka:
    """Implements ``World``."""

    too_large = MAX_RECORD_BYTES

    def __init__(self, settings: Settings) -> None:
        self._settings = replace(settings, batch=BATCH)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Log]:
        async with KafkaLog(self._settings) as log:
            yield log

    @asynccontextmanager
    async def elsewhere(self, topic: str, group: str) -> AsyncIterator[Elsewhere]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.streams.group_member"),
            *(self._settings.brokers, self._settings.prefix, topic, group),
            stdout=asyncio.subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        try:
            yield KafkaMember(process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def committed(self, topic: str, group: str, partition: int) -> int | None:
        async with administration(self._settings.brokers) as admin:
            offsets = await admin.list_consumer_group_offsets(self._settings.prefix + group)
        found = offsets.get(TopicPartition(self._settings.prefix + topic, partition))
        return found.offset if found is not None and found.offset >= 0 else None


@both
def test_in_memory(scenario: Scenario) -> None:
    async def run() -> None:
        await scenario(InMemory())

    virtual_time.run(run())


@both
async def test_on_kafka(scenario: Scenario, kafka_servers: str) -> None:
    settings = Settings(brokers=kafka_servers, prefix=f"log-{uuid.uuid4().hex[:12]}.")
    names = [settings.prefix + EVENTS, settings.prefix + ROWS]
    async with administration(kafka_servers) as admin:
        await admin.create_topics(
            [
                NewTopic(
                    name,
                    PARTITIONS,
                    1,
                    topic_configs={
                        "message.timestamp.type": "LogAppendTime",
                        "max.message.bytes": str(MAX_RECORD_BYTES),
                    },
                )
                for name in names
            ]
        )
        try:
            await scenario(OnKafka(settings))
        finally:
            await admin.delete_topics(names)
