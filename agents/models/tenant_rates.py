"""Model requests of each tenant: so many a second over all workers, the same way as those of an account.

A worker has the share of each tenant's limit that it has of the lanes. It is a bucket of one token: requests
keep a distance from each other, and no burst follows a pause (docs/adr/0028-*.md).
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import structlog

from agents.models.lines import COMING_S
from agents.models.rates import MINUTE_S, Rates

TENANTS: Final = 10_000
"""Tenants whose last request is remembered."""

TELL_S: Final = 60.0
"""Seconds between two log lines that say of a tenant that it waits for its turn."""


class TenantRate:
    """The requests of one tenant.

    Args:
        requests_per_second: Over all workers.
    """

    def __init__(self, tenant: str, requests_per_second: float) -> None:
        self._tenant, self._limit = tenant, requests_per_second
        self._rates = Rates(max(1, round(MINUTE_S * requests_per_second)), None)
        self._told = float("-inf")

    def share(self, fraction: float, now: float) -> None:
        """As :meth:`agents.models.rates.Rates.share`."""
        self._rates.share(fraction, now)

    def free(self, now: float) -> bool:
        """A request may leave now."""
        return self._rates.wait(now, 0.0) <= 0

    def take(self, now: float) -> None:
        """One leaves."""
        self._rates.take(now, 0.0)

    def room(self, now: float) -> tuple[int, float]:
        """How many of those who wait may come now, and else the seconds until one may."""
        wait = self._rates.wait(now, 0.0)
        return (0, wait) if wait > 0 else (max(1, int(COMING_S / self._rates.gap_s)), 0.0)

    def tell(self, now: float) -> None:
        """One has to wait: once in a while the log says so."""
        if now - self._told >= TELL_S:
            self._told = now
            structlog.get_logger().info(
                "tenant_at_its_request_rate", tenant=self._tenant, requests_per_second=self._limit
            )


class TenantRates:
    """The requests of all tenants in one process.

    Args:
        limit: Requests a second of a tenant over all workers; None: any number.
    """

    def __init__(self, limit: Callable[[str], float | None]) -> None:
        self._limit = limit
        self._share = 1.0
        self._rates: OrderedDict[str, TenantRate] = OrderedDict()

    def share(self, fraction: float, now: float) -> None:
        """This worker's share of all limits."""
        self._share = fraction
        for rate in self._rates.values():
            rate.share(fraction, now)

    def of(self, tenant: str) -> TenantRate | None:
        """That of a tenant; None where it has no limit, or nobody is named."""
        limit = self._limit(tenant) if tenant else None
        if limit is None:
            return None
        rate = self._rates.get(tenant)
        if rate is None:
            rate = self._rates[tenant] = TenantRate(tenant, limit)
            rate.share(self._share, 0.0)
            if len(self._rates) > TENANTS:
                self._rates.popitem(last=False)
        self._rates.move_to_end(tenant)
        return rate
