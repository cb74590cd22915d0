"""Turns: those who wait are served in proportion to their weights, each in its own order, and nobody starves.

Weighted fair queueing with eligibility (WF2Q+: Bennett and Zhang, "Hierarchical packet fair queueing
algorithms", 1996; its twin with deadlines is EEVDF: Stoica and Abdel-Wahab, 1995), where each turn costs
the same. Virtual time advances by 1 / W a turn, W being the weights of all who wait. Whoever waits is due
a turn from its virtual start on, and by its start + 1 / weight; the turn goes to the earliest deadline of
those whose start has come, and moves its start to the deadline. So of any backlog each has had its
weight's share of the turns, one more or one less; and whoever was away begins at the present virtual time,
or where its last turn ended: it has saved nothing up.
"""

from collections import deque
from collections.abc import Callable, Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Generic, TypeVar

Who = TypeVar("Who", bound=Hashable)
What = TypeVar("What")

AGEING: Final = 16
"""Every so many turns of somebody go to what waits longest there, whatever its priority."""

HIGHEST: Final = 9
"""What has a higher priority than this goes before what has grown old, too."""

_UNIT: Final = 1 << 40
"""Virtual time of a turn of weight 1; integers, so that long backlogs add up exactly enough."""

_KEPT: Final = 64
"""Entries that are over are kept up to as many as there are others, and this many more."""


class _Entry(Generic[What]):
    """Something that waits.

    Attributes:
        over: It has had its turn, or wants none any more.
    """

    __slots__ = ("over", "priority", "what")

    def __init__(self, what: What, priority: int) -> None:
        self.what, self.priority, self.over = what, priority, False


class _Line(Generic[What]):
    """What waits for turns of one: the highest priority first, the oldest among equals.

    Attributes:
        start: Virtual time from which its next turn is due.
        waiting: How many wait.
        parked: Nothing of it may have a turn now; it is not among those who take turns.
    """

    __slots__ = ("_ages", "_heap", "_turns", "parked", "start", "waiting", "weight")

    def __init__(self, weight: int, start: int) -> None:
        self.weight, self.start = weight, start
        self.waiting = self._turns = 0
        self.parked = True
        self._heap: list[tuple[int, int, int, _Entry[What]]] = []
        self._ages: deque[_Entry[What]] = deque()

    @property
    def cost(self) -> int:
        """Virtual time of a turn."""
        return _UNIT // self.weight

    def add(self, what: What, priority: int, since: int, arrival: int) -> None:
        entry = _Entry(what, priority)
        heappush(self._heap, (-priority, since, arrival, entry))
        self._ages.append(entry)
        self.waiting += 1
        if len(self._heap) > 2 * self.waiting + _KEPT:
            self._heap = [each for each in self._heap if not each[3].over]
            heapify(self._heap)
        if len(self._ages) > 2 * self.waiting + _KEPT:
            self._ages = deque(each for each in self._ages if not each.over)

    def first(self, wanted: Callable[[What], bool], least: int | None) -> What | None:
        """Take out what is next; None where nothing may be."""
        while self.waiting:
            entry = self._next()
            if least is not None and entry.priority < least:
                return None
            entry.over = True
            self.waiting -= 1
            if wanted(entry.what):
                self._turns += 1
                return entry.what
        return None

    def _next(self) -> _Entry[What]:
        while self._heap[0][3].over:
            heappop(self._heap)
        top = self._heap[0][3]
        if top.priority > HIGHEST or (self._turns + 1) % AGEING:
            return top
        while self._ages[0].over:
            self._ages.popleft()
        return self._ages[0]


class Turns(Generic[Who, What]):
    """What waits, by whom it is for: :meth:`take` gives each its share of the turns.

    Within one, the highest priority comes first, and the oldest among equals; every :data:`AGEING` turns
    what has waited longest goes before all of an ordinary priority. Adding and taking cost the logarithm
    of how many wait, and of for how many.
    """

    def __init__(self) -> None:
        self._lines: dict[Who, _Line[What]] = {}
        self._parked: dict[Who, None] = {}
        self._due: list[tuple[int, int, Who]] = []  # by deadline, those whose start has come
        self._early: list[tuple[int, int, Who]] = []  # by start
        self._ahead: dict[Who, int] = {}  # of those who are away: where their last turn ended
        self._arrivals, self._order = count(), count()
        self._now = self._weights = self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, who: Who, what: What, *, priority: int = 0, since: int = 0, weight: int = 1) -> None:
        """Let *what* wait for a turn of *who*.

        Args:
            since: Its age, as any number that grows with time; first come, first served among equals.
            weight: The share of turns that *who* has from now on, in proportion to the others'; 1 or more.
        """
        line = self._lines.get(who)
        if line is None:
            line = self._lines[who] = _Line(weight, self._ahead.pop(who, 0))
            self._parked[who] = None
        elif line.weight != weight:
            if not line.parked:
                self._weights += weight - line.weight
            line.weight = weight
        line.add(what, priority, since, next(self._arrivals))
        self._length += 1
        self.wake(who)

    def others(self, who: Who) -> bool:
        """Whether anything waits for someone else than *who*."""
        return len(self._lines) > (who in self._lines)

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
                nothing else takes no turns until something is added, or :meth:`wake` is called.
        """
        while (who := self._next()) is not None:
            line = self._lines[who]
            before = line.waiting
            found = line.first(wanted, least(who))
            self._length -= before - line.waiting
            if found is not None:
                self._now += _UNIT // self._weights
                line.start += line.cost
            if found is None or not line.waiting:
                self._leave(who, line)
            else:
                self._enter(who, line)
            if found is not None:
                return found
        return None

    def wake(self, who: Who) -> None:
        """Something of *who* may have a turn again."""
        if who in self._parked:
            line = self._lines[who]
            del self._parked[who]
            line.parked = False
            line.start = max(line.start, self._now)
            self._weights += line.weight
            self._enter(who, line)

    def wake_all(self) -> None:
        """Something of anybody may."""
        for who in tuple(self._parked):
            self.wake(who)

    def _next(self) -> Who | None:
        """Whose turn is due first; it is taken out of the heaps."""
        if not self._due and self._early:
            self._now = max(self._now, self._early[0][0])
        while self._early and self._early[0][0] <= self._now:
            start, order, who = heappop(self._early)
            heappush(self._due, (start + self._lines[who].cost, order, who))
        return heappop(self._due)[2] if self._due else None

    def _enter(self, who: Who, line: _Line[What]) -> None:
        if line.start <= self._now:
            heappush(self._due, (line.start + line.cost, next(self._order), who))
        else:
            heappush(self._early, (line.start, next(self._order), who))

    def _leave(self, who: Who, line: _Line[What]) -> None:
        """It takes no turns any more, since nothing waits, or nothing that may have one."""
        self._weights -= line.weight
        if line.waiting:
            line.parked = True
            self._parked[who] = None
            return
        del self._lines[who]
        if line.start > self._now:
            self._ahead[who] = line.start
        if len(self._ahead) > 2 * len(self._lines) + _KEPT:
            self._ahead = {each: end for each, end in self._ahead.items() if end > self._now}
