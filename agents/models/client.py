"""The one client of a model endpoint that speaks the OpenAI chat API.

``chat.completions.create`` spends a fifth of a worker's CPU on transforming the request and on
reading the reply into pydantic models, and the layers of options, retries and telemetry above the
transport another tenth. So this module posts JSON bytes and reads JSON bytes on the transport
that the openai client brings (``DefaultAioHttpClient``), with the headers that it makes.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import orjson
from openai import AsyncOpenAI, DefaultAioHttpClient

from agents.configuration.values import Endpoint, ModelSettings
from agents.models.bodies import request_body
from agents.models.faults import Faults, is_html
from agents.models.prices import Price, PriceList
from agents.models.reading import BrokenReply, name_of, read_completion
from agents.models.streaming import DRAIN_S, Assembly, ErrorInStream, read_events, sniffed
from agents.plain_json import dumps
from agents.ports import ModelError, ModelReply, ModelRequest

SIMULATED_HEADER = "x-anabranch-simulated"
"""A reply with this header came from the simulated endpoint; it costs nothing."""

CALL_ID_HEADER = "X-Client-Request-Id"
"""The header for a caller's own name of a call: https://platform.openai.com/docs/api-reference/debugging-requests."""

MAX_REPLY_BYTES = 1_048_576
"""A longer reply is not read to its end: ten times what the longest turn has, and a record of the
journal takes it, however its numbers are written."""

ENCODINGS = {False: "gzip, deflate", True: "identity"}
"""What of a stream is packed is held back until there is enough of it to pack."""

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
            "Accept-Encoding": ENCODINGS[endpoint.streaming],
            "Content-Type": JSON,
        }
        self._headers_by_key: dict[str, httpx2.Headers] = {}
        # Both build records before a handler could drop them: a tenth of the CPU of a busy worker.
        for name in ("openai", "httpx2"):
            logging.getLogger(name).setLevel(logging.WARNING)

    async def close(self) -> None:
        """Close the connections; calls in flight fail."""
        await self._http.aclose()

    async def price(self, model: ModelSettings) -> Price | None:
        """How to price calls of one of the endpoint's models; None where nobody knows."""
        return await self._prices.price(model.id, own=model.prices)

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
        if not (key.isascii() and key.isprintable()):
            # As pasted from a page or a file. The transport would quote it, or not know what it is.
            raise self._faults.unsendable(key)
        # Not `post`: to merge the same URL and headers anew is a twentieth of a worker's CPU.
        asked = httpx2.Request(
            "POST", self._url, headers=self._headers_of(key), content=body, extensions=self._extensions
        )
        if request.call_id:
            asked.headers[CALL_ID_HEADER] = request.call_id
        began = time.perf_counter()
        try:
            async with asyncio.timeout(timeout_s):
                received = await (self._streamed if self.endpoint.streaming else self._whole)(asked)
        except TimeoutError:
            raise self._faults.error(
                "timeout", f"no reply from {model.id} within {timeout_s:.1f} s"
            ) from None
        except ModelError:
            raise
        except (BrokenReply, ErrorInStream) as broken:
            raise self._broken(broken, key) from None
        except Exception as exception:
            error = self._faults.failed(exception)
            if error is None:
                raise
            raise error from None  # the cause may quote headers, and with them the key
        latency_ms = (time.perf_counter() - began) * 1_000
        try:
            reply = self._read(received, model=model, key=key, sent=len(body))
        except BrokenReply as broken:
            raise self._broken(broken, key) from None
        reply = replace(reply, latency_ms=latency_ms)
        if reply.simulated:
            return reply
        usd = await self._prices.usd(reply.model, reply.usage, own=model.prices)
        return replace(reply, usage=replace(reply.usage, usd=usd))

    async def _send(self, asked: httpx2.Request) -> httpx2.Response:
        # An endpoint's address is its own: a redirect would take key and prompt elsewhere.
        return await self._http.send(asked, stream=True, follow_redirects=False)

    async def _whole(self, asked: httpx2.Request) -> "_Received":
        response = await self._send(asked)
        try:
            return _Received(response=response, content=await bounded(response.aiter_bytes()))
        finally:
            await response.aclose()

    async def _streamed(self, asked: httpx2.Request) -> "_Received":
        """A reply as a stream: whole, or not at all; one that hangs is ended.

        Raises:
            ModelError: nothing came for too long.
        """
        assembly, now = Assembly(), asyncio.get_running_loop().time
        began, first_token_ms, response = time.perf_counter(), None, None
        try:
            async with asyncio.timeout(self.endpoint.first_token_s) as clock:
                response = await self._send(asked)
                a_stream, pieces = await sniffed(response.aiter_bytes())
                if response.status_code != OK or not a_stream:
                    clock.reschedule(None)  # the whole call's deadline is enough
                    return _Received(response=response, content=await bounded(pieces))
                async for chunk in read_events(pieces):
                    if chunk is None:
                        assembly.end()
                        clock.reschedule(now() + DRAIN_S)
                    elif assembly.add(chunk):
                        clock.reschedule(now() + self.endpoint.stall_s)
                        first_token_ms = first_token_ms or (time.perf_counter() - began) * 1_000
        except TimeoutError:
            if not assembly.ended:
                raise self._hanging(assembly) from None
        except Exception:
            if not assembly.ended:
                raise
        finally:
            if response is not None:
                await response.aclose()
        assert response is not None
        return _Received(response=response, completion=assembly.completion(), first_token_ms=first_token_ms)

    def _hanging(self, assembly: Assembly) -> ModelError:
        """Nothing came for too long."""
        what = f"no piece of a reply within {self.endpoint.first_token_s:g} s"
        if assembly.brought:
            what = (
                f"the stream hangs: after {assembly.brought} pieces none came for {self.endpoint.stall_s:g} s"
            )
        return self._faults.error("timeout", what)

    def _headers_of(self, key: str) -> httpx2.Headers:
        """The headers of a call with this key: to make them anew costs as much as to write the body."""
        made = self._headers_by_key.get(key)
        if made is None:
            if len(self._headers_by_key) >= MAX_KEYS:
                self._headers_by_key.clear()
            made = httpx2.Headers({"Authorization": f"Bearer {key or NO_KEY}", **self._headers})
            self._headers_by_key[key] = made
        return made

    def _read(self, received: "_Received", *, model: ModelSettings, key: str, sent: int) -> ModelReply:
        """The reply in what came.

        Raises:
            ModelError: there is none, and the endpoint says why.
            BrokenReply: there is none.
        """
        headers, status = received.response.headers, received.response.status_code
        content, completion = received.content, received.completion
        if status != OK:
            raise self._faults.refused(status, headers, content, key=key)
        if completion is None:
            try:
                completion = orjson.loads(content)
            except orjson.JSONDecodeError:
                if is_html(headers, content):
                    raise self._faults.refused(status, headers, content, key=key) from None
                if content.lstrip().startswith((b"data:", b"event:", b":")):
                    raise BrokenReply("a stream of events, though none was asked for") from None
                raise BrokenReply(f"{len(content)} bytes that are no JSON") from None
            if not isinstance(completion, dict):
                raise BrokenReply("JSON that is no object")
            if completion.get("error"):
                raise self._faults.refused(status, headers, content, key=key)
        size = len(content) if content else len(dumps(completion))
        if size > MAX_REPLY_BYTES:
            raise BrokenReply(f"more than {MAX_REPLY_BYTES} bytes")
        reply = read_completion(completion, model=model.id, sent=sent, received=size)
        return replace(
            reply,
            request_id=name_of(headers.get("x-request-id")) or reply.request_id,
            simulated=headers.get(SIMULATED_HEADER) == "1",
            endpoint=self.endpoint.name,
            first_token_ms=received.first_token_ms,
        )

    def _broken(self, broken: BrokenReply | ErrorInStream, key: str) -> ModelError:
        if isinstance(broken, ErrorInStream):
            return self._faults.refused(OK, {}, broken.content, key=key)
        return self._faults.error("malformed", f"the reply is {broken}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Received:
    """What came back: the bytes of a body, or the completion that a stream made."""

    response: httpx2.Response
    content: bytes = b""
    completion: dict[str, Any] | None = None
    first_token_ms: float | None = None


async def bounded(pieces: AsyncIterator[bytes]) -> bytes:
    """The whole of a body; of one without an end no more than the bound is ever held.

    Raises:
        BrokenReply: it is longer.
    """
    held, size = [], 0
    async for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size > MAX_REPLY_BYTES:
            raise BrokenReply(f"more than {MAX_REPLY_BYTES} bytes")
    return b"".join(held)
