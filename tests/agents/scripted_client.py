"""Clients of endpoints on virtual time: HTTP errors are read as the real client reads them."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from agents.configuration.values import Configuration, Endpoint, Kind, ModelSettings
from agents.models.faults import Faults
from agents.ports import ModelError, ModelReply, ModelRequest
from streams.core.values import Usage

REQUEST = ModelRequest(messages=({"role": "user", "content": "u"},))

Turn = ModelReply | ModelError | Callable[[], ModelReply | ModelError] | None
"""A reply, an error, what makes one of them when it is asked for, or None: it hangs."""


def reply(text: str = "ok", *, tokens: int = 100) -> ModelReply:
    """A reply that cost so many tokens."""
    usage = Usage(calls=1, tokens_in=tokens - 20, tokens_out=20)
    return ModelReply(
        message={"role": "assistant", "content": text}, finish_reason="stop", usage=usage, model="m"
    )


class Client:
    """One endpoint.

    Args:
        endpoint: Which one.
        turns: What comes back, in order, the last one for ever.
        latency_s: Seconds each call takes.

    Attributes:
        calls: When each call came, its model, its key, and the time it had.
        most: Calls under way at once, at most.
        hangs: Says of each call whether it hangs instead.
    """

    def __init__(self, endpoint: Endpoint, *turns: Turn, latency_s: float = 0.0) -> None:
        self.faults = Faults(endpoint)
        self.calls: list[tuple[float, str, str, float]] = []
        self.turns = list(turns)
        self.latency_s = latency_s
        self.hangs: Callable[[], bool] = lambda: False
        self.running = self.most = 0

    def http(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> Turn:
        """What the client makes of this HTTP reply; a new error each time."""
        content = body.encode() if isinstance(body, str) else orjson.dumps(body)
        lower = {name.lower(): value for name, value in (headers or {}).items()}
        return lambda: self.faults.refused(status, lower, content)

    async def chat(
        self,
        request: ModelRequest,
        *,
        model: ModelSettings,
        key: str,
        timeout_s: float,
        thinking: bool | None,
    ) -> ModelReply:
        """Give the next turn."""
        self.calls.append((asyncio.get_running_loop().time(), model.name, key, timeout_s))
        turn = self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if turn is None or self.hangs():
                await asyncio.sleep(timeout_s)
                raise self.faults.error("timeout", "no reply")
            await asyncio.sleep(self.latency_s)
        finally:
            self.running -= 1
        made = turn() if callable(turn) else turn
        if isinstance(made, ModelError):
            raise made
        return made

    @property
    def moments(self) -> list[float]:
        """When the calls came."""
        return [moment for moment, *_ in self.calls]


def configuration(*endpoints: Endpoint, **more: Any) -> Configuration:
    """One model on each endpoint, named after it, which all kinds use in this order."""
    names = tuple(endpoint.name for endpoint in endpoints)
    settings: dict[str, Any] = {
        "endpoints": {endpoint.name: endpoint for endpoint in endpoints},
        "models": {name: ModelSettings(name=name, endpoint=name, id=f"{name}-id") for name in names},
        "kinds": {"default": Kind(name="default", models=names)},
    }
    return Configuration(**settings | more)
