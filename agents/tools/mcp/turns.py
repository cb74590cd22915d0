"""Whose turn it is at a tool server: its limits of calls at once and of calls a minute."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agents.models.rates import Rates


class NoTurn(Exception):
    """No turn within the call's time; its words say why."""


class Turns:
    """Turns at one server, in the order asked for.

    Args:
        concurrency: Calls at once.
        per_minute: Calls a minute, spaced evenly. None: any number.
    """

    def __init__(self, *, concurrency: int, per_minute: int | None = None) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._gate = asyncio.Lock()  # waits in line, so that none overtakes another
        self._rates = Rates(per_minute, None)
        self._concurrency, self._per_minute = concurrency, per_minute

    @asynccontextmanager
    async def turn(self, within_s: float) -> AsyncIterator[None]:
        """A turn, for as long as the block lasts; *within_s* are the seconds to wait for it at most.

        Raises:
            NoTurn: it does not come in time. The call was not made.
        """
        why = f"{self._concurrency} calls are under way, as many as it may have at once"
        got = False
        try:
            async with asyncio.timeout(within_s):
                got = await self._slots.acquire()
                if self._per_minute is not None:
                    why = f"its limit of {self._per_minute} calls a minute is used up"
                    await self._minute()
        except TimeoutError:
            if got:
                self._slots.release()
            raise NoTurn(f"{why}, and no turn came within {within_s:.1f} s") from None
        except BaseException:
            if got:
                self._slots.release()
            raise
        try:
            yield
        finally:
            self._slots.release()

    async def _minute(self) -> None:
        now = asyncio.get_running_loop().time
        async with self._gate:
            while wait_s := self._rates.wait(now(), 0.0):
                await asyncio.sleep(wait_s)
            self._rates.take(now(), 0.0)
