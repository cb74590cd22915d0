"""A task of its own for each tool server: it starts the server, holds the connection and starts it again.

The mcp package ends a connection, and cancels the task that opened it, where its transport fails. So
that task does nothing else.
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import anyio
import structlog
from mcp import Client

from agents.configuration.values import ToolServer
from agents.tools.mcp import backoff
from agents.tools.mcp.connection import Watch, connect, where
from agents.tools.mcp.listing import Broken, ServerTool, list_tools
from agents.tools.mcp.outcomes import words

log = structlog.get_logger()

READY_S: Final = 5.0
"""Seconds that a call waits at most while its server is being started."""

CLOSE_S: Final = 15.0
"""Seconds to close; the mcp package ends a child process within about 7."""

Connect: TypeAlias = Callable[[ToolServer, Watch], AbstractAsyncContextManager[Client]]

Word: TypeAlias = Literal["starting", "up", "waiting", "closed"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Connection:
    """A connection that takes calls. ``lost`` is done once it takes none any more."""

    client: Client
    lost: "asyncio.Future[None]"


class Owner:
    """Keeps one server up.

    Args:
        server: What the configuration says of it.
        opened: Makes a connection.
        delay_s: Seconds to wait after so many failures in a row.
        up: Called each time that the server is up.

    Attributes:
        word: ``starting``, ``up``, ``waiting`` (it failed, and is started again later) or ``closed``.
        reason: Why it is not up, where that is known.
        tools: What it listed when it was up last, by the tools' own names.
        broken: Its tools that were left out.
    """

    def __init__(
        self,
        server: ToolServer,
        *,
        opened: Connect = connect,
        delay_s: Callable[[int], float] = backoff.delay_s,
        up: Callable[[], None],
    ) -> None:
        self.server = server
        self.word: Word = "starting"
        self.reason = ""
        self.tools: Mapping[str, ServerTool] = {}
        self.broken: tuple[Broken, ...] = ()
        self._opened, self._delay_s, self._told_up = opened, delay_s, up
        self._again_at = 0.0
        self._connection: Connection | None = None
        self._changed = asyncio.Condition()
        self._scope: anyio.CancelScope | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to start the server."""
        self._task = asyncio.create_task(self._keep_up(), name=f"tool server {self.server.name}")

    async def settled(self) -> None:
        """Wait until the start under way has succeeded or failed."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.word != "starting")

    async def close(self) -> None:
        """End the server; the connection is lost at once."""
        self.word, self.reason = "closed", "the worker stops"
        async with self._changed:
            self._changed.notify_all()
        if self._task is None:
            return
        if self._scope is not None:
            self._scope.cancel()
        else:
            self._task.cancel()
        _, late = await asyncio.wait({self._task}, timeout=CLOSE_S)
        for task in late:
            task.cancel()

    async def ready(self, within_s: float) -> Connection | None:
        """The connection; waited for while it is being made, but not through a backoff."""
        if self.word == "starting":
            try:
                async with asyncio.timeout(min(within_s, READY_S)):
                    await self.settled()
            except TimeoutError:
                return None
        return self._connection

    def why_away(self) -> str:
        """Why there is no connection, in words for a model."""
        match self.word:
            case "waiting":
                left = max(self._again_at - now(), 0.0)
                why = f" ({self.reason})" if self.reason else ""
                return f"it is away{why} and started again in {left:.0f} s"
            case "closed":
                return "the worker stops"
        return "it has not started yet"

    def end(self, connection: Connection, reason: str) -> None:
        """Give a connection up and make another; nothing where it is gone already."""
        if self._connection is connection:
            self.reason = reason
            self._lose(connection)
            if self._scope is not None:
                self._scope.cancel()

    def _lose(self, connection: Connection) -> None:
        """End the calls under way; until all is cleared up behind it, the server is away."""
        if self._connection is connection:
            self._connection = None
            if self.word == "up":
                self.word, self._again_at = "waiting", now()
        if not connection.lost.done():
            connection.lost.set_result(None)

    async def _keep_up(self) -> None:
        """Start the server, and start it again whenever it is gone, until the process closes it."""
        failures = 0
        while True:
            began = now()
            watch = Watch(server=self.server.name)
            reason = await self._one_life(watch)
            if self.word == "closed":
                return
            if watch.said:
                reason = f"{reason}; its last words: {watch.said[-1]}"
            failures = 1 if now() - began > backoff.MAX_S else failures + 1
            delay = self._delay_s(failures)
            self._again_at = now() + delay
            log.warning(
                "tool_server_away",
                server=self.server.name,
                where=where(self.server),
                reason=reason,
                said=list(watch.said)[-3:],
                failures=failures,
                again_in_s=round(delay, 1),
            )
            await self._turn_to("waiting", reason)
            await asyncio.sleep(delay)
            await self._turn_to("starting", reason)

    async def _one_life(self, watch: Watch) -> str:
        """Make a connection and hold it to its end. Gives the reason of its end."""
        me = asyncio.current_task()
        up = False
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + self.server.start_s) as self._scope:
                async with self._opened(self.server, watch) as client:
                    tools = await list_tools(client, self.server)
                    self._scope.deadline = math.inf
                    connection = Connection(client=client, lost=asyncio.get_running_loop().create_future())
                    try:
                        await self._up(connection, tools, watch)
                        up = True
                        await watch.ended.wait()
                        self.reason = "it ended the connection"
                    finally:
                        self._lose(connection)
        except asyncio.CancelledError:
            if me is not None and me.cancelling():
                raise  # ours: the process closes
            return "its transport was cancelled"
        except Exception as broken:  # noqa: BLE001 - whatever a server or its transport raises
            return words(broken)
        finally:
            self._scope = None
        if up:
            return self.reason
        return f"it did not start and list its tools within {self.server.start_s:g} s"

    async def _up(self, connection: Connection, tools: Mapping[str, ServerTool], watch: Watch) -> None:
        self.tools, self._connection = tools, connection
        self.broken = tuple(watch.broken.values())
        for broken in self.broken:
            log.error("tool_left_out", server=self.server.name, tool=broken.tool, reason=broken.reason)
        left_out = (broken.tool for broken in self.broken)
        missing = sorted(set(self.server.tools or ()).difference(tools, left_out))
        if missing:
            log.warning("tools_not_listed", server=self.server.name, tools=missing)
        log.info("tool_server_up", server=self.server.name, where=where(self.server), tools=len(tools))
        self._told_up()
        await self._turn_to("up", "")

    async def _turn_to(self, word: Word, reason: str) -> None:
        async with self._changed:
            if self.word != "closed":
                self.word, self.reason = word, reason
            self._changed.notify_all()


def now() -> float:
    """Seconds on the event loop's clock."""
    return asyncio.get_running_loop().time()
