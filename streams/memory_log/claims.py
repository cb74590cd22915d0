"""Partitions that a process owns."""

import asyncio
from collections.abc import Sequence

import structlog

from streams.log import Fenced, LogUnavailable, Owner, Record
from streams.memory_log.group import Group, Member
from streams.memory_log.reach import Reach

FIRST_PAUSE_S, LAST_PAUSE_S = 0.2, 10.0
LET_GO_S = 10.0
TELL_S = 1.0
log = structlog.get_logger()


class MemoryClaim:
    """Implements ``streams.log.Claim``."""

    def __init__(
        self, reach: Reach, topic: str, partition: int, position: int, ownership: "Ownership"
    ) -> None:
        self._reach = reach
        self._source = reach.cluster.partition(topic, partition)
        self._position = position
        self._ownership = ownership

    @property
    def partition(self) -> int:
        """Its number."""
        return self._source.number

    def seek(self, offset: int) -> None:
        """Go on from *offset*."""
        self._position = offset

    def done(self, offset: int) -> None:
        """Everything below *offset* is done."""
        self._ownership.tell(self.partition, offset)

    async def batch(self, timeout: float | None) -> Sequence[Record]:  # noqa: ASYNC109 - the port's
        """The next records in order; empty after *timeout* seconds without any."""
        try:
            async with asyncio.timeout(timeout):
                return await self._next()
        except TimeoutError:
            return ()

    async def _next(self) -> Sequence[Record]:
        cluster = self._reach.cluster
        while True:
            await self._reach.there()
            limit = cluster.limits.batch
            if cluster.faults.short_batches and cluster.chance.random() < cluster.faults.short_batches:
                limit = cluster.chance.randint(1, 5)
            records, self._position = self._source.visible(self._position, limit)
            if records:
                return records
            if self._position >= self._source.stable:
                await self._source.change()


class Ownership:
    """Runs an owner per partition; starts one that fails again after a growing pause."""

    def __init__(self, reach: Reach, topic: str, owner: Owner) -> None:
        self._reach = reach
        self._topic = topic
        self._owner = owner
        self._group: Group | None = None
        self._member: Member | None = None
        self._generation = 0
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._done: dict[int, int] = {}
        self._telling: asyncio.TimerHandle | None = None
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def joined(self, group: Group, member: Member) -> None:
        """*member* stands for us in *group* from now on."""
        self._group, self._member = group, member

    def take(self, generation: int, partitions: Sequence[int]) -> None:
        """Begin with these partitions."""
        self._generation = generation
        self._done.clear()
        if not self._reach.process.dead:
            for partition in partitions:
                self._tasks[partition] = self._reach.process.start(self._keep(partition))

    def heard(self, at: float) -> None:
        """An owner needs no heartbeat: another one's fences it."""

    async def let_go(self) -> None:
        """Cancel every owner and wait for its end."""
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=LET_GO_S)
            if late:
                log.error("owner_does_not_end", topic=self._topic, owners=len(late), waited_s=LET_GO_S)

    async def end(self) -> None:
        """Cancel every owner and wait for its end."""
        await self.let_go()
        self._commit()

    def tell(self, partition: int, offset: int) -> None:
        """Note for the next commit that all below *offset* is done."""
        self._done[partition] = offset
        self._tell_later()

    def _tell_later(self) -> None:
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(TELL_S, self._commit)

    def _commit(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        group, member, generation, offsets = self._group, self._member, self._generation, dict(self._done)
        if group is not None and member is not None and offsets:
            sent = self._reach.call("group", "commit", lambda: group.commit(member, generation, offsets))
            sent.add_done_callback(self._told)

    def _told(self, sent: "asyncio.Future[bool]") -> None:
        """What did not get through is told again."""
        if not sent.cancelled() and sent.exception() is not None and self._done:
            self._tell_later()

    async def _keep(self, partition: int) -> None:
        pause = FIRST_PAUSE_S
        while True:
            group = self._group
            position = group.committed.get(partition, 0) if group is not None else 0
            claim = MemoryClaim(self._reach, self._topic, partition, position, self)
            try:
                await self._owner(claim)
                log.warning("owner_ended", topic=self._topic, partition=partition, again_in_s=pause)
            except Fenced as error:
                # Whoever fenced us may have our place: we hear of it with the next heartbeat.
                pause = max(pause, 2 * self._reach.cluster.limits.heartbeat_s)
                log.warning("owner_fenced", topic=self._topic, partition=partition, reason=str(error))
            except LogUnavailable as error:
                log.warning("owner_without_log", topic=self._topic, partition=partition, reason=str(error))
            except Exception:
                log.exception("owner_failed", topic=self._topic, partition=partition, again_in_s=pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE_S)
