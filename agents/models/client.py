"""The one client of a model endpoint that speaks the OpenAI chat API.

``chat.completions.create`` spends a fifth of a worker's CPU on transforming the request and on
reading the reply into pydantic models, and the layers of options, retries and telemetry above the
transport another tenth. So this module posts JSON bytes and reads JSON bytes on the transport
that the openai client brings (``DefaultAioHttpClient``), with the headers that it makes.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx2
import orjson
from openai import AsyncOpenAI, DefaultAioHttpClient

from agents.models.faults import Endpoint, is_html
from agents.models.prices import PriceList
from agents.plain_json import dumps
from agents.ports import ModelError, ModelReply, ModelRequest, ToolSpec
from streams.core.values import Json, Usage

SIMULATED_HEADER = "x-anabranch-simulated"
"""A reply with this header came from the simulated endpoint; it costs nothing."""

PUBLIC_URL = "https://api.openai.com/v1"

BYTES_PER_TOKEN = 4
"""For the estimate where a provider does not tell usage: English text on common tokenizers."""

CALL_ID_HEADER = "X-Client-Request-Id"
"""The header for a caller's own name of a call: https://platform.openai.com/docs/api-reference/debugging-requests."""

MAY_BE_EMPTY = ("length", "content_filter")
"""With these reasons a reply without words is what happened, not a broken reply."""

JSON = "application/json"
OK = 200

CONNECT_S = 5.0
MAX_CONNECTIONS = 1_000


class ChatClient:
    """A model behind an OpenAI-compatible endpoint. One a process; close it at the end.

    Attributes:
        base_url: The endpoint; empty means OpenAI's own.
        model: The model used where a request names none.

    Raises:
        ValueError: the URL holds a user or a password.
    """

    def __init__(self, *, base_url: str, api_key: str, model: str) -> None:
        self.base_url = base_url or PUBLIC_URL
        self.model = model
        self._endpoint = Endpoint(self.base_url, api_key)
        self._prices = PriceList(self.base_url)
        self._http = DefaultAioHttpClient(
            limits=httpx2.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS),
        )
        client = AsyncOpenAI(
            base_url=self.base_url,
            api_key=api_key or "none",  # local endpoints need none, but the client refuses an empty one
            max_retries=0,
            http_client=self._http,
        )
        self._url = httpx2.URL(f"{str(client.base_url).rstrip('/')}/chat/completions")
        self._extensions = {"timeout": httpx2.Timeout(None, connect=CONNECT_S).as_dict()}
        # Its telemetry headers tell the endpoint about this machine; they stay out.
        self._headers = httpx2.Headers(
            {
                **client.auth_headers,
                "Host": self._url.netloc.decode(),
                "User-Agent": client.user_agent,
                "Accept": JSON,
                "Accept-Encoding": "gzip, deflate",
                "Content-Type": JSON,
            }
        )
        # Both build records before a handler could drop them: a tenth of the CPU of a busy worker.
        for name in ("openai", "httpx2"):
            logging.getLogger(name).setLevel(logging.WARNING)

    async def close(self) -> None:
        """Close the connections; calls in flight fail."""
        await self._http.aclose()

    async def chat(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        """Ask once, within *timeout_s* seconds from now to the whole reply.

        Raises:
            ModelError: there is no reply; its kind says what to do.
        """
        model = request.model or self.model
        body = dumps(request_body(request, model))
        began = time.perf_counter()
        try:
            async with asyncio.timeout(timeout_s):
                # Not `post`: to merge the same URL and headers anew is a twentieth of a worker's CPU.
                asked = httpx2.Request(
                    "POST", self._url, headers=self._headers, content=body, extensions=self._extensions
                )
                if request.call_id:
                    asked.headers[CALL_ID_HEADER] = request.call_id
                response = await self._http.send(asked)
        except TimeoutError:
            raise self._endpoint.error("timeout", f"no reply from {model} within {timeout_s:.1f} s") from None
        except Exception as exception:
            error = self._endpoint.failed(exception)
            if error is None:
                raise
            raise error from None  # the cause may quote headers, and with them the key
        latency_ms = (time.perf_counter() - began) * 1_000
        if response.status_code != OK:
            raise self._endpoint.refused(response.status_code, response.headers, response.content)
        reply = self._read(response, model, body, latency_ms)
        if reply.simulated:
            return reply
        return replace(
            reply, usage=replace(reply.usage, usd=await self._prices.usd(reply.model, reply.usage))
        )

    def _read(self, response: httpx2.Response, model: str, sent: bytes, latency_ms: float) -> ModelReply:
        headers, content = response.headers, response.content
        try:
            completion = orjson.loads(content)
        except orjson.JSONDecodeError:
            if is_html(headers, content):
                raise self._endpoint.refused(response.status_code, headers, content) from None
            raise self._malformed(f"{len(content)} bytes that are no JSON") from None
        if not isinstance(completion, dict):
            raise self._malformed("JSON that is no object")
        if completion.get("error"):
            raise self._endpoint.refused(response.status_code, headers, content)
        try:
            choice = completion["choices"][0]
            message = clean_message(choice["message"])
            finish_reason = choice["finish_reason"]
        except (KeyError, IndexError, TypeError, AttributeError) as broken:
            raise self._malformed(f"no whole choice in it ({type(broken).__name__}: {broken})") from None
        if not isinstance(finish_reason, str):
            raise self._malformed("no finish_reason, so it may be cut off")
        if not message.get("content") and "tool_calls" not in message and finish_reason not in MAY_BE_EMPTY:
            raise self._malformed("an empty message")
        return ModelReply(
            message=message,
            finish_reason=finish_reason,
            usage=read_usage(completion.get("usage"), sent=len(sent), received=len(content)),
            model=str(completion.get("model") or model),
            request_id=headers.get("x-request-id") or str(completion.get("id") or ""),
            latency_ms=latency_ms,
            simulated=headers.get(SIMULATED_HEADER) == "1",
        )

    def _malformed(self, what: str) -> ModelError:
        return self._endpoint.error("malformed", f"the reply is {what}")


def request_body(request: ModelRequest, model: str) -> dict[str, Any]:
    """A request in the terms of the chat API. No sampling parameter is sent: some models refuse them."""
    messages = request.messages
    if model.startswith("kimi-"):
        messages = [with_reasoning(message) for message in messages]
    body: dict[str, Any] = {
        "model": model,
        "messages": messages,
        "max_completion_tokens": request.max_tokens,
    }
    if request.tools:
        body["tools"] = [tool_json(tool) for tool in request.tools]
    if request.json_object:
        body["response_format"] = {"type": "json_object"}
    return body


def tool_json(tool: ToolSpec) -> dict[str, Any]:
    """A tool as the chat API wants it."""
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    }


def with_reasoning(message: Mapping[str, Json]) -> Mapping[str, Json]:
    """The message as Kimi models want it back.

    They refuse an assistant message with tool calls that lacks ``reasoning_content``, and an
    empty one as well; a single space they take.
    """
    if message.get("tool_calls") and not message.get("reasoning_content"):
        return {**message, "reasoning_content": " "}
    return message


def clean_message(message: Mapping[str, Json]) -> dict[str, Json]:
    """An assistant message as it came, without the empty fields that no endpoint takes back.

    Raises:
        TypeError, KeyError, AttributeError: it is no message, or a tool call in it is broken.
    """
    kept: dict[str, Json] = {
        name: value for name, value in message.items() if value is not None and value != []
    }
    kept.setdefault("role", "assistant")
    kept.setdefault("content", None)
    calls: Any = kept.get("tool_calls", ())
    for call in calls:
        function = call["function"]
        if not isinstance(function["name"], str) or not isinstance(function["arguments"], str):
            raise TypeError("a tool call without name or arguments")
    return kept


def read_usage(usage: object, *, sent: int, received: int) -> Usage:
    """What the provider says a call cost, else an estimate from the bytes *sent* and *received*."""
    if isinstance(usage, dict):
        tokens_in, tokens_out = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if isinstance(tokens_in, int) and isinstance(tokens_out, int):
            details: Any = usage.get("prompt_tokens_details")
            cached = usage.get("cached_tokens") or (details or {}).get("cached_tokens")
            return Usage(
                calls=1,
                tokens_in=tokens_in,
                tokens_cached=min(cached, tokens_in) if isinstance(cached, int) else 0,
                tokens_out=tokens_out,
            )
    return Usage(
        calls=1,
        tokens_in=-(-sent // BYTES_PER_TOKEN),
        tokens_out=-(-received // BYTES_PER_TOKEN),
        estimated=1,
    )
