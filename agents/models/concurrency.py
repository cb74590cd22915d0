"""How many calls at once an endpoint takes well: found out by asking for more until it suffers.

Additive increase, multiplicative decrease, with a slow start, as TCP does it (RFC 5681). Libraries
for Python that do this count threads or requests of a server, none what leaves a client.
"""

import math

START = 8
"""Calls at once in the beginning."""

MOST = 1_000
"""Calls at once where no limit is known: as many as a client has connections."""

BACK_OFF = 0.5

WINDOW_S = 5.0
"""Errors and latencies are looked at in windows of so many seconds, and one window cuts at most once."""

ENOUGH = 10
"""Calls of a window before it says anything."""

ERRORS = 0.2
"""A share of errors from here on that is larger than in the window before is a sign of too much."""

GROWTH = 2.0
"""As is a latency that is so many times the usual one, on the mean of a window."""

QUICK_S = 2.0
"""Calls that take less time are not held up by a queue that matters."""


class Adaptive:
    """The limit of calls at once of one endpoint. Times are seconds on any clock that does not go back.

    Args:
        start: Calls at once in the beginning.

    Attributes:
        in_use: Calls under way.
    """

    def __init__(self, start: int = START) -> None:
        self.in_use = 0
        self._most: float = MOST
        self._limit: float = start
        self._steady = math.inf  # from here on it grows slowly
        self._cut_at = -math.inf
        self._window_at = -math.inf
        self._calls = self._errors = 0
        self._growth = 0.0
        self._errors_before = 0.0

    @property
    def limit(self) -> int:
        """Calls at once now."""
        return max(1, math.floor(min(self._limit, self._most)))

    @property
    def room(self) -> int:
        """Calls that may begin now."""
        return max(0, self.limit - self.in_use)

    def cap(self, most: float) -> None:
        """Never more than this: the account's own limit, this worker's share of it."""
        self._most = min(most, MOST)

    def answered(self, now: float, *, latency_s: float, usual_s: float | None) -> None:
        """A call came back well.

        Args:
            now: When.
            latency_s: What it took.
            usual_s: What such calls take otherwise, where that is known.
        """
        self._note(now, growth=latency_s / usual_s if usual_s and latency_s > QUICK_S else 1.0)
        if self._growth > GROWTH * self._calls and self._calls >= ENOUGH:
            self._cut(now)
        elif 2 * (self.in_use + 1) > self._limit:  # what is not asked for is not known to be taken well
            self._limit += 1 if self._limit < self._steady else 1 / self._limit
            self._limit = min(self._limit, self._most)

    def failed(self, now: float, *, congested: bool) -> None:
        """A call failed; *congested* where that itself says that it is too much."""
        self._note(now, growth=1.0, error=True)
        share = self._errors / self._calls
        rising = self._calls >= ENOUGH and share >= ERRORS and share > self._errors_before
        if congested or rising:
            self._cut(now)

    def _cut(self, now: float) -> None:
        """Half, once a window: the calls under way left before, and will tell the same."""
        if now - self._cut_at >= WINDOW_S:
            self._cut_at = now
            self._limit = self._steady = max(1.0, min(self._limit, self._most) * BACK_OFF)

    def _note(self, now: float, *, growth: float, error: bool = False) -> None:
        if now - self._window_at >= WINDOW_S:
            self._errors_before = self._errors / self._calls if self._calls else 0.0
            self._window_at = now
            self._calls = self._errors = 0
            self._growth = 0.0
        self._calls += 1
        self._errors += error
        self._growth += growth
