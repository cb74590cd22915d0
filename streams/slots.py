"""Slots: how many sub-agents run at once in this process, and who is next."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from streams.core.turns import HIGHEST, Turns
from streams.core.values import JobId
from streams.tenant_places import NoLimits, Places

COME_BACK: Final = HIGHEST + 1
"""Those who had a slot go before any priority (0 to 9) of those who had none: their time runs."""

NOBODY: Final = COME_BACK + 1
"""No priority is as high: nobody of a tenant may have a slot that has as many as it may."""

NO_LIMITS: Final = NoLimits()


AWAY: Final = 2
"""Attempts of one tenant that have begun and wait without a slot, at most, for each slot. Their time runs: if
thousands began, most would be over before an endpoint that takes few calls a minute had a turn for them."""


@dataclass(slots=True, eq=False, kw_only=True)
class Line:
    """Those of one job who wait, or those of one tenant who come back, the first to come first."""

    tenant: str
    name: JobId
    priority: int
    weight: int = 1
    waiting: dict["asyncio.Future[None]", None] = field(default_factory=dict)


class Slots:
    """This process's pooled share of the cluster-wide cap.

    Tenants take turns by their weights. Within one, those who come back go first, then jobs of higher
    priority; jobs of the same priority take turns, and within a job it goes by age. Every sixteenth turn of
    a tenant goes to the job that has waited longest for one. So whatever flood there is, everybody's turn
    comes (:mod:`streams.core.turns`). Of a tenant that has as many slots as it may, everybody waits.

    Whoever steps out for a wait makes room for another; of a tenant nobody new begins while :data:`AWAY`
    times as many are away as there are slots.

    Args:
        capacity: How many may run at once now; it follows the lanes this process owns.
        places: How many of each tenant may.

    Attributes:
        taken: How many run.
        waiting: How many wait for a slot.
        away: By tenant, how many have stepped out and not come back.
    """

    def __init__(self, capacity: Callable[[], int], places: Places = NO_LIMITS) -> None:
        self._capacity, self._places = capacity, places
        self._seen = 0  # the capacity for which all were asked last
        self._lines: dict[JobId, Line] = {}
        self._turns: Turns[str, Line] = Turns()
        self.taken = 0
        self.waiting = 0
        self.away: Counter[str] = Counter()

    async def acquire(self, job: JobId, *, priority: int = 0, weight: int = 1, back: bool = False) -> None:
        """Wait for a slot in turn with the others.

        Args:
            job: ``tenant/id``.
            priority: Of the job, 0 to 9, 9 first.
            weight: Of its tenant.
            back: It had stepped out for a wait: ahead of all of its tenant that have not begun.
        """
        tenant = _tenant(job)
        free = self.taken < self._capacity() and not self.waiting and not self._places.full(tenant)
        if free and (back or not self._full(tenant)):
            self._give(tenant, back=back)
            return
        line = self._line(job, COME_BACK if back else priority, weight)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.waiting[turn] = None
        self.waiting += 1
        self.pump()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(job)  # it was given in the moment of the cancellation
            else:
                if turn in line.waiting:
                    self._leave(line, turn)
                if back:
                    self.stay_away(job)
            raise

    def release(self, job: JobId) -> None:
        """Give a slot back."""
        tenant = _tenant(job)
        self.taken -= 1
        self._places.ended(tenant)
        self.rouse(tenant)

    def step_out(self, job: JobId) -> None:
        """Give a slot back for a wait, to :meth:`acquire` one again afterwards, or to :meth:`stay_away`."""
        self.away[_tenant(job)] += 1
        self.release(job)

    def stay_away(self, job: JobId) -> None:
        """One that stepped out does not come back."""
        self._came_back(_tenant(job))
        self.pump()

    def rouse(self, tenant: str) -> None:
        """This tenant may have a place again: look whether one of it may run."""
        self._turns.wake(tenant)
        self.pump()

    def rouse_all(self) -> None:
        """Likewise of every tenant."""
        self._turns.wake_all()
        self.pump()

    def pump(self) -> None:
        """Give out what is free; to be called whenever the capacity may have grown."""
        if (capacity := self._capacity()) != self._seen:
            self._seen = capacity
            self._turns.wake_all()
        while self.taken < self._capacity():
            line = self._turns.take(self._any, least=self._least)
            if line is None:
                return
            turn = next(iter(line.waiting))
            self._leave(line, turn)
            self._queue(line)
            self._give(line.tenant, back=line.priority == COME_BACK)
            turn.set_result(None)

    @property
    def stuck(self) -> bool:
        """Someone who may have a slot waits, although one is free."""
        return self.taken < self._capacity() and any(
            line.waiting
            and (line.priority == COME_BACK or not self._full(line.tenant))
            and not self._places.full(line.tenant)
            for line in self._lines.values()
        )

    def _full(self, tenant: str) -> bool:
        """Nobody new of this tenant may begin now."""
        return self.away[tenant] >= AWAY * self._capacity()

    def _least(self, tenant: str) -> int | None:
        if self._places.full(tenant):
            return NOBODY
        return COME_BACK if self._full(tenant) else None

    def _give(self, tenant: str, *, back: bool) -> None:
        self.taken += 1
        self._places.began(tenant)
        if back:
            self._came_back(tenant)

    def _came_back(self, tenant: str) -> None:
        self.away[tenant] -= 1
        if not self.away[tenant]:
            del self.away[tenant]
        self._turns.wake(tenant)

    def _line(self, job: JobId, priority: int, weight: int) -> Line:
        tenant = _tenant(job)
        name = tenant if priority == COME_BACK else job
        line = self._lines.get(name)
        if line is None:
            line = self._lines[name] = Line(tenant=tenant, name=name, priority=priority, weight=weight)
            self._queue(line)
        line.weight = weight
        return line

    def _queue(self, line: Line) -> None:
        """Behind all of the same tenant and priority; one without anybody costs nobody a turn."""
        self._turns.add(line.tenant, line, priority=line.priority, weight=line.weight)

    def _any(self, line: Line) -> bool:
        """Whether anybody in line still waits; a line without is forgotten."""
        while line.waiting and (first := next(iter(line.waiting))).done():
            self._leave(line, first)  # cancelled, and not aware of it yet
        if not line.waiting:
            del self._lines[line.name]
        return bool(line.waiting)

    def _leave(self, line: Line, turn: "asyncio.Future[None]") -> None:
        del line.waiting[turn]
        self.waiting -= 1


def _tenant(job: JobId) -> str:
    return job.partition("/")[0]
