"""Producers on aiokafka: a plain one for many tasks, and transactional ones."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import IllegalOperation, KafkaError
from aiokafka.producer import sender
from aiokafka.protocol.transaction import EndTxnRequest

from streams.kafka.errors import in_our_words
from streams.log import Fenced, Headers, LogUnavailable, RecordRefused
from streams.settings import Settings
from streams.topics import MAX_RECORD_BYTES

SEND_S = 30.0
"""Seconds after which a send without an answer fails; it may still land later."""
START_S = 30.0
"""Seconds that a producer may take to find the brokers and get its identity."""
END_S = 15.0
"""Seconds that the end of a transaction may take, the same as its timeout on the broker: a commit
that was not decided by then never will be."""
ABORT_S = 3.0
"""Seconds to wait for an abort; the identity's next producer would do it as well."""
STOP_S = 3.0
"""Seconds to wait for a producer's end; one whose broker is away ends in the background."""
BATCH_BYTES = 1_048_576
"""Inside a transaction nothing is awaited between sends, so a full batch would block."""
log = structlog.get_logger()

sender.BACKOFF_OVERRIDE = 0.002
"""Seconds before aiokafka asks again whether the last transaction's markers are written. Its own 20 ms
make two transactions in a row take 31 ms (p50, Apache Kafka 4.3 on the same machine), these 2 ms 6 ms."""


def make_producer(settings: Settings, identity: str | None = None) -> AIOKafkaProducer:
    """An idempotent producer, transactional under *identity*; not started.

    No linger: an idle partition's record leaves at once, and while a request is under way the next
    batch fills by itself. The backoff of 5 ms matters in transactions, which poll for the end of
    their predecessor.
    """
    return AIOKafkaProducer(
        bootstrap_servers=settings.brokers.split(","),
        acks="all",
        enable_idempotence=True,
        linger_ms=0,
        retry_backoff_ms=100 if identity is None else 5,
        request_timeout_ms=int(SEND_S * 1000),
        max_batch_size=BATCH_BYTES,
        max_request_size=MAX_RECORD_BYTES - 1024,  # the batch's own header counts, too
        transactional_id=identity,
        transaction_timeout_ms=int(END_S * 1000),
    )


async def start_producer(settings: Settings, identity: str | None = None) -> AIOKafkaProducer:
    """A started producer.

    Raises:
        LogUnavailable: no broker gave it what it needs in time.
    """
    producer = make_producer(settings, identity)
    try:
        async with asyncio.timeout(START_S):
            await producer.start()
    except BaseException as error:
        await stop_producer(producer)
        what = f"start of a producer for {identity or 'plain records'} at {settings.brokers}"
        if isinstance(error, TimeoutError):
            raise LogUnavailable(f"{what}: not started in {START_S} s") from error
        if isinstance(error, KafkaError):
            raise in_our_words(error, what) from error
        raise
    return producer


_stopping: set[asyncio.Task[None]] = set()


async def stop_producer(producer: AIOKafkaProducer) -> None:
    """Stop it, within a bound.

    One that waits for its broker is left to end by itself when that is back: to cancel it half way
    would leave its sender trying for ever.
    """
    stopping = asyncio.create_task(_stop(producer))
    _stopping.add(stopping)
    stopping.add_done_callback(_stopping.discard)
    await asyncio.wait([stopping], timeout=STOP_S)


async def _stop(producer: AIOKafkaProducer) -> None:
    try:
        await producer.stop()
    except KafkaError as error:  # it failed before and says so again
        log.debug("producer_stopped_with_error", reason=str(error))


class _Deliveries:
    """Gives futures of offsets for aiokafka's futures, each with a deadline.

    An idempotent aiokafka producer retries without an end, so the deadlines are kept here: all the
    same, so one queue in order and one timer do.
    """

    def __init__(self, failed: Callable[[KafkaError], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._failed = failed
        self._waiting: deque[tuple[float, asyncio.Future[int], str]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def follow(self, inner: "asyncio.Future[object]", what: str) -> "asyncio.Future[int]":
        outer: asyncio.Future[int] = self._loop.create_future()

        def landed(done: "asyncio.Future[object]") -> None:
            if done.cancelled():
                outer.cancel()
                return
            error = done.exception()
            if isinstance(error, KafkaError):
                self._failed(error)
                error = in_our_words(error, what)
            if outer.done():
                return
            if error is not None:
                outer.set_exception(error)
            else:
                outer.set_result(done.result().offset)  # type: ignore[attr-defined]  # no types there

        inner.add_done_callback(landed)
        self._waiting.append((self._loop.time() + SEND_S, outer, what))
        while self._waiting and self._waiting[0][1].done():
            self._waiting.popleft()
        if self._timer is None:
            self._timer = self._loop.call_later(SEND_S, self._sweep)
        return outer

    def _sweep(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._waiting and (self._waiting[0][0] <= now or self._waiting[0][1].done()):
            _, outer, what = self._waiting.popleft()
            if not outer.done():
                outer.set_exception(LogUnavailable(f"{what}: no answer in {SEND_S} s; it may still land"))
        if self._waiting:
            self._timer = self._loop.call_at(self._waiting[0][0], self._sweep)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


async def _put(
    producer: AIOKafkaProducer,
    deliveries: _Deliveries,
    topic: str,
    record: tuple[bytes | None, bytes, int, Headers],
) -> "asyncio.Future[int]":
    value, key, partition, headers = record
    what = f"send to {topic}-{partition}"
    try:
        inner = await producer.send(topic, value, key=key, partition=partition, headers=list(headers))
    except AssertionError as error:  # aiokafka's word for a partition that is not there
        raise RecordRefused(f"{what}: the topic has no such partition") from error
    return deliveries.follow(inner, what)


class KafkaProducer:
    """Sends outside transactions; in order per partition.

    A record that the broker refuses leaves a hole in the partition's sequence numbers, and aiokafka
    has no way to go on from there: the producer behind this one is replaced.
    """

    def __init__(self, settings: Settings, producer: AIOKafkaProducer) -> None:
        self._settings = settings
        self._producer = producer
        self._deliveries = _Deliveries(self._failed)
        self._broken = False
        self._replacing = asyncio.Lock()

    async def send(
        self, topic: str, value: bytes | None, *, key: bytes, partition: int, headers: Headers = ()
    ) -> "asyncio.Future[int]":
        """Put a record in line; the future is its offset once the log has it."""
        if self._broken:
            await self._replace()
        try:
            return await _put(
                self._producer,
                self._deliveries,
                self._settings.prefix + topic,
                (value, key, partition, headers),
            )
        except KafkaError as error:
            raise in_our_words(error, f"send to {topic}-{partition}") from error

    async def close(self) -> None:
        """Send what waits, within a bound, and disconnect."""
        await stop_producer(self._producer)
        self._deliveries.close()

    def _failed(self, error: KafkaError) -> None:
        self._broken = self._broken or not error.retriable

    async def _replace(self) -> None:
        async with self._replacing:
            if not self._broken:
                return
            log.warning("producer_replaced", brokers=self._settings.brokers)
            old, self._producer = self._producer, await start_producer(self._settings)
            self._broken = False
            await stop_producer(old)


class _CommitWatch:
    """Notes when the answer to the end of a transaction got lost.

    aiokafka asks again by itself then. The first request may still be on its way, and could hit the
    producer's next transaction (KIP-890; aiokafka speaks EndTxn v0), so we must not begin one.
    """

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self.lost = False
        self._send = producer.client.send
        producer.client.send = self._watched

    async def _watched(self, node_id: object, request: object, **options: object) -> object:
        try:
            return await self._send(node_id, request, **options)
        except KafkaError:
            self.lost = self.lost or isinstance(request, EndTxnRequest)
            raise


class KafkaTransactions:
    """Sends inside transactions, under one identity."""

    def __init__(self, settings: Settings, identity: str, producer: AIOKafkaProducer) -> None:
        self._settings = settings
        self._identity = identity
        self._producer = producer
        self._deliveries = _Deliveries(self._failed)
        self._refused = False
        self._watch = _CommitWatch(producer)
        self._sent: list[asyncio.Future[int]] = []
        self._over: str | None = None

    async def send(
        self, topic: str, value: bytes | None, *, key: bytes, partition: int, headers: Headers = ()
    ) -> "asyncio.Future[int]":
        """Put a record in the open transaction.

        Raises:
            RuntimeError: no transaction is open.
        """
        name = self._settings.prefix + topic
        try:
            sent = await _put(self._producer, self._deliveries, name, (value, key, partition, headers))
        except IllegalOperation as error:
            raise RuntimeError(
                f"{self._identity}: send to {name}-{partition} outside a transaction"
            ) from error
        except KafkaError as error:
            raise in_our_words(error, f"send to {name}-{partition} for {self._identity}") from error
        self._sent.append(sent)
        return sent

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """One transaction: commits once every record has landed, aborts where the body raises.

        aiokafka would commit without a record that the broker refused, so each is awaited here.
        """
        if self._over is not None:
            raise LogUnavailable(f"{self._identity}: {self._over}; start a new producer")
        self._sent = []
        await self._within(END_S, self._producer.begin_transaction(), "begin")
        try:
            yield
            await asyncio.gather(*self._sent)
        except BaseException as error:
            for sent in self._sent:
                sent.add_done_callback(lambda done: done.cancelled() or done.exception())
            await self._abort(error)
            raise
        self._over = "the outcome of a commit is unknown"
        await self._within(END_S, self._producer.commit_transaction(), "commit")
        if self._watch.lost:
            raise LogUnavailable(f"{self._identity}: {self._over}, an answer got lost; start a new producer")
        self._over = None

    async def close(self) -> None:
        """Disconnect."""
        await stop_producer(self._producer)
        self._deliveries.close()

    async def _abort(self, cause: BaseException) -> None:
        self._over = "fenced" if isinstance(cause, Fenced) else "a transaction could not be aborted"
        if isinstance(cause, Fenced):
            return
        try:
            await self._within(ABORT_S, self._producer.abort_transaction(), "abort")
        except (Fenced, LogUnavailable) as error:
            log.warning("transaction_not_aborted", identity=self._identity, reason=str(error))
        else:
            if self._refused:
                self._over = "the broker refused a record"  # its sequence number is missing from now on
            elif not self._watch.lost:
                self._over = None

    def _failed(self, error: KafkaError) -> None:
        self._refused = self._refused or not error.retriable

    async def _within(self, seconds: float, step: Awaitable[None], what: str) -> None:
        try:
            async with asyncio.timeout(seconds):
                await step
        except TimeoutError as error:
            raise LogUnavailable(
                f"{what} of a transaction of {self._identity}: no answer in {seconds} s"
            ) from error
        except AssertionError as error:  # its state allows no such step: it failed in the background
            raise LogUnavailable(
                f"{what} of a transaction of {self._identity}: producer has failed"
            ) from error
        except KafkaError as error:
            raise in_our_words(error, f"{what} of a transaction of {self._identity}") from error
