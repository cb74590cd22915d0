"""Requests of one connection on their way to the broker and back."""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any, TypeVar

from streams.log import LogUnavailable
from streams.memory_log.faults import Faults

T = TypeVar("T")
RETRY_S = 0.005
LANDS = 0.5
"""Share of what was under way at a kill that lands."""


class Busy(Exception):
    """The broker asks to try again soon: an earlier transaction of the identity is still ending."""


class Fate(Enum):
    """What becomes of a request."""

    ARRIVES = "arrives"
    LOST = "lost"  # never reaches the broker
    UNANSWERED = "unanswered"  # reaches it, but nothing comes back


@dataclass(eq=False, slots=True)
class _Flight:
    sent: float
    due: float
    deadline: float
    fate: Fate
    apply: Callable[[], Any]
    reply: asyncio.Future[Any]
    what: str


class Wire:
    """Carries requests in order per line, by chance late or never.

    A request goes on without the task that made it, as it does in aiokafka. The reply of one that
    was lost, or whose answer was, raises :class:`LogUnavailable` when its deadline has passed; the
    line waits for that, since a producer does not overtake its own retries. What a line is given
    at the same moment shares its fate, as records of one batch do.

    Attributes:
        stalls: The lines that waited so, from when to when at most (loop time).
    """

    def __init__(self, faults: Faults, chance: Random, began: float, timeout_s: float) -> None:
        self._faults = faults
        self._chance = chance
        self._began = began
        self._timeout_s = timeout_s
        self._lines: dict[Hashable, deque[_Flight]] = {}
        self._held = False
        self._cut = False
        self.stalls: list[tuple[Hashable, float, float]] = []
        self._loop = asyncio.get_running_loop()

    def call(
        self, line: Hashable, what: str, apply: Callable[[], T], fate: Fate = Fate.ARRIVES
    ) -> "asyncio.Future[T]":
        """Send a request; the future is what *apply* returns or raises at the broker."""
        reply: asyncio.Future[T] = self._loop.create_future()
        if self._cut:
            reply.cancel()
            return reply
        # A caller that was cancelled never looks at its reply: no warning about that.
        reply.add_done_callback(lambda done: done.cancelled() or done.exception())
        now = self._loop.time()
        queue = self._lines.setdefault(line, deque())
        if queue and queue[-1].sent == now:
            fate = queue[-1].fate  # both are in one batch
        if fate is not Fate.ARRIVES:
            self.stalls.append((line, now, now + self._timeout_s))
        flight = _Flight(now, now + self._delay(), now + self._timeout_s, fate, apply, reply, what)
        queue.append(flight)
        if len(queue) == 1:
            self._later(line, flight.due)
        return reply

    def hold(self) -> None:
        """Nothing goes out until :meth:`release`."""
        self._held = True

    def release(self) -> None:
        """Go on with what was held."""
        self._held = False
        for line in list(self._lines):
            self._pump(line)

    def cut(self) -> None:
        """The sender is gone: by chance, what was under way still lands; no reply comes back."""
        self._cut = True
        for queue in self._lines.values():
            arriving = True
            for flight in queue:
                arriving = arriving and flight.fate is not Fate.LOST and self._chance.random() < LANDS
                if arriving and not self._away(self._loop.time()):
                    try:
                        flight.apply()
                    except Exception:  # noqa: BLE001 - the answer has nobody to go to
                        arriving = False
                flight.reply.cancel()
        self._lines.clear()

    def away_until(self) -> float | None:
        """When the broker is back (loop time), or None while it is there."""
        return self._away(self._loop.time())

    def _delay(self) -> float:
        return self._chance.uniform(0, self._faults.delay_s) if self._faults.delay_s else 0.0

    def _away(self, now: float) -> float | None:
        since = now - self._began
        return next((self._began + end for start, end in self._faults.outages if start <= since < end), None)

    def _later(self, line: Hashable, due: float) -> None:
        if due <= self._loop.time():
            self._loop.call_soon(self._pump, line)
        else:
            self._loop.call_at(due, self._pump, line)

    def _pump(self, line: Hashable) -> None:
        queue = self._lines.get(line)
        if self._held or self._cut or queue is None:
            return
        while queue:
            flight, now = queue[0], self._loop.time()
            if flight.due > now:
                self._later(line, flight.due)
                return
            if self._handle(flight, now):
                queue.popleft()
        del self._lines[line]

    def _handle(self, flight: _Flight, now: float) -> bool:
        """Bring a request that is due forward; True once the line may go on."""
        if now >= flight.deadline:
            self._answer(flight, LogUnavailable(f"{flight.what}: no answer in {self._timeout_s} s"))
            return True
        if (back := self._away(now)) is not None:
            flight.due = min(back, flight.deadline)
            return False
        if flight.fate is Fate.LOST:
            flight.due = flight.deadline
            return False
        try:
            result, error = flight.apply(), None
        except Busy:
            flight.due = now + RETRY_S
            return False
        except Exception as raised:  # noqa: BLE001 - the broker's answer, for whoever asked
            result, error = None, raised
        if flight.fate is Fate.UNANSWERED:
            flight.fate, flight.due = Fate.LOST, flight.deadline
            return False
        delay = self._delay()
        if delay:
            self._loop.call_later(delay, self._answer, flight, error, result)
        else:
            self._answer(flight, error, result)
        return True

    @staticmethod
    def _answer(flight: _Flight, error: Exception | None, result: object = None) -> None:
        if flight.reply.done():
            return
        if error is not None:
            flight.reply.set_exception(error)
        else:
            flight.reply.set_result(result)
