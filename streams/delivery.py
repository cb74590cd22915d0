"""Sending until the log has it, and telling of an outage once."""

import asyncio
from collections.abc import Callable

import structlog

from streams.log import Headers, LogUnavailable, Producer

RETRY_S = 0.5
"""Seconds between two tries while the log does not answer."""


class Sender:
    """A producer that does not give up: what must not be lost is sent again until the log has it.

    The wait ends with the task that waits; whoever may be told to stop cancels it. An outage
    shows as one line when it begins and one when it ends.

    Args:
        trouble: Told when the log does not answer, in place of a line of ours, where somebody
            else tells of outages.
    """

    def __init__(self, producer: Producer, trouble: Callable[[str], None] | None = None) -> None:
        self.producer = producer
        self._trouble = trouble
        self._out = False
        self._log = structlog.get_logger().bind(part="sender")

    @property
    def away(self) -> bool:
        """The log does not answer at the moment; what waits for it is sent once it does."""
        return self._out

    async def deliver(
        self, topic: str, value: bytes | None, *, key: bytes, partition: int, headers: Headers = ()
    ) -> int:
        """Send a record; its offset once the log has it.

        Raises:
            RecordRefused: the log will never take it.
        """
        while True:
            try:
                offset = await (
                    await self.producer.send(topic, value, key=key, partition=partition, headers=headers)
                )
            except LogUnavailable as error:
                if self._trouble is not None:
                    self._trouble(str(error))
                elif not self._out:
                    self._log.error("log_unavailable", topic=topic, partition=partition, error=str(error))
                self._out = True
                await asyncio.sleep(RETRY_S)
            else:
                if self._out and self._trouble is None:
                    self._log.info("log_available_again", topic=topic, partition=partition)
                self._out = False
                return offset
