"""How far the groups are behind, asked of the real Kafka."""

import pytest
from aiokafka import TopicPartition

from streams.kafka.lag import lag
from streams.kafka.log import KafkaLog
from streams.kafka.reading import make_consumer
from streams.log import LogUnavailable
from streams.settings import Settings
from streams.topics import GOALS, JOB_EVENTS, SUBTASKS


async def test_what_a_group_has_not_told_to_be_done_is_behind(system: Settings) -> None:
    """All of it, where it has never told anything."""
    assert await lag(system) == {GOALS: 0, JOB_EVENTS: 0, SUBTASKS: 0}
    async with KafkaLog(system) as log:
        for partition, topic in enumerate([GOALS, GOALS, GOALS, SUBTASKS]):
            await (await log.producer.send(topic, b"v", key=b"k", partition=partition))
    assert await lag(system) == {GOALS: 3, JOB_EVENTS: 0, SUBTASKS: 1}
    member = make_consumer(system, group_id=f"{system.prefix}agents")
    await member.start()
    try:
        place = TopicPartition(f"{system.prefix}{GOALS}", 1)
        member.assign([place])
        await member.commit({place: 1})
    finally:
        await member.stop()
    assert await lag(system) == {GOALS: 2, JOB_EVENTS: 0, SUBTASKS: 1}


async def test_a_broker_that_is_not_there_is_told() -> None:
    """In the words of the port."""
    with pytest.raises(LogUnavailable):
        await lag(Settings(brokers="127.0.0.1:1"))
