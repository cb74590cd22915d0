"""Slots: how many sub-agents run at once in this process, and who is next."""

import asyncio
from collections import deque
from collections.abc import Callable

from streams.core.turns import Turns


class Slots:
    """This process's pooled share of the cluster-wide cap.

    Args:
        capacity: How many may run at once now; it follows the lanes this process owns.
    """

    def __init__(self, capacity: Callable[[], int]) -> None:
        self._capacity = capacity
        self._back: deque[asyncio.Future[None]] = deque()
        self._turns: Turns[str, asyncio.Future[None]] = Turns()
        self.taken = 0

    @property
    def waiting(self) -> int:
        """How many wait for a slot."""
        return len(self._turns) + len(self._back)

    async def acquire(self, who: str, *, back: bool = False) -> None:
        """Wait for a slot in turn with the others of *who* (a job).

        Args:
            back: It had one and gave it back for a wait: ahead of all that have not begun.
        """
        if self.taken < self._capacity() and not self.waiting:
            self.taken += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if back:
            self._back.append(turn)
        else:
            self._turns.add(who, turn)
        self.pump()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # it was given in the moment of the cancellation
            raise

    def release(self) -> None:
        """Give a slot back."""
        self.taken -= 1
        self.pump()

    def pump(self) -> None:
        """Give out what is free; to be called whenever the capacity may have grown."""
        while self.waiting and self.taken < self._capacity():
            turn = self._back.popleft() if self._back else self._turns.take()
            if not turn.done():
                self.taken += 1
                turn.set_result(None)
