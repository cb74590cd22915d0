"""What all rounds of a run are played on: brokers of our own, and what stands before them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from streams.broker.cluster import Cluster, start_cluster
from streams.broker.node import HOST
from streams.chaos.attacks import Need
from streams.chaos.proxy import Proxy

THREE: Final = 3
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What all rounds of a run are played on.

    Attributes:
        servers: The brokers, as the attacker reaches them.
        cluster: The brokers, where they are ours to break.
        proxies: What stands before each broker, for the workers; none where nothing does.
        place: Where each round has a directory of its own.
        workers: How many run where nothing is broken.
    """

    servers: str
    cluster: Cluster | None
    proxies: tuple[Proxy, ...]
    place: Path
    workers: int = 2

    @property
    def offers(self) -> frozenset[Need]:
        """What faults may ask for."""
        offered: set[Need] = set()
        if self.cluster is not None:
            offered.add("brokers")
            if len(self.cluster) >= THREE:
                offered.add("three")
        if self.proxies:
            offered.add("proxy")
        return frozenset(offered)

    async def mend(self) -> None:
        """All brokers run, whatever became of the round before; also one that ended by itself.

        Raises:
            BrokerFailed: one does not start.
        """
        if (cluster := self.cluster) is not None:
            for number in range(len(cluster)):
                if not cluster.runs(number):
                    log.warning("broker_gone", number=number)
            await asyncio.gather(*(cluster.start(number) for number in range(len(cluster))))

    @property
    def replication(self) -> int:
        """Replicas that each topic gets."""
        return 1 if self.cluster is None else min(THREE, len(self.cluster))


@asynccontextmanager
async def own_ground(home: Path, place: Path, *, brokers: int, workers: int) -> AsyncIterator[Ground]:
    """Brokers of our own, each behind a proxy; all ends with the block.

    Args:
        home: Where Kafka is installed, or will be.
        place: A new directory for the brokers' data and the rounds.

    Raises:
        BrokerFailed: with what to do.
    """
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(
            await start_cluster(home, place / "brokers", brokers=brokers, second_doors=True)
        )
        proxies = [
            await stack.enter_async_context(Proxy(HOST, door.told, door.port)) for door in cluster.doors
        ]
        yield Ground(
            servers=cluster.servers, cluster=cluster, proxies=tuple(proxies), place=place, workers=workers
        )
