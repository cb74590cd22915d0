"""One process's connection to the log in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

from streams.log import Agent, Member, NoSuchTopic, Owner, Record, Transactions
from streams.memory_log.agents import Streams
from streams.memory_log.claims import Ownership
from streams.memory_log.following import follow
from streams.memory_log.membership import Membership
from streams.memory_log.process import Process
from streams.memory_log.producers import MemoryProducer, open_transactions
from streams.memory_log.reach import Reach

if TYPE_CHECKING:
    from streams.memory_log.cluster import MemoryCluster

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes and timeouts of a cluster and its clients; seconds and bytes, Kafka's or our settings.

    Attributes:
        batch: Records of one batch at most.
        record_bytes: Largest record: key, value and headers together.
        topic_bytes: Largest record of topics that take others.
        request_timeout_s: A request without an answer fails after this.
        transaction_timeout_s: The broker aborts transactions that are open for longer.
        session_timeout_s: A silent member's partitions move after this.
        heartbeat_s: A member's last heartbeat is at most so old.
        rebalance_timeout_s: A member that has not let go by then is left behind.
        commit_s: Acknowledged deliveries are committed so often.
    """

    batch: int = 500
    record_bytes: int = 1_048_576
    topic_bytes: Mapping[str, int] = field(default_factory=dict)
    request_timeout_s: float = 30.0
    transaction_timeout_s: float = 15.0
    session_timeout_s: float = 6.0
    heartbeat_s: float = 1.0
    rebalance_timeout_s: float = 10.0
    commit_s: float = 0.5


class MemoryLog:
    """Implements ``streams.log.Log`` and ``streams.log.Agents`` for one simulated process.

    Start what the process does with :meth:`start`, so that :meth:`kill` and :meth:`pause` reach
    all of it. After a kill whatever still touches the log ends as cancelled.
    """

    def __init__(self, cluster: "MemoryCluster", name: str, *, static: bool) -> None:
        self.name = name
        self._cluster = cluster
        self._static = static
        self._process = Process()
        self._reach = Reach(cluster, self._process)
        self._producer = MemoryProducer(self._reach)
        self._memberships: list[Membership] = []
        self._opened = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def producer(self) -> MemoryProducer:
        """The plain producer."""
        return self._producer

    def start(self, coroutine: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run *coroutine* as part of this process."""
        return self._process.start(coroutine)

    def transactions(self, identity: str) -> AbstractAsyncContextManager[Transactions]:
        """A producer under this identity; entering it fences the older one."""
        self._opened += 1
        return open_transactions(self._reach, identity, f"{self.name}-{self._opened}")

    async def read(
        self, topic: str, partition: int, *, offset: int | None = None, since: int | None = None
    ) -> AsyncIterator[Sequence[Record]]:
        """Records up to the end of now; waits for transactions that are open below it."""
        source = self._cluster.partition(topic, partition)
        position, end = await self._reach.call(
            "read",
            f"read {topic}-{partition}",
            lambda: (
                offset if offset is not None else 0 if since is None else source.at(since),
                source.stable,
            ),
        )
        while position < end:
            await self._reach.there()
            records, position = source.visible(position, self._cluster.limits.batch, end)
            if records:
                yield records
            elif position < end:
                await source.change()

    def follow(
        self, topic: str, partitions: Sequence[int], *, since: int | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Record]]]:
        """Records of these partitions as they come."""
        return follow(self._reach, [self._cluster.partition(topic, each) for each in partitions], since)

    async def ends(self, topic: str, partitions: Sequence[int]) -> Mapping[int, int]:
        """By partition the offset after the last record that a reader sees now."""
        sources = {number: self._cluster.partition(topic, number) for number in partitions}
        return await self._reach.call(
            "read", f"ask for {topic}", lambda: {number: source.stable for number, source in sources.items()}
        )

    async def partitions(self, topic: str) -> int:
        """How many partitions *topic* has."""
        count = await self._reach.call("read", f"ask for {topic}", lambda: self._cluster.width(topic))
        if not count:
            raise NoSuchTopic(f"there is no topic {topic}")
        return count

    async def own(self, topic: str, group: str, owner: Owner) -> None:
        """Run *owner* for every partition that this process is given, until cancelled."""
        ownership = Ownership(self._reach, topic, owner)
        await self._member(topic, group, ownership, sticky=True)

    async def deliveries(self, topic: str, group: str, agent: Agent, member: Member | None = None) -> None:
        """Run *agent* for every partition that this process is given, until cancelled."""
        streams = Streams(self._reach, topic, agent, member)
        await self._member(topic, group, streams, sticky=False)

    async def _member(self, topic: str, group: str, work: Ownership | Streams, *, sticky: bool) -> None:
        membership = Membership(
            self._reach,
            self._cluster.group(group, topic, sticky=sticky),
            self.name,
            work,
            static=self._static,
            beats=isinstance(work, Streams) and work.told is not None,
        )
        self._memberships.append(membership)
        try:
            # As a task of the process: it ends with it, and the caller with that.
            running = self._process.start(membership.run())
            try:
                await asyncio.wait([running, work.failed], return_when=asyncio.FIRST_COMPLETED)
            finally:
                running.cancel()
                await asyncio.wait([running])
            if work.failed.done():
                work.failed.result()
            raise asyncio.CancelledError  # only a close or a kill ends a membership
        finally:
            self._memberships.remove(membership)

    async def close(self) -> None:
        """Leave cleanly: partitions move at once, unless the member is static."""
        await asyncio.gather(*(each.end() for each in list(self._memberships)))

    @property
    def steps(self) -> int:
        """Steps that the process's tasks have taken: each from one await that waits to the next."""
        return self._process.steps

    def stalls(self, topic: str) -> Sequence[tuple[float, float]]:
        """When sends to *topic* waited for an answer that never came: from, to at most (loop time)."""
        return [
            (since, until)
            for line, since, until in self._reach.stalls
            if isinstance(line, tuple) and line[0] == topic
        ]

    def after_steps(self, steps: int, then: Callable[[], None]) -> None:
        """Call *then* in place of the next step of any of the process's tasks but *steps*."""
        self._process.after_steps(steps, then)

    def kill(self) -> None:
        """The process is gone without goodbye.

        All its tasks are cancelled; what it sent may or may not have landed; its partitions move
        after the session timeout.
        """
        for membership in self._memberships:
            membership.silent()
        self._reach.cut()
        self._process.kill()

    def pause(self) -> None:
        """Stop the process as SIGSTOP does: no task of it takes a step, nothing goes out."""
        for membership in self._memberships:
            membership.silent()
        self._reach.hold()
        self._process.stop()

    def resume(self) -> None:
        """Go on after :meth:`pause`, as a zombie if the session timeout has passed meanwhile."""
        for membership in self._memberships:
            membership.heard()
        self._process.go_on()
        self._reach.release()
