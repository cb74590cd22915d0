"""How long a call may take before it is taken to hang: by what others of its kind took."""

import asyncio
import math
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

KEPT = 100
"""Calls whose latency is remembered."""

ENOUGH = 20
"""Calls before they say anything: until then a call has the attempt's whole time, if it ends before that."""

HIGH = 0.95
TIMES = 4
"""A call that takes so many times what this share of the last calls stayed below is taken to hang."""

SHORTEST_S = 15.0
"""No call is ended sooner: a queue at the provider is no hanging call."""

EVERY = 10
"""After so many calls it is reckoned anew."""


class Latencies:
    """What calls of one model and kind took lately, in seconds.

    Attributes:
        usual_s: The median, None while too few are known.
        patience_s: When a call is taken to hang; infinite while too few are known.
    """

    def __init__(self) -> None:
        self.usual_s: float | None = None
        self.patience_s = math.inf
        self._kept: deque[float] = deque(maxlen=KEPT)
        self._since = 0
        self._watched: dict[asyncio.Timeout, float] = {}

    @contextmanager
    def watching(self, cut: asyncio.Timeout, began: float) -> Iterator[None]:
        """A call goes on; where it began before anything was known, *cut* ends it once its time is known.

        Args:
            cut: Entered, and without a time of its own.
            began: On the clock of the event loop.
        """
        if self.usual_s is not None:
            yield
            return
        self._watched[cut] = began
        try:
            yield
        finally:
            self._watched.pop(cut, None)

    def note(self, seconds: float) -> None:
        """A call took so long: to its reply, or to the end of all patience.

        The latter count, too, so that an endpoint that has become slow for good is given more time.
        """
        self._kept.append(seconds)
        self._since += 1
        if len(self._kept) >= ENOUGH and (self._since >= EVERY or self.usual_s is None):
            self._since = 0
            ordered = sorted(self._kept)
            self.usual_s = ordered[len(ordered) // 2]
            self.patience_s = max(SHORTEST_S, TIMES * ordered[math.ceil(HIGH * len(ordered)) - 1])
            while self._watched:
                cut, began = self._watched.popitem()
                cut.reschedule(began + self.patience_s)
