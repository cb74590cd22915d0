"""What the endpoint counts, and its log of calls, for those who verify a run."""

from collections import deque
from dataclasses import dataclass
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
        key: Whose it was: ``key 1`` for the first of the endpoint's keys, ``other`` for a foreign one,
            empty where everyone is accepted.
        model: The model it asked for.
        status: The HTTP status as text; ``cut`` for a connection cut by the endpoint, ``left``
            for a client that did not wait for the answer, ``open`` for neither yet.
        failure: The failure that chance chose, or None.
        limit: The account's limit that refused it, or None.
        seconds: From its coming to its end, or None.
    """

    number: int
    at: float
    call_id: str
    key: str = ""
    model: str = ""
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


class Rates:
    """How many calls came in a second and in a minute, what they took of the account, and how many at once.

    Attributes:
        calls: Calls that came, refused ones among them.
        in_flight: Calls accepted and unfinished now.
        in_flight_max: The most there were at once.
        by_limit: How many each limit of the account refused: those beyond what it allows.
    """

    def __init__(self) -> None:
        self.calls = self.in_flight = self.in_flight_max = 0
        self.by_limit: dict[str, int] = {}
        self._second, self._minute, self._tokens = Window(1.0, 50), Window(60.0), Window(60.0)

    def note_call(self, now: float) -> None:
        """A call came."""
        self.calls += 1
        self._second.add(now)
        self._minute.add(now)

    def note_begin(self) -> None:
        """A call was accepted."""
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self.in_flight)

    def note_end(self) -> None:
        """A call that was accepted is over."""
        self.in_flight -= 1

    def note_tokens(self, now: float, tokens: int) -> None:
        """A call was answered, with so many tokens in and out."""
        self._tokens.add(now, tokens)

    def note_refusal(self, limit: str) -> None:
        """A limit of the account refused a call."""
        self.by_limit[limit] = self.by_limit.get(limit, 0) + 1

    def report(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {
            "calls": self.calls,
            "by_limit": self.by_limit,
            "in_flight": self.in_flight,
            "in_flight_max": self.in_flight_max,
            "per_second_max": self._second.most,
            "per_minute_max": self._minute.most,
            "tokens_per_minute_max": self._tokens.most,
        }


class Counters(Rates):
    """Counts of all calls since the start.

    Attributes:
        by_role: How many of the calls that could be read had each role.
        by_status: How many ended in each way, as in :class:`Call`.
        by_failure: How many failed by chance in each way.
        by_key: The rates of each key, as :class:`Call` names it.
        tokens_in: Input tokens of answered calls, the cached ones among them.
        tokens_cached: Input tokens of answered calls that were cached.
        tokens_out: Output tokens of answered calls.
        latency_s: The latencies that answered calls were given, added up, in seconds.
        dropped: Calls that the log no longer holds.
    """

    def __init__(self, *, kept: int) -> None:
        super().__init__()
        self.by_role: dict[str, int] = {}
        self.by_status: dict[str, int] = {}
        self.by_failure: dict[str, int] = {}
        self.by_key: dict[str, Rates] = {}
        self.tokens_in = self.tokens_cached = self.tokens_out = self.dropped = 0
        self.latency_s = 0.0
        self._log: deque[Call] = deque(maxlen=kept)

    def of(self, key: str) -> Rates:
        """The rates of a key."""
        return self.by_key.setdefault(key, Rates())

    def came(self, now: float, at: float, *, call_id: str, key: str) -> Call:
        """A call came: *now* on the monotonic clock, *at* in seconds since 1970."""
        self.note_call(now)
        self.of(key).note_call(now)
        call = Call(number=self.calls, at=at, call_id=call_id, key=key)
        if len(self._log) == self._log.maxlen:
            self.dropped += 1
        self._log.append(call)
        return call

    def read(self, call: Call, role: str) -> None:
        """The call could be read."""
        call.role = role
        self.by_role[role] = self.by_role.get(role, 0) + 1

    def began(self, call: Call) -> None:
        """A call was accepted."""
        self.note_begin()
        self.of(call.key).note_begin()

    def over(self, call: Call) -> None:
        """A call that was accepted is over."""
        self.note_end()
        self.of(call.key).note_end()

    def answered(self, now: float, call: Call) -> None:
        """A call was answered with its tokens."""
        self.tokens_in += call.tokens_in
        self.tokens_cached += call.tokens_cached
        self.tokens_out += call.tokens_out
        for rates in (self, self.of(call.key)):
            rates.note_tokens(now, call.tokens_in + call.tokens_out)

    def ended(self, call: Call, status: str, seconds: float) -> None:
        """A call ended, so many seconds after it came."""
        call.status = status
        call.seconds = round(seconds, 6)
        self.by_status[status] = self.by_status.get(status, 0) + 1
        if call.failure is not None:
            self.by_failure[call.failure] = self.by_failure.get(call.failure, 0) + 1
        if call.limit is not None:
            for rates in (self, self.of(call.key)):
                rates.note_refusal(call.limit)

    def report(self) -> dict[str, Any]:
        """All counts, for JSON."""
        return {
            **super().report(),
            "by_role": self.by_role,
            "by_status": self.by_status,
            "by_failure": self.by_failure,
            "by_key": {key: rates.report() for key, rates in self.by_key.items()},
            "tokens_in": self.tokens_in,
            "tokens_cached": self.tokens_cached,
            "tokens_out": self.tokens_out,
            "latency_s": round(self.latency_s, 6),
        }

    def log(self) -> dict[str, Any]:
        """The log of calls, oldest first, and how many it no longer holds, for JSON."""
        return {"calls": list(self._log), "dropped": self.dropped}
