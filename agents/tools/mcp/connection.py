"""One connection to a tool server: its client, what it says beside the protocol, and the word of its end."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self, TextIO, TypeAlias
from urllib.parse import urlsplit

import httpx2
import structlog
from anyio import ClosedResourceError
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCResponse, ServerNotification, jsonrpc_message_adapter
from pydantic import ValidationError

from agents.configuration.values import ToolServer
from agents.tools.mcp.listing import Broken, without_broken
from agents.tools.mcp.steady_http import SteadyClient

log = structlog.get_logger()

Streams: TypeAlias = tuple[Any, Any]
"""What is received and what is sent; the mcp package does not export their types."""

MAX_SAID: Final = 20
"""Lines of a server's stderr that are kept for the words of its end."""

MAX_LINE: Final = 500
"""Characters of such a line."""

MAX_NOISE: Final = 3
"""Times that one connection's noise is logged."""

MAX_EVENT: Final = 16_777_216
"""Bytes of one message of an HTTP server."""

READ_S: Final = 300.0
"""Seconds without a byte after which an HTTP request is given up at the earliest; calls end before that."""


@dataclass(slots=True, kw_only=True)
class Watch:
    """What becomes known of a connection while it lasts.

    Attributes:
        ended: The server has ended the connection.
        broken: Tools that were taken out of its listing.
        said: The last lines of its stderr.
    """

    server: str
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    broken: dict[str, Broken] = field(default_factory=dict)
    said: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_SAID))
    noise: int = 0

    async def heard(self, message: ServerNotification | Exception) -> None:
        """A message that answers nothing: what cannot be read is noise on stdout."""
        if isinstance(message, Exception):
            self.noise += 1
            if self.noise <= MAX_NOISE:
                log.warning("tool_server_noise", server=self.server, hint="stdout is for messages only")

    def say(self, line: str) -> None:
        """A line of its stderr."""
        if line.strip():
            self.said.append(line.rstrip()[:MAX_LINE])
            log.debug("tool_server_said", server=self.server, line=line.rstrip()[:MAX_LINE])


class WatchedStream:
    """A server's messages on their way to the client, without broken tools; the watch is told of its end."""

    def __init__(self, stream: Any, watch: Watch) -> None:
        self._stream, self._watch = stream, watch

    @property
    def last_context(self) -> object:
        """Of the transport's own stream: the context in which a message was sent."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        return self._looked_at(await self._stream.receive())

    async def aclose(self) -> None:
        """Close it."""
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return self._looked_at(await self._stream.__anext__())
        except (StopAsyncIteration, ClosedResourceError):
            self._watch.ended.set()
            raise

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool | None:
        done: bool | None = await self._stream.__aexit__(kind, error, where)
        return done

    def _looked_at(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(item, ValidationError):
            item = behind_noise(item) or item
        message = item.message if isinstance(item, SessionMessage) else None
        # Of all results only a listing of tools has this field.
        if isinstance(message, JSONRPCResponse) and isinstance(message.result.get("tools"), list):
            for broken in without_broken(message.result):
                self._watch.broken[broken.tool] = broken
        return item


def behind_noise(broken: ValidationError) -> SessionMessage | None:
    """The message that stands on one line behind something else, as of a server that prints a progress bar.

    Left as it is, its call would wait for its whole time.
    """
    line = broken.errors(include_url=False)[0]["input"]
    begins = line.find('{"jsonrpc"') if isinstance(line, str) else -1
    if begins <= 0:
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line[begins:], by_name=False))
    except ValidationError:
        return None


@asynccontextmanager
async def connect(server: ToolServer, watch: Watch, *, mode: str = "auto") -> AsyncIterator[Client]:
    """A client of the server, after the handshake. Only the task that opened it may close it.

    Args:
        server: Whose.
        watch: Told what becomes known meanwhile.
        mode: How the version of the protocol is agreed on, as :class:`mcp.Client` has it.

    Raises:
        OSError, MCPError, ExceptionGroup: it cannot be had; or, at the end, what ended it.
    """
    transport = _http(server, watch) if server.url else _stdio(server, watch)
    # No tool of ours is asked for by a server: neither sampling nor elicitation nor roots.
    async with Client(transport, mode=mode, message_handler=watch.heard, cache=None) as client:
        yield client


@asynccontextmanager
async def _stdio(server: ToolServer, watch: Watch) -> AsyncIterator[Streams]:
    program, *arguments = server.command
    parameters = StdioServerParameters(
        command=program,
        args=arguments,
        env=dict(server.environment),  # beside HOME, LOGNAME, PATH, SHELL, TERM and USER
        encoding_error_handler="replace",
    )
    async with _stderr(watch) as errors, stdio_client(parameters, errlog=errors) as (received, sent):
        errors.close()  # the server has its own; with ours open it would never end
        yield WatchedStream(received, watch), sent


@asynccontextmanager
async def _stderr(watch: Watch) -> AsyncIterator[TextIO]:
    """Where a server's stderr goes: to the watch, not among our own lines."""
    here, there = os.pipe()
    with os.fdopen(here, "rb", buffering=0) as receiving, os.fdopen(there, "w", encoding="utf-8") as errors:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), receiving
        )
        listening = asyncio.create_task(_listen(reader, watch))
        try:
            yield errors
        finally:
            listening.cancel()
            transport.close()


async def _listen(reader: asyncio.StreamReader, watch: Watch) -> None:
    rest = ""
    while piece := await reader.read(65_536):
        *lines, rest = (rest + piece.decode("utf-8", "replace")).split("\n")
        for line in lines:
            watch.say(line)
        rest = rest[:MAX_LINE]
    watch.say(rest)


@asynccontextmanager
async def _http(server: ToolServer, watch: Watch) -> AsyncIterator[Streams]:
    def client() -> SteadyClient:
        return SteadyClient(
            headers=dict(server.headers),
            timeout=httpx2.Timeout(server.start_s, read=max(READ_S, 2 * server.call_s)),
            # One for each call, some for what the protocol has beside calls.
            limits=httpx2.Limits(max_connections=server.concurrency + 4),
        )

    # In a thread, because reading the system's certificates blocks.
    http = await asyncio.to_thread(client)
    streams = streamable_http_client(server.url, http_client=http, max_sse_event_size=MAX_EVENT)
    async with http, streams as (received, sent):
        yield WatchedStream(received, watch), sent


def where(server: ToolServer) -> str:
    """What the server is, for logs: its program, or its address without what may be secret."""
    if not server.url:
        return server.command[0] if server.command else ""
    with suppress(ValueError):
        parts = urlsplit(server.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return "an address that cannot be read"
