"""How one process reaches the broker."""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, TypeVar

from streams.memory_log.process import Process
from streams.memory_log.wire import Fate

if TYPE_CHECKING:
    from streams.memory_log.cluster import MemoryCluster

T = TypeVar("T")


class Reach:
    """The broker as one process sees it: behind a wire, sometimes away.

    A process that was killed reaches nothing: its calls end as cancelled.
    """

    def __init__(self, cluster: "MemoryCluster", process: Process) -> None:
        self.cluster = cluster
        self.process = process
        self._wire = cluster.wire()

    def call(
        self, line: Hashable, what: str, apply: Callable[[], T], fate: Fate = Fate.ARRIVES
    ) -> "asyncio.Future[T]":
        """Send a request; the future is what *apply* gives at the broker."""
        return self._wire.call(line, what, apply, fate)

    async def there(self) -> None:
        """Wait until the broker can be read from."""
        delay = self.cluster.faults.delay_s
        if delay:
            await asyncio.sleep(self.cluster.chance.uniform(0, delay))
        while True:
            if self.process.dead:
                raise asyncio.CancelledError
            if self.process.stopped:
                await self.process.next_step()
            elif (back := self._wire.away_until()) is not None:
                await asyncio.sleep(back - asyncio.get_running_loop().time())
            else:
                return

    def away_until(self) -> float | None:
        """When the broker is back (loop time), or None while it is there."""
        return self._wire.away_until()

    @property
    def stalls(self) -> Sequence[tuple[Hashable, float, float]]:
        """What waited for an answer that never came, from when to when at most (loop time)."""
        return self._wire.stalls

    def hold(self) -> None:
        """Nothing goes out until :meth:`release`."""
        self._wire.hold()

    def release(self) -> None:
        """Go on with what was held."""
        self._wire.release()

    def cut(self) -> None:
        """Nothing goes out any more; what was under way may have landed."""
        self._wire.cut()
