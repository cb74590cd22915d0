"""Turns: those who wait are served round and round, each in its own order."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

Who = TypeVar("Who", bound=Hashable)
What = TypeVar("What")


class Turns(Generic[Who, What]):
    """What waits, by whom it is for: :meth:`take` goes round among those who wait.

    Within one, the highest priority comes first, and the oldest among equals. Adding and taking cost
    the logarithm of what one has waiting, however many there are.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[Who, list[tuple[int, int, int, What]]] = OrderedDict()
        self._arrivals = count()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, who: Who, what: What, *, priority: int = 0, since: int = 0) -> None:
        """Let *what* wait for a turn of *who*.

        Args:
            since: Its age, as any number that grows with time; first come, first served among equals.
        """
        heappush(self._waiting.setdefault(who, []), (-priority, since, next(self._arrivals), what))
        self._length += 1

    def others(self, who: Who) -> bool:
        """Whether anything waits for someone else than *who*."""
        return len(self._waiting) > (who in self._waiting)

    def take(
        self,
        wanted: Callable[[What], bool] = lambda _: True,
        *,
        least: Callable[[Who], int | None] = lambda _: None,
    ) -> What | None:
        """The next in turn, None where nothing waits that may have it.

        Args:
            wanted: Whether it still wants its turn; where not, it is dropped, and costs nobody a turn.
            least: The priority below which nothing of somebody may have a turn now, or None. Who has
                nothing else keeps the place.
        """
        served: Who | None = None
        found: What | None = None
        empty: list[Who] = []
        for who, waiting in self._waiting.items():
            found = self._first(waiting, wanted, least(who))
            if not waiting:
                empty.append(who)
            if found is not None:
                served = who
                break
        for who in empty:
            del self._waiting[who]
        if served is not None and served in self._waiting:
            self._waiting.move_to_end(served)  # behind all others
        return found

    def _first(
        self, waiting: list[tuple[int, int, int, What]], wanted: Callable[[What], bool], lowest: int | None
    ) -> What | None:
        while waiting and (lowest is None or -waiting[0][0] >= lowest):
            *_, what = heappop(waiting)
            self._length -= 1
            if wanted(what):
                return what
        return None
