"""Says once when the brokers go away, and once when they are back."""

import asyncio
import logging

import structlog

ASK_S = 2.0
"""Seconds that a broker has to take a connection."""
EVERY_S = 1.0
log = structlog.get_logger()


class Outage(logging.Handler):
    """Watches for outages of the brokers, for one process.

    aiokafka warns at every retry, thousands of times a minute (10,000 lines in 58 s were counted).
    So its warnings come here instead of into the log: each asks whether a broker still takes
    connections. While none does, warnings are counted only; else they pass, once per kind and
    outage-free minute.
    """

    def __init__(self, brokers: str) -> None:
        super().__init__(logging.WARNING)
        self._brokers = brokers
        self._asking: asyncio.Task[None] | None = None
        self._away = False
        self._kept_back = 0
        self._seen: dict[str, float] = {}
        self._logger = logging.getLogger("aiokafka")
        self._loop = asyncio.get_running_loop()

    def watch(self) -> None:
        """Take aiokafka's warnings from here on."""
        self._logger.addHandler(self)
        self._logger.setLevel(logging.WARNING)
        self._logger.propagate = False

    async def close(self) -> None:
        """Leave them alone again."""
        self._logger.removeHandler(self)
        self._logger.propagate = not self._logger.handlers
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    def suspect(self, reason: str) -> None:
        """Something failed: find out whether the brokers are away."""
        if self._asking is None:
            self._asking = self._loop.create_task(self._ask(reason))
            self._asking.add_done_callback(self._asked)

    def emit(self, record: logging.LogRecord) -> None:
        """Take a warning of aiokafka."""
        if asyncio._get_running_loop() is not self._loop:
            return
        self.suspect(record.getMessage())
        if self._away:
            self._kept_back += 1
            return
        now = self._loop.time()
        if now - self._seen.get(str(record.msg), -60.0) >= 60.0:
            self._seen[str(record.msg)] = now
            log.warning("kafka_client", says=record.getMessage(), source=record.name)

    def _asked(self, task: asyncio.Task[None]) -> None:
        self._asking = None
        if not task.cancelled() and task.exception() is not None:
            log.error("outage_watch_failed", reason=repr(task.exception()))

    async def _ask(self, reason: str) -> None:
        began = self._loop.time()
        while not await self._reachable():
            if not self._away:
                self._away = True
                log.error("kafka_unreachable", brokers=self._brokers, reason=reason)
            await asyncio.sleep(EVERY_S)
        if self._away:
            self._away = False
            seconds = round(self._loop.time() - began, 1)
            log.warning("kafka_back", brokers=self._brokers, away_s=seconds, warnings_kept_back=self._kept_back)
            self._kept_back = 0

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
