"""Asks the brokers what we may do, before something fails for it half way.

Kafka says of a topic and of a group which operations are allowed (KIP-430, since 2.3); of a
transactional id only whether we may see it. aiokafka does not ask, so the requests are here, as
Kafka's own message definitions have them (MetadataRequest and DescribeGroupsRequest).
"""

import asyncio
from collections.abc import Sequence
from typing import Final, TypeAlias

from aiokafka.client import AIOKafkaClient, CoordinationType
from aiokafka.errors import GroupAuthorizationFailedError, KafkaError, TransactionalIdAuthorizationFailed
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Bytes, Int16, Int32, Schema, String

from streams.acls import Acl, Resource, acls
from streams.kafka.connection import client_options, unanswered, why_not
from streams.settings import Settings
from streams.topics import topics

TIMEOUT_S: Final = 15.0
"""Seconds that the brokers may take to say it all."""

_BITS: Final = {"Read": 3, "Write": 4, "Create": 5, "Describe": 8, "DescribeConfigs": 10}
"""The bit of each operation (org.apache.kafka.common.acl.AclOperation)."""
_FINE, _NOT_ALLOWED, _GROUP_NOT_ALLOWED = 0, 29, 30
_TEXT: Final = String("utf-8")


class _TopicsResponse(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION = 3, 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("brokers", Array(("node_id", Int32), ("host", _TEXT), ("port", Int32), ("rack", _TEXT))),
        ("cluster_id", _TEXT),
        ("controller_id", Int32),
        (
            "topics",
            Array(
                ("error_code", Int16),
                ("name", _TEXT),
                ("is_internal", Boolean),
                (
                    "partitions",
                    Array(
                        ("error_code", Int16),
                        ("partition_index", Int32),
                        ("leader_id", Int32),
                        ("leader_epoch", Int32),
                        ("replica_nodes", Array(Int32)),
                        ("isr_nodes", Array(Int32)),
                        ("offline_replicas", Array(Int32)),
                    ),
                ),
                ("authorized_operations", Int32),
            ),
        ),
        ("cluster_authorized_operations", Int32),
    )


class _TopicsStruct(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, RESPONSE_TYPE = 3, 8, _TopicsResponse
    SCHEMA = Schema(
        ("topics", Array(_TEXT)),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
    )


class _Topics(Request[_TopicsStruct]):  # type: ignore[misc]  # aiokafka has no types
    API_KEY = 3

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)

    def build(self, request_struct_class: type[_TopicsStruct]) -> _TopicsStruct:
        return request_struct_class(self._names, False, False, True)


class _GroupsResponse(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION = 15, 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "groups",
            Array(
                ("error_code", Int16),
                ("group", _TEXT),
                ("state", _TEXT),
                ("protocol_type", _TEXT),
                ("protocol", _TEXT),
                (
                    "members",
                    Array(
                        ("member_id", _TEXT),
                        ("client_id", _TEXT),
                        ("client_host", _TEXT),
                        ("member_metadata", Bytes),
                        ("member_assignment", Bytes),
                    ),
                ),
                ("authorized_operations", Int32),
            ),
        ),
    )


class _GroupsStruct(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, RESPONSE_TYPE = 15, 3, _GroupsResponse
    SCHEMA = Schema(("groups", Array(_TEXT)), ("include_authorized_operations", Boolean))


class _Groups(Request[_GroupsStruct]):  # type: ignore[misc]  # aiokafka has no types
    API_KEY = 15

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)

    def build(self, request_struct_class: type[_GroupsStruct]) -> _GroupsStruct:
        return request_struct_class(self._names, True)


async def missing(settings: Settings, part: str) -> tuple[Acl, ...]:
    """The ACLs of :func:`streams.acls.acls` that a part needs and we have not.

    Of topics that are not there nothing can be said; nor anything by brokers that cannot say it.

    Raises:
        LogUnavailable: the brokers do not answer in time; ``NotAllowed`` where they do not let us in.
    """
    needed = acls(settings, [part])
    client = AIOKafkaClient(**client_options(settings), request_timeout_ms=int(TIMEOUT_S * 1000))
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await client.bootstrap()
            bits = {
                **await _of_topics(client, [settings.prefix + topic.name for topic in topics(settings)]),
                **await _of_groups(client, [acl.name for acl in needed if acl.resource == "group"]),
                **await _of_identities(client, [a.name for a in needed if a.resource == "transactional-id"]),
            }
    except NotImplementedError:  # aiokafka's word for brokers that do not know a request
        return ()
    except (KafkaError, OSError, TimeoutError) as error:
        raise await why_not(settings, unanswered(settings, error)) from error
    finally:
        await client.close()
    return tuple(acl for acl in needed if not _is_allowed(acl, bits))


_Bits: TypeAlias = dict[tuple[Resource, str], int | None]
"""The allowed operations of each resource; None where nothing can be said of it."""


def _is_allowed(acl: Acl, bits: _Bits) -> bool:
    bit = 1 << _BITS[acl.operation]
    if acl.operation == "Create":
        return True  # of what is not there nothing can be said
    if not acl.prefixed:
        known = bits.get((acl.resource, acl.name))
        return known is None or bool(known & bit)
    begun = [
        known for (kind, name), known in bits.items() if kind == acl.resource and name.startswith(acl.name)
    ]
    seen = [known for known in begun if known]  # what we may not even see lacks another ACL
    return all(known & bit for known in seen) if seen else 0 not in begun


async def _of_topics(client: AIOKafkaClient, names: Sequence[str]) -> _Bits:
    answer = await client.send(client.get_random_node(), _Topics(names))
    return {
        ("topic", name): {_FINE: bits, _NOT_ALLOWED: 0}.get(code) for code, name, _, _, bits in answer.topics
    }


async def _of_groups(client: AIOKafkaClient, names: Sequence[str]) -> _Bits:
    found: _Bits = {}
    for name in names:
        try:
            node = await client.coordinator_lookup(CoordinationType.GROUP, name)
        except GroupAuthorizationFailedError:
            found["group", name] = 0
            continue
        ((code, *_, bits),) = (await client.send(node, _Groups([name]))).groups
        # One that nobody has joined is described as dead, with what we may do to it; of one whose
        # coordinator is just starting, or is another by now, nothing is said.
        found["group", name] = {_FINE: bits, _GROUP_NOT_ALLOWED: 0}.get(code)
    return found


async def _of_identities(client: AIOKafkaClient, names: Sequence[str]) -> _Bits:
    """Whoever may write may see; to ask for more would take the identity from whoever has it."""
    found: _Bits = {}
    for name in names:
        try:
            await client.coordinator_lookup(CoordinationType.TRANSACTION, f"{name}0")
        except TransactionalIdAuthorizationFailed:
            found["transactional-id", name] = 0
    return found
