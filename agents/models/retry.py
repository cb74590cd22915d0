"""The one place that decides whether a model call is made again, where, and when."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace

import structlog

from agents.models.alone import alone
from agents.models.decisions import Decision, Rule, rule_of
from agents.models.not_now import NotNow
from agents.models.outcomes import MIN_PROVIDER_WAIT_S, Permit
from agents.models.purse import EARLIER_S, Purse
from agents.models.targets import ModelTarget
from agents.models.traffic import Traffic
from agents.ports import Attempt, Model, ModelError, ModelReply, ModelRequest
from streams.core.backoff import backoff

log = structlog.get_logger()

MAX_TRIES = 5
"""Failed tries of one call in one attempt of a sub-task, all models together."""

SPREAD = 0.25
"""Share of a provider's wait that is added by chance, so that all do not come back at once."""

GOES_ON = frozenset({"retry", "elsewhere", "endpoint_out"})
"""Decisions after which the call is made again."""


class PatientModel:
    """Models whose calls are made again where that can help.

    Full jitter as in https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/.

    Args:
        traffic: All models of this process; or a model alone, without routes and limits.
    """

    def __init__(self, traffic: Traffic | Model) -> None:
        self._traffic = traffic if isinstance(traffic, Traffic) else alone(traffic)

    async def ask(self, request: ModelRequest, attempt: Attempt) -> ModelReply:
        """Make one model call of *attempt*, with retries.

        Neither a wait for a turn nor one that the provider asks for is a failed try: they are bounded
        by the attempt's time alone, and hold no slot.

        Raises:
            ModelError: the last error, where no retry can help, tries are used up, or the wait
                before the next one goes beyond the attempt's time.
        """
        if attempt.fallback:
            request = replace(request, fallback=attempt.fallback)
        course = Course(self._traffic, Purse(attempt), attempt.jitter)
        while True:
            try:
                # What depends on load, time and chance happens in the call: a reply recalled needs no turn.
                return await attempt.model(request, course.call)
            except NotNow as later:
                await self._turn(later, course, attempt)
            except ModelError as error:
                if error.decision not in GOES_ON:
                    raise
                log.debug(
                    "model_call_retried",
                    kind=error.kind,
                    model=error.model,
                    decision=error.decision,
                    wait_s=course.pause_s and round(course.pause_s, 3),
                )
                await self._pause(error, course, attempt)

    async def _turn(self, later: NotNow, course: "Course", attempt: Attempt) -> None:
        ticket = course.ticket = course.ticket or self._traffic.ticket()

        async def turn() -> None:
            # A little before the attempt's end: else the reason would be that its time is over, and not why.
            async with asyncio.timeout_at(course.ends - EARLIER_S):
                await self._traffic.turn(later, ticket, course.ends)

        try:
            await attempt.wait_for(turn)
        except TimeoutError:
            raise course.too_late(f"no turn {later.where} within this attempt's time") from None

    async def _pause(self, error: ModelError, course: "Course", attempt: Attempt) -> None:
        if course.pause_s is None:
            return
        try:
            await attempt.wait(course.pause_s)
        except TimeoutError:
            raise course.too_late(beyond(course.pause_s), error) from None


class Course:
    """One call on its way through its models: what was tried, and what is next.

    Attributes:
        ticket: Its place in the lines, once it has waited.
        ends: When the attempt's time is over, seconds on the loop's clock.
        pause_s: Seconds to wait before the next try; None: none at all.
    """

    def __init__(self, traffic: Traffic, purse: Purse, chance: Callable[[], float]) -> None:
        self._traffic, self._purse, self._chance = traffic, purse, chance
        self._failures = self._backoffs = 0
        self._avoid: frozenset[str] = frozenset()
        self._last: ModelError | None = None
        self.ticket: int | None = None
        self.ends = math.inf
        self.pause_s: float | None = None

    async def call(self, request: ModelRequest, timeout_s: float) -> ModelReply:
        """Make the next try; it has so many seconds.

        Raises:
            NotNow: there is no turn for it at the moment.
            ModelError: there is no reply, and it is decided what is made of that; or the attempt's grant
                has no room for the call.
        """
        self.ends = self._traffic.now() + timeout_s
        request = self._purse.fitted(request)
        permit = self._traffic.take(request, ticket=self.ticket, avoid=self._avoid, ends=self.ends)
        try:
            request = await self._purse.afforded(request, permit.target)
        except BaseException:
            self._traffic.give_back(permit)
            raise
        try:
            return await self._traffic.chat(permit, request, self._purse.seconds(timeout_s))
        except ModelError as error:
            self._last = error
            await self._purse.charge(error, request, permit.target)
            error.decision = self._decide(error, permit, request, self.ends - self._traffic.now())
            self._traffic.metrics.failed(error)
            raise

    def too_late(self, why: str, error: ModelError | None = None) -> ModelError:
        """The attempt's time is over before the next try."""
        error = error or self._last
        kind, reason = (error.kind, f"{error.reason}; {why}") if error else ("unavailable", why)
        late = ModelError(kind, reason, retry=True, wait_s=error.wait_s if error else None)
        if error:
            late.endpoint, late.model = error.endpoint, error.model
        late.decision = "give_up"
        return late

    def _decide(self, error: ModelError, permit: Permit, request: ModelRequest, left_s: float) -> Decision:
        self.pause_s = None
        rule = rule_of(error.kind)
        if rule.decision == "endpoint_out":
            return "endpoint_out" if self._live(request) else "fatal"
        if rule.decision not in GOES_ON or not error.retry or left_s <= EARLIER_S:
            return "give_up"
        return self._again(error, rule, permit.target, self._live(request), left_s)

    def _live(self, request: ModelRequest) -> tuple[str, ...]:
        """The models that are left for it."""
        try:
            return tuple(target.name for target in self._traffic.chain(request))
        except ModelError:
            return ()

    def _again(
        self, error: ModelError, rule: Rule, target: ModelTarget, live: tuple[str, ...], left_s: float
    ) -> Decision:
        """Where and when the call is made again, or that it is not."""
        asked = error.wait_s or 0.0
        by_provider = asked >= MIN_PROVIDER_WAIT_S
        if rule.counted and not by_provider:
            self._failures += 1
            if self._failures >= MAX_TRIES:
                return "give_up"
        if rule.decision == "elsewhere" or self._traffic.away_s(target) > 0:
            self._avoid |= {target.name}
            if any(name not in self._avoid for name in live):
                return "elsewhere"
            self._avoid = frozenset()  # all had their turn: from the first one again
        if by_provider and self._traffic.another_key(target):
            return "retry"  # by that, at once
        self.pause_s = pause = self._pause_s(asked, by_provider=by_provider)
        if pause >= left_s:
            error.reason = f"{error.reason}; {beyond(pause)}"
            error.args = (error.reason,)
            return "give_up"
        return "retry"

    def _pause_s(self, asked: float, *, by_provider: bool) -> float:
        if by_provider:
            return asked * (1 + SPREAD * self._chance())
        self._backoffs += 1
        return max(asked, backoff(self._backoffs, self._chance()))


def beyond(seconds: float) -> str:
    """Why no further try is made, for the words of an error."""
    return f"the next try is {seconds:.1f} s away, beyond this attempt's time"
