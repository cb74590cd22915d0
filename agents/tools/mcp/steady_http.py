"""An HTTP client for a connection that many calls share."""

from collections.abc import AsyncIterator
from typing import Any, Final

import httpx2

BROKEN: Final = -32_099
"""Our own code, from the range that JSON-RPC 2.0 leaves to servers: one request got no answer."""

SESSION_GONE: Final = -32_098
"""Likewise: the server no longer knows our session, as after its restart; the request was not carried out."""

SESSION: Final = "mcp-session-id"
"""The header of a session (specification of 2025-03-26: 404 to a request with it means that it is gone)."""

MEANT: Final = frozenset({400, 404, 405})
"""Statuses of errors that the protocol gives a meaning."""


class SteadyClient(httpx2.AsyncClient):
    """A client in which a request that breaks off fails alone.

    The mcp package lets an error of one request end the whole connection and with it every other call
    under way. Right where nobody listens any more; wrong where one of many pooled connections was
    closed by the other side, as servers and proxies do at any time. Such a request gets an answer of
    our own that says so.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request.

        Raises:
            ConnectError, ConnectTimeout, ProxyError, UnsupportedProtocol: the server is not there.
        """
        try:
            response = await super().send(request, **options)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, httpx2.UnsupportedProtocol):
            raise
        except httpx2.TransportError as broken:
            return _answer(request, 503, BROKEN, f"the request broke off: {type(broken).__name__}")
        status = response.status_code
        as_json = response.headers.get("content-type", "").lower().startswith("application/json")
        if status == httpx2.codes.NOT_FOUND and SESSION in request.headers:
            await response.aclose()
            return _answer(request, status, SESSION_GONE, "it was started anew")
        if response.is_error and status not in MEANT and not as_json:
            await response.aclose()
            # The mcp package would not tell which status it was.
            return _answer(request, status, BROKEN, f"HTTP {status} {response.reason_phrase}".strip())
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _CutShort(response.stream)
        return response


def _answer(request: httpx2.Request, status: int, code: int, message: str) -> httpx2.Response:
    told = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return httpx2.Response(status, json=told, request=request)


class _CutShort(httpx2.AsyncByteStream):
    """A body that ends where it breaks off: what has come is no message then, and the call fails by that."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._stream:
                yield piece
        except httpx2.TransportError:
            return

    async def aclose(self) -> None:
        """Give the connection back."""
        await self._stream.aclose()
