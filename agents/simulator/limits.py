"""The account's limits, enforced: requests and tokens a minute, and calls in flight."""

import math
from dataclasses import dataclass
from typing import Literal

from agents.simulator.behaviour import Behaviour
from agents.simulator.window import Window

Limit = Literal["requests", "tokens", "concurrency"]

_MINUTE_S = 60.0
_CONCURRENCY_WAIT_S = 1.0  # when a call in flight will end is not known beforehand


@dataclass(frozen=True, slots=True, kw_only=True)
class OverLimit:
    """A call that the account does not allow now.

    Attributes:
        wait_s: Seconds after which it may.
    """

    limit: Limit
    reason: str
    wait_s: float


class Account:
    """What one account has used up. Times are seconds on any clock that does not go back."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._requests_limit = behaviour.requests_per_minute
        self._tokens_limit = behaviour.tokens_per_minute
        self._concurrency = behaviour.concurrency
        self._requests = Window(_MINUTE_S)
        self._tokens = Window(_MINUTE_S)
        self._limited = self._requests_limit is not None or self._tokens_limit is not None

    def admit(self, now: float, *, in_flight: int, tokens: int) -> OverLimit | None:
        """Take a place for a call of so many tokens, or say which limit is in the way.

        A refused call takes no place: a client that hammers does not lock itself out.
        """
        if self._concurrency is not None and in_flight >= self._concurrency:
            return OverLimit(
                limit="concurrency",
                reason=f"{in_flight} calls are in flight, and the account has a limit of {self._concurrency}",
                wait_s=_CONCURRENCY_WAIT_S,
            )
        if not self._limited:
            return None
        if self._requests_limit is not None:
            wait = self._requests.wait(now, 1, self._requests_limit)
            if wait > 0:
                return OverLimit(
                    limit="requests",
                    reason=f"the account has a limit of {self._requests_limit} requests a minute",
                    wait_s=wait,
                )
        if self._tokens_limit is not None:
            wait = self._tokens.wait(now, tokens, self._tokens_limit)
            # One call larger than the whole limit runs when nothing else does, or it never could.
            if wait > 0 and self._tokens.total(now) > 0:
                return OverLimit(
                    limit="tokens",
                    reason=(
                        f"the account has a limit of {self._tokens_limit} tokens a minute, "
                        f"and this call takes {tokens}"
                    ),
                    wait_s=wait,
                )
        self._requests.add(now)
        self._tokens.add(now, tokens)
        return None

    def headers(self, now: float) -> dict[str, str]:
        """The X-RateLimit headers, as OpenAI names them; empty for an account without such limits."""
        headers: dict[str, str] = {}
        for name, limit, window in (
            ("Requests", self._requests_limit, self._requests),
            ("Tokens", self._tokens_limit, self._tokens),
        ):
            if limit is None:
                continue
            used = int(window.total(now))
            headers[f"X-RateLimit-Limit-{name}"] = str(limit)
            headers[f"X-RateLimit-Remaining-{name}"] = str(max(0, limit - used))
            # Until the limit is whole again.
            headers[f"X-RateLimit-Reset-{name}"] = f"{math.ceil(window.wait(now, limit, limit))}s"
        return headers
