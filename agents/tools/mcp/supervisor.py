"""One tool server: a task of its own holds the connection, and everybody's calls go through it.

The mcp package ends a connection, and cancels the task that opened it, where its transport fails. So
that task does nothing else, and calls run in tasks apart: a lane gets a reply, never an exception.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import anyio
import structlog
from mcp import Client
from mcp.types import CallToolResult

from agents.configuration.values import ToolServer
from agents.ports import ToolReply
from agents.tools.mcp import backoff
from agents.tools.mcp.connection import Watch, connect, where
from agents.tools.mcp.health import Health, NotAsked
from agents.tools.mcp.listing import ServerTool, list_tools
from agents.tools.mcp.outcomes import Outcome, lost, outcome, timed_out, words
from agents.tools.mcp.turns import NoTurn, Turns
from streams.core.values import Json

log = structlog.get_logger()

READY_S: Final = 5.0
"""Seconds that a call waits at most while its server is being started."""

GRACE_S: Final = 0.5
"""Seconds that a call may take beyond its deadline, to tell the server that nobody waits for it."""

CLOSE_S: Final = 15.0
"""Seconds to close; the mcp package ends a child process within about 7."""

Connect: TypeAlias = Callable[[ToolServer, Watch], AbstractAsyncContextManager[Client]]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Connection:
    """A connection that takes calls. ``lost`` is done once it takes none any more."""

    client: Client
    lost: "asyncio.Future[None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How a server does.

    Attributes:
        word: ``starting``, ``up``, ``waiting`` (it failed, and is started again later) or ``closed``.
        reason: Why it is not up, where that is known.
        tools: How many tools it offers.
        broken: Its tools that were left out, each with what is wrong with it.
        failure_rate: Share of its last calls that failed, 0 to 1.
        latency_ms: Median of its last calls that were answered, in milliseconds.
    """

    word: str
    reason: str = ""
    tools: int = 0
    broken: tuple[tuple[str, str], ...] = ()
    failure_rate: float = 0.0
    latency_ms: float | None = None


class Supervisor:
    """Starts one server, keeps it up, and calls its tools.

    Args:
        server: What the configuration says of it.
        opened: Makes a connection.
        delay_s: Seconds to wait after so many failures in a row.
    """

    def __init__(
        self,
        server: ToolServer,
        *,
        opened: Connect = connect,
        delay_s: Callable[[int], float] = backoff.delay_s,
    ) -> None:
        self.server = server
        self.tools: Mapping[str, ServerTool] = {}
        self.health = Health()
        self._turns = Turns(concurrency=server.concurrency, per_minute=server.requests_per_minute)
        self._opened, self._delay_s = opened, delay_s
        self._word, self._reason, self._again_at = "starting", "", 0.0
        self._broken: tuple[tuple[str, str], ...] = ()
        self._connection: Connection | None = None
        self._changed = asyncio.Condition()
        self._scope: anyio.CancelScope | None = None
        self._owner: asyncio.Task[None] | None = None
        self._calls: set[asyncio.Task[CallToolResult]] = set()

    @property
    def state(self) -> State:
        """How it does now."""
        return State(
            word=self._word,
            reason=self._reason,
            tools=len(self.tools),
            broken=self._broken,
            failure_rate=self.health.failure_rate,
            latency_ms=self.health.latency_ms,
        )

    def start(self) -> None:
        """Begin to start the server."""
        self._owner = asyncio.create_task(self._keep_up(), name=f"tool server {self.server.name}")

    async def settled(self) -> None:
        """Wait until it is up, or its first start has failed."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._word != "starting")

    async def close(self) -> None:
        """End the server; calls under way get a reply at once."""
        self._word, self._reason = "closed", "the worker stops"
        async with self._changed:
            self._changed.notify_all()
        if self._owner is None:
            return
        if self._scope is not None:
            self._scope.cancel()
        else:
            self._owner.cancel()
        _, late = await asyncio.wait({self._owner}, timeout=CLOSE_S)
        for task in late:
            task.cancel()
        for call in tuple(self._calls):
            call.cancel()

    async def call(self, tool: str, arguments: Mapping[str, Json], *, timeout_s: float) -> ToolReply:
        """Call one of its tools, by the tool's own name. Never raises: what goes wrong is the reply.

        A call is made at most once. Where its outcome is not known the reply says so.
        """
        began = time.perf_counter()
        found = await self._outcome(tool, arguments, min(timeout_s, self.server.call_s))
        latency_ms = (time.perf_counter() - began) * 1_000
        return ToolReply(output=found.output, error=found.error, latency_ms=latency_ms)

    async def _outcome(self, tool: str, arguments: Mapping[str, Json], within_s: float) -> Outcome:
        listed = self.tools.get(tool)
        if listed is None:
            return self._no_such_tool(tool)
        wrong = listed.wrong(arguments)
        if wrong is not None:
            told: Json = {"message": wrong, "parameters": dict(listed.spec.parameters)}
            return Outcome(output=told, error="bad_arguments", answered=None)
        until = _now() + within_s
        try:
            probe = self.health.begin(_now())
        except NotAsked as words_of_it:
            return self._unavailable(str(words_of_it))
        settled = False
        try:
            async with self._turns.turn(within_s):
                connection = await self._ready(until)
                if connection is None:
                    return self._unavailable(self._why_away())
                asked = _now()
                found = await self._ask(connection, tool, arguments, max(until - asked, 0.0))
                settled = self._settle(found, connection, (_now() - asked) * 1_000, probe=probe)
                return found
        except NoTurn as words_of_it:
            return self._unavailable(str(words_of_it))
        finally:
            if not settled:
                self.health.dropped(_now(), probe=probe)

    async def _ready(self, until: float) -> Connection | None:
        """The connection; waited for while it is being made, but not through a backoff."""
        if self._word == "starting":
            try:
                within_s = min(max(until - _now(), 0.0), READY_S)
                async with asyncio.timeout(within_s), self._changed:
                    await self._changed.wait_for(lambda: self._word != "starting")
            except TimeoutError:
                return None
        return self._connection

    async def _ask(
        self, connection: Connection, tool: str, arguments: Mapping[str, Json], within_s: float
    ) -> Outcome:
        """Make a call and wait for its result, the end of its time or the end of the connection."""
        # A task of its own: what the mcp package does when a call is given up may take seconds.
        call = asyncio.create_task(
            connection.client.call_tool(tool, dict(arguments), read_timeout_seconds=within_s)
        )
        self._calls.add(call)
        call.add_done_callback(self._forget)
        either: set[asyncio.Future[Any]] = {call, connection.lost}
        try:
            await asyncio.wait(either, timeout=within_s + GRACE_S, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            call.cancel()  # the server is told by that
            raise
        if call.done():
            return outcome(call, self.server.name, within_s)
        call.cancel()
        if connection.lost.done():
            return lost(self.server.name, self._reason)
        return timed_out(self.server.name, within_s)

    def _forget(self, call: "asyncio.Task[CallToolResult]") -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # it has been looked at, or nobody waits for it any more

    def _settle(self, found: Outcome, connection: Connection, latency_ms: float, *, probe: bool) -> bool:
        """Reckon a call's outcome to the server's health; a connection that is of no use is given up."""
        if found.answered is None:
            return False
        if found.answered:
            self.health.answered(_now(), latency_ms, probe=probe)
        else:
            opened = self.health.failed(_now(), probe=probe)
            why = found.gone
            if opened and found.error == "unavailable":
                why = why or "its requests break off"
            elif probe and found.error == "timeout":
                why = "it does not answer any more"
            if why:
                self._end(connection, why)
        return True

    def _end(self, connection: Connection, reason: str) -> None:
        """Give a connection up; the owner makes another."""
        if self._connection is connection:
            self._reason = reason
            self._lose(connection)
            if self._scope is not None:
                self._scope.cancel()

    def _lose(self, connection: Connection) -> None:
        """End the calls under way; until the owner has cleared up behind it, the server is away."""
        if self._connection is connection:
            self._connection = None
            if self._word == "up":
                self._word, self._again_at = "waiting", _now()
        if not connection.lost.done():
            connection.lost.set_result(None)

    async def _keep_up(self) -> None:
        """Start the server, and start it again whenever it is gone, until the process closes it."""
        failures = 0
        while self._word != "closed":
            began = _now()
            watch = Watch(server=self.server.name)
            reason = await self._one_life(watch)
            if self._word == "closed":
                break
            failures = 1 if _now() - began > backoff.MAX_S else failures + 1
            delay = self._delay_s(failures)
            self._again_at = _now() + delay
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
                        self._reason = "it ended the connection"
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
            return self._reason
        return f"it did not start and list its tools within {self.server.start_s:g} s"

    async def _up(self, connection: Connection, tools: Mapping[str, ServerTool], watch: Watch) -> None:
        self.tools, self._connection = tools, connection
        self.health.restarted(_now())
        self._broken = tuple((broken.tool, broken.reason) for broken in watch.broken.values())
        for tool, reason in self._broken:
            log.error("tool_left_out", server=self.server.name, tool=tool, reason=reason)
        missing = sorted(
            set(self.server.tools or ()).difference(tools, (broken for broken, _ in self._broken))
        )
        if missing:
            log.warning("tools_not_listed", server=self.server.name, tools=missing)
        log.info("tool_server_up", server=self.server.name, where=where(self.server), tools=len(tools))
        await self._turn_to("up", "")

    async def _turn_to(self, word: str, reason: str) -> None:
        async with self._changed:
            if self._word != "closed":
                self._word, self._reason = word, reason
            self._changed.notify_all()

    def _no_such_tool(self, tool: str) -> Outcome:
        if self._word != "up":
            return self._unavailable(self._why_away())
        name = f"{self.server.name}.{tool}"
        for broken, reason in self._broken:
            if broken == tool:
                return self._unavailable(f"its tool {name} is broken: {reason}")
        return Outcome(output=f"there is no tool {name}", error="unknown_tool", answered=None)

    def _why_away(self) -> str:
        match self._word:
            case "waiting":
                left = max(self._again_at - _now(), 0.0)
                why = f" ({self._reason})" if self._reason else ""
                return f"it is away{why} and started again in {left:.0f} s"
            case "closed":
                return "the worker stops"
        return "it has not started yet"

    def _unavailable(self, why: str) -> Outcome:
        said = f"tool server {self.server.name} is not available: {why}. The call was not made."
        return Outcome(output=said, error="unavailable", answered=None)


def _now() -> float:
    """Seconds on the event loop's clock."""
    return asyncio.get_running_loop().time()
