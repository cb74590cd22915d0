"""Says once when the brokers go away, or do not let us in any more, and once when that is over."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

ASK_S = 2.0
"""Seconds that a broker has to take a connection."""
EVERY_S = 1.0
KNOCK_S = 10.0
"""Seconds between two tries whether the brokers still let us in."""
AGAIN_S = 60.0
"""Seconds in which a warning of the same kind is shown once."""
HELD = 100
"""Warnings that wait at most until it is known whether a broker answers; more are dropped."""
QUIET = ("aiokafka", "faust", "mode", "streams.kafka.faust_agents")
"""Loggers of the clients; mode names a service's logger after the module of its class, so one is ours."""
log = structlog.get_logger()


class Outage(logging.Handler):
    """Watches for outages of the brokers, for one process.

    aiokafka and Faust warn at every retry, thousands of times a minute (10,000 lines in 58 s were
    counted). While :meth:`watch` is on, their warnings come here instead of into the log: each
    asks whether a broker still takes connections. While none does they are only counted; else they
    pass, those without a traceback once per kind in :data:`AGAIN_S` seconds.

    Args:
        knock: Says why the brokers do not let us in, nothing where they do; None where they ask for
            nothing. A credential that is no longer taken is an outage, too.
    """

    def __init__(self, brokers: str, knock: Callable[[], Awaitable[str]] | None = None) -> None:
        super().__init__(logging.WARNING)
        self._brokers = brokers
        self._knock = knock
        self._knocked = -KNOCK_S
        self._refused = ""
        self._asking: asyncio.Task[None] | None = None
        self._away = False
        self._held: list[logging.LogRecord] = []
        self._kept_back = 0
        self._seen: dict[str, float] = {}
        self._loop = asyncio.get_running_loop()

    def watch(self) -> None:
        """Take the clients' warnings from here on."""
        for name in QUIET:
            logger = logging.getLogger(name)
            logger.addHandler(self)
            logger.setLevel(logging.WARNING)  # their debug records cost 10 % of a worker's CPU
            logger.propagate = False

    def unwatch(self) -> None:
        """Leave the warnings alone again."""
        for name in QUIET:
            logger = logging.getLogger(name)
            logger.removeHandler(self)
            logger.propagate = not logger.handlers

    async def end(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    def suspect(self, reason: str) -> None:
        """Something failed: find out whether the brokers are away; if they are not, tell of it by itself."""
        self._look(reason, tell=True)

    def _look(self, reason: str, *, tell: bool) -> None:
        if self._asking is None:
            self._asking = self._loop.create_task(self._ask(reason, tell=tell))
            self._asking.add_done_callback(self._asked)

    def emit(self, record: logging.LogRecord) -> None:
        """Take a warning, from whatever thread (Faust's consumer has its own)."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take, record)

    def _take(self, record: logging.LogRecord) -> None:
        self._look(record.getMessage(), tell=False)  # it is told itself
        if self._away:
            self._kept_back += 1
        elif len(self._held) < HELD:
            self._held.append(record)  # until it is known whether it tells of an outage only

    def _show_held(self) -> None:
        held, self._held = self._held, []
        for record in held:
            says = {"says": record.getMessage(), "source": record.name}
            if record.exc_info:
                log.error("kafka_client", exc_info=record.exc_info, **says)
            elif self._is_news(f"{record.name} {record.msg}"):
                log.warning("kafka_client", **says)

    def _asked(self, task: asyncio.Task[None]) -> None:
        self._asking = None
        if not task.cancelled() and task.exception() is not None:
            log.error("outage_watch_failed", reason=repr(task.exception()))

    async def _ask(self, reason: str, *, tell: bool) -> None:
        began = self._loop.time()
        while not (reachable := await self._reachable()) or await self._is_refused():
            if not self._away:
                self._away = True
                self._kept_back, self._held = len(self._held), []
                event = "kafka_refuses_us" if reachable else "kafka_unreachable"
                log.error(event, brokers=self._brokers, reason=self._refused if reachable else reason)
            await asyncio.sleep(EVERY_S)
        if self._away:
            self._away = False
            tell = False
            seconds = round(self._loop.time() - began, 1)
            log.warning(
                "kafka_back", brokers=self._brokers, away_s=seconds, warnings_kept_back=self._kept_back
            )
        if tell and self._is_news(reason):
            log.warning("kafka_trouble", brokers=self._brokers, reason=reason)
        self._show_held()

    def _is_news(self, kind: str) -> bool:
        now = self._loop.time()
        if now - self._seen.get(kind, -AGAIN_S) < AGAIN_S:
            return False
        self._seen[kind] = now
        return True

    async def _is_refused(self) -> bool:
        if self._knock is not None and self._loop.time() - self._knocked >= KNOCK_S:
            self._knocked = self._loop.time()
            self._refused = await self._knock()
        return bool(self._refused)

    async def _reachable(self) -> bool:
        for server in self._brokers.split(","):
            host, _, port = server.strip().rpartition(":")
            try:
                async with asyncio.timeout(ASK_S):
                    _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            except (OSError, TimeoutError):
                continue
            writer.close()
            return True
        return False


class Watched(Protocol):
    """A log whose outages can be told."""

    @property
    def outage(self) -> Outage:
        """Finds out whether the brokers are away."""


async def watch_broker(watched: Watched) -> None:
    """Tell of outages in place of the clients' own warnings, until cancelled."""
    watched.outage.watch()
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        watched.outage.unwatch()
