"""How a tool server does: latency and failures of its last calls, and whether it is asked at all."""

import math
from collections import deque
from statistics import median
from typing import Final

from agents.models.breaker import Breaker

WINDOW: Final = 20
"""Calls that are looked back on."""


class NotAsked(Exception):
    """The breaker is open; its words are for the model."""


class Health:
    """Of one server. Times are seconds on any clock that does not go back.

    A failure is a call without an answer: no result in time, a lost connection, an answer that is none
    of the protocol. A tool that says it failed has answered.
    """

    def __init__(self) -> None:
        self._breaker = Breaker()
        self._last: deque[bool] = deque(maxlen=WINDOW)
        self._latencies: deque[float] = deque(maxlen=WINDOW)

    @property
    def failure_rate(self) -> float:
        """Share of the last calls that failed, 0 to 1."""
        return self._last.count(False) / len(self._last) if self._last else 0.0

    @property
    def latency_ms(self) -> float | None:
        """Median of the last calls that were answered, in milliseconds; None where there is none."""
        return median(self._latencies) if self._latencies else None

    def begin(self, now: float) -> bool:
        """Let a call through; True where it is the one that tries whether the server is back.

        One that is let through must be settled: by answered, failed or dropped.

        Raises:
            NotAsked: it is not let through.
        """
        wait_s = self._breaker.wait(now)
        if wait_s:
            said = f"{self._last.count(False)} of its last {len(self._last)} calls failed"
            when = "one call is trying whether it is back"
            if wait_s < math.inf:
                when = f"it is asked again in {math.ceil(wait_s)} s"
            raise NotAsked(f"{said}; {when}")
        return self._breaker.begin()

    def answered(self, now: float, latency_ms: float, *, probe: bool) -> None:
        """The server answered a call."""
        if probe:
            self._last.clear()
        self._last.append(True)
        self._latencies.append(latency_ms)
        self._breaker.answered(now, probe=probe)

    def failed(self, now: float, *, probe: bool) -> bool:
        """A call failed; True where that opens the breaker."""
        self._last.append(False)
        before = self._breaker.state
        self._breaker.failed(now, probe=probe)
        return self._breaker.state == "open" and before != "open"

    def dropped(self, now: float, *, probe: bool) -> None:
        """A call ended and told nothing: its caller went away, or it was never made."""
        self._breaker.dropped(now, probe=probe)

    def restarted(self, now: float) -> None:
        """It was started anew: where the breaker is open, one call may try at once."""
        if self._breaker.state != "closed":
            self._breaker.dropped(now, probe=True)
