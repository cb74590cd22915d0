"""Those who wait for a turn at the same models: first come, first served."""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TypeAlias

COMING_S = 0.05
"""Seconds that whoever was called has to come before the next is called as well: it may wait for a slot."""

_KEPT = 64
"""Ends of those who left that are kept at most, beside as many as wait."""

Look: TypeAlias = Callable[[float, float], tuple[int, float]]
"""For a number of tokens, and the time when the first of all who wait has to leave: how many may come
now, and the seconds until that may change by itself."""


class Line:
    """A queue in front of models. It lives on the event loop that its users run on.

    Being called takes nothing: whoever comes looks again, and waits again where others were faster.

    Args:
        look: What there is for the one who is next.
    """

    def __init__(self, look: Look) -> None:
        self._look = look
        # Whoever waits again has the ticket and the end of before: the number of the wait tells them apart.
        self._waits = count()
        self._waiting: list[tuple[int, int, float, asyncio.Future[None]]] = []
        self._ends: list[tuple[float, int, asyncio.Future[None]]] = []
        self._called: deque[float] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def empty(self) -> bool:
        """Nobody waits."""
        self._drop()
        return not self._waiting

    @property
    def ends(self) -> float:
        """When the first of those who wait has to leave, seconds on the loop's clock; else infinite."""
        while self._ends and self._ends[0][2].done():
            heappop(self._ends)
        return self._ends[0][0] if self._ends else math.inf

    async def wait(self, ticket: int, tokens: float, ends: float) -> None:
        """Wait to be called; lower tickets go first.

        Args:
            ticket: Given out once to each who waits, in order; it stays theirs when they wait again.
            tokens: What they need.
            ends: When they have to leave, seconds on the loop's clock.
        """
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        number = next(self._waits)
        heappush(self._waiting, (ticket, number, tokens, turn))
        heappush(self._ends, (ends, number, turn))
        if len(self._ends) > _KEPT + 2 * len(self._waiting):
            self._ends = [entry for entry in self._ends if not entry[2].done()]
            heapify(self._ends)
        self.pump()
        try:
            await turn
        finally:
            if not turn.done():
                turn.cancel()
            self.pump()

    def came(self) -> None:
        """One of those who were called is here, or will not come."""
        if self._called:
            self._called.popleft()

    def end(self) -> None:
        """Nobody waits any more."""
        if self._timer is not None:
            self._timer.cancel()

    def pump(self) -> None:
        """Call whoever may come; to be told whenever something has changed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._called and self._called[0] <= now - COMING_S:
            self._called.popleft()
        while not self.empty:
            _, _, tokens, turn = self._waiting[0]
            room, wait = self._look(tokens, self.ends)
            if room <= len(self._called):
                wait = COMING_S if room else wait
                if math.isfinite(wait):
                    self._timer = loop.call_later(wait, self.pump)
                return
            heappop(self._waiting)
            self._called.append(now)
            turn.set_result(None)

    def _drop(self) -> None:
        """Forget those who left."""
        while self._waiting and self._waiting[0][3].done():
            heappop(self._waiting)
