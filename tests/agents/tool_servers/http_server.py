"""A tool server over HTTP, by the mcp package, in this process so that it starts at once."""

import asyncio
import socket
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agents.configuration.values import ToolServer

KEY = "let-me-in-23"
WITHIN_S = 30.0


class HttpServer:
    """A server on one port over restarts, which can be killed.

    It answers 401 to whoever does not bring its key.

    Attributes:
        given_up: Calls of ``hang`` that it was told to give up, over all its lives.
    """

    def __init__(self) -> None:
        self.given_up = 0
        self._dropping = ""
        self._listening = _bound(0)
        self.port: int = self._listening.getsockname()[1]
        self._uvicorn: uvicorn.Server | None = None
        self._task: asyncio.Task[None] | None = None

    def settings(self, name: str = "http", key: str = KEY, **settings: Any) -> ToolServer:
        """Of the server, for a supervisor."""
        headers = {"Authorization": f"Bearer {key}"}
        return ToolServer(name=name, url=f"http://127.0.0.1:{self.port}/mcp", headers=headers, **settings)

    async def start(self) -> None:
        """Start it, and wait until it listens."""
        if self._listening.fileno() < 0:
            self._listening = _bound(self.port)
        config = uvicorn.Config(self._guarded(self._tools().streamable_http_app()), log_level="critical")
        self._uvicorn = uvicorn.Server(config)
        self._task = asyncio.create_task(self._uvicorn.serve([self._listening]))
        async with asyncio.timeout(WITHIN_S):
            while not self._uvicorn.started:
                await asyncio.sleep(0.005)

    async def kill(self) -> None:
        """End it as a power cut would: nobody listens, and connections break off."""
        if self._uvicorn is None or self._task is None:
            return
        for server in self._uvicorn.servers:
            server.close()  # and the socket with it
        for connection in tuple(self._uvicorn.server_state.connections):
            connection.transport.abort()
        self._uvicorn.should_exit = self._uvicorn.force_exit = True
        await self._task
        self._uvicorn = None

    def _tools(self) -> MCPServer[Any]:
        server: MCPServer[Any] = MCPServer("tests", log_level="CRITICAL")

        @server.tool()
        async def echo(text: str) -> str:
            """Give the text back."""
            return text

        @server.tool()
        async def hang() -> str:
            """Take for ever."""
            try:
                await anyio.sleep_forever()
            finally:
                self.given_up += 1
            return "at last"

        @server.tool()
        async def drop(at: str) -> str:
            """Break off the request that asks for it, at the ``start`` or in the ``body`` of its response."""
            self._dropping = at
            return "lost on its way"

        return server

    def _guarded(self, app: ASGIApp) -> ASGIApp:
        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            async def sent(message: Message) -> None:
                lost = self._dropping == "start" or b"lost on its way" in message.get("body", b"")
                if self._dropping and lost:
                    self._dropping = ""
                    self._break_off(scope["client"])
                await send(message)

            headers = dict(scope.get("headers", ()))
            if scope["type"] == "http" and headers.get(b"authorization") != f"Bearer {KEY}".encode():
                await send({"type": "http.response.start", "status": 401, "headers": []})
                await send({"type": "http.response.body", "body": b""})
            else:
                await app(scope, receive, sent)

        return guarded

    def _break_off(self, client: tuple[str, int]) -> None:
        assert self._uvicorn is not None
        for connection in tuple(self._uvicorn.server_state.connections):
            if connection.transport.get_extra_info("peername") == tuple(client):
                connection.transport.abort()


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    return bound
