"""Stopping while no broker answers any more: within its bounds, and without holding up anything else."""

import asyncio
from collections.abc import AsyncIterator

from streams.app import COMMIT_S, LEAVE_S, within
from streams.kafka import admin
from streams.kafka.faust_agents import FaustAgents
from streams.kafka.log import KafkaLog
from streams.log import Delivery
from streams.settings import Settings
from streams.topics import SUBTASKS
from tests.acceptance.conftest import OwnKafka, Programs
from tests.acceptance.running import running

MORE_S = 5.0


async def test_agents_stop_in_the_time_they_are_given(own_kafka: OwnKafka) -> None:
    """Their consumer has a thread and a loop of its own, whose end may not be waited for."""
    settings = Settings(brokers=own_kafka.servers, prefix="gone.", lanes=2)
    await admin.create(settings)
    delivered = asyncio.Event()

    async def agent(partition: int, deliveries: AsyncIterator[Delivery]) -> None:
        async for delivery in deliveries:
            delivery.ack()
            delivered.set()

    async with KafkaLog(settings) as log:
        await (await log.producer.send(SUBTASKS, b"v", key=b"k", partition=0))
    agents = FaustAgents(settings, {SUBTASKS: agent})
    at_work = asyncio.create_task(agents.run())
    async with asyncio.timeout(60):
        await delivered.wait()
    await own_kafka.kill()
    async with asyncio.timeout(COMMIT_S + LEAVE_S + MORE_S):
        await within(COMMIT_S, agents.commit())
        await within(LEAVE_S, agents.stop())
    at_work.cancel()
    await asyncio.wait([at_work], timeout=MORE_S)


async def test_a_worker_stops_in_half_a_minute(own_kafka: OwnKafka, programs: Programs) -> None:
    """Kubernetes gives it 30 s; the outage shows in its log, and it ends as it was told to."""
    settings = Settings(brokers=own_kafka.servers, prefix="gone.", lanes=2)
    await admin.create(settings)
    async with running(settings, programs) as here:
        worker = await here.worker()
        await here.send({"id": "g", "goal": "[[plan 1]]"})
        await here.answers(1)
        await own_kafka.kill()
        await worker.says("kafka_unreachable")
        worker.process.terminate()
        assert await worker.ended(within_s=30.0) == 0
