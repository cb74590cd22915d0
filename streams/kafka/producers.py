"""Producers on aiokafka: how they are made, started and stopped, and the plain one for many tasks."""

import asyncio
from collections import deque
from collections.abc import Callable

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from streams.kafka.connection import client_options
from streams.kafka.errors import in_our_words
from streams.log import Headers, LogUnavailable, RecordRefused
from streams.redaction import redactor
from streams.settings import Settings
from streams.topics import MAX_LETTER_BYTES

SEND_S = 30.0
"""Seconds after which a send without an answer fails; it may still land later."""
START_S = 30.0
"""Seconds that a producer may take to find the brokers and get its identity."""
END_S = 15.0
"""Seconds that the end of a transaction may take, the same as its timeout on the broker: a commit
that was not decided by then never will be."""
STOP_S = 3.0
"""Seconds to wait for a producer's end; one whose broker is away ends in the background."""
BATCH_BYTES = 1_048_576
"""Inside a transaction nothing is awaited between sends, so a full batch would block."""
log = structlog.get_logger()


def make_producer(settings: Settings, identity: str | None = None) -> AIOKafkaProducer:
    """An idempotent producer, transactional under *identity*; not started.

    No linger: an idle partition's record leaves at once, and while a request is under way the next
    batch fills by itself. The backoff of 5 ms matters in transactions, which poll for the end of
    their predecessor.
    """
    return AIOKafkaProducer(
        **client_options(settings),
        acks="all",
        enable_idempotence=True,
        linger_ms=0,
        retry_backoff_ms=100 if identity is None else 5,
        request_timeout_ms=int(SEND_S * 1000),
        max_batch_size=BATCH_BYTES,
        max_request_size=MAX_LETTER_BYTES - 1024,  # the batch's own header counts, too
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


class Deliveries:
    """Gives futures of offsets for aiokafka's futures, each with a deadline.

    An idempotent aiokafka producer retries without an end, so the deadlines are kept here: all the
    same, so one queue in order and one timer do.

    Args:
        failed: Told of each error.
        late: Told when a record had no answer in time.
    """

    def __init__(self, failed: Callable[[KafkaError], None], late: Callable[[], None] = lambda: None) -> None:
        self._loop = asyncio.get_running_loop()
        self._failed, self._late = failed, late
        self._waiting: deque[tuple[float, asyncio.Future[int], str]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def follow(self, inner: "asyncio.Future[object]", what: str) -> "asyncio.Future[int]":
        """The offset that *inner* will have, or an error of the port that begins with *what*."""
        outer: asyncio.Future[int] = self._loop.create_future()

        def landed(done: "asyncio.Future[object]") -> None:
            if done.cancelled():
                # To cancel ours would look like a cancellation of whoever waits for it.
                if not outer.done():
                    outer.set_exception(LogUnavailable(f"{what}: given up by the client"))
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
                self._late()
        if self._waiting:
            self._timer = self._loop.call_at(self._waiting[0][0], self._sweep)

    def close(self) -> None:
        """Watch no deadlines any more."""
        if self._timer is not None:
            self._timer.cancel()


async def put(
    producer: AIOKafkaProducer,
    deliveries: Deliveries,
    topic: str,
    record: tuple[bytes | None, bytes | None, int, Headers],
) -> "asyncio.Future[int]":
    """Give a record, ``(value, key, partition, headers)``, to aiokafka.

    Raises:
        KafkaError: it was not taken.
        RecordRefused: the topic has no such partition.
    """
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
    has no way to go on from there: the producer behind this one is replaced. So is one that gave no
    answer in time: one was seen that sent nothing any more after all brokers had been away.

    Args:
        producer: The one to begin with; None where it is made with the first record.
    """

    def __init__(self, settings: Settings, producer: AIOKafkaProducer | None) -> None:
        self._settings = settings
        self._redactor = redactor(settings.secrets)
        self._producer = producer
        self._deliveries = self._followed(producer)
        self._broken = producer is None
        self._replacing = asyncio.Lock()

    async def send(
        self, topic: str, value: bytes | None, *, key: bytes | None, partition: int, headers: Headers = ()
    ) -> "asyncio.Future[int]":
        """Put a record in line; the future is its offset once the log has it."""
        if self._broken:
            await self._replace()
        value, headers = self._redactor.record(value, headers)
        try:
            return await put(
                self._producer,
                self._deliveries,
                self._settings.prefix + topic,
                (value, key, partition, headers),
            )
        except KafkaError as error:
            raise in_our_words(error, f"send to {topic}-{partition}") from error

    async def close(self) -> None:
        """Send what waits, within a bound, and disconnect."""
        if self._producer is not None:
            await stop_producer(self._producer)
        self._deliveries.close()

    def _followed(self, producer: AIOKafkaProducer | None) -> Deliveries:
        """What comes of the records given to this producer; of a former one it breaks nothing any more."""

        def broken() -> None:
            self._broken = self._broken or producer is self._producer

        def failed(error: KafkaError) -> None:
            if not error.retriable:
                broken()

        return Deliveries(failed, broken)

    async def _replace(self) -> None:
        async with self._replacing:
            if not self._broken:
                return
            old, self._producer = self._producer, await start_producer(self._settings)
            self._deliveries = self._followed(self._producer)
            self._broken = False
            if old is not None:
                log.warning("producer_replaced", brokers=self._settings.brokers)
                await stop_producer(old)
