"""Stream agents on Faust, with what of Faust has to be changed to lose nothing.

Twelve overrides, all of them in this module; docs/facts.md tells what was measured with and without
them, and tests/streams/test_faust_overrides.py fails when an upgrade changes what they rely on:

1. reads committed transactions only, and waits 50 ms for a fetch instead of 1,500;
2. commits what was acknowledged before a rebalance forgets it;
3. takes the highest acknowledged offset for the next to commit: agents acknowledge in order;
4. has no gaps to step over: transactions leave some, and Faust's way of counting them stalls commits;
5. makes the transport that uses these;
6. lets the process end although the consumer's thread does not, as when no broker answers any more;
7. tells whoever works on partitions of rebalances, before Faust acts on them;
8. and of every word of the group that it still counts us in;
9. makes no directories: without tables nothing would be in them, and a full disk is no reason not to start;
10. goes back to the beginning of a partition where Faust goes back to what is committed and nothing is: it
    throws away what a fetch brings in the middle of a rebalance, and aiokafka would go on behind that;
11. hands a fetched message on at once: Faust makes four tasks for each and waits for the first of them, so
    that under load a message took three turns of a slow loop, and all that were fetched stood in one line;
12. takes all that waits for an actor at once, where Faust's stream gives one event in a turn of the loop.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import faust
from aiokafka.errors import IllegalStateError, NoError, RebalanceInProgressError
from aiokafka.protocol.group import HeartbeatRequest, SyncGroupRequest
from faust.transport.drivers import aiokafka as driver
from mode.threads import WorkerThread

from streams.kafka.connection import faust_credentials
from streams.log import Agent, Member, Record
from streams.settings import Settings

FETCH_WAIT_MS = 50
"""Milliseconds a broker may wait before it answers a fetch that finds nothing. Idle it makes no
difference, but one fetch is in flight a node, and a partition that was busy when it left must wait."""

COMMIT_S = 0.5

BUFFER = 1_024
"""Messages that wait for an actor, at most: of a flood 4 KB each, on every partition. At four fifths of it
the partition pauses, and what a poll has brought by then must still fit."""

COUNT_US_IN = (HeartbeatRequest, SyncGroupRequest)
STILL_IN = (NoError.errno, RebalanceInProgressError.errno)
"""To a heartbeat; a member must rejoin, and is one until the rebalance is over."""


class DaemonThread(WorkerThread):
    """Override 6."""

    def __init__(self, service: Any, **options: Any) -> None:
        super().__init__(service, **options)
        self.daemon = True

    def run(self) -> None:
        """Run the consumer's loop; that it was cancelled is how it ends without a broker."""
        with suppress(asyncio.CancelledError):
            super().run()


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """Overrides 1, 8 and 10: neither Faust nor aiokafka lets these be set from outside."""

    Worker = DaemonThread

    async def on_start(self) -> None:
        """Listen to what the group answers."""
        await super().on_start()
        consumer: Any = self._consumer
        app: Any = self.app
        coordinator: Any = consumer._coordinator  # noqa: SLF001
        send = coordinator._send_req  # noqa: SLF001

        async def send_and_tell(request: Any) -> Any:
            at = time.monotonic()  # a reply may be old by the time it is read, as after SIGSTOP
            reply = await send(request)
            if isinstance(request, COUNT_US_IN) and reply.error_code in STILL_IN:
                for member in app.members.values():
                    app.loop.call_soon_threadsafe(member.heard, at)
            return reply

        coordinator._send_req = send_and_tell  # noqa: SLF001

    async def seek_to_committed(self) -> Mapping[Any, int]:
        """Leave no partition where it is."""
        committed: Mapping[Any, int] = await super().seek_to_committed()
        # No offset, or the first one: aiokafka moves neither.
        if nowhere := [place for place, offset in committed.items() if not offset or offset < 0]:
            with suppress(IllegalStateError):  # it has just moved; whoever has it begins there anyway
                await self.seek_to_beginning(*nowhere)
        return committed

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._isolation_level = "read_committed"  # noqa: SLF001
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS  # noqa: SLF001
        return consumer


class Consumer(driver.Consumer):
    """Overrides 2 to 4, 7 and 11."""

    app: Any

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def on_partitions_revoked(self, revoked: Any) -> None:
        """Let go, and commit first."""
        for member in self.app.members.values():
            await member.let_go()
        await self.commit()
        await super().on_partitions_revoked(revoked)

    async def on_partitions_assigned(self, assigned: Any, generation_id: int = 0) -> None:
        """Tell whoever works on them first: the agents of what was lost are cancelled next."""
        for topic, member in self.app.members.items():
            member.take([place.partition for place in assigned if place.topic == topic], generation_id)
        await super().on_partitions_assigned(assigned, generation_id)

    def _new_offset(self, tp: Any) -> int | None:
        acked = self._acked.pop(tp, None)
        self._acked_index.pop(tp, None)
        return max(acked) + 1 if acked else None

    async def _add_gap(self, tp: Any, offset_from: int, offset_to: int) -> None:
        """None is kept."""

    async def wait_first(self, *waits: Any, timeout: Any = None) -> Any:  # noqa: ASYNC109 - mode's own
        """Hand a message on, which never has to wait: a partition pauses long before its queue is full."""
        if len(waits) == 2 and timeout is None and self.flow_active:  # noqa: PLR2004 - as _drain_messages calls it
            handed_on, suspended = waits
            suspended.close()
            return await handed_on
        return await super().wait_first(*waits, timeout=timeout)


class Transport(driver.Transport):
    """With our consumer."""

    Consumer = Consumer


class App(faust.App):
    """Overrides 5 and 9.

    Attributes:
        members: By topic, with its prefix: who is told of rebalances and heartbeats.
    """

    members: Mapping[str, Member] = {}

    def _new_transport(self) -> Transport:
        return Transport(self.conf.broker_consumer, self)

    def _create_directories(self) -> None:
        """None is needed."""


class FaustDelivery:
    """An event of a Faust stream as a :class:`streams.log.Delivery`."""

    __slots__ = ("_app", "_event", "record")

    def __init__(self, app: App, event: Any, topic: str) -> None:
        message = event.message
        self._app, self._event = app, event
        self.record = Record(
            topic,
            message.partition,
            message.offset,
            int(message.timestamp * 1000),
            message.key,
            message.value,
            headers_of(message.headers),
        )

    def ack(self) -> None:
        """As :meth:`streams.log.Delivery.ack`."""
        if self._event.message.generation_id == self._app.consumer_generation_id:
            self._event.ack()


def headers_of(headers: Any) -> tuple[tuple[str, bytes | None], ...]:
    """Faust gives headers as a mapping, a list of pairs, or nothing."""
    if not headers:
        return ()
    return tuple(headers.items()) if isinstance(headers, Mapping) else tuple(headers)


class FaustAgents:
    """The agents of one process: one Faust app, one consumer group, one actor a partition.

    Args:
        agents: By topic, without its prefix.
        members: By topic: told of this process's place in the group, on the main thread.
    """

    def __init__(
        self, settings: Settings, agents: Mapping[str, Agent], members: Mapping[str, Member] | None = None
    ) -> None:
        self._settings, self._agents, self._members = settings, agents, members or {}
        self._app = self._make_app()

    def _make_app(self) -> App:
        settings = self._settings
        static: dict[str, Any] = (
            {"consumer_group_instance_id": f"{settings.worker_name}-agents"} if settings.worker_name else {}
        )
        app = App(
            f"{settings.prefix}agents",
            broker=[f"kafka://{server}" for server in settings.brokers.split(",")],
            broker_credentials=faust_credentials(settings),
            store="memory://",
            web_enabled=False,
            topic_disable_leader=True,
            topic_allow_declare=False,
            stream_wait_empty=False,
            stream_buffer_maxsize=BUFFER,
            consumer_auto_offset_reset="earliest",
            consumer_max_fetch_size=4 * 1024 * 1024,
            broker_max_poll_records=BUFFER // 6,
            broker_commit_interval=COMMIT_S,
            broker_max_poll_interval=86_400,
            broker_session_timeout=settings.session_timeout_s,
            broker_heartbeat_interval=settings.heartbeat_s,
            broker_rebalance_timeout=30,
            producer_acks=-1,
            producer_request_timeout=30,
            worker_redirect_stdouts=False,
            **static,
        )
        app.members = {settings.prefix + topic: member for topic, member in self._members.items()}
        for name, agent in self._agents.items():
            topic = app.topic(
                f"{settings.prefix}{name}",
                key_type=bytes,
                key_serializer="raw",
                value_type=bytes,
                value_serializer="raw",
            )
            app.agent(topic, name=f"{settings.prefix}{name}", isolated_partitions=True)(
                self._actor(app, name, agent)
            )
        return app

    @staticmethod
    def _actor(app: App, topic: str, agent: Agent) -> Any:
        async def actor(stream: Any) -> None:
            events = stream.noack().events()
            try:
                first = await anext(events)

                async def deliveries() -> AsyncIterator[FaustDelivery]:
                    yield FaustDelivery(app, first, topic)
                    waiting = stream.channel.queue
                    async for event in events:
                        yield FaustDelivery(app, event, topic)
                        while waiting.qsize() and not waiting._errors:  # noqa: SLF001 - Faust raises those
                            yield FaustDelivery(app, waiting.get_nowait(), topic)

                await agent(first.message.partition, deliveries())
            except (asyncio.CancelledError, StopAsyncIteration):
                pass  # the partition is revoked; Faust takes a cancelled wait for a crash

        return actor

    async def run(self) -> None:
        """Run the agents until :meth:`stop`.

        Raises:
            Exception: whatever ended Faust.
        """
        await self._app.start()
        await self._app.wait_until_stopped()
        if self._app.crashed and self._app.crash_reason is not None:
            raise self._app.crash_reason

    async def commit(self) -> None:
        """Commit what is acknowledged."""
        await self._app.consumer.commit()

    async def stop(self) -> None:
        """Leave the group and stop."""
        await self._app.stop()
