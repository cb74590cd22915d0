"""What one attempt may spend on its calls, looked at where the model of each is known."""

from typing import Protocol, runtime_checkable

from agents.configuration.values import ModelSettings
from agents.grants import Price, cost_of, within_dollars, within_tokens
from agents.models.targets import EndpointClient, ModelTarget
from agents.ports import Attempt, ModelError, ModelRequest


@runtime_checkable
class Priced(Protocol):
    """A client that knows what its models cost."""

    async def price(self, model: ModelSettings) -> Price | None:
        """How to price calls of *model*; None where nobody knows."""


EARLIER_S = 0.25
"""A call ends so much before its attempt does, or a tenth of what that has left: of one that is cut off with
its attempt no transcript, breaker or counter is told, and it has spent all dollars that were granted."""


class Purse:
    """Keeps the calls of one attempt inside its grant: see :mod:`agents.grants`."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt

    def fitted(self, request: ModelRequest) -> ModelRequest:
        """The request, its output cut to the tokens that are left.

        Raises:
            ModelError: ``budget``.
        """
        return within_tokens(request, self._attempt.grant, self._attempt.usage)

    async def afforded(self, request: ModelRequest, target: ModelTarget) -> ModelRequest:
        """The request, its output cut to what the dollars that are left buy of this model.

        Raises:
            ModelError: ``budget``.
        """
        grant = self._attempt.grant
        if grant is None or grant.usd is None:
            return request
        price = await price_of(target)
        try:
            return within_dollars(request, grant, self._attempt.usage, model=target.name, price=price)
        except ModelError as error:
            error.endpoint, error.model = target.endpoint.settings.name, target.name
            raise

    def seconds(self, left_s: float) -> float:
        """How long a call may take of an attempt that has so many seconds left."""
        return left_s - min(EARLIER_S, left_s / 10)

    async def charge(self, error: ModelError, request: ModelRequest, target: ModelTarget) -> None:
        """Say in the error what the call may have cost that brought it."""
        if error.usage is None:
            cost = cost_of(error, request, None)
            error.usage = cost_of(error, request, await price_of(target)) if cost.calls else cost


async def price_of(target: ModelTarget) -> Price | None:
    """How to price calls of a model; None where nobody knows."""
    client: EndpointClient = target.endpoint.client
    return await client.price(target.settings) if isinstance(client, Priced) else None
