"""The keys of one endpoint, used in turn so that their limits add up."""

import math
from collections.abc import Sequence

from agents.configuration.values import Endpoint
from agents.models.rates import Rates

CREDIBLE_S = 5.0
"""A provider that asks to wait so long means its account, not just this call."""

LONGEST_LIMIT_S = 600.0
"""A key is held back no longer than this at a time, whatever the provider says: it may err by years."""


class Key:
    """One key, and what its account allows.

    Attributes:
        value: The key itself; never shown.
        name: What it may be called in words: the variable it came from.
        rates: How fast calls with it may leave.
        in_use: Calls with it under way.
        limited_until: The provider asked to wait so long, seconds on the ring's clock.
        out: Why it is not used again while this process runs; empty while it is.
    """

    __slots__ = ("_refused", "in_use", "limited_until", "name", "out", "rates", "value")

    def __init__(self, value: str, name: str, rates: Rates) -> None:
        self.value, self.name, self.rates = value, name, rates
        self.in_use = 0
        self.limited_until = -math.inf
        self.out = ""
        self._refused = False

    def answered(self) -> None:
        """A call with it brought a reply."""
        self._refused = False

    def limited(self, now: float, asked_s: float, *, others: bool) -> None:
        """The provider refused a call with it and asked to wait.

        Some refuse single calls while they take all others, so a short wait is that of the call alone,
        until a second one is refused without a reply in between, or where *others* can go on meanwhile.
        """
        if self._refused or others or asked_s >= CREDIBLE_S:
            self.limited_until = max(self.limited_until, now + min(asked_s, LONGEST_LIMIT_S))
        self._refused = True


class KeyRing:
    """All keys of an endpoint. Times are seconds on any clock that does not go back.

    Attributes:
        keys: In the order of the configuration; an endpoint that wants none has one empty key.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        values = endpoint.keys or ("",)
        self.keys = tuple(
            Key(value, name, Rates(endpoint.requests_per_minute, endpoint.tokens_per_minute))
            for value, name in zip(values, _names(endpoint, len(values)), strict=True)
        )
        self._concurrency = endpoint.concurrency
        self._each = self._share_of_concurrency(1.0)
        self._next = 0

    def share(self, fraction: float, now: float) -> None:
        """This worker has this share of each account, above 0 and up to 1."""
        self._each = self._share_of_concurrency(fraction)
        for key in self.keys:
            key.rates.share(fraction, now)

    def _share_of_concurrency(self, fraction: float) -> float:
        if self._concurrency is None:
            return math.inf
        return max(1, math.floor(self._concurrency * fraction + 1e-6))

    @property
    def at_once(self) -> float:
        """Calls at once that all keys in use allow together."""
        return self._each * max(1, len(self.live))

    @property
    def live(self) -> Sequence[Key]:
        """The keys in use."""
        return [key for key in self.keys if not key.out]

    def limited_s(self, now: float) -> float:
        """Seconds until the provider lets the first of them go on; infinite where none is in use."""
        return min((max(0.0, key.limited_until - now) for key in self.live), default=math.inf)

    def free(self, now: float, tokens: float) -> tuple[Key | None, float]:
        """The next key by which a call of so many tokens may leave now, and else the seconds until one may.

        The seconds are infinite where only the end of a call can help.
        """
        shortest = math.inf
        for step in range(len(self.keys)):
            key = self.keys[(self._next + step) % len(self.keys)]
            if key.out or key.in_use >= self._each:
                continue
            wait = max(key.limited_until - now, key.rates.wait(now, tokens))
            if wait <= 0:
                return key, 0.0
            shortest = min(shortest, wait)
        return None, shortest

    def take(self, key: Key) -> None:
        """A call with this key leaves; the one after it is next."""
        self._next = (self.keys.index(key) + 1) % len(self.keys)
        key.in_use += 1


def _names(endpoint: Endpoint, keys: int) -> Sequence[str]:
    """One name for each key."""
    if len(endpoint.key_variables) == keys:
        return endpoint.key_variables
    return [f"key {number} of endpoint {endpoint.name}" for number in range(1, keys + 1)]
