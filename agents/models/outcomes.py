"""What the end of a call says of its model, its key and its endpoint."""

from dataclasses import dataclass

import structlog

from agents.configuration.values import Kind
from agents.models.decisions import KEY_OUT, MODEL_OUT, rule_of
from agents.models.keys import Key
from agents.models.metrics import Metrics
from agents.models.rates import Spent
from agents.models.targets import ModelTarget, Out
from agents.ports import ModelError, ModelReply

log = structlog.get_logger()

MIN_PROVIDER_WAIT_S = 1.0
"""A provider that asks for less is counted like any failure, or a wait of 0 could repeat for ever."""

SHORT_S = 10.0
"""A call near the attempt's end that had less time than this says nothing of anybody by taking longer."""


@dataclass(slots=True, eq=False, kw_only=True)
class Permit:
    """One call may leave, at once: what was taken for it, until it ends."""

    target: ModelTarget
    kind: Kind
    key: Key
    spent: Spent
    probe: bool


class Outcomes:
    """Notes the end of every call. Times are seconds on the clock of the event loop.

    Args:
        metrics: What is told of each.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def answered(
        self, permit: Permit, reply: ModelReply, *, took_s: float, usual_s: float | None, now: float
    ) -> None:
        """A call brought a reply after *took_s* seconds; such calls take *usual_s*, where that is known."""
        target = permit.target
        permit.key.rates.settle(permit.spent, reply.usage.tokens)
        permit.key.answered()
        target.breaker.answered(now, probe=permit.probe)
        if permit.probe:
            self.breaker_changed(target)
        target.endpoint.adaptive.answered(now, latency_s=took_s, usual_s=usual_s)
        self._metrics.replied(target.name, reply)
        self._tell_concurrency(target)

    def failed(self, permit: Permit, error: ModelError, *, had_s: float, now: float) -> None:
        """A call that had so many seconds brought none. The error is told whom it was about."""
        target, rule = permit.target, rule_of(error.kind)
        endpoint = target.endpoint
        error.endpoint = error.endpoint or endpoint.settings.name
        error.model = error.model or target.name
        if not rule.charged:
            permit.key.rates.settle(permit.spent, 0)
        no_time = error.kind == "timeout" and had_s < SHORT_S
        before = target.breaker.state
        if no_time:
            target.breaker.dropped(now, probe=permit.probe)
        elif rule.ill:
            target.breaker.failed(now, probe=permit.probe)
        else:
            target.breaker.answered(now, probe=permit.probe)
        if target.breaker.state != before:
            self.breaker_changed(target)
        if (rule.ill or rule.congested) and not no_time:
            endpoint.adaptive.failed(now, congested=rule.congested)
        asked = error.wait_s or 0.0
        if rule.congested and asked >= MIN_PROVIDER_WAIT_S:
            permit.key.limited(now, asked, others=len(endpoint.ring.live) > 1)
        if rule.decision == "endpoint_out":
            self._put_out(permit, Out(kind=error.kind, reason=error.reason))
        self._tell_concurrency(target)

    def dropped(self, permit: Permit, now: float) -> None:
        """A call ended without a word of the endpoint: it was cancelled, or the program is broken."""
        permit.target.breaker.dropped(now, probe=permit.probe)
        if permit.probe:
            self.breaker_changed(permit.target)

    def breaker_changed(self, target: ModelTarget) -> None:
        """Tell what state a model's breaker is in now."""
        self._metrics.breaker(target.name, target.breaker.state)
        log.info("breaker", model=target.name, state=target.breaker.state)

    def _tell_concurrency(self, target: ModelTarget) -> None:
        endpoint = target.endpoint
        self._metrics.concurrency(endpoint.settings.name, endpoint.adaptive.limit)

    def _put_out(self, permit: Permit, out: Out) -> None:
        target, endpoint = permit.target, permit.target.endpoint
        if out.kind in MODEL_OUT:
            target.put_out(out)
            log.warning("model_out", model=target.name, kind=out.kind, reason=out.reason)
            return
        if out.kind in KEY_OUT:
            if not permit.key.out:
                permit.key.out = out.reason
                log.warning("key_out", key=permit.key.name, kind=out.kind, reason=out.reason)
            endpoint.recount()
            if endpoint.ring.live:
                return
        if endpoint.out is None:
            endpoint.out = out
            log.error("endpoint_out", endpoint=endpoint.settings.name, kind=out.kind, reason=out.reason)
