"""Caps: how many sub-agents each lane may run at once."""

from collections.abc import Callable

from streams.settings import Settings
from streams.slots import Slots
from streams.standing import Standing
from streams.tenant_places import TenantPlaces, share_of


def cap_of(lane: int, *, concurrency: int, lanes: int) -> int:
    """A lane's share of the system's cap."""
    return share_of(lane, whole=concurrency, lanes=lanes)


class Caps:
    """The slots of one process.

    Each lane has its own, so that the system's cap holds also while lanes move: what the last
    owner of a lane still has under way counts at the new one. Where the cap is smaller than the
    number of lanes, the lanes of a process share one pool, of at least one slot.

    Args:
        elsewhere: Calls of a lane that are under way at its last owner.
        of_tenant: Likewise, of one tenant.
    """

    def __init__(
        self,
        settings: Settings,
        standing: Standing,
        elsewhere: Callable[[int], int],
        of_tenant: Callable[[int, str], int] = lambda _, __: 0,
    ) -> None:
        self._concurrency, self._lanes = settings.concurrency, settings.lanes
        self._standing, self._elsewhere = standing, elsewhere
        tenants = settings.configuration.tenant
        self._places = TenantPlaces(
            lambda tenant: tenants(tenant).in_flight,
            lanes=settings.lanes,
            pooled=settings.concurrency < settings.lanes,
            standing=standing,
            elsewhere=of_tenant,
            freed=self._freed,
        )
        self._by_lane: dict[int, Slots] = {}  # those that gave a place that lanes share go to the end
        self._pool = Slots(lambda: self.capacity, self._places.of(0))

    def slots(self, lane: int) -> Slots:
        """Where attempts of a lane wait for their turn."""
        if self._concurrency < self._lanes:
            return self._pool
        slots = self._by_lane.get(lane)
        if slots is None:
            slots = self._by_lane[lane] = Slots(lambda: self._capacity(lane), self._places.of(lane))
        return slots

    def _freed(self, tenant: str) -> None:
        """A place that the lanes share is free: it goes to the lane that has waited longest for one."""
        for lane, slots in tuple(self._by_lane.items()):
            if self._places.full(lane, tenant):
                return
            before = slots.taken
            slots.rouse(tenant)
            if slots.taken > before:
                self._by_lane[lane] = self._by_lane.pop(lane)

    def _capacity(self, lane: int) -> int:
        # None while the group does not hear us: those calls might be another's.
        if lane not in self._standing.owned or not self._standing.sure:
            return 0
        return cap_of(lane, concurrency=self._concurrency, lanes=self._lanes) - self._elsewhere(lane)

    @property
    def capacity(self) -> int:
        """How many may run at once on all lanes of this process now."""
        owned = self._standing.owned
        if self._concurrency >= self._lanes:
            return sum(self._capacity(lane) for lane in owned)
        if not owned or not self._standing.sure:
            return 0
        share = max(1, round(self._concurrency * len(owned) / self._lanes))
        return share - sum(self._elsewhere(lane) for lane in owned)

    def _all(self) -> list[Slots]:
        return [self._pool, *self._by_lane.values()]

    def pump(self) -> None:
        """Give out what is free; to be called whenever the capacity may have grown."""
        for slots in self._all():
            slots.rouse_all()

    @property
    def taken(self) -> int:
        """How many run."""
        return sum(slots.taken for slots in self._all())

    @property
    def waiting(self) -> int:
        """How many wait for a slot."""
        return sum(slots.waiting for slots in self._all())

    @property
    def stuck(self) -> bool:
        """Someone waits for a slot although one is free."""
        return any(slots.stuck for slots in self._all())
