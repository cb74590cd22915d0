"""What is particular to the log on Kafka: aiokafka's ways, and brokers that are away."""

# ruff: noqa: PT012 - a transaction raises at its end, so its body stands inside

import asyncio
import inspect
import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog.testing
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import RequestTimedOutError
from aiokafka.producer import sender
from aiokafka.protocol.transaction import EndTxnRequest

from streams.kafka import producers
from streams.kafka.log import KafkaLog
from streams.kafka.outage import Outage, watch_broker
from streams.kafka.transactions import KafkaTransactions
from streams.log import LogUnavailable, RecordRefused
from streams.settings import Settings

TOPIC = "narrow"
NARROW_BYTES = 10_000


@asynccontextmanager
async def narrow_topic(servers: str) -> AsyncIterator[Settings]:
    """A system whose topic takes less than the client believes."""
    settings = Settings(brokers=servers, prefix=f"kafka-log-{uuid.uuid4().hex[:12]}.")
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        topic = NewTopic(
            settings.prefix + TOPIC, 2, 1, topic_configs={"max.message.bytes": str(NARROW_BYTES)}
        )
        await admin.create_topics([topic])
        yield settings
        await admin.delete_topics([settings.prefix + TOPIC])
    finally:
        await admin.close()


async def values(log: KafkaLog, partition: int = 0) -> list[bytes | None]:
    return [record.value async for batch in log.read(TOPIC, partition) for record in batch]


async def test_sends_go_on_after_the_broker_refused_one(kafka_servers: str) -> None:
    """Where aiokafka leaves a hole in the sequence numbers, and by itself never gets over it."""
    async with narrow_topic(kafka_servers) as settings, KafkaLog(settings) as log:
        for number in range(3):
            await (await log.producer.send(TOPIC, b"%d" % number, key=b"k", partition=0))
            with pytest.raises(RecordRefused):
                await (await log.producer.send(TOPIC, bytes(5 * NARROW_BYTES), key=b"k", partition=0))
        assert await values(log) == [b"0", b"1", b"2"]


async def test_a_transaction_with_a_record_that_the_broker_refused_is_no_transaction(
    kafka_servers: str,
) -> None:
    """Left to itself, aiokafka would commit the others."""
    async with narrow_topic(kafka_servers) as settings, KafkaLog(settings) as log:
        async with log.transactions("t") as producer:
            with pytest.raises(RecordRefused):
                async with producer.transaction():
                    await producer.send(TOPIC, b"good", key=b"k", partition=1)
                    await producer.send(TOPIC, bytes(5 * NARROW_BYTES), key=b"k", partition=0)
            with pytest.raises(LogUnavailable, match="new producer"):
                async with producer.transaction():
                    await producer.send(TOPIC, b"next", key=b"k", partition=0)
        async with log.transactions("t") as producer, producer.transaction():
            await producer.send(TOPIC, b"after", key=b"k", partition=1)
        assert await values(log, 0) == []
        assert await values(log, 1) == [b"after"]


async def test_a_commit_whose_answer_got_lost_ends_the_producer(kafka_servers: str) -> None:
    """Left to itself, aiokafka asks again and goes on, and the first request may hit its next transaction."""
    async with narrow_topic(kafka_servers) as settings, KafkaLog(settings) as log:
        identity = settings.prefix + "t"
        inner = await producers.start_producer(settings, identity)
        send = inner.client.send
        lost: list[Any] = []

        async def losing(node: Any, request: Any, **options: Any) -> Any:
            answer = await send(node, request, **options)
            if isinstance(request, EndTxnRequest) and not lost:
                lost.append(request)
                raise RequestTimedOutError
            return answer

        inner.client.send = losing
        producer = KafkaTransactions(settings, identity, inner)
        with pytest.raises(LogUnavailable, match="unknown"):
            async with producer.transaction():
                await producer.send(TOPIC, b"landed", key=b"k", partition=0)
        assert lost
        with pytest.raises(LogUnavailable, match="unknown"):
            async with producer.transaction():
                pass
        await producer.close()
        assert await values(log) == [b"landed"]


def test_aiokafka_still_waits_between_transactions_as_we_expect() -> None:
    """Where an upgrade takes this constant away, two transactions in a row take 31 ms instead of 6."""
    assert sender.BACKOFF_OVERRIDE == 0.002
    assert "BACKOFF_OVERRIDE" in inspect.getsource(sender.AddPartitionsToTxnHandler.handle_response)


async def test_no_broker_is_told_with_its_address() -> None:
    """Within a bound, and with what to look at."""
    async with _closed_port() as port:
        with pytest.raises(LogUnavailable, match=rf"no Kafka broker at 127\.0\.0\.1:{port}.*running"):
            async with KafkaLog(Settings(brokers=f"127.0.0.1:{port}"), find_s=0.1):
                pass


async def test_an_outage_is_told_when_it_begins_and_when_it_ends() -> None:
    """A thousand warnings of the client make two lines."""
    client = logging.getLogger("aiokafka")
    async with _closed_port() as port:
        outage = Outage(f"127.0.0.1:{port}")

        class Away:
            def __init__(self) -> None:
                self.outage = outage

        watching = asyncio.create_task(watch_broker(Away()))
        await asyncio.sleep(0)
        with structlog.testing.capture_logs() as lines:
            for number in range(1000):
                client.warning("Unable connect to node with id %s", number)
            async with asyncio.timeout(20):
                while not lines:
                    await asyncio.sleep(0.01)
                client.warning("Unable to update metadata")
                server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", port)
                while len(lines) < 2:
                    await asyncio.sleep(0.01)
            client.warning("another thing")
            async with asyncio.timeout(20):
                while len(lines) < 3:
                    await asyncio.sleep(0.01)
        server.close()
        watching.cancel()
        await asyncio.wait([watching])
    assert [line["event"] for line in lines] == ["kafka_unreachable", "kafka_back", "kafka_client"]
    assert lines[1]["warnings_kept_back"] >= 1
    assert client.propagate


@asynccontextmanager
async def _closed_port() -> AsyncIterator[int]:
    """A port on which nobody listens."""
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    yield port


async def test_a_credential_that_is_no_longer_taken_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told with the reason, once, and again when it is taken."""
    monkeypatch.setattr("streams.kafka.outage.KNOCK_S", 0.0)
    monkeypatch.setattr("streams.kafka.outage.EVERY_S", 0.01)
    why = ["the password has expired"]

    async def knock() -> str:
        return why[0]

    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    outage = Outage(f"127.0.0.1:{server.sockets[0].getsockname()[1]}", knock)
    with structlog.testing.capture_logs() as lines:
        outage.suspect("send to answers-0 failed")
        async with asyncio.timeout(20):
            while not lines:
                await asyncio.sleep(0.01)
            outage.suspect("send to answers-0 failed")
            why[0] = ""
            while len(lines) < 2:
                await asyncio.sleep(0.01)
    await outage.end()
    server.close()
    assert [line["event"] for line in lines] == ["kafka_refuses_us", "kafka_back"]
    assert lines[0]["reason"] == "the password has expired"
