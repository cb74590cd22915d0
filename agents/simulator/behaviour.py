"""How a simulated endpoint behaves: latency, failures and the account's limits, as one frozen value."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from statistics import NormalDist
from typing import Literal, TypeAlias, cast, get_args

MODEL = "simulated"
"""The model there is by default. A request for an unknown one is answered 404, as elsewhere."""

FINGERPRINT = "anabranch-simulated"
"""``system_fingerprint`` of every reply."""

FailureKind: TypeAlias = Literal[
    "rate_limited",
    "overloaded",
    "server_error",
    "timeout",
    "cut",
    "truncated",
    "malformed",
    "stalled",
    "unfinished",
]
"""How a call can fail by chance.

``rate_limited``: 429 with Retry-After. ``overloaded``: 429 without. ``server_error``: 500.
``timeout``: no answer until the client leaves or ``Behaviour.hang_s`` is over. ``cut``: the
connection ends in the middle of the body. ``truncated``: half a text, finish_reason ``length``.
``malformed``: 200 with a broken JSON body. ``stalled``: a stream that hangs in its middle, until the
client leaves or ``Behaviour.hang_s`` is over. ``unfinished``: a stream that closes in its middle as if it
were at its end. Of these two a reply that is no stream hangs, or is half a body.
"""

FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)

_STANDARD = NormalDist()
_Z99 = _STANDARD.inv_cdf(0.99)


class BadBehaviour(ValueError):
    """An option of the simulated endpoint that makes no sense; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Every call takes the same time, in seconds."""

    seconds: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.seconds) and self.seconds >= 0):
            raise BadBehaviour(f"latency {self.seconds} is no number of seconds from 0 on")

    def draw(self, chance: float) -> float:  # noqa: ARG002 - every latency is asked the same way
        """Seconds that a call with this chance (between 0 and 1) takes."""
        return self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNormal:
    """Calls take log-normal times, as those of real endpoints nearly do.

    Attributes:
        p50: Seconds that half of the calls stay below.
        p99: Seconds that 99 of 100 calls stay below.
    """

    p50: float
    p99: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.p99) and 0 < self.p50 <= self.p99):
            raise BadBehaviour(
                f"latency p50={self.p50},p99={self.p99} makes no sense: p50 must be above 0 and not above p99"
            )

    def draw(self, chance: float) -> float:
        """Seconds that a call with this chance (between 0 and 1, both excluded) takes."""
        sigma = math.log(self.p99 / self.p50) / _Z99
        return self.p50 * math.exp(sigma * _STANDARD.inv_cdf(chance))


Latency: TypeAlias = Fixed | LogNormal


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How a simulated endpoint behaves.

    Attributes:
        seed: Chance comes from it, the request, and how often this request came before;
            nothing else.
        latency: Seconds from a request to its reply. Refusals (401, 404, 429) come at once.
        failures: Share of calls (0 to 1) that fail in each way.
        retry_after_s: Seconds that a ``rate_limited`` failure asks the client to wait.
        hang_s: Seconds after which a call that is never answered is cut.
        models: The models there are; each is ``simulated``, or ``simulated-`` and a word.
        requests_per_minute: Calls accepted in any 60 s, or None for no limit. A refused call
            does not count against it.
        tokens_per_minute: Input and output tokens in any 60 s, or None for no limit.
        concurrency: Calls in flight at once, or None for no limit.
        keys: API keys that are accepted, each with an account of its own with these limits; empty
            accepts everyone, on one account.
        refused_keys: API keys that are refused (401) whatever *keys* says.
        spent_keys: API keys whose account has no money left (403).
        calls_kept: Calls that the log of calls holds; older ones leave it.
    """

    seed: int = 0
    latency: Latency = Fixed()
    failures: tuple[tuple[FailureKind, float], ...] = ()
    retry_after_s: float = 1.0
    hang_s: float = 600.0
    models: tuple[str, ...] = (MODEL,)
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrency: int | None = None
    keys: tuple[str, ...] = field(default=(), repr=False)
    refused_keys: tuple[str, ...] = field(default=(), repr=False)
    spent_keys: tuple[str, ...] = field(default=(), repr=False)
    calls_kept: int = 20_000

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for kind, rate in self.failures:
            if kind not in FAILURE_KINDS:
                near = get_close_matches(kind, FAILURE_KINDS, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise BadBehaviour(f"failure {kind!r} is not one of {', '.join(FAILURE_KINDS)}{hint}")
            if kind in seen:
                raise BadBehaviour(f"failure {kind} is given twice")
            if not 0 <= rate <= 1:
                raise BadBehaviour(f"failure {kind}={rate}: a rate is a number from 0 to 1")
            seen.add(kind)
        total = sum(rate for _, rate in self.failures)
        if total > 1 + 1e-9:
            raise BadBehaviour(f"failure rates add up to {total:g}; together they may be 1 at most")
        for model in self.models:
            if model != MODEL and not model.startswith(f"{MODEL}-"):
                raise BadBehaviour(f"model {model!r}: a simulated model is called {MODEL}, or {MODEL}-WORD")
        if not self.models:
            raise BadBehaviour("there must be a model")
        for name in ("requests_per_minute", "tokens_per_minute", "concurrency"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise BadBehaviour(f"{name}={limit}: a limit is 1 or more; leave it out for none")
        for name in ("retry_after_s", "hang_s"):
            seconds = getattr(self, name)
            if not (math.isfinite(seconds) and seconds >= 0):
                raise BadBehaviour(f"{name}={seconds} is no number of seconds from 0 on")

    def failure(self, chance: float) -> FailureKind | None:
        """The way in which a call with this chance (0 to 1) fails, or None."""
        for kind, rate in self.failures:
            if chance < rate:
                return kind
            chance -= rate
        return None


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadBehaviour(f"{what}: {text.strip()!r} is no number") from None


def parse_latency(text: str) -> Latency:
    """Read a latency in seconds: ``0.3``, or ``p50=0.38,p99=1.12`` for a log-normal one.

    Raises:
        BadBehaviour: it is neither.
    """
    if "=" not in text:
        return Fixed(_number(text, "latency"))
    quantiles: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        name = name.strip().lower()
        if name not in ("p50", "p99") or name in quantiles:
            raise BadBehaviour(f"latency {text!r}: write seconds (0.3), or p50=0.38,p99=1.12")
        quantiles[name] = _number(value, f"latency {name}")
    if set(quantiles) != {"p50", "p99"}:
        raise BadBehaviour(f"latency {text!r}: p50 and p99 are both needed, as in p50=0.38,p99=1.12")
    return LogNormal(p50=quantiles["p50"], p99=quantiles["p99"])


def parse_failures(texts: Sequence[str]) -> tuple[tuple[FailureKind, float], ...]:
    """Read failures written as ``KIND=RATE``, each for itself or several separated by commas.

    Raises:
        BadBehaviour: an unknown kind, a kind given twice, or a rate that is none.
    """
    failures: list[tuple[FailureKind, float]] = []
    for part in (part for text in texts for part in text.split(",")):
        kind, equals, rate = part.partition("=")
        if not equals:
            raise BadBehaviour(f"failure {part.strip()!r}: write KIND=RATE, as in rate_limited=0.05")
        name = cast("FailureKind", kind.strip())  # Behaviour checks it
        failures.append((name, _number(rate, f"failure {name}")))
    return Behaviour(failures=tuple(failures)).failures
