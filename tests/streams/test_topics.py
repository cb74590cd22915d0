"""Topics: where a job's records stand, and what the making and checking of topics says."""

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from hypothesis import given
from hypothesis import strategies as st

from streams.kafka import admin
from streams.log import LogUnavailable
from streams.settings import Settings
from streams.topics import GOALS, JOB_EVENTS, JOBS, SUBTASKS, TRANSCRIPTS, partition_of, topics
from tests.conftest import NewSystem


def test_partitions_of_jobs_never_change() -> None:
    """Records written years ago are found where they stand."""
    jobs = ["default/audit", "acme/2026-11-30.goal~7", "tenant/größe", "default/goals-0-17"]
    assert [partition_of(job, 8) for job in jobs] == [6, 5, 5, 3]


@given(st.text(), st.integers(min_value=1, max_value=1_000))
def test_every_job_has_a_partition(job: str, partitions: int) -> None:
    """Whatever the job's id, its partition exists."""
    assert 0 <= partition_of(job, partitions) < partitions


def test_topics_that_share_partitions_have_the_same_number() -> None:
    """A job's rows are on the partition of its events, a call's journal on its command's."""
    partitions = {topic.name: topic.partitions for topic in topics(Settings(lanes=5))}
    assert {partitions[name] for name in (GOALS, JOB_EVENTS, SUBTASKS, TRANSCRIPTS, JOBS)} == {5}


def test_one_lost_broker_of_three_stops_no_write() -> None:
    """Two in-sync copies are asked for only where a third may be missing."""

    def in_sync(replication: int) -> set[str]:
        return {topic.config["min.insync.replicas"] for topic in topics(Settings(), replication=replication)}

    assert in_sync(1) == in_sync(2) == {"1"}
    assert in_sync(3) == {"2"}


async def test_made_topics_pass_the_check(new_system: NewSystem) -> None:
    """What `create` makes is what `check` wants, and making it again changes nothing."""
    system = await new_system(lanes=3)
    assert await admin.check(system) == ()
    assert await admin.create(system) == ()
    assert await admin.check(system) == ()


async def test_missing_topics_are_named_with_the_remedy(kafka_servers: str) -> None:
    """Nobody has to guess which topics a system needs."""
    nowhere = Settings(brokers=kafka_servers, prefix="never-made.")
    problems = await admin.check(nowhere)
    assert {problem.topic for problem in problems} == {
        f"never-made.{topic.name}" for topic in topics(nowhere)
    }
    assert {problem.remedy for problem in problems} == {"anabranch topics create"}


async def test_wrong_topics_are_told_apart(kafka_servers: str, new_system: NewSystem) -> None:
    """A topic made by hand: each difference that would break the system is a problem of its own."""
    client = AIOKafkaAdminClient(bootstrap_servers=kafka_servers)
    await client.start()
    try:
        config = {"cleanup.policy": "delete", "max.message.bytes": "1000012"}
        await client.create_topics([NewTopic(f"made-by-hand.{JOBS}", 3, 1, topic_configs=config)])
    finally:
        await client.close()
    system = await new_system(lanes=4, prefix="made-by-hand.")
    problems = await admin.check(system)
    assert {problem.topic for problem in problems} == {f"made-by-hand.{JOBS}"}
    assert {problem.what for problem in problems} == {
        "has 3 partitions instead of 4",
        "has cleanup.policy=delete instead of compact",
        "has max.message.bytes=1000012 instead of 4194304",
    }


async def test_a_refused_topic_says_why(kafka_servers: str) -> None:
    """More replicas than brokers: Kafka's own reason comes through."""
    system = Settings(brokers=kafka_servers, prefix="refused.")
    with pytest.raises(admin.TopicRefused, match=r"refused\.goals.*only 1 broker"):
        await admin.create(system, replication=3)


async def test_an_unreachable_kafka_says_what_to_do() -> None:
    """Nothing listens on port 1."""
    with pytest.raises(LogUnavailable, match="anabranch broker start"):
        await admin.check(Settings(brokers="127.0.0.1:1"))
