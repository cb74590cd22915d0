"""One endpoint with one key, where no configuration says more: any name of a model goes there."""

from agents.configuration.values import DEFAULT, ModelSettings, one_endpoint
from agents.models.client import ChatClient
from agents.ports import ModelReply, ModelRequest


class OneModel:
    """A :class:`agents.ports.Model` on one endpoint. Close it at the end.

    Args:
        base_url: The endpoint, up to and with ``/v1``; empty means OpenAI's own.
        api_key: Its key, or none.
        model: The model used where a request names none.

    Raises:
        ValueError: the URL holds a user or a password.
    """

    def __init__(self, *, base_url: str, api_key: str, model: str) -> None:
        configuration = one_endpoint(base_url=base_url, api_key=api_key, model=model)
        self._key = api_key
        self._model = configuration.models[model]
        self._client = ChatClient(configuration.endpoints[DEFAULT])

    async def close(self) -> None:
        """Close the connections; calls in flight fail."""
        await self._client.close()

    async def chat(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        """Ask once, within *timeout_s* seconds from now to the whole reply.

        Raises:
            ModelError: there is no reply; its kind says what to do.
        """
        asked = request.model
        named = ModelSettings(name=asked, endpoint=DEFAULT, id=asked) if asked else self._model
        return await self._client.chat(request, model=named, key=self._key, timeout_s=timeout_s)
