"""The log as a port: what the parts need of Kafka, and nothing else.

Two implementations: ``streams.kafka`` (aiokafka, and Faust for the agents) and
``streams.memory_log`` (in memory, on virtual time, for tests and simulation). Topics are named
without their prefix. All readers see committed transactions only.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it stands on a topic.

    Attributes:
        timestamp: The broker's append time, or the producer's on topics that keep it;
            milliseconds since 1970.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class LogUnavailable(Exception):
    """The log did not take or give a record in time; trying again later may help."""


class NoSuchTopic(LogUnavailable):
    """The log has no such topic; ``anabranch topics create`` makes it."""


class NotAllowed(LogUnavailable):
    """The log does not let us in, or do this; somebody must change that before trying again can help."""


class RecordRefused(Exception):
    """The log will never take this record: too large, for example."""


class Fenced(Exception):
    """Another process has taken over this partition's transactional identity."""


class Producer(Protocol):
    """Sends records; safe to use from many tasks."""

    async def send(
        self, topic: str, value: bytes | None, *, key: bytes | None, partition: int, headers: Headers = ()
    ) -> "asyncio.Future[int]":
        """Put a record in line; the future is its offset once the log has it.

        Raises (here or in the future):
            LogUnavailable, RecordRefused, Fenced.
        """


Entry: TypeAlias = tuple[bytes, bytes | None, Headers]
"""Key, value and headers of a record to send."""


class Transactions(Producer, Protocol):
    """A transactional producer: what was sent inside lands together or not at all."""

    async def send_all(self, topic: str, partition: int, entries: Sequence[Entry]) -> None:
        """Put many records of one partition in the open transaction, in order.

        The same as one :meth:`Producer.send` after the other, in a tenth of the time; that they
        have landed is what the end of the transaction waits for.

        Raises:
            LogUnavailable, RecordRefused, Fenced: here or at the end of the transaction.
        """

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """One transaction; it aborts where its body raises.

        Raises:
            Fenced, LogUnavailable: the outcome may be unknown; never go on with this producer.
        """


class Claim(Protocol):
    """A partition this process owns, until its task is cancelled."""

    @property
    def partition(self) -> int:
        """Its number."""

    def seek(self, offset: int) -> None:
        """Go on from *offset*; what was fetched before is thrown away."""

    async def batch(self, timeout: float | None) -> Sequence[Record]:  # noqa: ASYNC109 - silence is a value
        """The next records in order; empty after *timeout* seconds without any."""

    def done(self, offset: int) -> None:
        """All below *offset* is done.

        Told to the group now and then, for lag tools, and where a claim that nobody seeks begins.
        Costs nothing and may get lost.
        """


class Delivery(Protocol):
    """A record handed to a stream agent, to be acknowledged in order once all is done."""

    @property
    def record(self) -> Record:
        """What was delivered."""

    def ack(self) -> None:
        """All up to this record is done. Without effect once the partition has moved."""


Owner: TypeAlias = Callable[[Claim], Awaitable[None]]
Agent: TypeAlias = Callable[[int, AsyncIterator[Delivery]], Awaitable[None]]


class Reader(Protocol):
    """What can be read again."""

    def read(
        self, topic: str, partition: int, *, offset: int | None = None, since: int | None = None
    ) -> AsyncIterator[Sequence[Record]]:
        """Records up to the end that the partition had at the start.

        They begin at *offset*, or at the first at or after *since* (milliseconds since 1970), or
        at the beginning.
        """


class Log(Reader, Protocol):
    """One connection to the log, for one process."""

    async def ends(self, topic: str, partitions: Sequence[int]) -> Mapping[int, int]:
        """By partition the offset after the last record that a reader sees now.

        Raises:
            LogUnavailable: the log does not say in time.
        """

    @property
    def producer(self) -> Producer:
        """The process's plain producer."""

    def transactions(self, identity: str) -> AbstractAsyncContextManager[Transactions]:
        """A producer under this transactional identity; entering it fences the older one."""

    def follow(
        self, topic: str, partitions: Sequence[int], *, since: int | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Record]]]:
        """Records of these partitions as they come, each batch from one partition, until it is left.

        They begin at the first record at or after *since* (milliseconds since 1970; 0 is the
        beginning), or where the partitions end now. Once it is entered the place is fixed, so
        whatever is sent from then on is seen. While the log is away it waits.

        Raises:
            LogUnavailable: the place to begin could not be found in time.
        """

    async def partitions(self, topic: str) -> int:
        """How many partitions *topic* has.

        Raises:
            LogUnavailable: the log does not say in time.
            NoSuchTopic: there is no such topic.
        """

    async def own(self, topic: str, group: str, owner: Owner) -> None:
        """Run *owner* for every partition of *topic* that this process is given, until cancelled.

        A lost partition's owner is cancelled and awaited before another process gets it. An
        owner that raises is started again after a pause.
        """


class Member(Protocol):
    """Told how this process's place in its group changes, for whoever must not work on what is another's."""

    async def let_go(self) -> None:
        """A rebalance begins; every partition may be another process's once this returns.

        It must return within some seconds, or the group goes on without this process.
        """

    def take(self, partitions: Sequence[int], generation: int) -> None:
        """The rebalance is over: these partitions are ours, some perhaps as before, and no others.

        *generation* counts the group's rebalances. Where it is not the next one, the group went on
        without this process, and what it keeps may have been another's meanwhile.
        """

    def heard(self, at: float) -> None:
        """The group took us for a member when we asked at *at*, in seconds on the monotonic clock."""


class Agents(Protocol):
    """Stream agents on the log: Faust's on Kafka, their model in memory."""

    async def deliveries(self, topic: str, group: str, agent: Agent, member: Member | None = None) -> None:
        """Run *agent* for every partition of *topic* that this process is given, until cancelled.

        Deliveries begin at the group's committed offset, which follows the acknowledged ones a
        little later. After a rebalance everything not committed is delivered again, to whoever has
        the partition by then: the agent of a partition that stays goes on and gets it while it may
        still be at work on it. The agent of a partition that moved is cancelled. An agent must
        never raise. *member* is told of rebalances, before and after, and of every heartbeat.
        """
