"""What can be asked: an endpoint and its models, with all that is known of how they are doing."""

import math
from dataclasses import dataclass
from typing import Protocol

from agents.configuration.values import Endpoint, ModelSettings
from agents.models.breaker import Breaker
from agents.models.concurrency import START, Adaptive
from agents.models.deadlines import Latencies
from agents.models.keys import KeyRing
from agents.models.lines import COMING_S
from agents.ports import ModelReply, ModelRequest

LONG_S = 8.0
"""A provider that asks to wait longer than the longest backoff is left for the next model, if any."""


class EndpointClient(Protocol):
    """One call of an endpoint, no retries."""

    async def chat(
        self,
        request: ModelRequest,
        *,
        model: ModelSettings,
        key: str,
        timeout_s: float,
        thinking: bool | None,
    ) -> ModelReply:
        """Ask once.

        Raises:
            ModelError: there is no reply; its kind says what to do.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Out:
    """Why something is not asked any more.

    Attributes:
        kind: The kind of the error that put it out.
        reason: Its words.
    """

    kind: str
    reason: str


class EndpointTarget:
    """An endpoint.

    Args:
        settings: What is configured of it.
        client: What calls it.
        start: Calls at once that it is given in the beginning.

    Attributes:
        out: Why it is not asked again while this process runs.
    """

    def __init__(self, settings: Endpoint, client: EndpointClient, *, start: int = START) -> None:
        self.settings, self.client = settings, client
        self.ring = KeyRing(settings)
        self.adaptive = Adaptive(start)
        self.adaptive.cap(self.ring.at_once)
        self.out: Out | None = None

    def share(self, fraction: float, now: float) -> None:
        """This worker has this share of its accounts, above 0 and up to 1."""
        self.ring.share(fraction, now)
        self.adaptive.cap(self.ring.at_once)

    def recount(self) -> None:
        """A key went out: the others allow less together."""
        self.adaptive.cap(self.ring.at_once)


class ModelTarget:
    """A model at its endpoint."""

    def __init__(self, settings: ModelSettings, endpoint: EndpointTarget) -> None:
        self.settings, self.endpoint = settings, endpoint
        self.name = settings.name
        self.breaker = Breaker()
        self._out: Out | None = None
        self._latencies: dict[str, Latencies] = {}

    @property
    def out(self) -> Out | None:
        """Why it is not asked again while this process runs: itself or its endpoint."""
        return self._out or self.endpoint.out

    def put_out(self, out: Out) -> None:
        """It is not asked again while this process runs."""
        self._out = out

    def latencies(self, kind: str) -> Latencies:
        """What its calls for this kind took. Kinds are those of the configuration, so they are few."""
        return self._latencies.setdefault(kind, Latencies())

    def away_s(self, now: float, ends: float = math.inf) -> float:
        """Seconds until it may be asked again; 0 where it is only a matter of turns at its endpoint.

        Args:
            now: When it is asked for.
            ends: When a call is too late for whoever needs it.
        """
        wait = self.breaker.wait(now, ends)
        limited = self.endpoint.ring.limited_s(now)
        return max(wait, limited if limited > LONG_S else 0.0)

    def room(self, gap_s: float) -> int:
        """How many calls may begin now, where one may: as many as leave while one is on its way here."""
        if self.breaker.state != "closed":
            return 1
        room = self.endpoint.adaptive.room
        return min(room, max(1, int(COMING_S / gap_s) * len(self.endpoint.ring.live))) if gap_s else room
