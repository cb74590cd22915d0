"""A model that is all there is: no routes, and no limits of an account."""

from agents.configuration.values import DEFAULT, Configuration, Endpoint, Kind, ModelSettings
from agents.models.concurrency import MOST
from agents.models.traffic import Traffic
from agents.ports import Model, ModelReply, ModelRequest


def alone(model: Model) -> Traffic:
    """The traffic of a model that is all there is, whatever a request names, without limits of an account.

    It is asked as often at once as anybody likes from the beginning: whoever brings a model for
    tests wants to see what comes of that.
    """
    only = ModelSettings(name=DEFAULT, endpoint=DEFAULT, id=DEFAULT)
    configuration = Configuration(
        endpoints={DEFAULT: Endpoint(name=DEFAULT)},
        models={DEFAULT: only},
        kinds={DEFAULT: Kind(name=DEFAULT, models=(DEFAULT,))},
        open_models=True,
    )
    return Traffic(configuration, {DEFAULT: _Alone(model)}, start=MOST)


class _Alone:
    """A client that knows one model."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def chat(
        self,
        request: ModelRequest,
        *,
        model: ModelSettings,  # noqa: ARG002 - the protocol's own names
        key: str,  # noqa: ARG002
        timeout_s: float,
        thinking: bool | None,  # noqa: ARG002
    ) -> ModelReply:
        return await self._model.chat(request, timeout_s=timeout_s)
