"""How many calls at once an endpoint takes well: found out by asking for more until it suffers.

Additive increase, multiplicative decrease, with a slow start, as TCP does it (RFC 5681). Libraries
for Python that do this count threads or requests of a server, none what leaves a client.
"""

import math

START = 8
"""Calls at once in the beginning."""

MOST = 1_000
"""Calls at once where no limit is known: as many as a client has connections."""

LEAST_CUT, MOST_CUT = 0.1, 0.5
"""Trouble takes away the share of calls that tell of it, but this at least and this at most: one refusal
among a hundred replies is no reason to halve, and a window in which all are refused is."""

SLOWER_CUT = 0.25
"""What a grown latency takes away."""

WINDOW_S = 5.0
"""Errors and latencies are looked at in windows of so many seconds; all cuts of a window together are as
deep as its worst moment says."""

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
        self._window_at = -math.inf
        self._taken = 0.0  # the share that this window has taken away
        self._calls = self._errors = self._congested = 0
        self._growth = 0.0
        self._errors_before = 0.0

    @property
    def limit(self) -> int:
        """Calls at once now."""
        return max(1, math.floor(min(self._limit, self._most) + 1e-9))  # the arithmetic is not exact

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
            self._cut(SLOWER_CUT)
        elif 2 * (self.in_use + 1) > self._limit:  # what is not asked for is not known to be taken well
            self._limit += 1 if self._limit < self._steady else 1 / self._limit
            self._limit = min(self._limit, self._most)

    def failed(self, now: float, *, congested: bool) -> None:
        """A call failed; *congested* where that itself says that it is too much."""
        self._note(now, growth=1.0, error=True)
        self._congested += congested
        errors = self._errors / self._calls
        if congested:
            self._cut(self._congested / max(self._calls, ENOUGH))
        elif self._calls >= ENOUGH and errors >= ERRORS and errors > self._errors_before:
            self._cut(errors)

    def _cut(self, share: float) -> None:
        """Take this share away, less what this window has taken already; from then on it grows slowly."""
        share = min(MOST_CUT, max(LEAST_CUT, share))
        if share > self._taken:
            self._limit = max(1.0, min(self._limit, self._most) * (1 - share) / (1 - self._taken))
            self._steady, self._taken = self._limit, share

    def _note(self, now: float, *, growth: float, error: bool = False) -> None:
        if now - self._window_at >= WINDOW_S:
            self._errors_before = self._errors / self._calls if self._calls else 0.0
            self._window_at = now
            self._taken = 0.0
            self._calls = self._errors = self._congested = 0
            self._growth = 0.0
        self._calls += 1
        self._errors += error
        self._growth += growth
