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

from agents.configuration.values import Endpoint, ModelSettings
from agents.models.bodies import request_body
from agents.models.faults import Faults, is_html
from agents.models.prices import PriceList
from agents.plain_json import dumps
from agents.ports import ModelError, ModelReply, ModelRequest
from agents.strict_json import MAX_DEPTH, deeper_than
from streams.core.values import Json, Usage

SIMULATED_HEADER = "x-anabranch-simulated"
"""A reply with this header came from the simulated endpoint; it costs nothing."""

BYTES_PER_TOKEN = 4
"""For the estimate where a provider does not tell usage: English text on common tokenizers."""

CALL_ID_HEADER = "X-Client-Request-Id"
"""The header for a caller's own name of a call: https://platform.openai.com/docs/api-reference/debugging-requests."""

CUT_SHORT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
"""Words of providers for a reply that ended at its limit; here it is ``length``, OpenAI's own."""

NOT_ENDED = frozenset({"error", "abort", "cancelled"})
"""Words of OpenRouter, Mistral and vLLM for a reply that broke off, though its status is 200."""

MAY_BE_EMPTY = ("length", "content_filter")
"""With these reasons a reply without words is what happened, not a broken reply."""

MAX_REPLY_BYTES = 1_048_576
"""A longer reply is not read to its end: ten times what the longest turn has, and a record of the
journal takes it, however its numbers are written."""

MAX_CALLS = 1_000
"""Tool calls in one turn. What asks for more asks for nothing that could be told to it."""

MAX_NAME = 256
"""Characters of a model's name and of a call's id as the provider says them; longer ones are no names."""

MAX_TOKENS = 1_000_000_000
"""Tokens of one call, beyond which a provider's word for them is no count."""

JSON = "application/json"
OK = 200

NO_KEY = "none"
"""Sent where there is no key: local endpoints look at none, and clients refuse an empty one."""

MAX_KEYS = 1_000
"""Keys whose headers are kept."""

CONNECT_S = 5.0
MAX_CONNECTIONS = 1_000


class ChatClient:
    """A model endpoint that speaks the OpenAI chat API. One a process and endpoint; close it at the end.

    Attributes:
        endpoint: Where it calls.

    Raises:
        ValueError: the URL holds a user or a password.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._faults = Faults(endpoint)
        self._prices = PriceList(self._faults.url)
        self._http = DefaultAioHttpClient(
            limits=httpx2.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS),
        )
        client = AsyncOpenAI(base_url=self._faults.url, api_key=NO_KEY, max_retries=0, http_client=self._http)
        self._url = httpx2.URL(f"{str(client.base_url).rstrip('/')}/chat/completions")
        self._extensions = {"timeout": httpx2.Timeout(None, connect=CONNECT_S).as_dict()}
        # Its telemetry headers tell the endpoint about this machine; they stay out.
        self._headers = {
            "Host": self._url.netloc.decode(),
            "User-Agent": client.user_agent,
            "Accept": JSON,
            "Accept-Encoding": "gzip, deflate",
            "Content-Type": JSON,
        }
        self._headers_by_key: dict[str, httpx2.Headers] = {}
        # Both build records before a handler could drop them: a tenth of the CPU of a busy worker.
        for name in ("openai", "httpx2"):
            logging.getLogger(name).setLevel(logging.WARNING)

    async def close(self) -> None:
        """Close the connections; calls in flight fail."""
        await self._http.aclose()

    async def chat(
        self,
        request: ModelRequest,
        *,
        model: ModelSettings,
        key: str,
        timeout_s: float,
        thinking: bool | None = None,
    ) -> ModelReply:
        """Ask once.

        Args:
            request: What to ask.
            model: The model to ask, one of this endpoint.
            key: One of the endpoint's keys; empty for an endpoint that wants none.
            timeout_s: Seconds from now to the whole reply.
            thinking: Whether the model is to think. None: as the endpoint does by itself.

        Raises:
            ModelError: there is no reply; its kind says what to do.
        """
        try:
            return await self._chat(
                request,
                model=model,
                key=key,
                timeout_s=timeout_s,
                body=dumps(request_body(request, endpoint=self.endpoint, model=model, thinking=thinking)),
            )
        except ModelError as error:
            error.model = model.name
            raise

    async def _chat(
        self, request: ModelRequest, *, model: ModelSettings, key: str, timeout_s: float, body: bytes
    ) -> ModelReply:
        began = time.perf_counter()
        try:
            async with asyncio.timeout(timeout_s):
                # Not `post`: to merge the same URL and headers anew is a twentieth of a worker's CPU.
                asked = httpx2.Request(
                    "POST",
                    self._url,
                    headers=self._headers_of(key),
                    content=body,
                    extensions=self._extensions,
                )
                if request.call_id:
                    asked.headers[CALL_ID_HEADER] = request.call_id
                # An endpoint's address is its own: a redirect would take key and prompt elsewhere.
                response = await self._http.send(asked, stream=True, follow_redirects=False)
                content = await self._content(response)
        except TimeoutError:
            raise self._faults.error(
                "timeout", f"no reply from {model.id} within {timeout_s:.1f} s"
            ) from None
        except ModelError:
            raise
        except Exception as exception:
            error = self._faults.failed(exception)
            if error is None:
                raise
            raise error from None  # the cause may quote headers, and with them the key
        latency_ms = (time.perf_counter() - began) * 1_000
        if response.status_code != OK:
            raise self._faults.refused(response.status_code, response.headers, content, key=key)
        reply = self._read(response, content, model=model, key=key, sent=len(body), latency_ms=latency_ms)
        if reply.simulated:
            return reply
        usd = await self._prices.usd(reply.model, reply.usage, own=model.prices)
        return replace(reply, usage=replace(reply.usage, usd=usd))

    def _headers_of(self, key: str) -> httpx2.Headers:
        """The headers of a call with this key: to make them anew costs as much as to write the body."""
        made = self._headers_by_key.get(key)
        if made is None:
            if len(self._headers_by_key) >= MAX_KEYS:
                self._headers_by_key.clear()
            made = httpx2.Headers({"Authorization": f"Bearer {key or NO_KEY}", **self._headers})
            self._headers_by_key[key] = made
        return made

    async def _content(self, response: httpx2.Response) -> bytes:
        """The body, decoded; of one without an end no more than the bound is ever held."""
        pieces, size = [], 0
        try:
            async for piece in response.aiter_bytes():
                pieces.append(piece)
                size += len(piece)
                if size > MAX_REPLY_BYTES:
                    raise self._malformed(f"more than {MAX_REPLY_BYTES} bytes")
        finally:
            await response.aclose()
        return b"".join(pieces)

    def _read(
        self,
        response: httpx2.Response,
        content: bytes,
        *,
        model: ModelSettings,
        key: str,
        sent: int,
        latency_ms: float,
    ) -> ModelReply:
        headers = response.headers
        try:
            completion = orjson.loads(content)
        except orjson.JSONDecodeError:
            if is_html(headers, content):
                raise self._faults.refused(response.status_code, headers, content, key=key) from None
            if content.lstrip().startswith((b"data:", b"event:", b":")):
                raise self._malformed("a stream of events, though none was asked for") from None
            raise self._malformed(f"{len(content)} bytes that are no JSON") from None
        if not isinstance(completion, dict):
            raise self._malformed("JSON that is no object")
        if completion.get("error"):
            raise self._faults.refused(response.status_code, headers, content, key=key)
        try:
            choice = completion["choices"][0]
            message = clean_message(choice["message"])
            finish_reason = choice["finish_reason"]
        except (KeyError, IndexError, TypeError, AttributeError) as broken:
            why = f"{type(broken).__name__}: {broken}"[:200]
            raise self._malformed(f"no whole choice in it ({why})") from None
        if deeper_than(message, MAX_DEPTH):
            raise self._malformed(f"a message nested more than {MAX_DEPTH} levels deep")
        if not isinstance(finish_reason, str):
            raise self._malformed("no finish_reason, so it may be cut off")
        if finish_reason.lower() in NOT_ENDED:
            raise self._malformed(f"broken off: finish_reason {finish_reason}")
        if finish_reason.lower() in CUT_SHORT:
            finish_reason = "length"
        if not message.get("content") and "tool_calls" not in message and finish_reason not in MAY_BE_EMPTY:
            raise self._malformed("an empty message")
        return ModelReply(
            message=message,
            finish_reason=finish_reason[:MAX_NAME],
            usage=read_usage(completion.get("usage"), sent=sent, received=len(content)),
            model=_name(completion.get("model")) or model.id,
            request_id=_name(headers.get("x-request-id")) or _name(completion.get("id")),
            latency_ms=latency_ms,
            simulated=headers.get(SIMULATED_HEADER) == "1",
            endpoint=self.endpoint.name,
        )

    def _malformed(self, what: str) -> ModelError:
        return self._faults.error("malformed", f"the reply is {what}")


def clean_message(message: Mapping[str, Json]) -> dict[str, Json]:
    """An assistant message as it came, without the empty fields that no endpoint takes back.

    Content in parts, as some endpoints send it, becomes the text of its parts; whatever the message
    says of its role, an assistant said it.

    Raises:
        TypeError, KeyError, AttributeError: it is no message, or a part or a tool call in it is broken.
    """
    kept: dict[str, Json] = {
        name: value for name, value in message.items() if value is not None and value != []
    }
    kept["role"] = "assistant"
    content: Any = kept.setdefault("content", None)
    if isinstance(content, list):
        kept["content"] = "".join(_text(part) for part in content)
    elif content is not None and not isinstance(content, str):
        raise TypeError("content that is no text")
    calls: Any = kept.get("tool_calls", [])
    if not isinstance(calls, list) or len(calls) > MAX_CALLS:
        raise TypeError(f"tool_calls that are no list of at most {MAX_CALLS}")
    for call in calls:
        function = call["function"]
        if not isinstance(function["name"], str) or not isinstance(function["arguments"], str):
            raise TypeError("a tool call without name or arguments")
        if not isinstance(call.get("id", ""), str | None) or len(call.get("id") or "") > MAX_NAME:
            raise TypeError("a tool call whose id is no name")
    return kept


def _text(part: Any) -> str:
    """The text of a part of a message; parts that are not said to be text, such as thoughts, have none."""
    text = part["text"] if part.get("type") in ("text", "output_text") else ""
    if not isinstance(text, str):
        raise TypeError("a part of a message whose text is none")
    return text


def _name(said: object) -> str:
    """What a provider says of itself, where it can be a name."""
    return said if isinstance(said, str) and len(said) <= MAX_NAME else ""


def read_usage(usage: object, *, sent: int, received: int) -> Usage:
    """What the provider says a call cost, else an estimate from the bytes *sent* and *received*."""
    if isinstance(usage, dict):
        tokens_in, tokens_out = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        if tokens_in is not None and tokens_out is not None:
            details = usage.get("prompt_tokens_details")
            within = details.get("cached_tokens") if isinstance(details, dict) else None
            cached = _count(usage.get("cached_tokens") or within) or 0
            return Usage(
                calls=1, tokens_in=tokens_in, tokens_cached=min(cached, tokens_in), tokens_out=tokens_out
            )
    return Usage(
        calls=1,
        tokens_in=-(-sent // BYTES_PER_TOKEN),
        tokens_out=-(-received // BYTES_PER_TOKEN),
        estimated=1,
    )


def _count(tokens: object) -> int | None:
    """A number of tokens, or None where it is none."""
    fits = isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens <= MAX_TOKENS
    return tokens if fits and isinstance(tokens, int) else None
