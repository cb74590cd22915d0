"""Several Kafka nodes on this machine that are one cluster, and of which any may be lost for a while.

Each node is broker and controller. With three of them every topic can have three replicas, a write
counts once two have it, and one node may be away at any time. For what breaks things on purpose: a
node can be killed, stopped and started again where it was, and may have a second door, whose address
as clients learn it is that of whoever stands before it.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from streams.broker.failures import BrokerFailed
from streams.broker.install import install
from streams.broker.kafka import Kafka
from streams.broker.node import HOST, Node, free_port, start_node

WHOLE_S: Final = 60.0
"""Seconds that a node which is back may take to have caught up with the others."""

_ANSWER_S: Final = 10.0
_LOOK_AGAIN_S: Final = 0.1
_MOST_COPIES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """The second listener of a node.

    Attributes:
        port: Where the node listens.
        told: The port that clients are told who come by this door: a proxy's.
    """

    port: int
    told: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one node lives; the same over its restarts."""

    id: int
    data: Path
    port: int
    controller: int
    door: Door | None


class Cluster:
    """Nodes that form one cluster, by number from 0. See :func:`start_cluster`."""

    def __init__(self, kafka: Kafka, places: Sequence[Place]) -> None:
        self._kafka, self._places = kafka, tuple(places)
        self._nodes: list[Node | None] = [None for _ in places]

    def __len__(self) -> int:
        return len(self._places)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def servers(self) -> str:
        """Bootstrap servers for clients: all nodes, by their first doors."""
        return ",".join(f"{HOST}:{place.port}" for place in self._places)

    @property
    def doors(self) -> tuple[Door, ...]:
        """The nodes' second doors, where they have some."""
        return tuple(place.door for place in self._places if place.door is not None)

    def runs(self, number: int) -> bool:
        """Whether a node's process runs."""
        node = self._nodes[number]
        return node is not None and node.process.poll() is None

    async def start(self, number: int) -> None:
        """Start a node, new or where it was, and wait until clients can work with it.

        Raises:
            BrokerFailed: it did not start.
        """
        if not self.runs(number):
            place = self._places[number]
            self._nodes[number] = await start_node(
                self._kafka, place.data, port=place.port, properties=_properties(place, self._places)
            )

    async def stop(self, number: int) -> None:
        """Stop a node in order: it gives up what it leads first."""
        if (node := self._nodes[number]) is not None:
            self._nodes[number] = None
            await node.stop()

    async def kill(self, number: int) -> None:
        """End a node at once, as a crash would (SIGKILL)."""
        if (node := self._nodes[number]) is not None:
            self._nodes[number] = None
            await node.kill()

    async def whole(self) -> None:
        """Wait until every partition has all its replicas in step: then any one node may be lost.

        Raises:
            BrokerFailed: they are not within :data:`WHOLE_S` seconds.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(WHOLE_S):
                while not await _is_whole(self.servers):
                    await asyncio.sleep(_LOOK_AGAIN_S)
                return
        raise BrokerFailed(f"{self.servers}: replicas are still out of step after {WHOLE_S:g} s.")

    async def close(self) -> None:
        """End all nodes at once; their data stay."""
        await asyncio.gather(*(self.kill(number) for number in range(len(self._places))))


async def start_cluster(
    directory: Path, data: Path, *, brokers: int = 3, second_doors: bool = False
) -> Cluster:
    """Start a cluster of new nodes that dies with this process (on Linux; see ``start_node``).

    Three need about 1.2 GB of memory.

    Args:
        directory: Where Kafka is installed, or will be.
        data: Where the nodes' data live and stay, each in a folder of its own; must hold none yet.
        brokers: How many. Kafka's own topics have as many replicas, up to three.
        second_doors: Each node has a second listener, see :class:`Door`.

    Raises:
        BrokerFailed: with what to do.
    """
    kafka = await install(directory)
    cluster = Cluster(kafka, _places(data, brokers, second_doors=second_doors))
    try:
        async with asyncio.TaskGroup() as group:  # none is ready before most are there
            for number in range(brokers):
                group.create_task(cluster.start(number))
    except BaseExceptionGroup as failed:
        await cluster.close()
        raise failed.exceptions[0] from failed
    except BaseException:
        await cluster.close()
        raise
    return cluster


def _places(data: Path, brokers: int, *, second_doors: bool) -> list[Place]:
    taken: set[int] = set()

    def port() -> int:
        found = free_port(but=taken)
        taken.add(found)
        return found

    return [
        Place(
            id=number + 1,
            data=data / f"node-{number}",
            port=port(),
            controller=port(),
            door=Door(port=port(), told=port()) if second_doors else None,
        )
        for number in range(brokers)
    ]


def _properties(place: Place, places: Sequence[Place]) -> dict[str, str]:
    """What makes a node this one of the cluster."""
    copies = min(len(places), _MOST_COPIES)
    enough = max(1, copies - 1)
    listeners = {"PLAINTEXT": place.port, "CONTROLLER": place.controller}
    told = {"PLAINTEXT": place.port}
    if place.door is not None:
        listeners["SECOND"], told["SECOND"] = place.door.port, place.door.told
    return {
        "node.id": str(place.id),
        "controller.quorum.voters": ",".join(f"{each.id}@{HOST}:{each.controller}" for each in places),
        "listeners": _addresses(listeners),
        "advertised.listeners": _addresses(told),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in listeners),
        "inter.broker.listener.name": "PLAINTEXT",
        # So that each node coordinates some groups and transactions.
        "offsets.topic.num.partitions": str(len(places)),
        "offsets.topic.replication.factor": str(copies),
        "transaction.state.log.num.partitions": str(len(places)),
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": str(enough),
        "share.coordinator.state.topic.replication.factor": str(copies),
        "share.coordinator.state.topic.min.isr": str(enough),
        "min.insync.replicas": str(enough),
    }


def _addresses(ports: dict[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())


async def _is_whole(servers: str) -> bool:
    client = AIOKafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=int(_ANSWER_S * 1_000))
    try:
        await client.start()
        return all(
            set(partition["isr"]) == set(partition["replicas"])
            for topic in await client.describe_topics()
            for partition in topic["partitions"]
        )
    except KafkaError:
        return False
    finally:
        await client.close()
