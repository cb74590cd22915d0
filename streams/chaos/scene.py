"""What a round is played on, as the faults see it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Unpack

from agents.simulator import Simulator
from streams.broker.cluster import Cluster
from streams.chaos.evidence import Expected
from streams.chaos.proxy import Proxy
from streams.chaos.workers import Workers, now_ms
from streams.core.values import JobId
from streams.delivery import Sender
from streams.log import Log
from streams.settings import Settings
from streams.topics import GOALS, partition_of
from streams.wire.goal_writing import GoalOptions, write_goal


@dataclass(slots=True, kw_only=True)
class Scene:
    """A running system of one round.

    Attributes:
        settings: The system as the attacker reaches it, by no proxy.
        cluster: The brokers, where they are ours to break.
        proxies: What stands between the workers and each broker, where something does.
        endpoint: The simulated model.
        workers: The worker processes.
        replication: Replicas of each topic.
        count: How many workers run where nothing is broken.
        log: The attacker's own connection.
        sender: Puts records of the attacker's on the log, however long it is away.
        expected: What the answers to goals of the faults' own must be.
        outages: Spans in which the workers had no broker, milliseconds since 1970.
        clocks_apart: A worker's clock was set apart from the others'.
        rebuilt: The table was wiped.
        notes: What happened, for a person.
        brokers_turn, endpoint_turn: Held by the fault that breaks these now: one at a time.
    """

    settings: Settings
    cluster: Cluster | None
    proxies: tuple[Proxy, ...]
    endpoint: Simulator
    workers: Workers
    replication: int
    count: int
    log: Log
    sender: Sender
    expected: dict[JobId, Expected] = field(default_factory=dict)
    outages: list[tuple[int, int]] = field(default_factory=list)
    clocks_apart: bool = False
    rebuilt: bool = False
    notes: list[str] = field(default_factory=list)
    brokers_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    endpoint_turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        """While it is open the workers have no broker."""
        began = now_ms()
        try:
            yield
        finally:
            self.outages.append((began, now_ms()))

    async def ask(self, words: str, **options: Unpack[GoalOptions]) -> None:
        """Send a goal of a fault's own, which must succeed."""
        job, value = write_goal(words, **options)
        self.expected[job] = Expected(outcome="succeeded", answer=None, exact=False)
        place = partition_of(job, self.settings.lanes)
        await self.sender.deliver(GOALS, value, key=job.encode(), partition=place)
