"""All calls of models that leave this process: each is given a model and a key, or told to wait."""

import asyncio
import itertools
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from agents.configuration.values import Configuration, Kind, ModelSettings
from agents.models.concurrency import START
from agents.models.deadlines import Latencies
from agents.models.keys import Key
from agents.models.lines import Line
from agents.models.metrics import Metrics
from agents.models.not_now import Chain, NotNow
from agents.models.outcomes import Outcomes, Permit
from agents.models.refusals import all_out, estimate, too_large
from agents.models.routing import Routes
from agents.models.targets import EndpointClient, EndpointTarget, ModelTarget
from agents.models.tenant_rates import TenantRate, TenantRates
from agents.ports import ModelError, ModelReply, ModelRequest

MODELS = 1_000
"""Models that are remembered. More there are only where any name may be asked for."""

CALLED = 1_000
"""Of those who wait, so many at once are told that there is nothing left to wait for."""

Found: TypeAlias = tuple[ModelTarget | None, Key | None, float]
"""A model and its key, or neither and the seconds until there may be one."""


class Traffic:
    """Routes, limits, breakers and counters of all calls of models of one process.

    It lives on one event loop. Nothing in it waits but :meth:`turn`, and that takes nothing.

    Args:
        configuration: Endpoints, models and kinds.
        clients: One for each endpoint, by its name.
        metrics: Counters shared with the tools of the same process.
        start: Calls at once that each endpoint is given in the beginning.

    Attributes:
        metrics: What is counted of every call.
    """

    def __init__(
        self,
        configuration: Configuration,
        clients: Mapping[str, EndpointClient],
        *,
        metrics: Metrics | None = None,
        start: int = START,
    ) -> None:
        self.metrics = metrics or Metrics()
        self._outcomes = Outcomes(self.metrics)
        self._routes = Routes(configuration)
        self._endpoints = {
            name: EndpointTarget(endpoint, clients[name], start=start)
            for name, endpoint in configuration.endpoints.items()
        }
        self._tenants = TenantRates(lambda tenant: configuration.tenant(tenant).requests_per_second)
        self._targets: OrderedDict[str, ModelTarget] = OrderedDict()
        self._lines: dict[tuple[str, ...], Line] = {}
        self._tickets = itertools.count(1)

    def share(self, fraction: float) -> None:
        """This worker's share of all accounts and limits of tenants.

        One without lanes, 0, makes no calls that would count.
        """
        if fraction <= 0:
            return
        for endpoint in self._endpoints.values():
            endpoint.share(min(1.0, fraction), _now())
        self._tenants.share(min(1.0, fraction), _now())
        self._pump()

    def close(self) -> None:
        """Log what was counted. The clients are whoever's who made them."""
        self.metrics.close()

    def chain(self, request: ModelRequest) -> Chain:
        """The models that a request may go to, the first choice first.

        Raises:
            ModelError: there is none: ``no_such_model``, ``context_exceeded`` (all are too small for
                it), or all are out, with the reason.
        """
        models = self._routes.chain(self._kind(request), request.model, request.fallback)
        targets = [self._target(model) for model in models]
        live = tuple(target for target in targets if target.out is None)
        if not live:
            raise all_out(targets)
        if any(target.settings.context_tokens is not None for target in live):
            tokens = estimate(request)
            fitting = tuple(t for t in live if tokens <= (t.settings.context_tokens or math.inf))
            if not fitting:
                raise too_large(live, tokens)
            return fitting
        return live

    def take(
        self, request: ModelRequest, *, ticket: int | None, avoid: frozenset[str], ends: float
    ) -> Permit:
        """Take a model and a key for a call that leaves now.

        Args:
            request: What is to be asked.
            ticket: Of one who has waited already; others go behind all who wait.
            avoid: Models that are not to be taken, where there are others.
            ends: When the call is too late, seconds on the loop's clock.

        Raises:
            NotNow: there is no turn at the moment.
            ModelError: as :meth:`chain` says.
        """
        live = self.chain(request)
        rate = self._tenants.of(request.tenant)
        if rate is not None:
            self._pass(request.tenant, rate, ticket)
        chain = tuple(target for target in live if target.name not in avoid) or live
        tokens = estimate(request) if self._of_tokens(chain) else 0.0
        line = self._lines.get(tuple(target.name for target in chain))
        if ticket is None and line is not None and not line.empty:
            raise NotNow(chain, tokens)
        if line is not None:
            ends = min(ends, line.ends)
        permit = self._permit(request, chain, tokens, ends)
        if line is not None and ticket is not None:
            line.came()
            line.pump()
        if permit is None:
            raise NotNow(chain, tokens)
        if rate is not None:
            rate.take(_now())
        return permit

    def _pass(self, tenant: str, rate: TenantRate, ticket: int | None) -> None:
        """Whoever goes on from here has its tenant's leave; it is taken with the model's.

        Raises:
            NotNow: its tenant has no request left at the moment.
        """
        later = NotNow((), 0.0, tenant)
        line = self._lines.get(later.line)
        if line is not None and ticket is not None:
            line.came()
            asyncio.get_running_loop().call_soon(line.pump)  # once it is known what became of this one
        if not rate.free(_now()) or (ticket is None and line is not None and not line.empty):
            rate.tell(_now())
            raise later

    def _permit(self, request: ModelRequest, chain: Chain, tokens: float, ends: float) -> Permit | None:
        now = _now()
        target, key, _ = self._look(chain, tokens, now, ends)
        if target is None or key is None:
            return None
        target.endpoint.adaptive.in_use += 1
        target.endpoint.ring.take(key)
        spent = key.rates.take(now, tokens)
        probe = target.breaker.begin()
        if probe:
            self._outcomes.breaker_changed(target)
        return Permit(target=target, kind=self._kind(request), key=key, spent=spent, probe=probe)

    async def turn(self, later: NotNow, ticket: int, ends: float) -> None:
        """Wait until it may be the turn of *ticket*, who leaves at *ends*. Nothing is taken by that."""
        line = self._lines.get(later.line)
        if line is None:
            line = self._lines[later.line] = Line(partial(self._look_for, later))
        try:
            await line.wait(ticket, later.tokens, ends)
        finally:
            if line.empty and self._lines.get(later.line) is line:
                line.end()
                del self._lines[later.line]

    def ticket(self) -> int:
        """A place in the lines, behind all that were given out before."""
        return next(self._tickets)

    async def chat(self, permit: Permit, request: ModelRequest, timeout_s: float) -> ModelReply:
        """Make the call that was permitted; what was taken for it is given back at its end.

        Raises:
            ModelError: there is no reply; it names endpoint and model, and what it says of them is noted.
        """
        target, began = permit.target, _now()
        latencies = target.latencies(permit.kind.name)
        ended = False
        try:
            reply = await self._asked(permit, request, timeout_s, latencies)
            ended = True
        except ModelError as error:
            ended = True
            had_s = _now() - began
            if error.kind == "timeout":
                latencies.note(had_s)
            self._outcomes.failed(permit, error, had_s=had_s, now=_now())
            raise
        finally:
            if not ended:  # cancelled, or the program is broken: nothing is known of the endpoint
                self._outcomes.dropped(permit, _now())
            self._release(permit)
        took_s = _now() - began
        self._outcomes.answered(permit, reply, took_s=took_s, usual_s=latencies.usual_s, now=_now())
        latencies.note(took_s)
        return reply if reply.endpoint else replace(reply, endpoint=target.endpoint.settings.name)

    async def _asked(
        self, permit: Permit, request: ModelRequest, timeout_s: float, latencies: Latencies
    ) -> ModelReply:
        """Ask, until the time is over or the call is taken to hang."""
        target = permit.target
        try:
            async with asyncio.timeout(None) as cut:
                with latencies.watching(cut, _now()):
                    return await target.endpoint.client.chat(
                        request,
                        model=target.settings,
                        key=permit.key.value,
                        timeout_s=min(timeout_s, latencies.patience_s),
                        thinking=permit.kind.thinking,
                    )
        except TimeoutError:
            reason = f"{target.name} at {target.endpoint.settings.name} took more time than such calls do"
            raise ModelError("timeout", reason, retry=True) from None

    def give_back(self, permit: Permit) -> None:
        """The call that was permitted is not made after all: nothing was taken."""
        permit.key.rates.settle(permit.spent, 0)
        self._outcomes.dropped(permit, _now())
        self._release(permit)

    def now(self) -> float:
        """Seconds on the clock of the event loop."""
        return _now()

    def away_s(self, target: ModelTarget) -> float:
        """Seconds that a model is not to be asked, by its breaker or by its provider's own word."""
        return target.away_s(_now())

    def another_key(self, target: ModelTarget) -> bool:
        """Whether a key that was refused for a while leaves others that may go on."""
        ring = target.endpoint.ring
        return len(ring.live) > 1 and ring.limited_s(_now()) <= 0

    def _release(self, permit: Permit) -> None:
        permit.key.in_use -= 1
        permit.target.endpoint.adaptive.in_use -= 1
        # In a moment: what became of the call is noted first.
        if self._lines:
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        for line in tuple(self._lines.values()):
            line.pump()

    def _look_for(self, later: NotNow, tokens: float, ends: float) -> tuple[int, float]:
        """What there is for those who wait as *later* does."""
        if not later.tenant:
            return self._room(later.chain, tokens, ends)
        rate = self._tenants.of(later.tenant)
        return (CALLED, 0.0) if rate is None else rate.room(_now())

    def _room(self, chain: Chain, tokens: float, ends: float) -> tuple[int, float]:
        """How many of those who wait for these models may come now, and else the seconds until one may."""
        if all(target.out is not None for target in chain):
            return CALLED, 0.0  # all of them are to hear of it
        target, key, wait = self._look(chain, tokens, _now(), ends)
        if target is None or key is None:
            return 0, wait
        return target.room(key.rates.gap_s), 0.0

    def _look(self, chain: Chain, tokens: float, now: float, ends: float) -> Found:
        """As :meth:`_first`; what cannot wait that long may try a model before its breaker's time."""
        found = self._first(chain, tokens, now, math.inf)
        if found[1] is None and now + found[2] >= ends:
            return self._first(chain, tokens, now, ends)
        return found

    def _first(self, chain: Chain, tokens: float, now: float, ends: float) -> Found:
        """The first model of the chain that is there, and a key for it; else the seconds until one may be.

        A model that is away is passed over, one whose endpoint is only busy is waited for: what it
        falls back on is for trouble, not for load. The seconds are infinite where only an end of
        another call can help.
        """
        shortest = math.inf
        for target in chain:
            if target.out is not None:
                continue
            away = target.away_s(now, ends)
            if away > 0:
                shortest = min(shortest, away)
                continue
            if not target.endpoint.adaptive.room:
                return None, None, shortest
            key, wait = target.endpoint.ring.free(now, tokens)
            return (target, key, 0.0) if key is not None else (None, None, min(wait, shortest))
        return None, None, shortest

    def _of_tokens(self, chain: Sequence[ModelTarget]) -> bool:
        return any(target.endpoint.settings.tokens_per_minute is not None for target in chain)

    def _kind(self, request: ModelRequest) -> Kind:
        return self._routes.kind(request.kind)

    def _target(self, model: ModelSettings) -> ModelTarget:
        target = self._targets.get(model.name)
        if target is None:
            target = self._targets[model.name] = ModelTarget(model, self._endpoints[model.endpoint])
            if len(self._targets) > MODELS:
                self._targets.popitem(last=False)
        return target


def _now() -> float:
    return asyncio.get_running_loop().time()
