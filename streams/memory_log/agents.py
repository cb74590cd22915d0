"""Records handed to stream agents, as Faust hands them."""

import asyncio
from collections import deque
from collections.abc import Sequence

import structlog

from streams.log import Agent, LogUnavailable, Member, Record
from streams.memory_log.group import Group
from streams.memory_log.group import Member as InGroup
from streams.memory_log.reach import Reach

END_S = 30.0
log = structlog.get_logger()


class MemoryDelivery:
    """Implements ``streams.log.Delivery``."""

    __slots__ = ("_generation", "_record", "_stream")

    def __init__(self, record: Record, stream: "Stream", generation: int) -> None:
        self._record = record
        self._stream = stream
        self._generation = generation

    @property
    def record(self) -> Record:
        """What was delivered."""
        return self._record

    def ack(self) -> None:
        """All up to this record is done; without effect once a rebalance has begun."""
        self._stream.ack(self._record.offset, self._generation)


class Stream:
    """One partition's deliveries to its agent, from the committed offset on."""

    def __init__(self, reach: Reach, topic: str, partition: int, streams: "Streams") -> None:
        self._reach = reach
        self._source = reach.cluster.partition(topic, partition)
        self._streams = streams
        self._fetched: deque[Record] = deque()
        self._position = 0
        self.generation: int | None = None
        self.acked: int | None = None

    def begin(self, generation: int, position: int) -> None:
        """Deliver from *position* on; what was delivered and not committed comes again."""
        self._fetched.clear()
        self._position, self.generation, self.acked = position, generation, None
        self._source.wake()

    def halt(self) -> None:
        """Deliver nothing more in this generation; its acks have no effect from here on."""
        self.generation, self.acked = None, None
        self._fetched.clear()

    def ack(self, offset: int, generation: int) -> None:
        """Note that all up to *offset* is done."""
        if generation == self.generation:
            self.acked = max(self.acked or 0, offset + 1)
            self._streams.acked()

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> MemoryDelivery:
        while True:
            if self.generation is not None and not self._streams.ending:
                if self._fetched:
                    return MemoryDelivery(self._fetched.popleft(), self, self.generation)
                generation = self.generation
                await self._reach.there()
                if generation != self.generation or self._streams.ending:
                    continue
                records, self._position = self._source.visible(
                    self._position, self._reach.cluster.limits.batch
                )
                self._fetched.extend(records)
                if records or self._position < self._source.stable:
                    continue
            await self._source.change()


class Streams:
    """Runs an agent per partition.

    As in Faust, a rebalance commits what is acknowledged, and the agents of retained partitions go
    on: they are handed everything uncommitted again. An agent that ends or raises ends it all.
    """

    def __init__(self, reach: Reach, topic: str, agent: Agent, told: Member | None = None) -> None:
        self._reach = reach
        self._topic = topic
        self._agent = agent
        self.told = told
        self._group: Group | None = None
        self._member: InGroup | None = None
        self._running: dict[int, tuple[Stream, asyncio.Task[None]]] = {}
        self._leaving: dict[asyncio.Task[None], None] = {}
        self._committing: asyncio.TimerHandle | None = None
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ending = False

    def joined(self, group: Group, member: InGroup) -> None:
        """*member* stands for us in *group* from now on."""
        self._group, self._member = group, member

    def take(self, generation: int, partitions: Sequence[int]) -> None:
        """Begin with these partitions; the agents of others are cancelled."""
        if not self._reach.process.dead:
            # As a step of the process, not of the broker that calls.
            now = asyncio.get_running_loop().time()
            self._reach.process.start(self._take(generation, partitions, now))

    async def _take(self, generation: int, partitions: Sequence[int], at: float) -> None:
        if self.ending or self._group is None:
            return
        if self.told is not None:
            self.told.heard(at)
            self.told.take(partitions, generation)
        for partition in [each for each in self._running if each not in partitions]:
            self._cancel(partition)
        for partition in partitions:
            if partition not in self._running:
                stream = Stream(self._reach, self._topic, partition, self)
                task = self._reach.process.start(self._run(partition, stream))
                task.add_done_callback(self._ended)
                self._running[partition] = (stream, task)
            self._running[partition][0].begin(generation, self._group.committed.get(partition, 0))

    def heard(self, at: float) -> None:
        """A heartbeat that went out at *at* was answered."""
        if self.told is not None:
            self.told.heard(at)

    async def let_go(self) -> None:
        """Commit what is acknowledged and deliver nothing more until the next generation."""
        if self.told is not None:
            await self._reach.process.start(self.told.let_go())
        await self._commit()
        for stream, _ in self._running.values():
            stream.halt()

    async def end(self) -> None:
        """Deliver nothing more, cancel the agents and wait for them, commit."""
        self.ending = True
        for partition in list(self._running):
            task = self._running[partition][1]
            task.cancel()
            self._leaving[task] = None
        if self._leaving:
            _, late = await asyncio.wait(list(self._leaving), timeout=END_S)
            if late:
                log.error("agent_does_not_end", topic=self._topic, agents=len(late), waited_s=END_S)
        await self._commit()
        self._running.clear()

    def acked(self) -> None:
        """Something is to be committed, soon."""
        if self._committing is None:
            loop = asyncio.get_running_loop()
            self._committing = loop.call_later(self._reach.cluster.limits.commit_s, self._send_commit)

    def _cancel(self, partition: int) -> None:
        stream, task = self._running.pop(partition)
        stream.halt()
        task.cancel()
        self._leaving[task] = None
        task.add_done_callback(lambda done: self._leaving.pop(done, None))

    async def _run(self, partition: int, stream: Stream) -> None:
        await self._agent(partition, stream)  # one that is cancelled may end as it likes
        task = asyncio.current_task()
        if task is None or not task.cancelling():
            raise RuntimeError(f"agent of {self._topic}-{partition} ended by itself")

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not self.failed.done() and not self._reach.process.dead:
            self.failed.set_exception(error)

    async def _commit(self) -> None:
        sent = self._send_commit()
        if sent is not None:
            try:
                await sent
            except LogUnavailable as error:
                log.warning("not_committed", topic=self._topic, reason=str(error))

    def _send_commit(self) -> "asyncio.Future[bool] | None":
        if self._committing is not None:
            self._committing.cancel()
            self._committing = None
        group, member = self._group, self._member
        acked = {p: s.acked for p, (s, _) in self._running.items() if s.acked is not None}
        generations = [s.generation for s, _ in self._running.values() if s.generation is not None]
        if group is None or member is None or not acked or not generations:
            return None
        generation = generations[0]
        sent = self._reach.call("group", "commit", lambda: group.commit(member, generation, acked))
        sent.add_done_callback(self._told)
        return sent

    def _told(self, sent: "asyncio.Future[bool]") -> None:
        """What did not get through is told again: aiokafka tries until it does."""
        if not sent.cancelled() and sent.exception() is not None and self._running:
            self.acked()
