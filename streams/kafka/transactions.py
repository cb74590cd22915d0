"""Transactional producers on aiokafka."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import IllegalOperation, KafkaError
from aiokafka.producer import sender
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.protocol.transaction import EndTxnRequest

from streams.kafka.errors import in_our_words
from streams.kafka.producers import END_S, Deliveries, put, stop_producer
from streams.log import Entry, Fenced, Headers, LogUnavailable, RecordRefused
from streams.redaction import redactor
from streams.settings import Settings

ABORT_S = 3.0
"""Seconds to wait for an abort; the identity's next producer would do it as well."""
log = structlog.get_logger()

sender.BACKOFF_OVERRIDE = 0.002
"""Seconds before aiokafka asks again whether the last transaction's markers are written. Its own 20 ms
make two transactions in a row take 31 ms (p50, Apache Kafka 4.3 on the same machine), these 2 ms 6 ms."""


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
        self._redactor = redactor(settings.secrets)
        self._identity = identity
        self._producer = producer
        self._deliveries = Deliveries(self._failed)
        self._refused = False
        self._watch = _CommitWatch(producer)
        self._sent: list[asyncio.Future[int]] = []
        self._over: str | None = None

    async def send(
        self, topic: str, value: bytes | None, *, key: bytes | None, partition: int, headers: Headers = ()
    ) -> "asyncio.Future[int]":
        """Put a record in the open transaction.

        Raises:
            RuntimeError: no transaction is open.
        """
        name = self._settings.prefix + topic
        value, headers = self._redactor.record(value, headers)
        try:
            sent = await put(self._producer, self._deliveries, name, (value, key, partition, headers))
        except IllegalOperation as error:
            raise self._outside(f"send to {name}-{partition} for {self._identity}") from error
        except KafkaError as error:
            raise in_our_words(error, f"send to {name}-{partition} for {self._identity}") from error
        self._sent.append(sent)
        return sent

    async def send_all(self, topic: str, partition: int, entries: Sequence[Entry]) -> None:
        """Put many records of one partition in the open transaction, in order.

        In batches made here: aiokafka's own way makes two futures a record, which was half of the
        orchestrator's CPU.

        Raises:
            RuntimeError: no transaction is open.
        """
        name = self._settings.prefix + topic
        batch = self._producer.create_batch()
        for key, given, carried in entries:
            value, headers = self._redactor.record(given, carried)
            if batch.append(key=key, value=value, timestamp=None, headers=list(headers)) is None:
                await self._send_batch(batch, name, partition)
                batch = self._producer.create_batch()
                batch.append(key=key, value=value, timestamp=None, headers=list(headers))
        if batch.record_count():
            await self._send_batch(batch, name, partition)

    async def _send_batch(self, batch: BatchBuilder, name: str, partition: int) -> None:
        what = f"send to {name}-{partition} for {self._identity}"
        try:
            sent = await self._producer.send_batch(batch, name, partition=partition)
        except AssertionError as error:  # aiokafka's word for a partition that is not there
            raise RecordRefused(f"{what}: the topic has no such partition") from error
        except IllegalOperation as error:
            raise self._outside(what) from error
        except KafkaError as error:
            raise in_our_words(error, what) from error
        self._sent.append(self._deliveries.follow(sent, what))

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
            ended_by = self._ended_by()
            await self._abort(error)
            if ended_by is not None and isinstance(error, LogUnavailable):
                raise in_our_words(ended_by, f"transaction of {self._identity}") from error
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

    def _outside(self, what: str) -> Exception:
        """The error of a send where aiokafka sees no open transaction: there is none, or it is over."""
        ended_by = self._ended_by()
        return (
            RuntimeError(f"{what}: outside a transaction")
            if ended_by is None
            else in_our_words(ended_by, what)
        )

    def _ended_by(self) -> KafkaError | None:
        """What ended the transaction, where aiokafka knows: errors of what comes after say nothing of it."""
        end = self._producer._txn_manager.wait_for_transaction_end()  # noqa: SLF001 - it tells nobody else
        error = end.exception() if end is not None and end.done() and not end.cancelled() else None
        return error if isinstance(error, KafkaError) else None

    async def _abort(self, cause: BaseException) -> None:
        self._over = "fenced" if isinstance(cause, Fenced) else "a transaction could not be aborted"
        if isinstance(cause, Fenced):
            return
        try:
            await self._within(ABORT_S, self._producer.abort_transaction(), "abort")
        except (Fenced, LogUnavailable) as error:
            log.debug("transaction_not_aborted", identity=self._identity, reason=str(error))
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
