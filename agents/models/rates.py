"""Requests and tokens a minute of one key, spaced so that a strict endpoint never counts too many.

Why not a library: see docs/adr/0020-traffic-of-our-own.md.
"""

import math
from collections import deque
from dataclasses import dataclass

MINUTE_S = 60.0

MINUTE_MARGIN_S = 0.5
SECOND_MARGIN_S = 0.1
"""Calls come closer together at the endpoint than they left, by what one of them was held up on its
way: a minute and a second are kept as if they were longer by so much."""

AT_ONCE_S = 1e-6
"""A wait below this is none; the arithmetic of clocks is not exact."""


@dataclass(slots=True, eq=False)
class Spent:
    """What one call takes of the tokens: an estimate until it is settled.

    Attributes:
        at: When the call left, seconds on the clock of its rates.
        counted: It is still within the last minute.
    """

    at: float
    tokens: float
    counted: bool = True


class Rates:
    """How fast calls may leave for one account. Times are seconds on any clock that does not go back.

    Requests keep a distance from each other, so that shares of several workers add up whenever each
    begins, and no burst follows a pause. In any second at most the share of the limit's sixtieth,
    rounded up, leaves; at least one does, so shares of less than one call a second add up by the
    minute only. Tokens keep a distance, too, by what the call before took, and the sum of any minute
    stays below the limit; a call that is larger than the whole limit leaves when nothing else did.

    Args:
        requests_per_minute: What the account allows over all workers; None: any number.
        tokens_per_minute: Likewise, input and output together.
    """

    def __init__(self, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        self._requests, self._tokens = requests_per_minute, tokens_per_minute
        self._share = 1.0
        self._gap = self._limit = 0.0
        self._left = -math.inf  # when the last call left
        self._paid = -math.inf  # until when the tokens taken so far last
        self._used = 0.0
        self._minute: deque[Spent] = deque()
        self._reckon()

    @property
    def of_tokens(self) -> bool:
        """Tokens are limited, so that estimates matter."""
        return self._tokens is not None

    @property
    def gap_s(self) -> float:
        """Seconds between two calls."""
        return self._gap

    def share(self, fraction: float, now: float) -> None:
        """This worker has this share of the account from now on, above 0 and up to 1.

        What it newly has was another's until now, so the distance to the last call counts from now.
        """
        if fraction > self._share:
            self._left = max(self._left, now)
        if self.of_tokens and self._paid > now:
            self._paid = now + (self._paid - now) * self._share / fraction
        self._share = fraction
        self._reckon()

    def _reckon(self) -> None:
        if self._requests is not None:
            minute = _whole(self._requests * self._share)
            second = math.floor(math.ceil(self._requests / MINUTE_S) * self._share)
            self._gap = (MINUTE_S + MINUTE_MARGIN_S) / minute
            if second >= 1:
                self._gap = max(self._gap, (1 + SECOND_MARGIN_S) / second)
        if self._tokens is not None:
            self._limit = self._tokens * self._share

    def wait(self, now: float, tokens: float) -> float:
        """Seconds until a call of so many tokens may leave, no other leaving; 0: now."""
        wait = self._left + self._gap - now if self._requests is not None else 0.0
        if self.of_tokens:
            wait = max(wait, self._paid - now, self._room_in(now, tokens))
        return wait if wait > AT_ONCE_S else 0.0

    def _room_in(self, now: float, tokens: float) -> float:
        """Seconds until the last minute has room for so many tokens."""
        self._forget(now)
        excess = self._used + tokens - self._limit
        if excess <= 0:
            return 0.0
        wait = 0.0  # where nothing is left that could go, it is larger than the whole limit
        for spent in self._minute:
            wait = spent.at + MINUTE_S + MINUTE_MARGIN_S - now
            excess -= spent.tokens
            if excess <= 0:
                break
        return wait

    def take(self, now: float, tokens: float) -> Spent:
        """A call leaves now."""
        self._left = now
        spent = Spent(now, tokens)
        if self.of_tokens:
            self._paid = max(self._paid, now) + tokens * MINUTE_S / self._limit
            self._minute.append(spent)
            self._used += tokens
        return spent

    def settle(self, spent: Spent, tokens: float) -> None:
        """The call took so many tokens in the end."""
        if not self.of_tokens:
            return
        more = tokens - spent.tokens
        spent.tokens = tokens
        self._paid += more * MINUTE_S / self._limit
        if spent.counted:
            self._used += more

    def _forget(self, now: float) -> None:
        while self._minute and self._minute[0].at + MINUTE_S + MINUTE_MARGIN_S <= now + AT_ONCE_S:
            spent = self._minute.popleft()
            spent.counted = False
            self._used -= spent.tokens
        if not self._minute:
            self._used = 0.0  # no rest of rounding stays behind


def _whole(number: float) -> float:
    """Whole calls a minute, which add up over all shares; a share of less than one call stays what it is."""
    whole = math.floor(number + AT_ONCE_S)
    return whole if whole >= 1 else number
