"""What the endpoint counts, and its log of calls, for those who verify a run."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from agents.simulator.window import Window

OPEN = "open"
"""State of a call without an end yet."""


@dataclass(slots=True, kw_only=True)
class Call:
    """One call as the log has it; it is written to until the call ends.

    Attributes:
        number: Counts from 1.
        at: When it came, seconds since 1970.
        digest: Hash of what the model read; empty where the request could not be read.
        nth: How many times the same request came before.
        call_id: The header ``x-client-request-id``, else the request's ``user``.
        status: The HTTP status as text; ``cut`` for a connection cut by the endpoint, ``left``
            for a client that did not wait for the answer, ``open`` for neither yet.
        failure: The failure that chance chose, or None.
        limit: The account's limit that refused it, or None.
        seconds: From its coming to its end, or None.
    """

    number: int
    at: float
    call_id: str
    digest: str = ""
    nth: int = 0
    role: str = ""
    status: str = OPEN
    failure: str | None = None
    limit: str | None = None
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    seconds: float | None = None


@dataclass(slots=True, kw_only=True)
class Counters:
    """Counts since the start.

    Attributes:
        calls: Chat requests that came, refused ones among them.
        by_role: Of these, how many of each role.
        by_status: How many ended in each way, as in :class:`Call`.
        by_failure: How many failed by chance in each way.
        by_limit: How many each of the account's limits refused.
        in_flight: Calls accepted and unfinished now.
        in_flight_max: The most there were at once.
        tokens_in: Input tokens of answered calls, the cached ones among them.
        tokens_cached: Input tokens of answered calls that were cached.
        tokens_out: Output tokens of answered calls.
        latency_s: The latencies that answered calls were given, added up, in seconds.
        dropped: Calls that the log no longer holds.
    """

    kept: int
    calls: int = 0
    by_role: dict[str, int] = field(default_factory=dict)
    by_status: dict[str, int] = field(default_factory=dict)
    by_failure: dict[str, int] = field(default_factory=dict)
    by_limit: dict[str, int] = field(default_factory=dict)
    in_flight: int = 0
    in_flight_max: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    latency_s: float = 0.0
    dropped: int = 0
    _log: deque[Call] = field(init=False)
    _second: Window = field(init=False)
    _minute: Window = field(init=False)
    _tokens_minute: Window = field(init=False)

    def __post_init__(self) -> None:
        self._log = deque(maxlen=self.kept)
        self._second = Window(1.0, 50)
        self._minute = Window(60.0)
        self._tokens_minute = Window(60.0)

    def came(self, now: float, at: float, call_id: str) -> Call:
        """A call came: *now* on the monotonic clock, *at* in seconds since 1970."""
        self.calls += 1
        self._second.add(now)
        self._minute.add(now)
        call = Call(number=self.calls, at=at, call_id=call_id)
        if len(self._log) == self.kept:
            self.dropped += 1
        self._log.append(call)
        return call

    def read(self, call: Call, role: str) -> None:
        """The call could be read."""
        call.role = role
        self.by_role[role] = self.by_role.get(role, 0) + 1

    def began(self) -> None:
        """A call was accepted."""
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self.in_flight)

    def answered(self, now: float, call: Call) -> None:
        """A call was answered with its tokens."""
        self.tokens_in += call.tokens_in
        self.tokens_cached += call.tokens_cached
        self.tokens_out += call.tokens_out
        self._tokens_minute.add(now, call.tokens_in + call.tokens_out)

    def ended(self, call: Call, status: str, seconds: float) -> None:
        """A call ended, so many seconds after it came."""
        call.status = status
        call.seconds = round(seconds, 6)
        self.by_status[status] = self.by_status.get(status, 0) + 1
        if call.failure is not None:
            self.by_failure[call.failure] = self.by_failure.get(call.failure, 0) + 1
        if call.limit is not None:
            self.by_limit[call.limit] = self.by_limit.get(call.limit, 0) + 1

    def report(self) -> dict[str, Any]:
        """All counts, for JSON."""
        return {
            "calls": self.calls,
            "by_role": self.by_role,
            "by_status": self.by_status,
            "by_failure": self.by_failure,
            "by_limit": self.by_limit,
            "in_flight": self.in_flight,
            "in_flight_max": self.in_flight_max,
            "per_second_max": self._second.most,
            "per_minute_max": self._minute.most,
            "tokens_in": self.tokens_in,
            "tokens_cached": self.tokens_cached,
            "tokens_out": self.tokens_out,
            "tokens_per_minute_max": self._tokens_minute.most,
            "latency_s": round(self.latency_s, 6),
        }

    def log(self) -> dict[str, Any]:
        """The log of calls, oldest first, and how many it no longer holds, for JSON."""
        return {"calls": list(self._log), "dropped": self.dropped}
