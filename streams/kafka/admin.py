"""Makes a system's topics on Kafka, and says what is wrong with those that are there."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from streams.kafka.connection import client_options, unanswered, why_not
from streams.settings import Settings
from streams.topics import Topic, topics

TIMEOUT_S: Final = 30.0
"""Seconds that making or checking the topics may take in all."""

_LOOK_AGAIN_S: Final = 0.05
_COMPARED: Final = ("cleanup.policy", "message.timestamp.type", "compression.type")
_AT_LEAST: Final = "max.message.bytes"
_NOT_ALLOWED: Final = 29


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something about a topic that keeps the system from working.

    Attributes:
        topic: Its full name.
        what: What is wrong.
        remedy: What to do about it.
    """

    topic: str
    what: str
    remedy: str


class TopicRefused(Exception):
    """Kafka will not make a topic; the message says which and why."""


async def create(settings: Settings, *, replication: int = 1) -> tuple[str, ...]:
    """Make the topics that are missing and wait until they can be used; gives their full names.

    Topics that are there stay as they are: :func:`check` says whether they are right.

    Args:
        replication: Replicas of each partition; 3 in production.

    Raises:
        TopicRefused: Kafka will not make one of them.
        LogUnavailable: Kafka cannot be reached, or the topics are not ready in time.
    """
    async with _administration(settings) as client:
        wanted = [
            NewTopic(
                settings.prefix + topic.name, topic.partitions, replication, topic_configs=dict(topic.config)
            )
            for topic in topics(settings, replication=replication)
        ]
        answer = await client.create_topics(wanted)
        made = []
        for name, code, reason in answer.topic_errors:
            error = for_code(code)
            if code == 0:
                made.append(name)
            elif error is not TopicAlreadyExistsError:
                raise TopicRefused(f"Kafka does not make the topic {name}: {reason or error.description}")
        await _led(client, made)
        return tuple(made)


async def check(settings: Settings) -> tuple[Problem, ...]:
    """What is wrong with the system's topics; nothing if all is well.

    Raises:
        LogUnavailable: Kafka cannot be reached.
    """
    wanted = {settings.prefix + topic.name: topic for topic in topics(settings)}
    async with _administration(settings) as client:
        described = await client.describe_topics(list(wanted))
        there = {each["topic"]: len(each["partitions"]) for each in described if each["error_code"] == 0}
        hidden = {each["topic"] for each in described if each["error_code"] == _NOT_ALLOWED}
        configs = await _configs(client, list(there))
    problems: list[Problem] = []
    for name, topic in wanted.items():
        if name in hidden or configs.get(name) == {}:
            may = "be seen" if name in hidden else "have its configuration read"
            what = f"may not {may} by this user, if it is there at all"
            problems.append(
                Problem(topic=name, what=what, remedy="`anabranch acls` says what each part needs")
            )
        elif name in there:
            problems += _differences(name, topic, there[name], configs.get(name, {}))
        else:
            problems.append(Problem(topic=name, what="is missing", remedy="anabranch topics create"))
    return tuple(problems)


async def delete(settings: Settings) -> None:
    """Delete the system's topics with all that is on them; those that are missing are no error.

    Raises:
        LogUnavailable: Kafka cannot be reached.
    """
    async with _administration(settings) as client:
        await client.delete_topics([settings.prefix + topic.name for topic in topics(settings)])


def _differences(name: str, topic: Topic, partitions: int, config: dict[str, str]) -> list[Problem]:
    problems = []
    if partitions != topic.partitions:
        remedy = (
            f"set lanes to {partitions} if the system was made so; a number of partitions cannot change "
            f"under a running system, so else take another prefix or delete the topics and make them anew"
        )
        what = f"has {partitions} partitions instead of {topic.partitions}"
        problems.append(Problem(topic=name, what=what, remedy=remedy))
    found = {key: config.get(key, "unknown") for key in (*_COMPARED, _AT_LEAST)}
    wrong = [key for key in _COMPARED if found[key] != topic.config[key]]
    if not found[_AT_LEAST].isdigit() or int(found[_AT_LEAST]) < int(topic.config[_AT_LEAST]):
        wrong.append(_AT_LEAST)
    for key in wrong:
        remedy = (
            f"kafka-configs.sh --bootstrap-server BROKERS --alter --entity-type topics --entity-name {name} "
            f"--add-config {key}={topic.config[key]}"
        )
        what = f"has {key}={found[key]} instead of {topic.config[key]}"
        problems.append(Problem(topic=name, what=what, remedy=remedy))
    return problems


async def _configs(client: AIOKafkaAdminClient, names: Sequence[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    keys = dict.fromkeys((*_COMPARED, _AT_LEAST))
    asked = [ConfigResource(ConfigResourceType.TOPIC, name, keys) for name in names]
    return {
        # Empty where we may not read it: of what is asked for nothing is left out.
        resource["resource_name"]: {
            entry["config_names"]: entry["config_value"] for entry in resource["config_entries"]
        }
        for answer in await client.describe_configs(asked)
        for resource in answer.to_object()["resources"]
    }


async def _led(client: AIOKafkaAdminClient, names: Sequence[str]) -> None:
    """Wait until every partition has a leader: before that, clients see errors."""
    while names:
        described = await client.describe_topics(list(names))
        if all(
            entry["error_code"] == 0 and all(part["leader"] >= 0 for part in entry["partitions"])
            for entry in described
        ):
            return
        await asyncio.sleep(_LOOK_AGAIN_S)


@asynccontextmanager
async def _administration(settings: Settings) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(**client_options(settings), request_timeout_ms=int(TIMEOUT_S * 1_000))
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await client.start()
            yield client
    except (KafkaError, OSError, TimeoutError) as error:
        raise await why_not(settings, unanswered(settings, error)) from error
    finally:
        await client.close()
