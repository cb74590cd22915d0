"""Whether a partition is still this process's: asked before every call that costs something.

A process that was stopped for longer than its session, or that the brokers no longer hear, may
have lost its partitions without knowing. So a call begins only while the group's last word is
younger than the session timeout, and no rebalance is under way.
"""

import asyncio
from collections.abc import Callable, Sequence


class Standing:
    """This process's place in the group of the lanes.

    Args:
        session_timeout_s: Seconds of silence after which the group gives our partitions away.
        monotonic: Seconds on a clock that goes on while the process is stopped, the one of
            :meth:`streams.log.Member.heard`. An event loop's own time may be that of its last turn.
        changed: Called when calls may begin again.

    Attributes:
        owned: Our partitions, as of the last rebalance.
    """

    def __init__(
        self, session_timeout_s: float, monotonic: Callable[[], float], changed: Callable[[], None]
    ) -> None:
        self._session_timeout_s, self._monotonic, self._changed = session_timeout_s, monotonic, changed
        self._heard = float("-inf")
        self._rebalancing, self._generation = True, -1
        self._waiting: dict[asyncio.Future[None], None] = {}  # who waits longest goes first
        self.owned: frozenset[int] = frozenset()

    @property
    def sure(self) -> bool:
        """Calls may begin now."""
        return not self._rebalancing and self._monotonic() - self._heard < self._session_timeout_s

    def heard(self, at: float) -> None:
        """The group took us for a member when we asked at *at*."""
        self._heard = max(self._heard, at)
        self._wake()

    def hold(self) -> None:
        """A rebalance begins."""
        self._rebalancing = True

    def take(self, partitions: Sequence[int], generation: int) -> tuple[frozenset[int], frozenset[int]]:
        """A rebalance is over: these are ours. Returns those we lost, and those that are new to us.

        What was ours before the group went on without us is both.
        """
        before = self.owned if generation in (self._generation, self._generation + 1) else frozenset()
        lost = self.owned - (before & frozenset(partitions))
        self.owned, self._generation = frozenset(partitions), generation
        self._rebalancing = False
        self._wake()
        return lost, self.owned - before

    async def wait(self) -> None:
        """Wait until calls may begin."""
        while not self.sure:
            change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting[change] = None
            try:
                await change
            finally:
                del self._waiting[change]

    def _wake(self) -> None:
        if self.sure:
            for change in self._waiting:
                if not change.done():
                    change.set_result(None)
            self._changed()
