"""How much happened in the last second or minute, in bounded memory."""

import math


class Window:
    """A sum over a sliding span of time, kept in slots.

    An amount leaves the sum a span after its slot's end, so up to one slot later than it should:
    a limit built on it never lets too much through.
    """

    def __init__(self, span_s: float, slots: int = 600) -> None:
        """A window of *span_s* seconds, in so many slots."""
        self._slot_s = span_s / slots
        # One more than the span holds: the slot now being filled.
        self._amounts = [0.0] * (slots + 1)
        self._slot = 0
        self._total = 0.0
        self._most = 0.0

    def _advance(self, now: float) -> None:
        slot = int(now / self._slot_s)
        steps = slot - self._slot
        if steps <= 0:
            return
        size = len(self._amounts)
        if steps >= size:
            self._amounts = [0.0] * size
            self._total = 0.0
        else:
            for passed in range(self._slot + 1, slot + 1):
                self._total -= self._amounts[passed % size]
                self._amounts[passed % size] = 0.0
        self._slot = slot

    def add(self, now: float, amount: float = 1) -> None:
        """Count *amount* at *now*, in seconds on any clock that does not go back."""
        self._advance(now)
        self._amounts[self._slot % len(self._amounts)] += amount
        self._total += amount
        self._most = max(self._most, self._total)

    def total(self, now: float) -> float:
        """The sum over the span that ends *now*."""
        self._advance(now)
        return self._total

    @property
    def most(self) -> int:
        """The largest sum that any span had."""
        return math.ceil(self._most)

    def wait(self, now: float, amount: float, limit: float) -> float:
        """Seconds until *amount* more fits under *limit*, nothing else coming; 0 means now.

        More than the limit never fits; the answer then is when the window will be empty.
        """
        self._advance(now)
        excess = self._total + amount - limit
        if excess <= 0:
            return 0.0
        size = len(self._amounts)
        for age in range(size - 1, -1, -1):
            excess -= self._amounts[(self._slot - age) % size]
            if excess <= 0 or age == 0:
                return (self._slot - age + size) * self._slot_s - now
        raise AssertionError("unreachable: the newest slot ends the loop")
