"""The circuit breaker of one model: one that only fails is left alone for a while.

After Michael Nygard, "Release It!"; why not a library: see docs/adr/0020-traffic-of-our-own.md.
"""

import math
from collections import deque
from typing import Literal, TypeAlias

IN_A_ROW = 5
"""Failures in a row that open it."""

OPEN_S = 30.0
"""Seconds it stays open; then one call tries."""

EARLY_S = 2.0
"""Seconds after the last failure from which one call may try that could not wait for the other moment."""

WINDOW_S = 30.0
SHARE = 0.5
ENOUGH = 20
"""It opens as well when this share of at least so many calls failed within so many seconds."""

KEPT = 200
"""Calls that are looked at, at most."""

State: TypeAlias = Literal["closed", "open", "half_open"]


class Breaker:
    """Whether a model may be asked. Times are seconds on any clock that does not go back.

    Attributes:
        state: ``closed``: it may. ``open``: it may not. ``half_open``: one call is trying.
    """

    def __init__(self) -> None:
        self.state: State = "closed"
        self._row = 0
        self._until = 0.0
        self._early = 0.0
        self._recent: deque[tuple[float, bool]] = deque(maxlen=KEPT)

    def wait(self, now: float, ends: float = math.inf) -> float:
        """Seconds until a call may be made; 0: now; infinite while one call is trying.

        Args:
            now: When it is asked for.
            ends: When the call is too late for whoever needs it.
        """
        match self.state:
            case "closed":
                return 0.0
            case "open":
                return max(0.0, (self._until if self._until < ends else self._early) - now)
            case "half_open":
                return math.inf

    def begin(self) -> bool:
        """A call is made, :meth:`wait` having been 0; True where it is the one that tries."""
        if self.state == "closed":
            return False
        self.state = "half_open"
        return True

    def answered(self, now: float, *, probe: bool) -> None:
        """A call shows that the model answers, be it with a refusal."""
        if probe:
            self.state = "closed"
            self._recent.clear()
        if self.state == "closed":  # calls that began before it opened change nothing
            self._row = 0
            self._recent.append((now, False))

    def failed(self, now: float, *, probe: bool) -> None:
        """A call speaks against the model."""
        if probe:
            self._open(now)
        elif self.state == "closed":
            self._row += 1
            self._recent.append((now, True))
            if self._row >= IN_A_ROW or self._mostly_fails(now):
                self._open(now)

    def dropped(self, now: float, *, probe: bool) -> None:
        """A call ended without showing anything; the next one tries instead."""
        if probe:
            self.state = "open"
            self._until = self._early = now

    def _open(self, now: float) -> None:
        self.state = "open"
        self._until = now + OPEN_S
        self._early = now + EARLY_S
        self._row = 0
        self._recent.clear()

    def _mostly_fails(self, now: float) -> bool:
        while self._recent and self._recent[0][0] <= now - WINDOW_S:
            self._recent.popleft()
        failures = sum(failed for _, failed in self._recent)
        return len(self._recent) >= ENOUGH and failures >= SHARE * len(self._recent)
