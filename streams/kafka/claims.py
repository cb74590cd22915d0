"""Partitions that this process owns: an aiokafka consumer group with a task per partition."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Collection, Sequence

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import IllegalStateError, KafkaError

from streams.kafka.reading import make_consumer, records, stop_consumer
from streams.log import Fenced, LogUnavailable, Owner, Record
from streams.settings import Settings

FIRST_PAUSE_S, LAST_PAUSE_S = 0.2, 10.0
AWAY_S = 1.0
"""Longest pause where the log was away: it costs little to ask, and the first to ask goes on first."""
LET_GO_S = 5.0
"""Seconds a lost partition's owner has to end, less than the rebalance timeout."""
REBALANCE_S = 10.0
TELL_S = 1.0
CALL_S = 10.0
log = structlog.get_logger()


class KafkaClaim:
    """Implements ``streams.log.Claim``.

    The partition stands paused until the owner seeks or asks for its first batch, and again while
    more than two batches wait here.
    """

    def __init__(self, consumer: AIOKafkaConsumer, place: TopicPartition, batch: int) -> None:
        self._consumer = consumer
        self._place = place
        self._batch = batch
        self._waiting: deque[Record] = deque()
        self._arrived = asyncio.Event()
        self._flowing = False
        self.finished: int | None = None
        self._pause()

    @property
    def partition(self) -> int:
        """Its number."""
        return int(self._place.partition)

    def seek(self, offset: int) -> None:
        """Go on from *offset*; what was fetched before is thrown away."""
        self._waiting.clear()
        self._arrived.clear()
        with contextlib.suppress(IllegalStateError):  # it has moved: the owner's cancellation is under way
            self._consumer.seek(self._place, offset)
        self._flow()

    async def batch(self, timeout: float | None) -> Sequence[Record]:  # noqa: ASYNC109 - the port's
        """The next records in order; empty after *timeout* seconds without any."""
        if not self._waiting:
            self._flow()
            try:
                async with asyncio.timeout(timeout):
                    await self._arrived.wait()
            except TimeoutError:
                return ()
        taken = [self._waiting.popleft() for _ in range(min(self._batch, len(self._waiting)))]
        if not self._waiting:
            self._arrived.clear()
        if len(self._waiting) <= self._batch:
            self._flow()
        return taken

    def done(self, offset: int) -> None:
        """All below *offset* is done."""
        self.finished = offset

    def put(self, fetched: Sequence[Record]) -> None:
        """Take what the consumer fetched; never waits, but pauses the partition when it is much."""
        self._waiting.extend(fetched)
        self._arrived.set()
        if len(self._waiting) > 2 * self._batch:
            self._pause()

    def _flow(self) -> None:
        if not self._flowing:
            with contextlib.suppress(IllegalStateError):
                self._consumer.resume(self._place)
                self._flowing = True

    def _pause(self) -> None:
        with contextlib.suppress(IllegalStateError):
            self._consumer.pause(self._place)
            self._flowing = False


class Ownership(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Keeps one owner running per partition that the group gives to this process.

    Args:
        trouble: Told the reason when the log seems to be away.
    """

    def __init__(
        self, settings: Settings, topic: str, group: str, owner: Owner, trouble: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._topic = topic
        self._group = group
        self._owner = owner
        self._trouble = trouble
        self._consumer: AIOKafkaConsumer
        self._claims: dict[TopicPartition, KafkaClaim] = {}
        self._owners: dict[TopicPartition, asyncio.Task[None]] = {}
        self._late: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Own until cancelled; what ends the group's consumer begins it anew after a pause."""
        pause = FIRST_PAUSE_S
        while True:
            began = asyncio.get_running_loop().time()
            try:
                await self._consume()
            except KafkaError as error:
                self._trouble(f"group {self._group} on {self._topic}: {error}")
            if asyncio.get_running_loop().time() - began > LAST_PAUSE_S:
                pause = FIRST_PAUSE_S
            await asyncio.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE_S)

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:  # noqa: ARG002 - always all
        """End every owner before anyone else may begin."""
        self._claims.clear()
        owners, self._owners = list(self._owners.values()), {}
        for owner in owners:
            owner.cancel()
        if owners:
            _, late = await asyncio.wait(owners, timeout=LET_GO_S)
            if late:
                log.error("owner_does_not_end", topic=self._topic, owners=len(late), waited_s=LET_GO_S)
                self._late |= late  # nobody else knows of them, and a task that nobody knows of may vanish
                for owner in late:
                    owner.cancel()  # something may have kept the first one for itself
                    owner.add_done_callback(self._late.discard)

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Begin an owner per partition."""
        for place in sorted(assigned):
            self._owners[place] = asyncio.create_task(self._keep(place), name=f"own {place}")
        log.info("partitions_owned", topic=self._topic, partitions=[place.partition for place in assigned])

    async def _consume(self) -> None:
        settings, suffix = self._settings, f"-{self._group}"
        # The assignor keeps its memory on its class; one of our own for each consumer.
        sticky = type("Sticky", (StickyPartitionAssignor,), {})
        consumer = self._consumer = make_consumer(
            settings,
            group_id=settings.prefix + self._group,
            group_instance_id=settings.worker_name + suffix if settings.worker_name else None,
            partition_assignment_strategy=(sticky,),
            session_timeout_ms=int(settings.session_timeout_s * 1000),
            heartbeat_interval_ms=int(settings.heartbeat_s * 1000),
            rebalance_timeout_ms=int(REBALANCE_S * 1000),
        )
        telling = None
        try:
            async with asyncio.timeout(CALL_S):
                await consumer.start()
            consumer.subscribe([settings.prefix + self._topic], listener=self)
            telling = asyncio.create_task(self._tell())
            while True:
                await self._pump()
        except TimeoutError as error:
            raise KafkaError(f"no consumer in {CALL_S} s") from error
        finally:
            if telling is not None:
                telling.cancel()
            await self.on_partitions_revoked(())
            await stop_consumer(consumer)

    async def _pump(self) -> None:
        """Hand over what arrives the moment it does: to take it all keeps the next fetch going."""
        for place, fetched in (await self._consumer.getmany(timeout_ms=1000)).items():
            claim = self._claims.get(place)
            if claim is not None:
                claim.put(records(self._topic, fetched))

    async def _tell(self) -> None:
        """Tell the group what is done, for lag tools and for claims that nobody seeks."""
        told: dict[TopicPartition, int] = {}
        while True:
            await asyncio.sleep(TELL_S)
            done = {p: c.finished for p, c in self._claims.items() if c.finished is not None}
            news = {place: offset for place, offset in done.items() if told.get(place) != offset}
            if news:
                with contextlib.suppress(KafkaError, TimeoutError):  # a rebalance may be under way
                    async with asyncio.timeout(CALL_S):
                        await self._consumer.commit(news)
                    told.update(news)

    async def _keep(self, place: TopicPartition) -> None:
        pause, first = FIRST_PAUSE_S, True
        where = {"topic": self._topic, "partition": place.partition}
        while True:
            claim = KafkaClaim(self._consumer, place, self._settings.batch)
            began = asyncio.get_running_loop().time()
            try:
                if not first:
                    await self._rewind(place)
                first = False
                self._claims[place] = claim
                await self._owner(claim)
                log.warning("owner_ended", again_in_s=pause, **where)
            except Fenced as error:
                # Whoever fenced us may have our place: we hear of it with the next heartbeat.
                pause = max(pause, 2 * self._settings.heartbeat_s)
                log.warning("owner_fenced", reason=str(error), again_in_s=pause, **where)
            except LogUnavailable as error:
                pause = min(pause, AWAY_S)
                self._trouble(str(error))
                log.debug("owner_without_log", reason=str(error), again_in_s=pause, **where)
            except Exception:
                log.exception("owner_failed", again_in_s=pause, **where)
            if self._claims.get(place) is claim:  # it may be the next owner's by now
                del self._claims[place]
            await asyncio.sleep(pause)
            went_well = asyncio.get_running_loop().time() - began > 2 * LAST_PAUSE_S
            pause = FIRST_PAUSE_S if went_well else min(2 * pause, LAST_PAUSE_S)

    async def _rewind(self, place: TopicPartition) -> None:
        """Back to what is known to be done: the owner before may have taken more than that."""
        try:
            async with asyncio.timeout(CALL_S):
                committed = await self._consumer.committed(place)
                if committed is None:
                    committed = (await self._consumer.beginning_offsets([place]))[place]
            self._consumer.seek(place, committed)
        except (KafkaError, TimeoutError) as error:
            reason = str(error) or f"no answer in {CALL_S} s"
            raise LogUnavailable(f"committed offset of {place.topic}-{place.partition}: {reason}") from error
