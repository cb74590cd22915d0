"""How many sub-agents of each tenant may run at once: its limit, shared out to the lanes as the cap is.

So it holds over all workers, without a word between them. Each lane has its whole share; where a limit is
smaller than the number of lanes, the lanes of a process have one together, of at least one.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from streams.standing import Standing

TELL_S: Final = 60.0
"""Seconds between two log lines that say of a tenant that it waits at its limit."""

TOLD: Final = 1_000
"""Tenants of whom it is remembered when that was said."""


def share_of(lane: int, *, whole: int, lanes: int) -> int:
    """A lane's share of a limit: whole places, those of all lanes together make the limit."""
    return (lane + 1) * whole // lanes - lane * whole // lanes


def pooled_share(limit: int, *, owned: int, lanes: int) -> int:
    """The places of a process that has so many of the lanes, where a limit is smaller than their number."""
    return max(1, limit * owned // lanes)


class Places(Protocol):
    """What the slots of a lane ask of the limits of tenants."""

    def full(self, tenant: str) -> bool:
        """No further one of this tenant may run now."""

    def began(self, tenant: str) -> None:
        """One of it runs."""

    def ended(self, tenant: str) -> None:
        """One of it has ended, or waits without a slot."""


class NoLimits:
    """Tenants without limits."""

    def full(self, tenant: str) -> bool:
        """Never."""
        del tenant
        return False

    def began(self, tenant: str) -> None:
        """Nobody counts."""

    def ended(self, tenant: str) -> None:
        """Nobody counts."""


class TenantPlaces:
    """The places of all tenants in one process.

    Args:
        limit: How many sub-agents of a tenant may run over all workers; None: any number.
        lanes: Of the whole system.
        pooled: The lanes of the process share their slots, so tenants share their places there, too.
        elsewhere: Attempts of a tenant on a lane that have calls under way at its last owner.
        freed: Told that a place of a tenant is free which several lanes share.
    """

    def __init__(
        self,
        limit: Callable[[str], int | None],
        *,
        lanes: int,
        pooled: bool,
        standing: Standing,
        elsewhere: Callable[[int, str], int],
        freed: Callable[[str], None],
    ) -> None:
        self._limit, self._lanes, self._pooled = limit, lanes, pooled
        self._standing, self._elsewhere, self._freed = standing, elsewhere, freed
        self._by_lane: Counter[tuple[int, str]] = Counter()
        self._shared: Counter[str] = Counter()
        self._told: dict[str, float] = {}
        self._log = structlog.get_logger().bind(part="lanes")

    def of(self, lane: int) -> "LanePlaces":
        """Those of a lane."""
        return LanePlaces(self, lane)

    def full(self, lane: int, tenant: str) -> bool:
        """As :meth:`Places.full`, on a lane."""
        limit = self._limit(tenant)
        if limit is None:
            return False
        if self._is_shared(limit):
            owned = self._standing.owned
            share = pooled_share(limit, owned=len(owned), lanes=self._lanes)
            elsewhere = sum(self._elsewhere(each, tenant) for each in owned)
            taken = self._shared[tenant]
        else:
            share = share_of(lane, whole=limit, lanes=self._lanes)
            elsewhere, taken = self._elsewhere(lane, tenant), self._by_lane[lane, tenant]
        if taken + elsewhere < share:
            return False
        self._tell(tenant, limit)
        return True

    def began(self, lane: int, tenant: str) -> None:
        """As :meth:`Places.began`."""
        if (limit := self._limit(tenant)) is None:
            return
        if self._is_shared(limit):
            self._shared[tenant] += 1
        else:
            self._by_lane[lane, tenant] += 1

    def ended(self, lane: int, tenant: str) -> None:
        """As :meth:`Places.ended`."""
        if (limit := self._limit(tenant)) is None:
            return
        if self._is_shared(limit):
            self._shared[tenant] -= 1
            self._freed(tenant)
        else:
            self._by_lane[lane, tenant] -= 1
            if not self._by_lane[lane, tenant]:
                del self._by_lane[lane, tenant]

    def _is_shared(self, limit: int) -> bool:
        return self._pooled or limit < self._lanes

    def _tell(self, tenant: str, limit: int) -> None:
        """Once in a while: whoever looks into the log sees why nothing of it goes on."""
        now = asyncio.get_running_loop().time()
        if now - self._told.get(tenant, -TELL_S) >= TELL_S:
            if len(self._told) >= TOLD:
                self._told.clear()
            self._told[tenant] = now
            self._log.info("tenant_at_its_limit", tenant=tenant, in_flight=limit)


class LanePlaces:
    """The places of tenants on one lane (:class:`Places`)."""

    def __init__(self, places: TenantPlaces, lane: int) -> None:
        self._places, self._lane = places, lane

    def full(self, tenant: str) -> bool:
        """As :meth:`Places.full`."""
        return self._places.full(self._lane, tenant)

    def began(self, tenant: str) -> None:
        """As :meth:`Places.began`."""
        self._places.began(self._lane, tenant)

    def ended(self, tenant: str) -> None:
        """As :meth:`Places.ended`."""
        self._places.ended(self._lane, tenant)
